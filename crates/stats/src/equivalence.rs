//! Whether a comparison has an answer: better, worse, the same within a margin, or not known yet.
//!
//! Two cells are the same within a margin if the whole interval of their ratio lies within it. This is the
//! test of Schuirmann, "A comparison of the two one-sided tests procedure and the power approach for
//! assessing the equivalence of average bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15
//! (1987). An interval of confidence 1 - 2 a makes two one-sided tests of level a, so a 95 % interval makes
//! two tests of 2.5 %. One interval decides all cases, and no case contradicts the interval that a report
//! prints. Of few trials it is widened before it shows sameness, so that a difference of twice the margin is
//! practically never called the same: see [`crate::looks`].
//!
//! A missing difference is no sameness: an interval from 0.7 to 1.4 contains 1 and says nothing.

use crate::Interval;

/// The answer to "is the candidate better than the baseline?". A higher figure is the better one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    /// The whole interval of the ratio lies above 1.
    Better,
    /// The whole interval lies below 1.
    Worse,
    /// The whole interval lies within the margin `within`, a share: 0.01 is from 1 / 1.01 to 1.01. Also the
    /// answer to a difference that is shown and smaller than the margin, because the margin says from where
    /// on a difference matters.
    Same { within: f64 },
    /// None of these, or no interval.
    NotKnown {
        /// The half-width of the interval, as a share of the ratio, at which the answer would be known if the
        /// ratio stayed where it is. `None` if no interval is narrow enough.
        half_width: Option<f64>,
        /// The further trials of each cell that this half-width takes, predicted.
        more_trials: Option<u32>,
    },
}

impl Answer {
    pub fn is_known(&self) -> bool {
        !matches!(self, Answer::NotKnown { .. })
    }

    /// The answer for a metric of which the lower figure is the better one.
    #[must_use]
    pub fn for_lower_is_better(self) -> Answer {
        match self {
            Answer::Better => Answer::Worse,
            Answer::Worse => Answer::Better,
            Answer::Same { .. } | Answer::NotKnown { .. } => self,
        }
    }
}

/// What further trials would show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// The interval leaves 1.
    Difference,
    /// The interval, widened as few trials need it, fits into the margin.
    Sameness,
}

/// An interval of a ratio, as an answer needs it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    pub interval: Interval,
    /// At least 1: how much wider the interval is, on the log scale, where it is to show sameness.
    pub sameness_factor: f64,
}

impl Known {
    fn lies_within(self, margin: f64) -> bool {
        self.interval.lies_within(margin) && self.interval.widened(self.sameness_factor).lies_within(margin)
    }
}

impl Interval {
    /// Whether no ratio in it is further from 1 than the margin, a share: 0.01 is from 1 / 1.01 to 1.01.
    pub fn lies_within(&self, margin: f64) -> bool {
        1.0 / (1.0 + margin) <= self.low && self.high <= 1.0 + margin
    }

    /// The interval around the same centre on the log scale that is wider by a factor.
    fn widened(&self, factor: f64) -> Interval {
        let (low, high) = (self.low.ln(), self.high.ln());
        let (centre, half_width) = (f64::midpoint(low, high), factor * (high - low) / 2.0);
        Interval { low: (centre - half_width).exp(), high: (centre + half_width).exp() }
    }
}

/// The answer of an interval of the ratio candidate / baseline. Without a margin nothing is the same.
/// `more_trials` predicts how many further trials of each cell reach an aim with an interval of this half-width,
/// a share of the ratio.
///
/// # Panics
/// If the margin is not positive.
pub fn answer(
    known: Option<Known>,
    margin: Option<f64>,
    more_trials: impl FnOnce(Aim, f64) -> Option<u32>,
) -> Answer {
    assert!(margin.is_none_or(|margin| margin > 0.0), "a margin is positive, not {margin:?}");
    let Some(known) = known else {
        return Answer::NotKnown { half_width: None, more_trials: None };
    };
    let interval = known.interval;
    match margin {
        Some(within) if known.lies_within(within) => Answer::Same { within },
        Some(within) if interval.lies_within(within) => not_known(interval, margin, more_trials),
        _ if interval.low > 1.0 => Answer::Better,
        _ if interval.high < 1.0 => Answer::Worse,
        _ => not_known(interval, margin, more_trials),
    }
}

/// Whether the candidate is at most the margin worse than the baseline: the test of non-inferiority, the lower
/// one of Schuirmann's two. A wide interval above the margin says so although it says neither better nor the
/// same. `None` if it is not known.
pub fn is_not_worse(interval: Interval, margin: f64) -> Option<bool> {
    let least = 1.0 / (1.0 + margin);
    match interval {
        Interval { low, .. } if low >= least => Some(true),
        Interval { high, .. } if high < 1.0 => Some(false),
        _ => None,
    }
}

