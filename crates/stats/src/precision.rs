//! Whether a comparison has enough trials.
//!
//! A run repeats its trials until the interval of each ratio to the baseline is as narrow as the user asks
//! ("until 10 %"). Trials come in blocks; the two trials of a block are a pair and share the machine's state.
//! The ratio is the geometric mean over pairs, and all arithmetic is on logarithms, as in
//! [`mod@crate::compare`].
//!
//! # Pairs first
//! Cells need different numbers of trials. A cell that has reached its goal is left out of further blocks, so
//! the baseline has more trials than that cell. Only pairs count: a trial whose block has no trial of the
//! other cell is left out of that comparison. Nothing is lost, because the surplus belongs to a comparison
//! that has reached its goal already. Welch's interval over all trials would use the surplus, but compares
//! early trials of one cell with late trials of the other, and a slow drift becomes a difference (last rows
//! of the table). Several trials of one cell in one block count as their geometric mean.
//!
//! # Stopping
//! A comparison is finished when it has [`FEWEST_PAIRS`](crate::looks::FEWEST_PAIRS) pairs and one of:
//!
//! * the half-width of its interval is at most the goal's, as a share of the ratio (upper end / ratio - 1), and
//!   the interval says whether the two differ. The interval is [`crate::looks::widened`]. It says so if it lies
//!   wholly within the goal around 1 (the same, as far as the goal asks), or if 1 is also outside of
//!   [`crate::looks::sequence`]. If it does neither, the comparison goes on to [`CLOSER`] of the goal, and ends
//!   there: a difference as large as the goal is found in 9 of 10 runs at that width, and in half of them at
//!   the goal itself;
//! * by option, the ratio is beyond a factor that decides: with the factor 2, the whole interval of
//!   [`crate::looks::sequence`] lies above 2 or below 1/2. This looks at the mean, so the interval given is
//!   that of the sequence, which is wider and may be looked at as often as one likes.
//!
//! The promise of 95 % is made at the stop. What a run shows before it stops is no answer.
//!
//! # Simulated
//! 2000 runs of each row; a machine that drifts by a random step of 1 % and a trend of 0.2 % from trial to
//! trial; random order within blocks; the same noise in both cells, which are equal. "Held": the interval at
//! the stop contains the true ratio. "False": it does not contain 1. A count of 2000 has a standard deviation
//! of 0.5 %.
//!
//! | noise of a trial | goal | pairs: median, 90 % | held | false | Student's 95 %: pairs | held |
//! |:--|--:|--:|--:|--:|--:|--:|
//! | log-normal 0.03 | 10 % | 5, 7 | 97.8 % | 2.2 % | 5 | 95.2 % |
//! | log-normal 0.03 | 2 % | 41, 67 | 97.4 % | 2.6 % | 31 | 94.4 % |
//! | log-normal 0.1 | 10 % | 21, 32 | 96.5 % | 3.5 % | 15 | 93.2 % |
//! | log-normal 0.2 | 10 % | 71, 119 | 98.4 % | 1.6 % | 53 | 94.8 % |
//! | log-normal 0.5 | 20 % | 120, 203 | 98.2 % | 1.8 % | 87 | 95.9 % |
//! | 0.03, and one trial in ten halved | 10 % | 63, 120 | 98.0 % | 1.9 % | 45 | 95.5 % |
//! | Student's t with 3 degrees, times 0.1 | 10 % | 46, 86 | 97.4 % | 2.6 % | 33 | 94.4 % |
//! | the last two together, with 0.03 | 10 % | 70, 125 | 97.5 % | 2.5 % | 48 | 94.7 % |
//!
//! With noise of 0.08, 3.4 % are false in 20,000 runs, with 0.12 2.9 %.
//!
//! A difference as large as the goal, which is the hardest one to hold: a run that stops where
//! [`crate::looks::sequence`] has left 1 stops at a lucky moment, so the quantile is wider than equal cells
//! would need.
//!
//! | planted | noise | pairs: median, 90 % | found | held | Student's 95 %: held |
//! |--:|:--|--:|--:|--:|--:|
//! | 10 % | log-normal 0.03 | 6, 8 | 99.8 % | 97.9 % | 95.2 % |
//! | 2 % | log-normal 0.03 | 58, 84 | 91.6 % | 93.3 % | 86.4 % |
//! | 10 % | log-normal 0.1 | 28, 42 | 92.3 % | 93.6 % | 86.1 % |
//! | 10 % | log-normal 0.2 | 108, 146 | 91.0 % | 93.5 % | 85.6 % |
//! | 20 % | log-normal 0.5 | 188, 244 | 92.2 % | 94.0 % | 86.5 % |
//! | 10 % | 0.03, and one trial in ten halved | 88, 162 | 94.7 % | 95.9 % | 91.9 % |
//! | 10 % | Student's t with 3 degrees, times 0.1 | 65, 110 | 92.3 % | 94.0 % | 86.1 % |
//! | 10 % | the last two together, with 0.03 | 103, 169 | 93.7 % | 95.0 % | 89.7 % |
//!
//! | planted | noise | goal | pairs: median | result |
//! |--:|--:|--:|--:|:--|
//! | 2 % | 0.03 | 1 % | 109 | found in 100 %, never "the same within 1 %" |
//! | 2 % | 0.005 | 1 % | 11 | found in 100 %, never "the same within 1 %" |
//! | 50-fold | 0.3 | 5 %, or beyond 2 | 5 | decided in 100 %; held 99.9 % |
//! | 2-fold | 0.2 | 5 %, or beyond 2 | 184 | decided, falsely, in 0.4 %; held 97.2 % |
//! | none | 0.2 | 10 %, or beyond 1 | 71 | false 2.1 % |
//!
//! Predictions at the first look, divided by the pairs at the stop: 0.3 to 2.8 (10 % and 90 %) with noise of
//! 0.2, and 0.4 to 1.9 where only the width counts: whether a ratio is near 1 or not is hardly known at the
//! first look, and decides how far a run must go. One trial in ten halved in one cell alone: held 66 % (see
//! the divergence).
//!
//! A cell with 8 trials beside a baseline with 30, both equal, noise 0.03:
//!
//! | drift | pairs first: false | Welch over all trials: false |
//! |:--|--:|--:|
//! | none | 2.2 % | 2.2 % |
//! | random step of 1 % | 1.8 % | 28.9 % |
//! | the same with a trend of 0.2 % | 1.8 % | 57.1 % |
//!
//! # Divergence
//! What happens rarely cannot be seen in few trials. If one trial in ten of one cell is halved, five trials
//! show none of it with a probability of 59 %, and no interval of those five knows of it. Every comparison
//! makes its promise by itself: of twenty equal cells, one may come out as different.

