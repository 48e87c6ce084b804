//! Progress of a run: a bar with the time left on a terminal, plain lines elsewhere. All output goes to
//! standard error.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use spindle_base::passwords;
use spindle_base::text;

#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    trials_total: usize,
    trials_done: usize,
    /// Estimate by the plan, until the first trial ends.
    planned_per_trial: Duration,
    spent_on_trials: Duration,
    trials_timed: u32,
    trial_started: Option<Instant>,
    /// The plan's estimate of the remaining loads.
    loads_left: Duration,
    activity: String,
}

impl Progress {
    /// Starts with `trials_done` trials from an earlier run.
    pub fn new(trials_total: usize, trials_done: usize, per_trial: Duration, loads: Duration) -> Progress {
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let bar = terminal.then(|| {
            let bar = ProgressBar::with_draw_target(Some(trials_total as u64), ProgressDrawTarget::stderr());
            // Without colour, so that NO_COLOR needs no second style.
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len}  {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_position(trials_done as u64);
            bar
        });
        Progress {
            bar,
            trials_total,
            trials_done,
            planned_per_trial: per_trial,
            spent_on_trials: Duration::ZERO,
            trials_timed: 0,
            trial_started: None,
            loads_left: loads,
            activity: String::new(),
        }
    }

    /// Prints a permanent line.
    pub fn say(&self, line: &str) {
        let line = shown(line);
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    /// Sets the current activity. Only a terminal shows it.
    pub fn activity(&mut self, activity: String) {
        self.activity = shown(&activity);
        self.tick();
    }

    /// Updates the time left; called about once a second.
    pub fn tick(&self) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{}; {}", self.activity, self.left_text()));
        }
    }

    pub fn load_finished(&mut self) {
        self.loads_left = Duration::ZERO;
    }

    pub fn trial_started(&mut self) {
        self.trial_started = Some(Instant::now());
    }

    pub fn trial_finished(&mut self, line: &str) {
        if let Some(started) = self.trial_started.take() {
            self.spent_on_trials += started.elapsed();
            self.trials_timed += 1;
        }
        self.trials_done += 1;
        let left = if self.trials_done < self.trials_total && self.bar.is_none() {
            format!("; {}", self.left_text())
        } else {
            String::new()
        };
        self.say(&format!("[{}/{}] {line}{left}", self.trials_done, self.trials_total));
        if let Some(bar) = &self.bar {
            bar.set_position(self.trials_done as u64);
        }
    }

    fn left(&self) -> Duration {
        let per_trial = self.spent_on_trials.checked_div(self.trials_timed).unwrap_or(self.planned_per_trial);
        let running = self.trial_started.map_or(Duration::ZERO, |started| started.elapsed().min(per_trial));
        let trials = per_trial * (self.trials_total - self.trials_done) as u32;
        self.loads_left + trials.saturating_sub(running)
    }

    fn left_text(&self) -> String {
        let seconds = self.left().as_secs_f64();
        // An estimate does not need single seconds.
        let step = if seconds < 60.0 { 5.0 } else { 30.0 };
        let rounded = (seconds / step).ceil() * step;
        format!("about {} left", text::duration(Duration::from_secs_f64(rounded)))
    }
}

/// Makes a line safe to print, because it contains titles and errors.
fn shown(line: &str) -> String {
    text::one_line(&passwords::masked(line))
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