/// An interval around the same centre gives an answer when it either leaves 1, or fits into the margin: what the wider
/// one takes. One that lies within the margin already is too narrow to leave it.
fn not_known(
    interval: Interval,
    margin: Option<f64>,
    more_trials: impl FnOnce(Aim, f64) -> Option<u32>,
) -> Answer {
    let distance = f64::midpoint(interval.low.ln(), interval.high.ln()).abs();
    let room = margin.map_or(0.0, |margin| margin.ln_1p() - distance);
    let fits = margin.is_some_and(|margin| interval.lies_within(margin));
    let (aim, half_width) =
        if fits || room > distance { (Aim::Sameness, room) } else { (Aim::Difference, distance) };
    let half_width = Some(half_width.exp_m1()).filter(|width| *width > 1e-9 && width.is_finite());
    Answer::NotKnown { half_width, more_trials: half_width.and_then(|width| more_trials(aim, width)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(low: f64, high: f64, sameness_factor: f64) -> Option<Known> {
        Some(Known { interval: Interval { low, high }, sameness_factor })
    }

    fn check(low: f64, high: f64, margin: Option<f64>, expected: Answer) {
        // A prediction that shows what it was asked for, in thousandths.
        let asked = |_, half_width: f64| Some((half_width * 1000.0).round() as u32);
        let mut actual = answer(known(low, high, 1.0), margin, asked);
        if let Answer::NotKnown { half_width: Some(half_width), .. } = &mut actual {
            *half_width = (*half_width * 1e6).round() / 1e6;
        }
        assert_eq!(actual, expected, "{low} to {high}, margin {margin:?}");
    }

    #[test]
    fn an_interval_on_one_side_of_one_is_an_answer() {
        check(1.01, 1.30, None, Answer::Better);
        check(0.40, 0.99, None, Answer::Worse);
        check(1.01, 1.30, Some(0.05), Answer::Better);
    }

    #[test]
    fn the_same_is_an_interval_wholly_within_the_margin() {
        check(0.97, 1.04, Some(0.05), Answer::Same { within: 0.05 });
        check(1.0 / 1.05, 1.05, Some(0.05), Answer::Same { within: 0.05 });
    }

    #[test]
    fn a_shown_difference_smaller_than_the_margin_is_the_same() {
        check(1.01, 1.03, Some(0.05), Answer::Same { within: 0.05 });
        check(1.01, 1.06, Some(0.05), Answer::Better);
    }

    #[test]
    fn an_interval_around_one_that_leaves_the_margin_is_not_known() {
        // Centre 1: only the margin of 5 % can be reached.
        check(0.80, 1.25, Some(0.05), Answer::NotKnown { half_width: Some(0.05), more_trials: Some(50) });
    }

    #[test]
    fn a_ratio_away_from_one_waits_for_its_distance() {
        // Centre 1.2, from 0.96 to 1.5: an interval of 20 % to either side leaves 1.
        check(0.96, 1.5, None, Answer::NotKnown { half_width: Some(0.2), more_trials: Some(200) });
        check(0.96, 1.5, Some(0.01), Answer::NotKnown { half_width: Some(0.2), more_trials: Some(200) });
        // The inverse waits for the same.
        check(
            1.0 / 1.5,
            1.0 / 0.96,
            None,
            Answer::NotKnown { half_width: Some(0.2), more_trials: Some(200) },
        );
    }

    #[test]
    fn without_an_interval_or_a_reachable_width_nothing_is_predicted() {
        let nothing = Answer::NotKnown { half_width: None, more_trials: None };
        assert_eq!(answer(None, Some(0.05), |_, _| Some(1)), nothing);
        check(0.5, 2.0, None, nothing);
        check(0.0, f64::INFINITY, None, nothing);
    }

    #[test]
    fn few_trials_show_sameness_only_by_their_widened_interval() {
        let answer_of = |low, high, factor| {
            let aims = |aim, half_width: f64| {
                assert_eq!(aim, Aim::Sameness);
                Some((half_width * 1000.0).round() as u32)
            };
            answer(known(low, high, factor), Some(0.05), aims)
        };
        assert_eq!(answer_of(0.99, 1.02, 2.0), Answer::Same { within: 0.05 });
        // Neither the same nor better, although the interval lies within the margin and above 1.
        for (low, high) in [(0.99, 1.02), (1.01, 1.04)] {
            let Answer::NotKnown { half_width: Some(half_width), more_trials } = answer_of(low, high, 5.0)
            else {
                panic!("{low} to {high} has an answer");
            };
            assert_eq!(more_trials, Some((half_width * 1000.0).round() as u32));
        }
        // A difference needs no widened interval.
        assert_eq!(answer(known(1.01, 1.3, 5.0), Some(0.05), |_, _| None), Answer::Better);
    }

    #[test]
    fn not_worse_is_known_before_better_or_the_same() {
        let check = |low, high, expect| assert_eq!(is_not_worse(Interval { low, high }, 0.05), expect);
        check(0.97, 1.40, Some(true));
        check(0.97, 0.99, Some(true));
        check(0.90, 0.99, Some(false));
        check(0.90, 1.40, None);
    }

    #[test]
    fn a_shorter_time_is_better() {
        assert_eq!(Answer::Worse.for_lower_is_better(), Answer::Better);
        assert_eq!(Answer::Better.for_lower_is_better(), Answer::Worse);
        assert_eq!(Answer::Same { within: 0.1 }.for_lower_is_better(), Answer::Same { within: 0.1 });
    }
}
