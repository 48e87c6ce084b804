//! Whether a reproduction confirms a study's claims.
//!
//! Figures of a reproduction come from runs whose cells name the published rows that they repeat.
//! [`super::target`] is the rule for one ratio, difference or value. The other kinds of checks are made of
//! it:
//!
//! * **Ordering**: every member of a rank against every member of the later ones. It is confirmed if each
//!   ratio is on its side of 1, contradicted if one of them is on the other side, and not decided otherwise.
//!   Members that share a rank must be equal within the claim's tolerance, if it has one: an ordering whose
//!   ranks are shown and whose ties are not is "direction only".
//! * **Similar**: the ratio of every two members is 1 within the claim's tolerance. One pair that is apart
//!   contradicts it.
//! * **Count**: pairs that are near each other, and pairs that are apart, are counted. It is confirmed once
//!   enough are near, and contradicted once so many are apart that enough cannot be near.
//! * **Threshold**: the value's interval against the bound.
//!
//! An ordering, a similarity or a count with rows that no run has is not decided, or contradicted by the rows
//! that there are. Any other check without a figure is not testable yet, and the reason names what is
//! missing.
//!
//! A check without a table names a quantity and rows of it, which a cell can repeat as well. A rule that the study gives
//! in words has checks of ours, which state it in figures (`study/reading.rs`). Not testable at all are advice,
//! definitions, and quantities that no figure of a trial stands for, such as the price of a drive.
//!
//! **A claim** has the first of these verdicts that one of its tested checks has: contradicted, not decided,
//! direction only, confirmed. It is not decided while the study prints rows behind a check that no run has,
//! unless another check contradicts it. The number of tested checks stands beside it.
//!
//! The verdict is about the study's text. Where the study's own rows do not support the text, a second
//! verdict compares the reproduction with the rows.

use std::time::Duration;

use itertools::Itertools as _;
use serde::Serialize;

use super::check::{Bound, Check, Form, Rank};
use super::estimate::Estimate;
use super::own_data::{OwnData, Support, support};
use super::rows::{Lookup, Pairs, Rows, in_order, ties};
use super::study::{Claim, Finding as Found, Reading, Study, Untestable};
use super::target::{Target, decided};
use crate::record::Mark;

/// In the order in which the check of a claim decides about the claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Contradicted,
    NotDecided,
    DirectionOnly,
    Confirmed,
    NotTestable,
}

/// A check against a reproduction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckOutcome {
    pub check: Check,
    pub verdict: Verdict,
    /// The ratio, the difference or the value of the reproduction; `None` where there are several.
    pub measured: Option<Estimate>,
    /// What the verdict rests on, or why there is none, in a few words.
    pub reason: String,
    /// The verdict about the study's rows, where they do not support its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict_of_rows: Option<Verdict>,
    /// Of a check that is not decided: trials of each of its cells that would decide it, if values and spread stay. `None` if
    /// no number up to a hundred would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trials_to_decide: Option<usize>,
    /// What the study's own rows say.
    pub own_data: Option<Support>,
    /// Spindle states a rule of the study in figures.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_ours: bool,
}

/// A claim against a reproduction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimOutcome {
    pub id: String,
    pub text: String,
    pub verdict: Verdict,
    /// Number of checks with another verdict than "not testable".
    pub tested: usize,
    pub own_data: OwnData,
    pub checks: Vec<CheckOutcome>,
    /// Why no run can test the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untestable: Option<Untestable>,
    /// What was found about a claim that does not come out as stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<Found>,
    /// What some of the rows have in place of what the study measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stand_ins: Vec<String>,
    /// Cells that the cores limited, beside others that they did not: on other cores the claim has other figures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limited_by_cores: Vec<String>,
    /// Cells whose windows left many writes for later: over a longer time they have other figures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub put_off_writes: Vec<String>,
    /// Of a claim that is not decided: the trials that would decide it, if values and spread stay. Empty if nobody could run as
    /// many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub further_trials: Vec<FurtherTrials>,
}