use std::collections::BTreeMap;

use crate::equivalence::{Aim, Answer, Known, answer};
use crate::looks::{RULE, Rule, pairs_for_sequence, sequence};
use crate::{Interval, Sample, mean, standard_deviation};

/// The share of the goal's half-width at which a comparison ends in any case.
pub const CLOSER: f64 = 0.6;

/// What a comparison is to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Half-width of the 95 % interval as a share of the ratio: 0.10 is 10 % to either side.
    pub half_width: f64,
    /// A ratio is also finished when its interval lies wholly above this factor or below its inverse. 1 lets
    /// any shown difference decide.
    pub decisive_factor: Option<f64>,
    /// Whether the question is if the ratio differs from 1. It is not where the ratio stands for a mean.
    pub is_about_a_difference: bool,
}

impl Goal {
    /// Whether an interval of this half-width is as narrow as asked, and says whether the two differ; `distance` is
    /// that of its centre from 0. All are on the log scale.
    fn is_reached(&self, half_width: f64, distance: f64, by_sequence: Option<f64>) -> bool {
        let asked = self.half_width.ln_1p();
        let says_whether = || {
            !self.is_about_a_difference
                || by_sequence.is_some_and(|by_sequence| by_sequence < distance)
                || distance + half_width <= asked
                || half_width <= CLOSER * asked
        };
        half_width <= asked && says_whether()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Fewer pairs than the first look needs.
    TooFew,
    /// The interval is too wide still, or leaves open whether the two differ.
    Open,
    /// The interval is as narrow as the goal asks, and says whether the two differ.
    Reached,
    /// The ratio is beyond the factor that decides.
    Decided,
    /// A figure is zero, negative or not finite, and has no logarithm. More trials do not help.
    NotComparable,
}

impl State {
    /// Whether it needs no further trial.
    pub fn is_finished(self) -> bool {
        matches!(self, State::Reached | State::Decided | State::NotComparable)
    }
}

/// How far the comparison of a cell with the baseline is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    pub state: State,
    /// Blocks with a trial of both cells.
    pub pair_count: u32,
    /// Candidate divided by baseline.
    pub ratio: Option<f64>,
    /// `None` below two pairs.
    pub interval: Option<Interval>,
    /// Half-width of the interval, as a share of the ratio.
    pub half_width: Option<f64>,
    /// How much wider the interval is where it is to show that two cells are the same; at least 1.
    pub sameness_factor: f64,
    /// Further pairs until it is finished, predicted from the spread so far: 0 when it is finished. The
    /// missing pairs to the first look while there is no spread. `None` if more than
    /// [`MOST_PAIRS`](crate::looks::MOST_PAIRS) are needed.
    pub more_pairs: Option<u32>,
    /// Standard deviation of the log ratios of pairs.
    pub spread: Option<f64>,
}

