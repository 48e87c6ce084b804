//! The verdict of a pair of cells: a word that names a decision, and its reason.
//!
//! The interval of the ratio decides, by [`spindle_stats::equivalence`]. Before that, [`rules`] ask whether the
//! ratio is of what was compared: a ratio that the cores or the load generator limited is a bound at best.

mod evidence;
mod expectation;
mod rules;

use itertools::Itertools as _;
use serde::Serialize;
use spindle_stats::{
    Answer, CONFIDENCE, Interval, Known, Sample, answer, compare, is_not_worse, more_trials,
};

use super::advice::too_few_trials;
use super::experiment::Apart;
use super::view::{Ratio, metric, samples};
use super::{Records, format, precision};
use crate::record::Cell;
use evidence::Evidence;
pub(crate) use evidence::{is_limited_by_cores, puts_off_writes};
pub use expectation::{Expectation, Met};
use spindle_base::text::plural;

/// A difference up to this share does not matter, unless the user says otherwise.
pub const WITHIN: f64 = 0.05;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Word {
    #[serde(rename = "better")]
    Better,
    #[serde(rename = "worse")]
    Worse,
    /// The whole interval lies within the margin.
    #[serde(rename = "same")]
    Same,
    #[serde(rename = "not known yet")]
    NotKnown,
    #[serde(rename = "not comparable")]
    NotComparable,
}

/// What decides instead of the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    Cores,
    LoadGenerator,
    Lateness,
}

/// The true ratio is this, compared with the measured one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Bound {
    #[serde(rename = "at least")]
    AtLeast,
    #[serde(rename = "at most")]
    AtMost,
}

/// The answer to "is the candidate better than the baseline?".
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    pub word: Word,
    /// Continues the word after a colon.
    pub reason: String,
    /// Present if the measured ratio is a bound of the true one.
    pub bound: Option<Bound>,
    /// What limited one of the cells instead of its storage.
    pub limited_by: Option<Limit>,
    /// The margin, as a share.
    pub within: f64,
    /// Whether the candidate is at most the margin worse. It can be known before the word is.
    pub not_worse: Option<bool>,
    /// Trials of each cell that an answer still takes, predicted. Only for [`Word::NotKnown`].
    pub more_trials: Option<u32>,
    /// What an answer takes, in words: the end of the reason. Only for [`Word::NotKnown`].
    pub takes: Option<String>,
}

/// A cell, and the records that have its trials.
#[derive(Debug, Clone, Copy)]
pub struct CellOf<'a> {
    pub records: &'a Records,
    pub cell: &'a Cell,
}

/// A pair that was compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// `None` without two figures to divide.
    pub ratio: Option<Ratio>,
    pub verdict: Verdict,
}

/// Compares two cells. Trials are paired by block if both are of one run.
pub fn judge(baseline: CellOf<'_>, candidate: CellOf<'_>, same_run: bool, within: f64) -> Judged {
    let not_comparable =
        |reason: String| Judged { ratio: None, verdict: Verdict::new(Word::NotComparable, reason, within) };
    for side in [baseline, candidate] {
        if metric(side.records, &side.cell.name).is_none() {
            return not_comparable(format!("{} has no measurement", side.cell.name));
        }
    }
    if let Some(reason) = metrics_differ(baseline, candidate) {
        return not_comparable(reason);
    }
    let lower_is_better =
        metric(candidate.records, &candidate.cell.name).is_some_and(|metric| metric.lower_is_better);
    let baseline_samples = samples(baseline.records, &baseline.cell.name);
    let mut candidate_samples = samples(candidate.records, &candidate.cell.name);
    if !same_run {
        // Blocks of two runs have nothing in common but their numbers. The offset keeps the second run's
        // blocks apart.
        let last = baseline_samples.iter().map(|sample| sample.block).max().unwrap_or_default();
        candidate_samples.iter_mut().for_each(|sample| sample.block += last + 1);
    }
    // Two runs have no block in common, so the rule that ended one of them does not hold for both.
    let until = baseline.records.header.scenario.until.filter(|_| same_run);
    let comparison = match &until {
        Some(until) => precision::comparison(&baseline_samples, &candidate_samples, until),
        None => compare(&baseline_samples, &candidate_samples, CONFIDENCE),
    };
    let Some(comparison) = comparison else {
        return not_comparable("one of them did no work".to_owned());
    };
    let sameness_factor = comparison.sameness_factor;
    let merit = comparison
        .interval
        .map(|interval| Known { interval: merit(interval, lower_is_better), sameness_factor });
    let verdict = Pair { baseline, candidate, lower_is_better, within }.verdict(
        merit,
        &baseline_samples,
        &candidate_samples,
    );
    Judged { ratio: Some(Ratio::new(&comparison)), verdict }
}

/// The interval of the ratio where the larger figure is the better one.
fn merit(interval: Interval, lower_is_better: bool) -> Interval {
    match lower_is_better {
        true => Interval { low: 1.0 / interval.high, high: 1.0 / interval.low },
        false => interval,
    }
}

/// A sentence if both cells are measured, by different metrics.
pub(super) fn metrics_differ(baseline: CellOf<'_>, candidate: CellOf<'_>) -> Option<String> {
    let [one, other] = [baseline, candidate].map(|side| metric(side.records, &side.cell.name));
    let (one, other) = (one?, other?);
    (one.name != other.name).then(|| format!("their metrics differ ({}; {})", one.name, other.name))
}

