use super::*;
use crate::record::spelling;
use spindle_stats::Interval;

#[track_caller]
fn check(target: Target, value: f64, low: f64, high: f64, expect: &str) {
    let estimate = Estimate::new(value, Some(Interval { low, high }));
    assert_eq!(spelling(&target.verdict(&estimate)), expect, "{value} ({low} to {high})");
}

fn single(ratio: f64) -> Target {
    Target::single(ratio)
}

#[test]
fn further_trials_decide_what_their_interval_leaves_open() {
    use crate::claims::estimate::Figure;
    use spindle_stats::Sample;
    let measured = |values: [f64; 3]| {
        Figure::Measured((1..).zip(values).map(|(block, value)| Sample { block, value }).collect())
    };
    let estimate = |values| measured(values).over(&measured([1.0; 3])).unwrap();
    // The logarithm is 0.095 with a deviation of 0.058: its half-width is 0.144 with three trials and 0.092 with four.
    let wide = estimate([1.038, 1.1, 1.1657]);
    let claim = Target::Ratio { low: 1.28, high: 1.28 };
    assert_eq!(claim.verdict(&wide), Verdict::NotDecided);
    assert_eq!(claim.trials_to_decide(&wide), Some(4));
    // Of an effect that is hardly there, a hundred trials tell no side.
    let none = estimate([0.9, 1.001, 1.1]);
    assert_eq!(
        Target::Bound { op: Bound::AtLeast, bound: 1.0, is_ratio: true }.trials_to_decide(&none),
        None
    );
    assert_eq!(claim.trials_to_decide(&measured([1.0; 3]).estimate().unwrap()), Some(3), "decided as it is");
    assert_eq!(claim.trials_to_decide(&Figure::Printed(1.0).estimate().unwrap()), None);
}

#[test]
fn a_ratio_of_the_claimed_size_is_confirmed() {
    check(single(14.0), 14.0, 13.0, 15.0, "confirmed");
    check(single(14.0), 11.3, 11.2, 11.4, "confirmed");
    check(single(14.0), 17.4, 17.3, 17.5, "confirmed");
    // Far away, but the interval contains the claim.
    check(single(14.0), 9.0, 5.0, 16.0, "confirmed");
    // Far away, but the interval meets the 25 %.
    check(single(14.0), 9.0, 7.0, 11.4, "confirmed");
}

#[test]
fn a_ratio_of_another_size_has_the_direction_only() {
    check(single(14.0), 11.1, 11.0, 11.15, "direction-only");
    check(single(14.0), 17.6, 17.55, 17.7, "direction-only");
    check(single(14.0), 1.5, 1.4, 1.6, "direction-only");
}

#[test]
fn a_small_gain_is_not_confirmed_by_a_large_one() {
    check(single(1.05), 1.26, 1.25, 1.27, "direction-only");
    check(single(1.05), 1.07, 1.065, 1.075, "confirmed");
    check(single(1.05), 1.08, 1.076, 1.085, "direction-only");
    check(single(1.28), 1.41, 1.40, 1.412, "confirmed");
    check(single(1.28), 1.13, 1.12, 1.139, "direction-only");
}

#[test]
fn an_interval_on_the_other_side_contradicts_and_one_across_decides_nothing() {
    check(single(1.28), 0.9, 0.85, 0.95, "contradicted");
    check(single(1.28), 1.1, 0.9, 1.3, "not-decided");
    check(single(1.28), 1.1, 1.0, 1.2, "not-decided");
    // No effect of half the claimed size is there, or one is not excluded.
    check(single(1.28), 1.0, 0.97, 1.05, "contradicted");
    check(single(1.28), 1.0, 0.85, 1.15, "not-decided");
    // Another trial may move the end of an interval across 1, but not an effect of this size into view.
    check(single(2.0), 1.03, 1.002, 1.07, "contradicted");
    check(single(2.0), 1.05, 1.035, 1.07, "contradicted");
    check(single(2.0), 1.1, 1.08, 1.12, "direction-only");
    // What is too little for six times is something beside a gain of 28 %.
    check(single(6.0), 1.08, 1.05, 1.12, "contradicted");
    check(single(6.0), 1.26, 1.2, 1.37, "direction-only");
    check(single(1.28), 1.08, 1.04, 1.12, "direction-only");
    check(single(1.28), 1.08, 1.01, 1.15, "confirmed");
    let one_trial = Estimate::new(1.28, None);
    assert_eq!(single(1.28).verdict(&one_trial), Verdict::NotDecided);
}