/// The standing of a comparison.
///
/// # Panics
/// If the goal's half-width is not positive, or its factor is below 1.
pub fn standing(baseline: &[Sample], candidate: &[Sample], goal: &Goal) -> Standing {
    assert!(goal.half_width > 0.0, "a half-width is positive, not {}", goal.half_width);
    let factor = goal.decisive_factor;
    assert!(factor.is_none_or(|factor| factor >= 1.0), "a factor that decides is at least 1, not {factor:?}");
    match log_ratios(baseline, candidate) {
        Some(log_ratios) => of_log_ratios(RULE, &log_ratios, goal),
        None => Standing { more_pairs: Some(0), ..Standing::empty(State::NotComparable, 0) },
    }
}

/// One log ratio per block that has a trial of both cells, in the order of the blocks. `None` when a figure
/// has no logarithm.
fn log_ratios(baseline: &[Sample], candidate: &[Sample]) -> Option<Vec<f64>> {
    let (baseline, candidate) = (by_block(baseline)?, by_block(candidate)?);
    let pairs = baseline.iter().filter_map(|(block, left)| Some((left, candidate.get(block)?)));
    pairs.map(|(left, right)| Some(mean(right)? - mean(left)?)).collect()
}

fn by_block(samples: &[Sample]) -> Option<BTreeMap<u32, Vec<f64>>> {
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for sample in samples {
        let logarithm = sample.value.ln();
        if !logarithm.is_finite() {
            return None;
        }
        blocks.entry(sample.block).or_default().push(logarithm);
    }
    Some(blocks)
}

