use super::*;
use crate::random::Random;

/// Points with a spread of about the given share, three trials each.
fn curve(levels: &[f64], spread: f64, seed: u64) -> Vec<Vec<Sample>> {
    let mut random = Random::new(seed);
    let mut point = |level: f64| {
        let trial = |block| Sample { block, value: level * (1.0 + spread * random.normal()) };
        (1..=3).map(trial).collect()
    };
    levels.iter().map(|level| point(*level)).collect()
}

fn exact(levels: &[f64]) -> Vec<Vec<Sample>> {
    let around = [0.998, 1.0, 1.002];
    let point = |(index, level): (usize, &f64)| {
        // The trials of neighbours err in different orders, so that no interval has a width of zero.
        let trial =
            |block: usize| Sample { block: block as u32, value: level * around[(block * (index + 1)) % 3] };
        (1..=3).map(trial).collect()
    };
    levels.iter().enumerate().map(point).collect()
}

#[track_caller]
fn check(levels: &[f64], index: usize, level: &[usize], earliest: usize, latest: usize) {
    let peak = peak(&exact(levels)).expect("figures");
    assert_eq!((peak.index, peak.level.as_slice()), (index, level), "{levels:?}");
    assert_eq!(knee(&peak, 0.05), Knee { earliest, latest }, "{levels:?}");
}

#[test]
fn the_knee_is_where_the_curve_becomes_flat() {
    check(&[100.0, 200.0, 390.0, 396.0, 400.0], 4, &[4], 2, 2);
    check(&[100.0, 200.0, 300.0, 400.0], 3, &[3], 3, 3);
    check(&[400.0, 399.0, 400.5], 0, &[0, 1, 2], 0, 0);
}

#[test]
fn a_curve_that_falls_after_its_peak_has_its_knee_before_it() {
    check(&[100.0, 392.0, 400.0, 250.0], 2, &[2], 1, 1);
}

#[test]
fn a_dip_before_the_peak_moves_the_knee_behind_it() {
    check(&[395.0, 300.0, 400.0], 2, &[2], 2, 2);
}

#[test]
fn points_that_the_trials_do_not_tell_apart_share_the_peak_and_widen_the_knee() {
    let points = curve(&[100.0, 380.0, 398.0, 400.0, 399.0], 0.06, 11);
    let peak = peak(&points).expect("figures");
    assert!(peak.level.len() >= 3 && !peak.level.contains(&0), "{:?}", peak.level);
    let knee = knee(&peak, 0.05);
    assert!(knee.earliest < knee.latest, "{knee:?}");
}

#[test]
fn a_missing_figure_is_neither_peak_nor_knee() {
    let mut points = exact(&[100.0, 390.0, 400.0]);
    points[1].clear();
    let peak = peak(&points).expect("figures");
    assert_eq!((peak.index, knee(&peak, 0.05)), (2, Knee { earliest: 2, latest: 2 }));
    assert_eq!(super::peak(&[Vec::new(), vec![Sample { block: 1, value: 0.0 }]]), None);
}

#[test]
fn a_single_trial_gives_a_peak_and_an_open_knee() {
    let points = [100.0, 390.0, 400.0].map(|value| vec![Sample { block: 1, value }]);
    let peak = peak(&points).expect("figures");
    assert_eq!((peak.index, peak.level.as_slice()), (2, &[2][..]));
    assert_eq!(knee(&peak, 0.05), Knee { earliest: 1, latest: 2 });
}

/// Ratios with intervals of this share to either side.
fn ratios(points: &[(f64, f64)], half_width: f64) -> Vec<RatioAt> {
    let point = |(at, ratio): &(f64, f64)| {
        let interval = Interval { low: ratio / (1.0 + half_width), high: ratio * (1.0 + half_width) };
        RatioAt { at: *at, ratio: *ratio, interval: Some(interval) }
    };
    points.iter().map(point).collect()
}

fn close(actual: f64, expected: f64) {
    assert!((actual / expected - 1.0).abs() < 1e-9, "{actual} is not {expected}");
}

#[test]
fn curves_cross_in_the_middle_of_the_logarithms() {
    let found = crossings(&ratios(&[(1.0, 0.25), (4.0, 0.5), (16.0, 2.0), (64.0, 4.0)], 0.1));
    let [crossing] = found.as_slice() else { panic!("{found:?}") };
    close(crossing.at, 8.0);
    // The upper edge is 0.55 at 4 and 2.2 at 16: it reaches one at 4 to the power 1 + ln(1/0.55) / ln 4.
    close(crossing.low.unwrap(), 4.0 * (1.0 / 0.55));
    close(crossing.high.unwrap(), 16.0 / (2.0 / 1.1));
    assert!(crossing.is_rising && crossing.is_shown());
}

#[test]
fn a_falling_ratio_crosses_at_the_same_place() {
    let up = ratios(&[(1.0, 0.3), (10.0, 0.8), (100.0, 3.0)], 0.3);
    let down: Vec<RatioAt> = up.iter().map(|one| one.inverse()).collect();
    let (up, down) = (crossings(&up)[0], crossings(&down)[0]);
    close(down.at, up.at);
    close(down.low.unwrap(), up.low.unwrap());
    close(down.high.unwrap(), up.high.unwrap());
    assert!(up.is_rising && !down.is_rising);
}

#[test]
fn an_end_that_no_trial_shows_is_open() {
    let found = crossings(&ratios(&[(1.0, 0.9), (4.0, 1.2), (16.0, 2.0)], 0.3));
    assert_eq!((found.len(), found[0].low), (1, None));
    assert!(found[0].high.is_some_and(|high| (4.0..16.0).contains(&high)) && !found[0].is_shown());
    let bare: Vec<RatioAt> =
        [(1.0, 0.5), (2.0, 2.0)].map(|(at, ratio)| RatioAt { at, ratio, interval: None }).to_vec();
    assert_eq!((crossings(&bare)[0].low, crossings(&bare)[0].high), (None, None));
}

#[test]
fn curves_that_do_not_cross_have_no_crossing() {
    assert!(crossings(&ratios(&[(1.0, 1.5), (2.0, 1.1), (4.0, 3.0)], 0.2)).is_empty());
    assert!(crossings(&ratios(&[(1.0, 1.0), (2.0, 1.0)], 0.2)).is_empty());
    assert_eq!(crossings(&ratios(&[(1.0, 1.5), (2.0, 0.7), (4.0, 3.0)], 0.2)).len(), 2);
}

#[test]
fn the_interval_of_a_crossing_holds_the_true_one_as_often_as_it_says() {
    // Two straight lines over the logarithm of the axis that cross at 8.
    let places = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0_f64];
    let runs = 600;
    let held = (0..runs).filter(|seed| {
        let mut random = Random::new(1000 + seed);
        let ratio = |at: &f64| {
            let trials = |random: &mut Random, level: f64| -> Vec<Sample> {
                (1..=4).map(|block| Sample { block, value: level * (0.08 * random.normal()).exp() }).collect()
            };
            let (one, other) =
                (trials(&mut random, 100.0), trials(&mut random, 100.0 * (at / 8.0).powf(0.3)));
            let comparison = compare(&one, &other, CONFIDENCE).expect("figures");
            RatioAt { at: *at, ratio: comparison.ratio, interval: comparison.interval }
        };
        let found = crossings(&places.iter().map(ratio).collect::<Vec<_>>());
        found.iter().any(|crossing| {
            crossing.low.is_none_or(|low| low <= 8.0) && crossing.high.is_none_or(|high| high >= 8.0)
        })
    });
    let share = held.count() as f64 / runs as f64;
    assert!(share >= 0.93, "{share}");
}