#[test]
fn a_ratio_and_its_inverse_have_the_same_verdict() {
    for claimed in [1.05, 1.28, 2.0, 14.0] {
        for (value, low, high) in [(1.1, 1.05, 1.2), (0.9, 0.8, 0.95), (1.3, 0.9, 1.8), (11.5, 11.4, 11.6)] {
            let estimate = Estimate::new(value, Some(Interval { low, high }));
            let inverse = single(1.0 / claimed).verdict(&estimate.inverse());
            assert_eq!(single(claimed).verdict(&estimate), inverse, "{claimed}: {value}");
        }
    }
}

#[test]
fn a_range_is_met_within_it_and_near_its_ends() {
    let range = Target::Ratio { low: 6.0, high: 10.0 };
    check(range, 8.0, 7.9, 8.1, "confirmed");
    check(range, 5.0, 4.9, 5.1, "confirmed");
    check(range, 12.4, 12.3, 12.45, "confirmed");
    check(range, 13.0, 12.9, 13.1, "direction-only");
    check(range, 1.3, 1.25, 1.35, "direction-only");
    check(range, 1.2, 1.1, 1.3, "contradicted");
    check(range, 0.9, 0.8, 0.95, "contradicted");
    check(Target::Ratio { low: 0.75, high: 0.8 }, 0.78, 0.77, 0.79, "confirmed");
    check(Target::Ratio { low: 0.75, high: 0.8 }, 0.4, 0.3, 0.5, "direction-only");
}

#[test]
fn a_gain_of_up_to_a_ratio_is_a_gain_and_not_much_larger() {
    let gain = Target::Ratio { low: 1.0, high: 1.15 };
    check(gain, 1.05, 1.02, 1.08, "confirmed");
    check(gain, 1.18, 1.16, 1.21, "confirmed");
    check(gain, 1.3, 1.25, 1.35, "direction-only");
    check(gain, 1.02, 0.97, 1.08, "not-decided");
    check(gain, 1.0, 0.99, 1.01, "contradicted");
}

#[test]
fn equality_is_an_interval_within_the_tolerance() {
    check(Target::equal(0.0), 1.01, 0.99, 1.02, "confirmed");
    check(Target::equal(0.0), 1.02, 0.99, 1.05, "not-decided");
    check(Target::equal(0.0), 1.05, 1.04, 1.06, "contradicted");
    check(Target::equal(0.1), 1.05, 1.04, 1.06, "confirmed");
    check(Target::equal(0.1), 0.85, 0.8, 0.9, "contradicted");
}

#[test]
fn a_bound_is_kept_by_the_whole_interval() {
    let bound = |op, bound| Target::Bound { op, bound, is_ratio: true };
    check(bound(Bound::AtLeast, 1.0), 2.0, 1.5, 2.5, "confirmed");
    check(bound(Bound::AtLeast, 1.0), 1.1, 0.9, 1.2, "not-decided");
    check(bound(Bound::AtLeast, 1.0), 0.9, 0.8, 0.95, "contradicted");
    // "Costs little" is refuted by a large cost, "ten times" is not by six times.
    check(bound(Bound::AtLeast, 0.95), 0.8, 0.76, 0.84, "contradicted");
    check(bound(Bound::AtLeast, 10.0), 6.0, 5.0, 7.0, "direction-only");
    check(bound(Bound::AtMost, 0.5), 0.7, 0.6, 0.8, "direction-only");
    check(bound(Bound::AtMost, 0.5), 1.1, 0.9, 1.2, "contradicted");
    let value = Target::Bound { op: Bound::AtLeast, bound: 80.0, is_ratio: false };
    check(value, 90.0, 85.0, 95.0, "confirmed");
    check(value, 70.0, 65.0, 75.0, "contradicted");
}

#[test]
fn a_difference_has_the_rule_of_a_ratio_with_zero_for_one() {
    check(Target::Difference(112.0), 100.0, 99.0, 101.0, "confirmed");
    check(Target::Difference(112.0), 20.0, 10.0, 30.0, "direction-only");
    check(Target::Difference(112.0), 20.0, -10.0, 60.0, "not-decided");
    check(Target::Difference(112.0), 20.0, -10.0, 50.0, "contradicted");
    check(Target::Difference(112.0), -20.0, -30.0, -10.0, "contradicted");
    check(Target::Difference(-4.0), -4.2, -4.4, -4.1, "confirmed");
}