fn of_log_ratios(rule: Rule, log_ratios: &[f64], goal: &Goal) -> Standing {
    let pair_count = log_ratios.len() as u32;
    let missing = rule.fewest_pairs.saturating_sub(pair_count);
    let centre = mean(log_ratios);
    let (Some(centre), Some(spread)) = (centre, standard_deviation(log_ratios)) else {
        let ratio = centre.map(f64::exp);
        return Standing { ratio, more_pairs: Some(missing), ..Standing::empty(State::TooFew, pair_count) };
    };
    let by_width = rule.half_width(pair_count, spread);
    let by_sequence = sequence(pair_count, spread);
    let is_narrow = by_width.is_some_and(|half_width| goal.is_reached(half_width, centre.abs(), by_sequence));
    // The room between the ratio and the factor that decides.
    let room = goal.decisive_factor.map(|factor| centre.abs() - factor.ln());
    let is_decided = by_sequence.zip(room).is_some_and(|(half_width, room)| half_width < room);
    let (state, half_width) = match (missing > 0, is_narrow, is_decided) {
        (true, _, _) => (State::TooFew, by_width),
        (false, true, _) => (State::Reached, by_width),
        (false, false, true) => (State::Decided, by_sequence),
        (false, false, false) => (State::Open, by_width),
    };
    let more = || {
        let by_width = pairs_that_answer(rule, centre.abs(), spread, goal);
        let by_factor = room.filter(|room| *room > 0.0).and_then(|room| pairs_for_sequence(spread, room));
        let needed = by_width.into_iter().chain(by_factor).min()?;
        Some(needed.saturating_sub(pair_count).max(1))
    };
    Standing {
        state,
        pair_count,
        ratio: Some(centre.exp()),
        interval: half_width.map(|half| Interval { low: (centre - half).exp(), high: (centre + half).exp() }),
        half_width: half_width.map(f64::exp_m1),
        sameness_factor: rule.sameness_factor(pair_count),
        more_pairs: if state.is_finished() { Some(0) } else { more() },
        spread: Some(spread),
    }
}

/// The fewest pairs whose interval is as narrow as the goal, and answers, if the mean log ratio stays as far from
/// zero as it is.
fn pairs_that_answer(rule: Rule, distance: f64, spread: f64, goal: &Goal) -> Option<u32> {
    let asked = goal.half_width.ln_1p();
    let narrow = rule.pairs_for(spread, asked)?;
    if !goal.is_about_a_difference {
        return Some(narrow);
    }
    let ways = [
        rule.pairs_for(spread, CLOSER * asked),
        (distance < asked).then(|| rule.pairs_for(spread, asked - distance)).flatten(),
        (distance > 0.0).then(|| pairs_for_sequence(spread, distance)).flatten(),
    ];
    ways.into_iter().flatten().min().map(|pairs| pairs.max(narrow))
}

impl Standing {
    fn empty(state: State, pair_count: u32) -> Standing {
        let (ratio, interval, half_width, more_pairs, spread) = (None, None, None, None, None);
        Standing { state, pair_count, ratio, interval, half_width, sameness_factor: 1.0, more_pairs, spread }
    }

    /// Further pairs until the interval reaches the aim with this half-width, as a share of the ratio, predicted from
    /// the spread so far.
    pub fn more_pairs_for(&self, aim: Aim, half_width: f64) -> Option<u32> {
        let needed = RULE.pairs_to(aim, self.spread?, half_width.ln_1p())?;
        Some(needed.saturating_sub(self.pair_count))
    }

    /// The half-width, as a share of the ratio, that one more pair would leave, predicted from the spread so
    /// far.
    pub fn half_width_with_one_more(&self) -> Option<f64> {
        RULE.half_width(self.pair_count + 1, self.spread?).map(f64::exp_m1)
    }

    /// The answer if the run ends here, whether by the goal or by the end of its time. A run that stops
    /// because it likes the answer breaks the promise of 95 %; the goal's factor is there for that.
    pub fn answer(&self, margin: Option<f64>) -> Answer {
        let interval = self.interval.filter(|_| self.state != State::TooFew);
        let known = interval.map(|interval| Known { interval, sameness_factor: self.sameness_factor });
        answer(known, margin, |aim, half_width| self.more_pairs_for(aim, half_width))
    }
}

#[cfg(test)]
#[path = "precision_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "precision_simulation.rs"]
pub(crate) mod simulation;

#[cfg(test)]
#[path = "precision_promises.rs"]
mod promises;
