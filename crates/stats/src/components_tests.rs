use super::*;
use crate::random::Random;

const COSTS: Costs = Costs { set_up_s: 60.0, second_s: 1.0 };

/// Trials that vary by `between` (a standard deviation, a share), with seconds that vary by `second` and
/// whose neighbours correlate.
fn trials(
    seed: u64,
    count: usize,
    length: usize,
    between: f64,
    second: f64,
    correlation: f64,
) -> Vec<Vec<f64>> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|_| {
            let level = 1000.0 * (between * random.normal()).exp();
            let mut noise = random.normal();
            (0..length)
                .map(|_| {
                    noise = correlation * noise + (1.0 - correlation * correlation).sqrt() * random.normal();
                    level * (1.0 + second * noise)
                })
                .collect()
        })
        .collect()
}

fn of_trials(trials: &[Vec<f64>]) -> Option<Components> {
    let windows = trials.iter().map(|seconds| Some(Window { figure: mean(seconds)?, seconds }));
    components(&windows.collect::<Option<Vec<_>>>()?)
}

/// The mean estimates over 100 seeds of 20 trials, divided by the truth.
fn check(length: usize, between: f64, second: f64, correlation: f64) {
    const SEED_COUNT: u64 = 100;
    let (mut within_sum, mut between_sum) = (0.0, 0.0);
    for seed in 0..SEED_COUNT {
        let found = of_trials(&trials(seed, 20, length, between, second, correlation)).expect("long windows");
        within_sum += found.within / SEED_COUNT as f64;
        between_sum += found.between / SEED_COUNT as f64;
    }
    let within = second * second * (1.0 + correlation) / (1.0 - correlation);
    let words = format!("{length} s, {between}, {second}, {correlation}: {within_sum} and {between_sum}");
    // A variance of 20 trials has a standard error of a third, the mean of 100 of 3 %.
    assert!((within_sum / within - 1.0).abs() < 0.12, "{words}, not {within}");
    let of_trial = between * between + within / length as f64;
    assert!((between_sum - between * between).abs() < 0.12 * of_trial, "{words}, not {}", between * between);
}

#[test]
fn the_components_of_simulated_trials_are_found() {
    check(60, 0.05, 0.2, 0.0);
    check(60, 0.05, 0.2, 0.5);
    check(120, 0.02, 0.3, 0.6);
    check(30, 0.10, 0.1, 0.3);
}

#[test]
fn trials_that_vary_by_their_seconds_alone_have_next_to_nothing_between() {
    let of_seed = |seed| of_trials(&trials(seed, 40, 60, 0.0, 0.3, 0.3)).expect("long windows");
    // The variance of 40 trials has a standard error of 23 %, and what falls below zero counts as zero.
    let between = (0..50).map(|seed| of_seed(seed).between).sum::<f64>() / 50.0;
    assert!(between < 0.2 * of_seed(0).within / 60.0, "{between}");
    let still = of_trials(&trials(7, 40, 60, 0.05, 0.0, 0.0)).expect("long windows");
    assert!(still.within < 1e-12 && (0.0012..0.0042).contains(&still.between), "{still:?}");
}

#[test]
fn many_trials_take_the_window_of_kalibera_and_jones() {
    let components = Components { within: 0.12, between: 0.0025 };
    let expected = (60.0_f64 * 0.12 / 0.0025).sqrt();
    assert!((components.cheapest_window_s(COSTS).expect("both vary") - expected).abs() < 1e-9);
    let plan = components.plan(0.005, COSTS, 1, 3600).expect("reachable");
    assert!(plan.pair_count > 100, "{plan:?}");
    assert!((f64::from(plan.window_s) / expected - 1.0).abs() < 0.1, "{plan:?}, not {expected} s");
    let slow = Costs { second_s: 4.0, ..COSTS };
    let dilated = components.cheapest_window_s(slow).expect("both vary");
    assert!((dilated - expected / 2.0).abs() < 1e-9);
}

#[test]
fn a_plan_is_the_cheapest_of_all_that_reach_the_half_width() {
    for (within, between, half_width) in
        [(0.12, 0.0025, 0.1), (0.12, 0.0025, 0.03), (1.0, 1e-5, 0.05), (0.001, 0.01, 0.2)]
    {
        let components = Components { within, between };
        let plan = components.plan(half_width, COSTS, 10, 600).expect("reachable");
        let mut cheapest = f64::INFINITY;
        for pair_count in FEWEST_PAIRS..=300 {
            let multiplier = widened(pair_count, 1.0).expect("pairs");
            let reaches = |window_s: &u32| {
                let spread = (2.0 * components.of_trial(f64::from(*window_s))).sqrt();
                (multiplier * spread).exp_m1() <= half_width
            };
            if let Some(window_s) = (10..=600).find(reaches) {
                cheapest = cheapest.min(2.0 * f64::from(pair_count) * (60.0 + f64::from(window_s)));
            }
        }
        assert!((plan.cost_s - cheapest).abs() < 1e-6, "{plan:?}, not {cheapest} s");
    }
}

#[test]
fn quiet_trials_need_the_shortest_windows_and_the_fewest_pairs() {
    let plan = Components { within: 0.0, between: 0.0 }.plan(0.1, COSTS, 30, 600).expect("reachable");
    assert_eq!(plan, WindowPlan { window_s: 30, pair_count: FEWEST_PAIRS, cost_s: 10.0 * 90.0 });
}

#[test]
fn trials_that_vary_by_their_seconds_alone_have_no_cheapest_window_but_a_plan() {
    let components = Components { within: 0.5, between: 0.0 };
    assert_eq!(components.cheapest_window_s(COSTS), None);
    let plan = components.plan(0.05, COSTS, 10, 3600).expect("reachable");
    let dearer = Costs { set_up_s: 600.0, ..COSTS };
    let with_dearer = components.plan(0.05, dearer, 10, 3600).expect("reachable");
    assert!(with_dearer.window_s > plan.window_s && with_dearer.pair_count < plan.pair_count);
}

#[test]
fn what_cannot_be_reached_has_no_plan() {
    assert_eq!(Components { within: 0.1, between: 4.0 }.plan(0.001, COSTS, 10, 600), None);
}

#[test]
fn one_window_short_windows_and_idle_ones_have_no_components() {
    let window = |figure, seconds| Window { figure, seconds };
    let long = [90.0, 110.0, 95.0, 105.0, 100.0, 104.0, 96.0, 98.0, 102.0, 101.0];
    assert!(components(&[window(100.0, &long), window(110.0, &long)]).is_some());
    assert_eq!(components(&[window(100.0, &long)]), None);
    assert_eq!(components(&[window(100.0, &long), window(110.0, &long[..7])]), None);
    assert_eq!(components(&[window(100.0, &long), window(0.0, &long)]), None);
    assert_eq!(components(&[window(100.0, &long), window(110.0, &[0.0; 10])]), None);
    let ramp: Vec<f64> = (0..10).map(|second| 100.0 + 10.0 * f64::from(second)).collect();
    assert_eq!(components(&[window(100.0, &ramp), window(110.0, &ramp)]), None);
}
