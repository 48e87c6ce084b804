//! Simulated runs whose cells drop out as they finish. The table of the module's documentation takes 2000
//! seeds: `cargo test -p spindle-stats --lib allocation -- --ignored --nocapture`

use super::*;
use crate::precision::simulation::{Noise, STEP, TREND};
use crate::random::Random;

const GOAL: Goal = Goal { half_width: 0.1, decisive_factor: None, is_about_a_difference: true };

const BASELINE: Noise = Noise::LogNormal(0.03);

/// The noise of each candidate, and its ratio to the baseline.
const CANDIDATES: [(Noise, f64); 3] =
    [(Noise::LogNormal(0.03), 1.0), (Noise::LogNormal(0.1), 1.0), (Noise::LogNormal(0.2), 3.0)];

const BLOCKS_MOST: u32 = 300;

#[derive(Debug, Clone, Copy)]
enum Next {
    /// All that are not finished.
    Block,
    /// The one that helps most.
    One,
}

struct End {
    standings: Vec<Standing>,
    trial_count: usize,
}

fn run(seed: u64, next: Next) -> End {
    let mut random = Random::new(seed);
    let mut machine = 0.0;
    // The baseline is the last.
    let mut trials: Vec<Vec<Sample>> = vec![Vec::new(); CANDIDATES.len() + 1];
    for block in 1.. {
        let cells: Vec<CellTrials> =
            trials.iter().map(|samples| CellTrials { samples, cost_s: 60.0 }).collect();
        let (baseline, candidates) = cells.split_last().expect("a baseline");
        let outlook = outlook(*baseline, candidates, &GOAL);
        if outlook.is_finished() || block > BLOCKS_MOST {
            return End { standings: outlook.standings, trial_count: trials.iter().map(Vec::len).sum() };
        }
        let mut members = match next {
            Next::Block => outlook.next_block,
            Next::One => outlook.helps_most.into_iter().collect(),
        };
        members.push(CANDIDATES.len());
        for last in (1..members.len()).rev() {
            members.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
        }
        for cell in members {
            let (noise, ratio) = CANDIDATES.get(cell).copied().unwrap_or((BASELINE, 1.0));
            machine += TREND + STEP * random.normal();
            let value = ratio * (machine + noise.draw(&mut random)).exp();
            trials[cell].push(Sample { block, value });
        }
    }
    unreachable!("the blocks end")
}

/// For each candidate the share of runs whose interval holds the true ratio.
fn held(ends: &[End]) -> Vec<f64> {
    let holds = |end: &&End, index: usize| {
        end.standings[index].interval.is_some_and(|interval| interval.contains(CANDIDATES[index].1))
    };
    let count = |index| ends.iter().filter(|end| holds(end, index)).count();
    (0..CANDIDATES.len()).map(|index| count(index) as f64 / ends.len() as f64).collect()
}

/// Trials of a run, and those that it would have with all cells in all blocks that its noisiest cell needs.
fn mean_trials(ends: &[End]) -> (f64, f64) {
    let blocks = |end: &End| end.standings.iter().map(|standing| standing.pair_count).max().unwrap_or(0);
    let in_full = |end: &End| blocks(end) as usize * (CANDIDATES.len() + 1);
    let mean = |sum: usize| sum as f64 / ends.len() as f64;
    (mean(ends.iter().map(|end| end.trial_count).sum()), mean(ends.iter().map(in_full).sum()))
}

#[test]
fn cells_that_drop_out_keep_the_promise_and_save_trials() {
    const SEED_COUNT: u64 = 150;
    let allowance = 3.0 * (0.93 * 0.07 / SEED_COUNT as f64).sqrt();
    for next in [Next::Block, Next::One] {
        let ends: Vec<End> = (0..SEED_COUNT).map(|seed| run(seed, next)).collect();
        let held = held(&ends);
        assert!(held.iter().all(|share| *share >= 0.93 - allowance), "{next:?}: {held:?}");
        let (ours, in_full) = mean_trials(&ends);
        assert!(ours < 0.9 * in_full, "{next:?}: {ours} of {in_full} trials");
    }
}

#[test]
#[ignore = "2000 runs; prints the table of the module's documentation"]
fn table() {
    for next in [Next::Block, Next::One] {
        let ends: Vec<End> = (0..2000).map(|seed| run(seed, next)).collect();
        println!("{next:?}: held {:?}, trials {:?}", held(&ends), mean_trials(&ends));
    }
}
