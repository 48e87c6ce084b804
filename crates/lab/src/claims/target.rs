//! The rule for one quantity of a reproduction: an estimate with its 95 % interval against what is claimed.
//!
//! **A ratio** is confirmed if its side of 1 and its size are shown. The side is shown if the whole interval
//! is on the claimed side of 1. The size is shown if the interval meets the band of ratios that are within
//! 25 % of the claimed one and whose distance from 1 is a half to one and a half of the claimed distance. The
//! 25 % are those of raw figures: a scaled reproduction on an emulated device is no nearer. Half of the
//! distance is the stricter of the two below a ratio of 2, where 25 % would confirm a gain of 5 % by one of
//! 30 %. If the side is shown and the size is not, the verdict is "direction only". The claim is contradicted
//! if the whole interval is on the other side of 1, or keeps below half of the claimed distance and begins
//! below a tenth of the claimed effect in logarithms (its tenth root), or within 3 % of 1, where sizes are
//! equal: then no effect of that kind is there. A gain of 1 % is no doubling and one of 8 % is not six times,
//! and what narrows their intervals is only the number of trials. Otherwise an interval that contains 1 decides
//! nothing. A ratio below 1 is inverted first, so that a ratio and its inverse have the same verdict.
//!
//! **A range** of ratios is the same, with the bands of both of its ends and what is between them. A gain of
//! "up to" a ratio is the range from no gain to that one: its side has to be shown, and its band has one end.
//!
//! **Equality** ("no difference", "similar") is confirmed if the whole interval is within the tolerance,
//! which is the claim's, and 3 % at least. It is contradicted if the whole interval is outside, and not
//! decided otherwise.
//!
//! **A bound** ("outperforms", "at least", "at most") is confirmed if the whole interval keeps it,
//! contradicted if the whole interval breaks it, and not decided otherwise. A bound that asks for an effect,
//! such as "at least 10 times", is "direction only" if it is broken and the whole interval is on its side of
//! 1.
//!
//! **A difference** is treated as a ratio is, with 0 in place of 1 and of the 3 %, and its size is shown by the
//! 25 % alone.
//!
//! A quantity without an interval, from one trial, decides nothing.

use super::check::{Bound, Direction, Ratio, Relation};
use super::estimate::Estimate;
use super::verdict::Verdict;
use crate::report::Range;

/// Largest relative difference of a size.
const SIZE_TOLERANCE: f64 = 0.25;
/// Largest relative difference of the distance from 1.
const DISTANCE_TOLERANCE: f64 = 0.5;
/// Largest share of the logarithm of a claimed ratio that is no effect of its kind.
const SHARE_OF_NONE: f64 = 0.1;
/// Equality of the schema's direction `equal`.
const EQUAL_WITHIN: f64 = 0.03;

/// Nobody repeats a trial more often to decide a claim.
pub(super) const MOST_TRIALS: usize = 100;

/// What is claimed of a quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Target {
    /// A ratio from `low` to `high`, which are equal for a single one.
    Ratio {
        low: f64,
        high: f64,
    },
    /// A ratio of 1.
    Equal {
        within: f64,
    },
    /// A value, or a ratio, against a bound.
    Bound {
        op: Bound,
        bound: f64,
        is_ratio: bool,
    },
    Difference(f64),
}

impl Target {
    /// What the study's text claims. Where the study's rows support it, they have the exact ratio.
    pub(super) fn of_text(ratio: &Ratio, holds: Option<bool>) -> Target {
        let bound = |op| Target::Bound { op, bound: ratio.stated, is_ratio: true };
        match ratio.relation {
            Relation::AtLeast => bound(Bound::AtLeast),
            Relation::AtMost if ratio.stated > 1.0 && ratio.direction == Direction::NumeratorHigher => {
                Target::Ratio { low: 1.0, high: ratio.stated }
            }
            Relation::AtMost => bound(Bound::AtMost),
            Relation::Range => {
                Target::Ratio { low: ratio.stated, high: ratio.stated_max.unwrap_or(ratio.stated) }
            }
            Relation::About if ratio.direction == Direction::Equal || ratio.stated == 1.0 => {
                Target::equal(ratio.within.unwrap_or(0.0))
            }
            Relation::About if holds == Some(true) => Target::single(ratio.ratio),
            Relation::About => Target::single(ratio.stated),
        }
    }

    /// What the study's rows say.
    pub(super) fn of_rows(ratio: &Ratio) -> Target {
        match ratio.direction {
            Direction::Equal => Target::equal(0.0),
            _ => Target::single(ratio.ratio),
        }
    }

