use super::*;
use crate::looks::{FEWEST_PAIRS, widened};

const GOAL: Goal = Goal { half_width: 0.1, decisive_factor: None, is_about_a_difference: true };

fn samples(values: &[f64]) -> Vec<Sample> {
    values.iter().zip(1..).map(|(value, block)| Sample { block, value: *value }).collect()
}

fn check(baseline: &[f64], candidate: &[f64], goal: &Goal, expected: State) -> Standing {
    let standing = standing(&samples(baseline), &samples(candidate), goal);
    assert_eq!(standing.state, expected, "{standing:?}");
    standing
}

#[test]
fn agreeing_trials_are_enough_at_the_first_look() {
    let baseline = [100.0, 101.0, 99.0, 100.0, 100.5];
    let candidate = [200.0, 201.0, 199.0, 202.0, 200.0];
    let too_few = check(&baseline[..4], &candidate[..4], &GOAL, State::TooFew);
    assert_eq!(too_few.more_pairs, Some(1));
    let enough = check(&baseline, &candidate, &GOAL, State::Reached);
    assert_eq!((enough.pair_count, enough.more_pairs), (FEWEST_PAIRS, Some(0)));
    assert!(enough.half_width.is_some_and(|half_width| half_width < 0.03));
}

#[test]
fn the_half_width_is_the_upper_end_as_a_share_of_the_ratio() {
    let standing = check(&[100.0; 5], &[90.0, 110.0, 100.0, 95.0, 105.0], &GOAL, State::Open);
    let (ratio, interval) = standing.ratio.zip(standing.interval).expect("five pairs");
    let half_width = standing.half_width.expect("five pairs");
    assert!((interval.high / ratio - 1.0 - half_width).abs() < 1e-12);
    assert!((ratio / interval.low - 1.0 - half_width).abs() < 1e-12);
    let expected = widened(5, standing.spread.expect("five pairs")).expect("five pairs");
    assert!((expected.exp_m1() - half_width).abs() < 1e-12);
}

#[test]
fn a_fifty_fold_difference_is_decided_through_noise_that_hides_ten_percent() {
    let baseline = [100.0, 130.0, 80.0, 110.0, 95.0];
    let candidate = [6000.0, 4000.0, 5000.0, 4500.0, 6500.0];
    check(&baseline, &candidate, &GOAL, State::Open);
    let goal = Goal { decisive_factor: Some(2.0), ..GOAL };
    let decided = check(&baseline, &candidate, &goal, State::Decided);
    assert!(decided.interval.is_some_and(|interval| interval.low > 2.0));
    let inverse = check(&candidate, &baseline, &goal, State::Decided);
    assert!(inverse.interval.is_some_and(|interval| interval.high < 0.5));
    check(&baseline, &candidate, &Goal { decisive_factor: Some(40.0), ..GOAL }, State::Open);
}

#[test]
fn a_common_drift_cancels_within_blocks() {
    let drifting = [100.0, 150.0, 210.0, 300.0, 420.0];
    let candidate = drifting.map(|value| 1.2 * value);
    let standing = check(&drifting, &candidate, &GOAL, State::Reached);
    assert!(standing.half_width.is_some_and(|half_width| half_width < 1e-9));
}

#[test]
fn a_trial_without_its_partner_is_left_out() {
    let baseline = samples(&[100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 900.0]);
    let candidate = samples(&[120.0, 120.0, 120.0, 120.0, 120.0, 120.0]);
    let standing = standing(&baseline, &candidate, &GOAL);
    assert_eq!((standing.pair_count, standing.state), (6, State::Reached));
    assert!(standing.ratio.is_some_and(|ratio| (ratio - 1.2).abs() < 1e-12));
}

#[test]
fn two_trials_in_one_block_count_as_their_geometric_mean() {
    let mut baseline = samples(&[100.0; 5]);
    baseline[4].value = 50.0;
    baseline.push(Sample { block: 5, value: 200.0 });
    let standing = standing(&baseline, &samples(&[150.0; 5]), &GOAL);
    assert_eq!(standing.pair_count, 5);
    assert!(standing.ratio.is_some_and(|ratio| (ratio - 1.5).abs() < 1e-12));
}

#[test]
fn no_and_one_pair_have_no_interval() {
    let none = check(&[], &[], &GOAL, State::TooFew);
    assert_eq!((none.ratio, none.interval, none.more_pairs), (None, None, Some(5)));
    let one = check(&[100.0], &[300.0], &GOAL, State::TooFew);
    assert_eq!((one.interval, one.more_pairs), (None, Some(4)));
    assert!(one.ratio.is_some_and(|ratio| (ratio - 3.0).abs() < 1e-12));
}

#[test]
fn a_figure_without_a_logarithm_ends_the_comparison() {
    for figure in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let standing = check(&[100.0, 100.0], &[100.0, figure], &GOAL, State::NotComparable);
        assert_eq!((standing.more_pairs, standing.interval), (Some(0), None));
    }
}

#[test]
fn an_answer_needs_the_first_look() {
    let (baseline, candidate) = ([100.0; 5], [150.0, 151.0, 149.0, 150.0, 150.0]);
    let early = check(&baseline[..4], &candidate[..4], &GOAL, State::TooFew);
    assert_eq!(early.answer(None), Answer::NotKnown { half_width: None, more_trials: None });
    assert_eq!(check(&baseline, &candidate, &GOAL, State::Reached).answer(None), Answer::Better);
    assert_eq!(check(&candidate, &baseline, &GOAL, State::Reached).answer(None), Answer::Worse);
}

#[test]
fn an_unknown_answer_says_what_it_would_take() {
    let standing = check(&[100.0; 5], &[97.0, 105.0, 100.0, 99.0, 101.0], &GOAL, State::Reached);
    let Answer::NotKnown { half_width: Some(half_width), more_trials: Some(more) } =
        standing.answer(Some(0.01))
    else {
        panic!("{standing:?}")
    };
    assert!(half_width <= 0.01 && more > 5, "{more} trials to {half_width}");
    assert_eq!(standing.more_pairs_for(Aim::Difference, half_width), Some(more));
    assert_eq!(standing.answer(Some(0.1)), Answer::Same { within: 0.1 });
}