/// What a cell lacks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FurtherTrials {
    pub file: String,
    pub cell: String,
    pub trials: usize,
    /// As long as its trials took so far, on the clock.
    pub trial_s: f64,
}

impl FurtherTrials {
    /// Each cell once, with the most that is wanted of it, and none that has enough.
    pub fn joined(all: impl Iterator<Item = FurtherTrials>) -> Vec<FurtherTrials> {
        let by_cell = all
            .filter(|further| further.trials > 0)
            .into_grouping_map_by(|further| (further.file.clone(), further.cell.clone()))
            .max_by_key(|_, further| further.trials);
        by_cell
            .into_values()
            .sorted_by(|one, other| (&one.file, &one.cell).cmp(&(&other.file, &other.cell)))
            .collect()
    }

    /// Of all of them, on the clock.
    pub fn time(all: &[FurtherTrials]) -> Duration {
        Duration::from_secs_f64(all.iter().map(|further| further.trials as f64 * further.trial_s).sum())
    }
}

impl CheckOutcome {
    /// The study prints the rows, and no run has them.
    pub(super) fn is_without_a_run(&self) -> bool {
        self.verdict == Verdict::NotTestable && self.own_data.is_some()
    }
}

/// The part of an outcome that the rows decide.
struct Finding {
    verdict: Verdict,
    measured: Option<Estimate>,
    reason: String,
    verdict_of_rows: Option<Verdict>,
    trials_to_decide: Option<usize>,
}

impl Finding {
    fn new(verdict: Verdict, reason: impl Into<String>) -> Finding {
        Finding {
            verdict,
            measured: None,
            reason: reason.into(),
            verdict_of_rows: None,
            trials_to_decide: None,
        }
    }

    fn of(target: Target, estimate: Estimate) -> Finding {
        let reason = if estimate.interval.is_none() { "one trial has no interval" } else { "" };
        let verdict = target.verdict(&estimate);
        let trials_to_decide =
            (verdict == Verdict::NotDecided).then(|| target.trials_to_decide(&estimate)).flatten();
        Finding { measured: Some(estimate), trials_to_decide, ..Finding::new(verdict, reason) }
    }
}

/// Every claim of a study against the figures of a reproduction.
pub fn outcomes(study: &Study, lookup: Lookup) -> Vec<ClaimOutcome> {
    let reading = Reading::of(study.slug());
    let of_claim = |claim: &Claim| {
        let ours = reading.checks_of(&claim.id).map(|check| (check, true));
        let all = claim.checks.iter().map(|check| (check, false)).chain(ours);
        let checks: Vec<CheckOutcome> =
            all.map(|(check, is_ours)| CheckOutcome { is_ours, ..outcome(study, check, lookup) }).collect();
        let worst = checks.iter().map(|check| check.verdict).min().unwrap_or(Verdict::NotTestable);
        let tested = checks.iter().filter(|check| check.verdict != Verdict::NotTestable).count();
        let is_open = tested > 0 && checks.iter().any(CheckOutcome::is_without_a_run);
        let verdict = if is_open { worst.min(Verdict::NotDecided) } else { worst };
        let own_data = OwnData::of(study, claim);
        ClaimOutcome {
            id: claim.id.clone(),
            text: claim.text.clone(),
            verdict,
            tested,
            own_data,
            checks,
            untestable: reading.untestable(&claim.id).filter(|_| tested == 0).cloned(),
            finding: reading.finding(&claim.id).filter(|_| tested > 0).cloned(),
            stand_ins: Vec::new(),
            limited_by_cores: Vec::new(),
            put_off_writes: Vec::new(),
            further_trials: Vec::new(),
        }
    };
    study.claims.iter().map(of_claim).collect()
}

