//! A state as one line, where no screen can be drawn.

use std::time::{Duration, Instant};

use anyhow::Result;
use itertools::Itertools as _;
use spindle_base::text;

use super::follow::{Followed, News};
use super::state::{State, TrialState, now_ms};
use crate::host::interrupt::Interrupt;
use crate::record::StorageSeries;
use crate::report::format::{number, percent};

/// From one line to the next.
const INTERVAL: Duration = Duration::from_secs(5);
/// Longest time before a signal is noticed.
const POLL: Duration = Duration::from_millis(100);

/// How watching a run ended.
#[derive(Debug)]
pub enum Ending {
    /// The user left, and the run goes on.
    Left,
    /// The run ended; its last state, if there was one.
    Over(Option<Box<State>>),
}

/// Prints a line every few seconds, by `print`.
///
/// # Errors
/// The run sent no state, or the line could not be printed.
pub fn show(
    followed: &Followed,
    interrupt: &Interrupt,
    print: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<Ending> {
    let (mut last, mut printed_at): (Option<Box<State>>, Option<Instant>) = (None, None);
    while !interrupt.is_set() {
        match followed.news(POLL)? {
            Some(News::State(state)) => last = Some(state),
            Some(News::End) => return Ok(Ending::Over(last)),
            None => {}
        }
        let is_due = printed_at.is_none_or(|at| at.elapsed() >= INTERVAL);
        if let Some(state) = last.as_ref().filter(|state| is_due && !state.is_over) {
            print(&line(state, now_ms()))?;
            printed_at = Some(Instant::now());
        }
    }
    Ok(Ending::Left)
}

/// The state, with the times at `now_ms`.
pub fn line(state: &State, now_ms: u64) -> String {
    let standing = state.standing_at(now_ms);
    let progress = format!(
        "{} of {} trials done, {}",
        standing.trials_done,
        standing.trials_total,
        standing.left_words()
    );
    match &state.trial {
        Some(trial) => [progress].into_iter().chain(parts(trial, now_ms)).join("; "),
        None => [progress, standing.activity].into_iter().filter(|part| !part.is_empty()).join("; "),
    }
}

fn parts(trial: &TrialState, now_ms: u64) -> Vec<String> {
    let mut parts = vec![format!("{}: {}", trial.title, phase_words(trial, now_ms))];
    if let Some(rate) = trial.series.transactions_per_s.last() {
        let latency = trial.series.p99_ms.last().map(|p99| format!(", p99 {} ms", number(*p99)));
        parts.push(format!("{} transactions/s{}", number(*rate), latency.unwrap_or_default()));
    }
    for storage in &trial.storage {
        let operations = operations(&storage.series);
        let words = operations.iter().filter(|operation| operation.per_s > 0.0);
        let words = words
            .map(|Operation { name, per_s, ms }| format!("{} {name}/s of {} ms", number(*per_s), number(*ms)))
            .join(", ");
        if !words.is_empty() {
            parts.push(format!("{} on {}: {words}", storage.files, storage.stack));
        }
    }
    parts.extend(trial.cpu.map(|cpu| format!("cores {} busy", percent(cpu.busy))));
    let bottleneck = trial.bottleneck.as_ref();
    parts.extend(bottleneck.map(|bottleneck| format!("bottleneck so far: {}", bottleneck.kind.name())));
    parts
}

/// The last second of one kind of request.
pub(super) struct Operation {
    pub name: &'static str,
    pub per_s: f64,
    pub ms: f64,
}

pub(super) fn operations(series: &StorageSeries) -> [Operation; 3] {
    let last = |values: &[f64]| values.last().copied().unwrap_or(0.0);
    let operation = |name, per_s: &[f64], ms: &[f64]| Operation { name, per_s: last(per_s), ms: last(ms) };
    [
        operation("reads", &series.read_iops, &series.read_latency_ms),
        operation("writes", &series.write_iops, &series.write_latency_ms),
        operation("flushes", &series.flushes_per_s, &series.flush_latency_ms),
    ]
}

/// `measure, 34 s of 1 min` or `settle, 34 s of at most 5 min`; with dilation, in dilated time.
pub(super) fn phase_words(trial: &TrialState, now_ms: u64) -> String {
    let phase = &trial.phase;
    let real = Duration::from_millis(now_ms.saturating_sub(phase.begun_at_ms));
    let elapsed = Duration::from_secs(trial.dilation.dilated(real).as_secs());
    let words = match phase.planned_s.map(Duration::from_secs_f64) {
        Some(planned) => {
            let of = if phase.is_bound { "of at most" } else { "of" };
            format!(
                "{}, {} {of} {}",
                phase.name,
                text::duration(elapsed.min(planned)),
                text::duration(planned)
            )
        }
        None => format!("{}, {}", phase.name, text::duration(elapsed)),
    };
    match trial.dilation.is_none() {
        true => words,
        false => format!("{words} in time dilated {} times", trial.dilation),
    }
}

/// What is left to say when the run has ended. `report` exists or not.
pub fn last_words(state: &State, report_is_there: bool) -> String {
    let standing = &state.standing;
    let (done, total) = (standing.trials_done, standing.trials_total);
    let result = standing.last_result.iter().map(|result| format!("[{done}/{total}] {result}\n"));
    let trials = format!("{done} of {total} trials are done");
    let end = match (state.is_over, report_is_there) {
        (true, true) => format!("report: {}\n", text::one_line(&state.report.to_string_lossy())),
        (true, false) => format!("the run wrote no report: {trials}\n"),
        (false, _) => format!("the run was stopped: {trials}\n"),
    };
    result.chain([end]).collect()
}