    fn single(ratio: f64) -> Target {
        Target::Ratio { low: ratio, high: ratio }
    }

    pub(super) fn equal(within: f64) -> Target {
        Target::Equal { within: within.max(EQUAL_WITHIN) }
    }

    /// Fewest trials of each figure after which an estimate decides, if its value and its spread stay. `None` if up to
    /// [`MOST_TRIALS`] do not, or if it has no spread.
    pub(super) fn trials_to_decide(self, estimate: &Estimate) -> Option<usize> {
        let decides = |trials: &usize| {
            estimate.after(*trials).is_some_and(|later| self.verdict(&later) != Verdict::NotDecided)
        };
        (estimate.trials?.max(2)..=MOST_TRIALS).find(decides)
    }

    /// The verdict about an estimate, by the rule of this module.
    pub(super) fn verdict(self, estimate: &Estimate) -> Verdict {
        let Some(range) = estimate.interval else { return Verdict::NotDecided };
        match self {
            Target::Ratio { low, high } if high < 1.0 => {
                Target::Ratio { low: 1.0 / high, high: 1.0 / low }.verdict(&estimate.inverse())
            }
            Target::Ratio { low, high } => {
                let (least, most) = (band(low).low, band(high).high);
                let is_of_the_size = range.low <= most && range.high >= least;
                let claimed = if low > 1.0 { low } else { high };
                let none = claimed.powf(SHARE_OF_NONE).max(1.0 + EQUAL_WITHIN);
                sided(range, 1.0, none, claimed, is_of_the_size)
            }
            Target::Difference(stated) if stated < 0.0 => {
                Target::Difference(-stated).verdict(&estimate.negative())
            }
            Target::Difference(stated) => {
                let is_of_the_size = range.low <= stated * (1.0 + SIZE_TOLERANCE)
                    && range.high >= stated / (1.0 + SIZE_TOLERANCE);
                sided(range, 0.0, 0.0, stated, is_of_the_size)
            }
            Target::Equal { within } => {
                let is_inside = range.low >= 1.0 / (1.0 + within) && range.high <= 1.0 + within;
                let is_outside = range.high < 1.0 / (1.0 + within) || range.low > 1.0 + within;
                decided(is_inside, is_outside)
            }
            Target::Bound { op, bound, is_ratio } => {
                let (low, high) = (op.allows(range.low, bound), op.allows(range.high, bound));
                let asks_for_more =
                    matches!(op, Bound::AtLeast | Bound::Above) && bound > 1.0 && range.low > 1.0;
                let asks_for_less =
                    matches!(op, Bound::AtMost | Bound::Below) && bound < 1.0 && range.high < 1.0;
                match decided(low && high, !low && !high) {
                    Verdict::Contradicted if is_ratio && (asks_for_more || asks_for_less) => {
                        Verdict::DirectionOnly
                    }
                    verdict => verdict,
                }
            }
        }
    }
}

/// The ratios that are of the size of a claimed one.
fn band(ratio: f64) -> Range {
    if ratio < 1.0 {
        let inverse = band(1.0 / ratio);
        return Range { low: 1.0 / inverse.high, high: 1.0 / inverse.low };
    }
    let distance = ratio - 1.0;
    Range {
        low: (ratio / (1.0 + SIZE_TOLERANCE)).max(1.0 + distance * (1.0 - DISTANCE_TOLERANCE)),
        high: (ratio * (1.0 + SIZE_TOLERANCE)).min(1.0 + distance * (1.0 + DISTANCE_TOLERANCE)),
    }
}

/// The verdict about an effect above `zero`, of which the claim says that it is `claimed`. Up to `none`, what is
/// far smaller is none.
fn sided(range: Range, zero: f64, none: f64, claimed: f64, is_of_the_size: bool) -> Verdict {
    let half = zero + (claimed - zero) * (1.0 - DISTANCE_TOLERANCE);
    match decided(range.low > zero, range.high < zero) {
        Verdict::Confirmed if is_of_the_size => Verdict::Confirmed,
        _ if range.high < half && range.low <= none => Verdict::Contradicted,
        Verdict::Confirmed => Verdict::DirectionOnly,
        verdict => verdict,
    }
}

pub(super) fn decided(is_shown: bool, is_refuted: bool) -> Verdict {
    match (is_shown, is_refuted) {
        (true, _) => Verdict::Confirmed,
        (_, true) => Verdict::Contradicted,
        _ => Verdict::NotDecided,
    }
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