/// One check against the figures of a reproduction.
pub fn outcome(study: &Study, check: &Check, lookup: Lookup) -> CheckOutcome {
    let finding = Rows::new(study, check, lookup).and_then(|rows| finding(&rows, check));
    let finding = finding.unwrap_or_else(|reason| Finding::new(Verdict::NotTestable, reason));
    let Finding { verdict, measured, reason, verdict_of_rows, trials_to_decide } = finding;
    let own_data = support(study, check);
    CheckOutcome {
        check: check.clone(),
        verdict,
        measured,
        reason,
        verdict_of_rows,
        trials_to_decide,
        own_data,
        is_ours: false,
    }
}

/// # Errors
/// A figure is missing: the reason.
fn finding(rows: &Rows, check: &Check) -> Result<Finding, String> {
    let holds = check.ground.holds;
    match &check.form {
        Form::Ratio(ratio) => {
            let numerator = rows.figure(&ratio.numerator, ratio.table_numerator.as_deref())?;
            let denominator = rows.figure(&ratio.denominator, ratio.table_denominator.as_deref())?;
            let estimate = numerator.over(&denominator).ok_or(NO_RATIO)?;
            let of_rows = (holds == Some(false)).then(|| Target::of_rows(ratio).verdict(&estimate));
            Ok(Finding { verdict_of_rows: of_rows, ..Finding::of(Target::of_text(ratio, holds), estimate) })
        }
        Form::Difference { minuend, subtrahend, stated, .. } => {
            let (minuend, subtrahend) = (rows.figure(minuend, None)?, rows.figure(subtrahend, None)?);
            let estimate = minuend.less(&subtrahend).ok_or(NO_TRIAL)?;
            let computed = check.ground.computed.filter(|_| holds == Some(false));
            let of_rows = computed.map(|computed| Target::Difference(computed).verdict(&estimate));
            Ok(Finding { verdict_of_rows: of_rows, ..Finding::of(Target::Difference(*stated), estimate) })
        }
        Form::Threshold { row, op, stated } => {
            let estimate = rows.figure(row, None)?.estimate().ok_or(NO_TRIAL)?;
            let target = Target::Bound { op: *op, bound: *stated, is_ratio: false };
            Ok(Finding::of(target, estimate))
        }
        Form::Ordering { key, order, place, tie_within } => {
            Pairs::new(rows, key, order.iter().flat_map(Rank::members), place)?.ordered(order, *tie_within)
        }
        Form::Similar { key, members, within, place } => {
            Pairs::new(rows, key, members, place)?.similar(members, *within)
        }
        Form::CountWithin { over, over_values, a, b, within, stated } => {
            let one = Pairs::new(rows, over, over_values, a)?;
            let other = Pairs::new(rows, over, over_values, b)?;
            counted(&one, &other, over_values, *within, *stated)
        }
    }
}

const NO_RATIO: &str = "one of the figures is zero or has no trial";
const NO_TRIAL: &str = "there is no trial";

/// Two members of a dimension.
struct PairFinding {
    verdict: Verdict,
    words: String,
    trials_to_decide: Option<usize>,
}

