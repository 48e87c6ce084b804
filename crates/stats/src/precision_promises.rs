//! What the stopping rule promises, held against simulated runs. The tests take 500 seeds, or as many as
//! `SPINDLE_SIMULATED_RUNS` says, and allow three standard deviations of a binomial count:
//!
//! `SPINDLE_SIMULATED_RUNS=2000 cargo test -p spindle-stats --lib promises -- --nocapture`
//!
//! The table of the module's documentation takes 2000:
//!
//! `cargo test -p spindle-stats --lib promises -- --ignored --nocapture`

use super::simulation::{Noise, STEP, TREND, World};
use super::*;
use crate::random::Random;
use crate::{Verdict, compare};

fn seed_count() -> u64 {
    let written = std::env::var("SPINDLE_SIMULATED_RUNS").ok();
    written.map_or(500, |count| count.parse().expect("a number of runs"))
}

/// The noises of the table, each with the half-width of its goal.
const NOISES: [(Noise, f64); 8] = [
    (Noise::LogNormal(0.03), 0.10),
    (Noise::LogNormal(0.03), 0.02),
    (Noise::LogNormal(0.1), 0.10),
    (Noise::LogNormal(0.2), 0.10),
    (Noise::LogNormal(0.5), 0.20),
    (Noise::Halved(0.03), 0.10),
    (Noise::HeavyTails(0.1), 0.10),
    (Noise::HalvedHeavyTails(0.03), 0.10),
];

/// Three standard deviations of a share of [`seed_count`] runs.
fn error(share: f64) -> f64 {
    3.0 * (share * (1.0 - share) / seed_count() as f64).sqrt()
}

#[test]
fn the_interval_at_the_stop_holds_in_93_percent_and_equal_cells_differ_in_5() {
    for (noise, half_width) in NOISES {
        let tally = World::new(noise, 1.0, half_width).tally(RULE, seed_count());
        let (covered, different) = (tally.covered(), tally.different());
        println!(
            "{noise:?}, {half_width}, {} runs: covered {:.1} %, different {:.1} %",
            seed_count(),
            100.0 * covered,
            100.0 * different
        );
        assert!(covered >= 0.93 - error(0.93), "{noise:?}, {half_width}: covered {covered}");
        assert!(different <= 0.05 + error(0.05), "{noise:?}, {half_width}: different {different}");
    }
}

#[test]
fn a_difference_as_large_as_the_goal_is_found_through_any_noise() {
    for (noise, half_width) in NOISES {
        let tally = World::new(noise, 1.0 + half_width, half_width).tally(RULE, seed_count());
        let (found, covered) = (tally.different(), tally.covered());
        println!("{noise:?}, {half_width}: found {:.1} %, covered {:.1} %", 100.0 * found, 100.0 * covered);
        assert!(found >= 0.9 - error(0.9), "{noise:?}, {half_width}: found {found}");
        assert!(covered >= 0.93 - error(0.93), "{noise:?}, {half_width}: covered {covered}");
    }
}

#[test]
fn two_percent_are_never_called_the_same_within_one() {
    let same = |deviation, half_width| {
        let tally = World::new(Noise::LogNormal(deviation), 1.02, half_width).tally(RULE, seed_count());
        println!("noise {deviation}, goal {half_width}: {:.2} %", 100.0 * tally.same_within(0.01));
        tally.same_within(0.01)
    };
    for (deviation, half_width) in
        [(0.03, 0.10), (0.1, 0.10), (0.01, 0.10), (0.005, 0.10), (0.03, 0.01), (0.005, 0.01), (0.01, 0.005)]
    {
        assert!(same(deviation, half_width) < 1e-9, "noise {deviation}");
    }
}

#[test]
fn equal_cells_become_the_same_within_the_margin_that_the_goal_can_show() {
    let tally = World::new(Noise::LogNormal(0.03), 1.0, 0.01).tally(RULE, seed_count());
    assert!(tally.same_within(0.02) >= 0.9 - error(0.9), "{}", tally.same_within(0.02));
}

#[test]
fn a_factor_that_decides_keeps_the_promise() {
    // The worst cases: every shown difference decides, and a truth that lies on the factor.
    let noise = Noise::LogNormal(0.2);
    let equal = World::new(noise, 1.0, 0.10).decided_by(1.0).tally(RULE, seed_count());
    assert!(equal.different() <= 0.05 + error(0.05), "different {}", equal.different());
    let at_factor = World::new(noise, 2.0, 0.05).decided_by(2.0).tally(RULE, seed_count());
    let decided = at_factor.share(|standing| standing.state == State::Decided);
    assert!(decided <= 0.02 + error(0.02), "decided {decided}");
    assert!(at_factor.covered() >= 0.93 - error(0.93), "covered {}", at_factor.covered());
}

#[test]
fn a_fifty_fold_difference_needs_few_trials() {
    let world = World::new(Noise::LogNormal(0.3), 50.0, 0.05);
    let tally = world.decided_by(2.0).tally(RULE, seed_count());
    assert!(tally.pairs(0.9) <= 6.0, "{} pairs", tally.pairs(0.9));
    assert!(world.tally(RULE, 50).pairs(0.5) > 50.0);
}

#[test]
fn predictions_at_the_first_look_of_a_width_are_right_within_a_factor_of_two_or_three() {
    let world = World::new(Noise::LogNormal(0.2), 1.0, 0.10);
    let of_width = World { goal: Goal { is_about_a_difference: false, ..world.goal }, ..world };
    let predictions_of = |world: World| {
        let tally = world.tally(RULE, seed_count());
        [0.1, 0.5, 0.9].map(|probability| tally.prediction(probability))
    };
    let predictions = predictions_of(of_width);
    println!("of a width: {predictions:?}");
    assert!(predictions[0] > 0.3 && predictions[2] < 3.0, "{predictions:?}");
    assert!((0.6..1.5).contains(&predictions[1]), "{predictions:?}");
    // How far a ratio lies from 1, which decides how far the run must go, is hardly known then.
    let predictions = predictions_of(world);
    println!("of a difference: {predictions:?}");
    assert!((0.6..1.5).contains(&predictions[1]), "{predictions:?}");
}

