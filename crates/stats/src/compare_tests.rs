use super::*;
use crate::{CONFIDENCE, random::Random};

fn samples(values: &[f64]) -> Vec<Sample> {
    values.iter().zip(1..).map(|(value, block)| Sample { block, value: *value }).collect()
}

fn check(baseline: &[f64], candidate: &[f64], verdict: Verdict, method: Method) -> Comparison {
    let comparison = compare(&samples(baseline), &samples(candidate), CONFIDENCE).expect("comparable");
    assert_eq!((comparison.verdict, comparison.method), (verdict, method));
    comparison
}

#[test]
fn a_common_drift_cancels_between_trials_of_one_block() {
    check(&[100.0, 150.0, 210.0], &[121.0, 180.0, 254.0], Verdict::Faster, Method::Paired);
}

#[test]
fn a_ratio_and_its_inverse_mirror_each_other() {
    let (left, right) = ([100.0, 104.0, 99.0], [131.0, 140.0, 133.0]);
    let up = check(&left, &right, Verdict::Faster, Method::Paired);
    let down = check(&right, &left, Verdict::Slower, Method::Paired);
    assert!((up.ratio * down.ratio - 1.0).abs() < 1e-12);
    let (up, down) = (up.interval.expect("interval"), down.interval.expect("interval"));
    assert!((up.low * down.high - 1.0).abs() < 1e-12);
}

#[test]
fn an_interval_around_one_shows_no_difference() {
    check(&[100.0, 101.0, 99.0], &[100.5, 99.5, 101.0], Verdict::NoDifferenceShown, Method::Paired);
}

#[test]
fn one_trial_gives_a_ratio_and_no_interval() {
    let comparison = check(&[100.0], &[300.0], Verdict::NotTested, Method::RatioOnly);
    assert!((comparison.ratio - 3.0).abs() < 1e-12);
    assert_eq!(comparison.interval, None);
}

#[test]
fn one_trial_against_several_has_no_interval_either() {
    check(&[100.0], &[300.0, 310.0], Verdict::NotTested, Method::RatioOnly);
}

#[test]
fn a_missing_trial_loses_the_pairing() {
    check(&[100.0, 101.0, 99.0], &[200.0, 202.0], Verdict::Faster, Method::Welch);
}

#[test]
fn repeating_a_block_loses_the_pairing() {
    let twice = [Sample { block: 1, value: 10.0 }, Sample { block: 1, value: 11.0 }];
    let comparison = compare(&twice, &samples(&[30.0, 31.0]), CONFIDENCE).expect("comparable");
    assert_eq!(comparison.method, Method::Welch);
}

#[test]
fn nothing_and_zero_throughput_are_not_compared() {
    assert_eq!(compare(&[], &samples(&[1.0]), CONFIDENCE), None);
    assert_eq!(compare(&samples(&[0.0, 1.0]), &samples(&[1.0, 1.0]), CONFIDENCE), None);
}

#[test]
fn trials_without_any_spread_are_told_apart_exactly() {
    check(&[100.0, 100.0], &[101.0, 101.0], Verdict::Faster, Method::Paired);
    check(&[100.0, 100.0], &[100.0, 100.0], Verdict::NoDifferenceShown, Method::Paired);
}

#[test]
fn welch_follows_the_textbook() {
    let (left, right) = ([103.0_f64, 98.0, 101.0, 97.0], [120.0_f64, 118.0, 131.0]);
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
    let estimate = welch_estimate(&logs(&left), &logs(&right), 0.95).expect("two and more");
    let (u, v) = (variance(&logs(&left)).expect("four") / 4.0, variance(&logs(&right)).expect("three") / 3.0);
    let degrees = (u + v).powi(2) / (u * u / 3.0 + v * v / 2.0);
    assert!((2.0..5.0).contains(&degrees), "Satterthwaite lies between the smaller n - 1 and n + m - 2");
    assert!((estimate.half_width / (u + v).sqrt() - student_t_quantile(0.975, degrees)).abs() < 1e-9);
}

