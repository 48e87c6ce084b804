//! Simulated runs that stop by the rule, of comparisons whose truth is known.
//!
//! Every trial moves the machine by a random step of 1 % and a trend of 0.2 %, the order within a block is
//! random, and noise comes on top. A run ends as its goal says, or after [`BLOCKS_MOST`] blocks.

use super::*;
use crate::random::Random;

const BLOCKS_MOST: u32 = 400;

/// Drift from one trial to the next: a random step and a trend, on the log scale.
pub(crate) const STEP: f64 = 0.01;
pub(crate) const TREND: f64 = 0.002;

/// How the trials of a cell vary, on the log scale.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Noise {
    LogNormal(f64),
    /// Log-normal, and one trial in ten has half its figure.
    Halved(f64),
    /// Student's t with three degrees of freedom, times a scale.
    HeavyTails(f64),
    /// The same, and one trial in ten has half its figure.
    HalvedHeavyTails(f64),
}

/// Of one trial in ten, on the log scale.
fn stall(random: &mut Random) -> f64 {
    if random.uniform() < 0.1 { 0.5_f64.ln() } else { 0.0 }
}

fn heavy_tails(random: &mut Random) -> f64 {
    let squares: f64 = (0..3).map(|_| random.normal().powi(2)).sum();
    random.normal() / (squares / 3.0).sqrt()
}

impl Noise {
    pub(crate) fn draw(self, random: &mut Random) -> f64 {
        match self {
            Noise::LogNormal(deviation) => deviation * random.normal(),
            Noise::Halved(deviation) => stall(random) + deviation * random.normal(),
            Noise::HeavyTails(scale) => scale * heavy_tails(random),
            Noise::HalvedHeavyTails(scale) => stall(random) + scale * heavy_tails(random),
        }
    }

    /// The mean of [`Noise::draw`].
    fn mean(self) -> f64 {
        match self {
            Noise::LogNormal(_) | Noise::HeavyTails(_) => 0.0,
            Noise::Halved(_) | Noise::HalvedHeavyTails(_) => 0.1 * 0.5_f64.ln(),
        }
    }
}

/// A comparison whose truth is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct World {
    pub(super) baseline: Noise,
    pub(super) candidate: Noise,
    /// Candidate / baseline without the noise.
    pub(super) effect: f64,
    pub(super) goal: Goal,
}

impl World {
    pub(super) fn new(noise: Noise, effect: f64, half_width: f64) -> World {
        let goal = Goal { half_width, decisive_factor: None, is_about_a_difference: true };
        World { baseline: noise, candidate: noise, effect, goal }
    }

    pub(super) fn decided_by(self, factor: f64) -> World {
        World { goal: Goal { decisive_factor: Some(factor), ..self.goal }, ..self }
    }

    fn truth(&self) -> f64 {
        self.effect * (self.candidate.mean() - self.baseline.mean()).exp()
    }

    /// The standing at the stop, and the pairs that were predicted at the first look.
    fn run(&self, rule: Rule, narrow: &[f64], seed: u64) -> (Standing, u32) {
        let mut random = Random::new(seed);
        let (mut machine, mut log_ratios) = (0.0, Vec::new());
        let mut predicted = rule.fewest_pairs;
        loop {
            log_ratios.push(self.pair(&mut machine, &mut random));
            let count = log_ratios.len() as u32;
            let (is_first, is_last) = (count == rule.fewest_pairs, count >= BLOCKS_MOST);
            let is_look = count > rule.fewest_pairs && self.may_end(narrow, &log_ratios);
            if !is_first && !is_last && !is_look {
                continue;
            }
            let standing = of_log_ratios(rule, &log_ratios, &self.goal);
            if is_first {
                predicted = count + standing.more_pairs.unwrap_or(BLOCKS_MOST);
            }
            if is_last || standing.state.is_finished() {
                return (standing, predicted);
            }
        }
    }

    /// The log ratio of one block.
    fn pair(&self, machine: &mut f64, random: &mut Random) -> f64 {
        let is_swapped = random.uniform() < 0.5;
        let mut trial = |noise: Noise| {
            *machine += TREND + STEP * random.normal();
            *machine + noise.draw(random)
        };
        let (baseline, candidate) = if is_swapped {
            let candidate = trial(self.candidate);
            (trial(self.baseline), candidate)
        } else {
            (trial(self.baseline), trial(self.candidate))
        };
        self.effect.ln() + candidate - baseline
    }

    /// Whether the look could end the run. Looks that surely do not are left out, because their predictions
    /// take most of the time.
    fn may_end(&self, narrow: &[f64], log_ratios: &[f64]) -> bool {
        // Below the half-width of the look itself, whose arithmetic has another order.
        const ROUNDING: f64 = 1.0 - 1e-9;
        let spread = standard_deviation(log_ratios).unwrap_or(0.0);
        let half_width = narrow[log_ratios.len()] * spread * ROUNDING;
        let may_be_decided = self.goal.decisive_factor.is_some();
        if half_width > self.goal.half_width.ln_1p() && !may_be_decided {
            return false;
        }
        let distance = mean(log_ratios).map_or(0.0, f64::abs);
        let by_sequence = sequence(log_ratios.len() as u32, spread).map(|width| width * ROUNDING);
        let room = self.goal.decisive_factor.map(|factor| distance - factor.ln());
        self.goal.is_reached(half_width, distance, by_sequence)
            || by_sequence.zip(room).is_some_and(|(half_width, room)| half_width <= room)
    }

    pub(super) fn tally(&self, rule: Rule, seed_count: u64) -> Tally {
        let unit = |count| rule.half_width(count, 1.0).unwrap_or(f64::INFINITY);
        let narrow: Vec<f64> = (0..=BLOCKS_MOST).map(unit).collect();
        let ends = (0..seed_count).map(|seed| self.run(rule, &narrow, seed)).collect();
        Tally { truth: self.truth(), ends }
    }
}

pub(super) struct Tally {
    truth: f64,
    ends: Vec<(Standing, u32)>,
}

impl Tally {
    pub(super) fn share(&self, is_counted: impl Fn(&Standing) -> bool) -> f64 {
        let count = self.ends.iter().filter(|(standing, _)| is_counted(standing)).count();
        count as f64 / self.ends.len() as f64
    }

    pub(super) fn covered(&self) -> f64 {
        self.share(|standing| standing.interval.is_some_and(|interval| interval.contains(self.truth)))
    }

    pub(super) fn different(&self) -> f64 {
        self.share(|standing| standing.interval.is_some_and(|interval| !interval.contains(1.0)))
    }

    pub(super) fn same_within(&self, margin: f64) -> f64 {
        self.share(|standing| matches!(standing.answer(Some(margin)), Answer::Same { .. }))
    }

    /// Pairs at the stop.
    pub(super) fn pairs(&self, probability: f64) -> f64 {
        let pairs: Vec<f64> = self.ends.iter().map(|(standing, _)| f64::from(standing.pair_count)).collect();
        crate::quantile(&pairs, probability).expect("runs")
    }

    /// Predicted pairs at the first look / pairs at the stop.
    pub(super) fn prediction(&self, probability: f64) -> f64 {
        let ratio =
            |(standing, predicted): &(Standing, u32)| f64::from(*predicted) / f64::from(standing.pair_count);
        crate::quantile(&self.ends.iter().map(ratio).collect::<Vec<_>>(), probability).expect("runs")
    }
}