/// A cell with trials in the first blocks only, and a baseline with surplus trials in all: the differences
/// that pairs first, and Welch's interval over all trials show between equal cells.
fn surplus(seed_count: u64, step: f64, trend: f64) -> (f64, f64) {
    let goal = Goal { half_width: 0.1, decisive_factor: None, is_about_a_difference: true };
    let (mut by_pairs, mut by_welch) = (0, 0);
    for seed in 0..seed_count {
        let mut random = Random::new(seed);
        let (mut machine, mut baseline, mut candidate) = (0.0, Vec::new(), Vec::new());
        for block in 1..=30 {
            let is_swapped = random.uniform() < 0.5;
            let mut trial = || {
                machine += trend + step * random.normal();
                Sample { block, value: (machine + 0.03 * random.normal()).exp() }
            };
            let (first, second) = (trial(), trial());
            baseline.push(if is_swapped { second } else { first });
            if block <= 8 {
                candidate.push(if is_swapped { first } else { second });
            }
        }
        let pairs = standing(&baseline, &candidate, &goal);
        by_pairs += u64::from(pairs.interval.is_some_and(|interval| !interval.contains(1.0)));
        let welch = compare(&baseline, &candidate, crate::looks::WIDENED_CONFIDENCE).expect("positive");
        by_welch += u64::from(welch.verdict != Verdict::NoDifferenceShown);
    }
    (by_pairs as f64 / seed_count as f64, by_welch as f64 / seed_count as f64)
}

#[test]
fn surplus_trials_do_not_turn_drift_into_a_difference() {
    for (step, trend) in [(0.0, 0.0), (STEP, 0.0), (STEP, TREND)] {
        let (by_pairs, by_welch) = surplus(seed_count(), step, trend);
        assert!(by_pairs <= 0.05 + error(0.05), "step {step}, trend {trend}: {by_pairs}");
        assert!(step == 0.0 || by_welch > 0.2, "step {step}, trend {trend}: Welch {by_welch}");
    }
}

const TABLE_SEEDS: u64 = 2000;

/// A standard deviation of 0.15 % for a share of 5 %.
const MANY_SEEDS: u64 = 20_000;

fn row(name: &str, world: &World) {
    let students = Rule { confidence: crate::CONFIDENCE, ..RULE };
    let (ours, plain) = (world.tally(RULE, TABLE_SEEDS), world.tally(students, TABLE_SEEDS));
    println!(
        "{name}, effect {}, goal {:?}: pairs {} (90 %: {:.0}), covered {:.1} %, different {:.1} %, same within \
         1 % {:.2} %, decided {:.1} %, prediction {:.2} to {:.2}; Student's 95 %: {} pairs, covered {:.1} %",
        world.effect,
        world.goal,
        ours.pairs(0.5),
        ours.pairs(0.9),
        100.0 * ours.covered(),
        100.0 * ours.different(),
        100.0 * ours.same_within(0.01),
        100.0 * ours.share(|standing| standing.state == State::Decided),
        ours.prediction(0.1),
        ours.prediction(0.9),
        plain.pairs(0.5),
        100.0 * plain.covered(),
    );
}

#[test]
#[ignore = "2000 seeds of every row take minutes; prints the table of the module's documentation"]
fn table() {
    for (noise, half_width) in NOISES {
        row(&format!("{noise:?}"), &World::new(noise, 1.0, half_width));
    }
    for (noise, half_width) in NOISES {
        row(&format!("planted, {noise:?}"), &World::new(noise, 1.0 + half_width, half_width));
    }
    for (deviation, effect, half_width) in [(0.03, 1.1, 0.05), (0.03, 1.02, 0.01), (0.005, 1.02, 0.01)] {
        row("planted", &World::new(Noise::LogNormal(deviation), effect, half_width));
    }
    let noise = Noise::LogNormal(0.2);
    row("any difference decides", &World::new(noise, 1.0, 0.10).decided_by(1.0));
    row("truth on the factor", &World::new(noise, 2.0, 0.05).decided_by(2.0));
    row("fifty-fold", &World::new(Noise::LogNormal(0.3), 50.0, 0.05).decided_by(2.0));
    let one_sided = World::new(Noise::LogNormal(0.03), 1.0, 0.10);
    row("one cell only is halved", &World { candidate: Noise::Halved(0.03), ..one_sided });
    for fewest_pairs in [4, 6] {
        let rule = Rule { fewest_pairs, ..RULE };
        let tally = World::new(Noise::LogNormal(0.03), 1.1, 0.10).tally(rule, TABLE_SEEDS);
        println!("first look at {fewest_pairs} pairs: found {:.1} %", 100.0 * tally.different());
    }
    for deviation in [0.08, 0.12] {
        let tally = World::new(Noise::LogNormal(deviation), 1.0, 0.10).tally(RULE, MANY_SEEDS);
        println!("log-normal {deviation}, {MANY_SEEDS} seeds: different {:.2} %", 100.0 * tally.different());
    }
    for (step, trend) in [(0.0, 0.0), (STEP, 0.0), (STEP, TREND)] {
        let (by_pairs, by_welch) = surplus(TABLE_SEEDS, step, trend);
        println!(
            "surplus, step {step}, trend {trend}: pairs first {:.1} %, Welch {:.1} %",
            100.0 * by_pairs,
            100.0 * by_welch
        );
    }
}