impl Pairs<'_> {
    /// About the ratio of two members; `None` without both figures.
    fn verdict(&self, one: &Mark, other: &Mark, target: Target) -> Option<PairFinding> {
        let estimate = self.figure(one)?.over(self.figure(other)?)?;
        Some(PairFinding {
            verdict: target.verdict(&estimate),
            words: format!("{one} and {other}"),
            trials_to_decide: target.trials_to_decide(&estimate),
        })
    }

    /// # Errors
    /// Fewer than two members have a figure.
    fn ordered(&self, order: &[Rank], tie_within: Option<f64>) -> Result<Finding, String> {
        let op = if self.rows.is_higher_better() { Bound::Above } else { Bound::Below };
        let side = Target::Bound { op, bound: 1.0, is_ratio: false };
        let ranks: Vec<_> =
            in_order(order).filter_map(|(one, other)| self.verdict(one, other, side)).collect();
        let of_ranks = self.all(ranks, ["in this order", "is in the other order", "is not decided"])?;
        let tie = |within: f64| {
            ties(order).filter_map(move |two| self.verdict(two.0, two.1, Target::equal(within)))
        };
        let ties: Vec<_> = tie_within.into_iter().flat_map(tie).collect();
        if of_ranks.verdict != Verdict::Confirmed || ties.is_empty() {
            return Ok(of_ranks);
        }
        let of_ties = self.all(ties, ["tied", "is no tie", "is not shown to be a tie"])?;
        let is_shown = of_ties.verdict == Verdict::Confirmed;
        Ok(if is_shown { of_ranks } else { Finding { verdict: Verdict::DirectionOnly, ..of_ties } })
    }

    fn similar(&self, members: &[Mark], within: f64) -> Result<Finding, String> {
        let tie = [Rank::Tie(members.to_vec())];
        let pairs = ties(&tie).filter_map(|(one, other)| self.verdict(one, other, Target::equal(within)));
        self.all(pairs.collect(), ["no two differ", "differ", "is not decided"])
    }

    /// All pairs together: one of the other verdict contradicts, a missing row leaves it open. `words` are
    /// for pairs that are as claimed, that are not, and that are open.
    ///
    /// # Errors
    /// There is no pair.
    fn all(&self, pairs: Vec<PairFinding>, words: [&str; 3]) -> Result<Finding, String> {
        let [shown, apart, open] = words;
        let of = |wanted: Verdict| pairs.iter().filter(move |pair| pair.verdict == wanted);
        let first = |wanted: Verdict| of(wanted).next().map(|pair| &pair.words);
        let needed: Option<Vec<usize>> = of(Verdict::NotDecided).map(|pair| pair.trials_to_decide).collect();
        let trials_to_decide =
            needed.filter(|_| self.missing.is_empty()).and_then(|needed| needed.into_iter().max());
        let missing = self.missing.first();
        match (first(Verdict::Contradicted), first(Verdict::NotDecided), missing) {
            (Some(pair), _, _) => Ok(Finding::new(Verdict::Contradicted, format!("{pair}: {apart}"))),
            (None, _, Some(reason)) if pairs.is_empty() => Err(reason.clone()),
            (None, None, None) if pairs.is_empty() => Err(NO_RATIO.to_owned()),
            (None, Some(pair), _) => {
                let finding = Finding::new(Verdict::NotDecided, format!("{pair}: {open}"));
                Ok(Finding { trials_to_decide, ..finding })
            }
            (None, None, Some(reason)) => Ok(Finding::new(Verdict::NotDecided, reason.clone())),
            (None, None, None) => Ok(Finding::new(Verdict::Confirmed, shown)),
        }
    }
}

/// # Errors
/// No pair has both figures.
fn counted(
    one: &Pairs,
    other: &Pairs,
    values: &[Mark],
    within: f64,
    wanted: usize,
) -> Result<Finding, String> {
    let verdict = |mark: &Mark| {
        let estimate = one.figure(mark)?.over(other.figure(mark)?)?;
        Some(Target::equal(within).verdict(&estimate))
    };
    let verdicts: Vec<Option<Verdict>> = values.iter().map(verdict).collect();
    let count = |wanted: Verdict| verdicts.iter().filter(|verdict| **verdict == Some(wanted)).count();
    let (near, apart) = (count(Verdict::Confirmed), count(Verdict::Contradicted));
    let tested = verdicts.iter().flatten().count();
    let missing = one.missing.iter().chain(&other.missing).next();
    if let (0, Some(reason)) = (tested, missing) {
        return Err(reason.clone());
    }
    let verdict = decided(near >= wanted, values.len() - apart < wanted);
    let words = format!("{near} near and {apart} apart of {tested} measured pairs, of {wanted} claimed");
    Ok(Finding::new(verdict, words))
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
