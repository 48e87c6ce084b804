//! Progress of a run: a bar with the time left on a terminal, plain lines elsewhere. All output goes to
//! standard error.

use std::fmt::{self, Debug, Formatter};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use spindle_base::passwords;
use spindle_base::text;

/// The progress of a run at one moment, for other programs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Standing {
    pub trials_done: u64,
    pub trials_total: u64,
    /// Real time.
    pub left_s: f64,
    pub activity: String,
    /// The line about the last trial.
    pub last_result: Option<String>,
}

impl Standing {
    /// `about 4 min 30 s left`.
    pub fn left_words(&self) -> String {
        // An estimate does not need single seconds.
        let step = if self.left_s < 60.0 { 5.0 } else { 30.0 };
        let rounded = (self.left_s / step).ceil() * step;
        format!("about {} left", text::duration(Duration::from_secs_f64(rounded)))
    }
}

/// Gets the standing of a run whenever it may have changed.
#[derive(Default)]
struct Listener(Option<Box<dyn Fn(Standing)>>);

impl Debug for Listener {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "Listener" } else { "None" })
    }
}

#[derive(Debug)]
pub struct Progress {
    /// Hidden unless standard error is a terminal. Its length and position count trials.
    bar: ProgressBar,
    /// Estimate by the plan, until the first trial ends.
    planned_per_trial: Duration,
    spent_on_trials: Duration,
    trials_timed: u32,
    trial_started: Option<Instant>,
    /// The plan's estimate of the remaining loads.
    loads_left: Duration,
    activity: String,
    last_result: Option<String>,
    listener: Listener,
}

impl Progress {
    /// Starts with `trials_done` trials from an earlier run.
    pub fn new(trials_total: usize, trials_done: usize, per_trial: Duration, loads: Duration) -> Progress {
        // Without colour, so that NO_COLOR needs no second style.
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len}  {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(trials_total as u64).with_style(style).with_position(trials_done as u64);
        Progress {
            bar,
            planned_per_trial: per_trial,
            spent_on_trials: Duration::ZERO,
            trials_timed: 0,
            trial_started: None,
            loads_left: loads,
            activity: String::new(),
            last_result: None,
            listener: Listener::default(),
        }
    }

    /// Tells the listener the present standing, and each later one.
    pub fn listen(&mut self, listener: impl Fn(Standing) + 'static) {
        self.listener = Listener(Some(Box::new(listener)));
        self.tell();
    }

    fn tell(&self) {
        if let Some(listener) = &self.listener.0 {
            listener(self.standing());
        }
    }

    pub fn standing(&self) -> Standing {
        Standing {
            trials_done: self.bar.position(),
            trials_total: self.bar.length().unwrap_or_default(),
            left_s: self.left().as_secs_f64(),
            activity: self.activity.clone(),
            last_result: self.last_result.clone(),
        }
    }

    /// Prints a permanent line.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{}", shown(line)));
    }

    /// Sets the current activity. Only a terminal shows it.
    pub fn activity(&mut self, activity: String) {
        self.activity = shown(&activity);
        self.tick();
    }

    /// Updates the time left; called about once a second.
    pub fn tick(&self) {
        self.bar.set_message(format!("{}; {}", self.activity, self.left_text()));
        self.tell();
    }

    /// Sets how many trials are still to come.
    pub fn expect(&self, trials_left: u64) {
        self.bar.set_length(self.bar.position() + trials_left);
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
        self.bar.inc(1);
        self.last_result = Some(shown(line));
        self.tell();
        let left = if self.trials_left() > 0 && self.bar.is_hidden() {
            format!("; {}", self.left_text())
        } else {
            String::new()
        };
        self.say(&format!(
            "[{}/{}] {line}{left}",
            self.bar.position(),
            self.bar.length().unwrap_or_default()
        ));
    }

    fn trials_left(&self) -> u32 {
        self.bar.length().unwrap_or_default().saturating_sub(self.bar.position()) as u32
    }

    fn left(&self) -> Duration {
        let per_trial = self.spent_on_trials.checked_div(self.trials_timed).unwrap_or(self.planned_per_trial);
        let running = self.trial_started.map_or(Duration::ZERO, |started| started.elapsed().min(per_trial));
        let trials = per_trial * self.trials_left();
        self.loads_left + trials.saturating_sub(running)
    }

    fn left_text(&self) -> String {
        self.standing().left_words()
    }
}

/// Makes a line safe to print, because it contains titles and errors.
fn shown(line: &str) -> String {
    text::one_line(&passwords::masked(line))
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A wait before a run begins. A terminal shows the time so far; elsewhere each new party is a line.
#[derive(Debug)]
pub struct Waiting {
    bar: ProgressBar,
    begun: Instant,
    last: Option<String>,
}

impl Waiting {
    pub fn begin() -> Waiting {
        let style =
            ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
        Waiting { bar: ProgressBar::new_spinner().with_style(style), begun: Instant::now(), last: None }
    }

    /// Called several times a second. `party` is the same as long as the awaited are; `words` may change.
    pub fn for_party(&mut self, party: String, words: &str) {
        let so_far = text::duration(Duration::from_secs(self.begun.elapsed().as_secs()));
        self.bar.set_message(shown(&format!("waiting for {words}, {so_far} so far (Ctrl-C gives up)")));
        let is_new = self.last.as_ref() != Some(&party);
        self.last = Some(party);
        if is_new && self.bar.is_hidden() {
            eprintln!("{}", shown(&format!("waiting for {words}")));
        }
    }

    /// Says how long it was, if it was a wait at all.
    pub fn end(self) {
        self.bar.finish_and_clear();
        if self.last.is_some() {
            eprintln!("waited {}", text::duration(self.begun.elapsed()));
        }
    }
}
