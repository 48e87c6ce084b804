//! `[run] settle`: a time of load on the emulated storage, or load until it is steady.

use std::time::Duration;

use spindle_base::Mistake;
use spindle_stats::settling;

use super::span::{DurationOr, Ending, Rule, Span};
use crate::record::{StartState, spelling};
use crate::scenario::file::{Once, RunTable};

/// Load between the warm-up and the measured window.
pub type Settle = Span<UntilSteady>;

/// The load is steady: [`crate::observe::settling`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UntilSteady;

impl Rule for UntilSteady {
    const WORDS: &'static str = "until steady";
}

impl Ending for UntilSteady {
    const KEY: &'static str = "settle";
    const SHORTEST: Duration = Duration::from_secs(settling::SHORTEST as u64);
}

/// A run that decides itself how many trials it needs also decides when each is steady, unless the scenario says how
/// long the load is to go on before the window.
fn is_left_to_the_run(run: &RunTable, start: StartState) -> bool {
    let has_window = run.measure != DurationOr::Else(Once) && start != StartState::Cold;
    let has_time = matches!(run.warm_up, Some(DurationOr::For(_)));
    has_window && run.trials.is_none() && !has_time
}

pub(super) fn rule(run: &RunTable, start: StartState) -> Result<Settle, Mistake> {
    let meaningless =
        |why: String| Err(Mistake::at("run.settle", format!("has no meaning with {why}; leave it out")));
    let with_start = || format!("start = \"{}\"", spelling(&start));
    let until_steady = DurationOr::Else(UntilSteady);
    let settle = run.settle.or_else(|| is_left_to_the_run(run, start).then_some(until_steady));
    match settle {
        Some(_) if start == StartState::Cold => meaningless(with_start()),
        Some(DurationOr::Else(_)) if run.measure == DurationOr::Else(Once) => {
            meaningless("measure = \"once\", before which there is no load".to_owned())
        }
        Some(DurationOr::For(_)) if start != StartState::WarmFast && run.settle_at_most.is_none() => {
            meaningless(with_start())
        }
        settle => Span::of(settle.unwrap_or(DurationOr::For(Duration::ZERO)), run.settle_at_most),
    }
}