#[test]
fn the_mean_interval_is_students() {
    // t(0.975, 2) = 4.302653; mean 12, standard deviation 2, three values.
    let interval = mean_interval(&[10.0, 12.0, 14.0], 0.95).expect("three values");
    assert!((interval.high - 12.0 - 4.302_653 * 2.0 / 3.0_f64.sqrt()).abs() < 1e-5);
    assert_eq!(mean_interval(&[10.0], 0.95), None);
}

#[test]
fn further_trials_narrow_an_interval_as_students_t_says() {
    // t(0.975, 2) = 4.302653 and t(0.975, 7) = 2.364624.
    let factor = narrowing(3, 8, 0.95);
    assert!((factor - 2.364_624 / 4.302_653 * (3.0_f64 / 8.0).sqrt()).abs() < 1e-6, "{factor}");
}

/// Two cells whose true ratio is `effect`: log-normal noise per trial, and a drift per block that both share.
fn differs(seed: u64, block_count: u32, effect: f64, lose_a_trial: bool) -> bool {
    let mut random = Random::new(seed.wrapping_mul(0x9E37_79B9) ^ u64::from(block_count));
    let (mut baseline, mut candidate) = (Vec::new(), Vec::new());
    for block in 1..=block_count {
        let drift = 0.10 * random.normal() + 0.02 * f64::from(block);
        let mut trial =
            |scale: f64| Sample { block, value: scale * (7.0 + drift + 0.03 * random.normal()).exp() };
        baseline.push(trial(1.0));
        candidate.push(trial(effect));
    }
    if lose_a_trial {
        candidate.pop();
    }
    let comparison = compare(&baseline, &candidate, CONFIDENCE).expect("positive values");
    matches!(comparison.verdict, Verdict::Faster | Verdict::Slower)
}

const SEED_COUNT: u64 = 2000;

/// The interval promises 5 %; a count over 2000 seeds has a standard deviation of 0.49 %, and three of them
/// are allowed.
const MOST_FALSE: f64 = 0.05 + 3.0 * 0.0049;

#[test]
fn the_same_cell_twice_is_told_apart_in_five_percent_of_the_seeds() {
    for block_count in 3..=10 {
        let found = (0..SEED_COUNT).filter(|seed| differs(*seed, block_count, 1.0, false)).count();
        let share = found as f64 / SEED_COUNT as f64;
        assert!(share <= MOST_FALSE, "{block_count} trials: {share} false differences");
        assert!(
            share >= 0.05 - 3.0 * 0.0049,
            "{block_count} trials: {share}, intervals are too wide to be 95 %"
        );
    }
}

#[test]
fn a_lost_trial_does_not_raise_the_false_differences() {
    for block_count in 3..=10 {
        let found = (0..SEED_COUNT).filter(|seed| differs(*seed, block_count, 1.0, true)).count();
        let share = found as f64 / SEED_COUNT as f64;
        assert!(share <= MOST_FALSE, "{block_count} trials: {share} false differences");
    }
}

#[test]
fn a_true_difference_is_found() {
    for (block_count, effect) in [(3, 1.5), (5, 1.2), (10, 1.1)] {
        let found = (0..SEED_COUNT).filter(|seed| differs(*seed, block_count, effect, false)).count();
        assert!(found as f64 >= 0.9 * SEED_COUNT as f64, "{block_count} trials, {effect}: found {found}");
    }
}

#[test]
fn the_predicted_trials_make_the_interval_as_narrow_as_asked() {
    // Log ratios of -0.1, 0 and 0.1: a spread of 0.1.
    let (baseline, candidate) = (samples(&[100.0; 3]), samples(&[90.483_74, 100.0, 110.517_09]));
    for half_width in [0.05, 0.1] {
        let more =
            more_trials(&baseline, &candidate, CONFIDENCE, Aim::Difference, half_width).expect("a spread");
        let width =
            |count: u32| student_t_quantile(0.975, f64::from(count - 1)) * 0.1 / f64::from(count).sqrt();
        assert!(width(3 + more) <= half_width.ln_1p() && width(2 + more) > half_width.ln_1p(), "{more}");
    }
    assert_eq!(more_trials(&samples(&[1.0]), &samples(&[2.0]), CONFIDENCE, Aim::Difference, 0.05), None);
    assert!(
        more_trials(&baseline, &samples(&[90.0, 100.0]), CONFIDENCE, Aim::Difference, 0.05).is_some(),
        "not paired"
    );
}
