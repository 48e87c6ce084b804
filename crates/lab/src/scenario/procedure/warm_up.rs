//! `[run] warm_up`: a time of load, or load until the server's cache is warm.

use std::time::Duration;

use spindle_base::Mistake;

use super::span::{DurationOr, Ending, Rule, Span};
use crate::record::StartState;
use crate::scenario::file::RunTable;

/// Load before the settling and the measured window.
pub type WarmUp = Span<UntilWarm>;

/// The server's cache is warm: [`crate::observe::warmth`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UntilWarm;

impl Rule for UntilWarm {
    const WORDS: &'static str = "until warm";
}

impl Ending for UntilWarm {
    const KEY: &'static str = "warm_up";
    const SHORTEST: Duration = Duration::from_secs(1);
}

/// `unless_given` is the warm-up of a scenario that has none.
pub(super) fn rule(run: &RunTable, start: StartState, unless_given: Duration) -> Result<WarmUp, Mistake> {
    if run.warm_up == Some(DurationOr::Else(UntilWarm)) && start != StartState::WarmFast {
        let message = format!(
            "\"{}\" needs start = \"warm-fast\": on the emulated storage it can take hours; give a time",
            UntilWarm::WORDS
        );
        return Err(Mistake::at("run.warm_up", message));
    }
    Span::of(run.warm_up.unwrap_or(DurationOr::For(unless_given)), run.warm_up_at_most)
}