/// Two measured cells of one metric.
struct Pair<'a> {
    baseline: CellOf<'a>,
    candidate: CellOf<'a>,
    lower_is_better: bool,
    within: f64,
}

impl Pair<'_> {
    fn verdict(&self, merit: Option<Known>, baseline: &[Sample], candidate: &[Sample]) -> Verdict {
        let more = |aim, half_width| more_trials(baseline, candidate, CONFIDENCE, aim, half_width);
        let answer = answer(merit, Some(self.within), more);
        let evidence = [self.baseline, self.candidate].map(Evidence::of);
        let [one, other] = [self.baseline, self.candidate].map(|side| (&side.records.header, side.cell));
        let apart = Apart::new(one, other);
        let found = rules::Findings::new(&self.titles(), &evidence, apart, answer, merit, self.within);
        if !found.obstacles.is_empty() {
            let reason = found.obstacles.iter().join("; ");
            let limited_by = found.limited_by;
            return Verdict { limited_by, ..Verdict::new(Word::NotComparable, reason, self.within) };
        }
        let few = baseline.len().min(candidate.len());
        let verdict = self.of_answer(answer, merit, few);
        let not_worse = merit.and_then(|merit| is_not_worse(merit.interval, self.within));
        match found.bound {
            Some((reason, limit)) => {
                let of_candidate = verdict.word == Word::Better;
                let is_least = of_candidate != self.lower_is_better;
                let bound = Some(if is_least { Bound::AtLeast } else { Bound::AtMost });
                let reason = format!("{}; {reason}", verdict.reason);
                Verdict { reason, bound, limited_by: Some(limit), not_worse, ..verdict }
            }
            None => Verdict { not_worse, ..verdict },
        }
    }

    fn of_answer(&self, answer: Answer, merit: Option<Known>, fewest_trials: usize) -> Verdict {
        let margin = format::margin(self.within);
        let (word, reason) = match answer {
            Answer::Better | Answer::Worse => {
                let is_above = (answer == Answer::Better) != self.lower_is_better;
                let word = if answer == Answer::Better { Word::Better } else { Word::Worse };
                let place = if is_above { "above" } else { "below" };
                (word, format!("the whole interval lies {place} 1"))
            }
            Answer::Same { .. } => (Word::Same, format!("the whole interval lies within {margin} of 1")),
            Answer::NotKnown { more_trials, .. } => {
                let missing = u32::try_from(ENOUGH_TRIALS.saturating_sub(fewest_trials)).unwrap_or_default();
                if let Some(advice) = too_few_trials(fewest_trials) {
                    let verdict = Verdict::new(Word::NotKnown, advice.clone(), self.within);
                    return Verdict { more_trials: Some(missing), takes: Some(advice), ..verdict };
                }
                let takes = takes(more_trials, fewest_trials);
                let reason = match merit.is_some_and(|merit| merit.interval.lies_within(self.within)) {
                    true => format!(
                        "the interval lies within {margin} of 1, but so few trials can agree by chance; {takes}"
                    ),
                    false => format!("the interval contains 1 and reaches beyond {margin}; {takes}"),
                };
                let verdict = Verdict::new(Word::NotKnown, reason, self.within);
                return Verdict { more_trials, takes: Some(takes), ..verdict };
            }
        };
        Verdict::new(word, reason, self.within)
    }

    /// For sentences. Two cells of one label are told apart by their place.
    fn titles(&self) -> [String; 2] {
        let titles = [self.baseline, self.candidate]
            .map(|side| format::the(&side.records.header.title(&side.cell.name)));
        match titles[0] == titles[1] {
            true => ["the baseline".to_owned(), "the candidate".to_owned()],
            false => titles,
        }
    }
}

/// From this many trials on, an interval is asked for.
const ENOUGH_TRIALS: usize = 3;

/// What an answer takes: `about 4 more trials of each (\`trials = 7\`) would decide`.
fn takes(more_trials: Option<u32>, now: usize) -> String {
    match more_trials {
        None => {
            "no number of trials in reason would decide: lengthen the window, or widen the margin".to_owned()
        }
        Some(more) => {
            let all = now + more as usize;
            let more = plural(more as usize, "more trial");
            format!("about {more} of each would decide (`trials = {all}`)")
        }
    }
}

impl Verdict {
    fn new(word: Word, reason: String, within: f64) -> Verdict {
        let (bound, limited_by, not_worse, more_trials, takes) = (None, None, None, None, None);
        Verdict { word, reason, bound, limited_by, within, not_worse, more_trials, takes }
    }

    /// `better`, `the same within 5 %`.
    pub fn words(&self) -> String {
        match self.word {
            Word::Same => format!("the same within {}", format::margin(self.within)),
            other => other.name().to_owned(),
        }
    }

    /// Whether more of it than its word should be read.
    pub fn needs_its_reason(&self) -> bool {
        matches!(self.word, Word::NotKnown | Word::NotComparable) || self.bound.is_some()
    }
}

impl Word {
    pub fn name(self) -> &'static str {
        match self {
            Word::Better => "better",
            Word::Worse => "worse",
            Word::Same => "same",
            Word::NotKnown => "not known yet",
            Word::NotComparable => "not comparable",
        }
    }
}

impl Bound {
    pub fn words(self) -> &'static str {
        match self {
            Bound::AtLeast => "at least",
            Bound::AtMost => "at most",
        }
    }

    pub fn mark(self) -> &'static str {
        match self {
            Bound::AtLeast => "≥",
            Bound::AtMost => "≤",
        }
    }
}
