//! The promises of a run with default settings, held against simulated runs: the order of the trials, the end
//! of the run and the verdict of the report are those of the program, and only the figures of the trials are
//! drawn.
//!
//! A trial moves the machine by a random step of 1 %, which the next ones share. On top comes noise of the
//! trial's own: of the committed records, the ratios of two cells vary by 3 to 4 % a trial where the cores do
//! not interfere (records/quickstart: 3.4 %; median of all records: 4.2 %). One trial in fifty stalls and
//! loses a third of its figure.
//!
//! The tests take 100 runs, 25 in `./check`, and allow three standard deviations of such a count. With
//! `SPINDLE_SIMULATED_RUNS=2000` they take 2,000 and print the shares:
//!
//! `SPINDLE_SIMULATED_RUNS=2000 cargo test -p spindle-lab --lib promises -- --nocapture`

use spindle_stats::random::Random;

use super::Order;
use super::tests::plan;
use crate::record::Until;
use crate::report::precision_tests::{add, records};
use crate::report::verdict::{CellOf, Judged, Word, judge};

/// What a scenario without `trials` and `until` has.
const DEFAULT: Until = Until { half_width: 0.1, at_most_s: 2400.0 };
/// Of verdicts about sameness.
const WITHIN: f64 = 0.01;

fn run_count() -> u64 {
    let is_quick = std::env::var("SPINDLE_CHECK").is_ok_and(|check| check == "quick");
    let written = std::env::var("SPINDLE_SIMULATED_RUNS").ok();
    written.map_or(if is_quick { 25 } else { 100 }, |count| count.parse().expect("a number of runs"))
}

/// How figures vary, on the log scale.
#[derive(Debug, Clone, Copy)]
struct Noise {
    trial: f64,
    /// Share of trials that lose a third.
    stalled: f64,
}

const QUIET: Noise = Noise { trial: 0.03, stalled: 0.0 };
const STALLING: Noise = Noise { trial: 0.03, stalled: 0.02 };
const OF_THE_RECORDS: Noise = Noise { trial: 0.042, stalled: 0.02 };

impl Noise {
    fn draw(self, random: &mut Random) -> f64 {
        let stall = if random.uniform() < self.stalled { (2.0_f64 / 3.0).ln() } else { 0.0 };
        stall + self.trial * random.normal()
    }
}

/// Two cells, the second of which is `effect` times as fast, until the run ends.
fn run(noise: Noise, effect: f64, until: Until, seed: u64) -> Judged {
    let mut random = Random::new(seed);
    let mut records = records(2);
    records.header.scenario.until = Some(until);
    records.header.scenario.seed = seed;
    // Only the figures count here.
    records.trials[0].warnings.clear();
    let plan = plan(&records);
    let mut order = Order::new(&plan, Some(until), true, &records);
    let mut machine = 0.0;
    loop {
        let next = order.next(&records);
        if next.is_empty() {
            break;
        }
        for planned in next {
            machine += 0.01 * random.normal();
            let of_cell = if planned.cell_index == 1 { effect.ln() } else { 0.0 };
            let value = 100.0 * (of_cell + machine + noise.draw(&mut random)).exp();
            add(&mut records, planned.cell_index, planned.block, Some(value));
        }
    }
    let [baseline, candidate] =
        [0, 1].map(|index| CellOf { records: &records, cell: &records.header.cells[index] });
    judge(baseline, candidate, true, WITHIN)
}

/// The share of runs of which this holds, and three standard deviations of its count.
fn share(noise: Noise, effect: f64, until: Until, holds: impl Fn(&Judged) -> bool) -> (f64, f64) {
    let count = run_count();
    let held = (0..count).filter(|seed| holds(&run(noise, effect, until, *seed))).count();
    let share = held as f64 / count as f64;
    println!("{noise:?}, effect {effect}, {until:?}: {:.1} % of {count} runs", 100.0 * share);
    (share, 3.0 * (share.clamp(0.01, 0.99) * (1.0 - share.clamp(0.01, 0.99)) / count as f64).sqrt())
}

#[test]
fn default_settings_find_ten_percent_in_nine_runs_of_ten() {
    for noise in [QUIET, STALLING, OF_THE_RECORDS] {
        let is_found = |judged: &Judged| judged.verdict.word == Word::Better;
        let (found, error) = share(noise, 1.1, DEFAULT, is_found);
        assert!(found >= 0.9 - error, "{noise:?}: found in {found}");
    }
}

#[test]
fn default_settings_call_equal_cells_different_in_one_run_of_twenty() {
    for noise in [QUIET, STALLING, OF_THE_RECORDS] {
        let is_false = |judged: &Judged| matches!(judged.verdict.word, Word::Better | Word::Worse);
        let (false_ones, error) = share(noise, 1.0, DEFAULT, is_false);
        assert!(false_ones <= 0.05 + error, "{noise:?}: different in {false_ones}");
    }
}

#[test]
fn the_interval_of_the_report_holds_in_93_percent() {
    let holds = |judged: &Judged| {
        let interval = judged.ratio.as_ref().and_then(|ratio| ratio.interval);
        interval.is_some_and(|interval| interval.low <= 1.1 && 1.1 <= interval.high)
    };
    for noise in [QUIET, STALLING, OF_THE_RECORDS] {
        let (held, error) = share(noise, 1.1, DEFAULT, holds);
        assert!(held >= 0.93 - error, "{noise:?}: held in {held}");
    }
}

#[test]
fn two_percent_are_never_the_same_within_one() {
    for until in [DEFAULT, Until { half_width: 0.02, ..DEFAULT }] {
        let is_same = |judged: &Judged| judged.verdict.word == Word::Same;
        let (same, _) = share(QUIET, 1.02, until, is_same);
        assert!(same < 1e-9, "{until:?}: the same in {same}");
    }
}
