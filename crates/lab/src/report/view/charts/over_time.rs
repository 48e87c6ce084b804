//! Lines over time, with no more points than a chart can show.

use serde::{Serialize, Serializer};

/// A panel is a few hundred pixels wide.
const POINTS_MOST: usize = 240;

/// How the seconds of a window become points. A short window keeps every second. Of a long one, each stretch
/// of equal length keeps its lowest and its highest second in their order, so that no stall and no peak is
/// lost, as a drawing of all seconds would show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reduction {
    /// 1 where every second is kept.
    stretch_s: usize,
}

impl Reduction {
    pub(super) fn of_window(seconds: usize) -> Reduction {
        let is_short = seconds <= POINTS_MOST;
        Reduction { stretch_s: if is_short { 1 } else { seconds.div_ceil(POINTS_MOST / 2) } }
    }

    /// From point to point.
    pub(super) fn step_s(self) -> f64 {
        if self.stretch_s == 1 { 1.0 } else { self.stretch_s as f64 / 2.0 }
    }

    pub(super) fn points(self, values: &[Option<f64>]) -> Points {
        if self.stretch_s == 1 {
            return Points(values.to_vec());
        }
        Points(values.chunks(self.stretch_s).flat_map(extremes).collect())
    }
}

/// The values of a line, rounded when they are written. Whole numbers have no `.0`, which saves a tenth of a
/// large page.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Points(pub(super) Vec<Option<f64>>);

impl Serialize for Points {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Point {
            Whole(i64),
            Broken(f64),
        }
        let point = |value: f64| match rounded(value) {
            value if value.fract() == 0.0 && value.abs() < 1e15 => Point::Whole(value as i64),
            value => Point::Broken(value),
        };
        serializer.collect_seq(self.0.iter().map(|value| value.map(point)))
    }
}

/// The lowest and the highest value, the earlier one first.
fn extremes(values: &[Option<f64>]) -> [Option<f64>; 2] {
    let known = || values.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?)));
    let lowest = known().min_by(|(_, one), (_, other)| one.total_cmp(other));
    let highest = known().max_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut pair = [lowest, highest];
    pair.sort_by_key(|found| found.map(|(at, _)| at));
    pair.map(|found| found.map(|(_, value)| value))
}

/// Four significant digits, all digits of the whole part: enough for any screen, and half the size of the
/// page.
pub(crate) fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let decimals = (3.0 - value.abs().log10().floor()).clamp(0.0, 9.0);
    let scale = 10_f64.powf(decimals);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_remain_and_every_whole_one() {
        let check = |value: f64, expect: f64| assert_eq!(rounded(value), expect);
        check(12_345_678.4, 12_345_678.0);
        check(0.012_345_6, 0.01235);
        check(-987.654, -987.7);
        check(f64::NAN, 0.0);
    }

    #[test]
    fn a_short_window_keeps_every_second() {
        let values: Vec<Option<f64>> =
            (0..POINTS_MOST as u32).map(|second| Some(f64::from(second))).collect();
        let reduction = Reduction::of_window(values.len());
        assert_eq!((reduction.step_s(), reduction.points(&values)), (1.0, Points(values)));
    }

    #[test]
    fn a_long_window_keeps_stalls_and_peaks_in_their_order() {
        let mut values = vec![Some(50.0); 3600];
        (values[1000], values[1010], values[2000]) = (Some(0.0), Some(99.0), None);
        let reduction = Reduction::of_window(values.len());
        let points = reduction.points(&values).0;
        assert!(points.len() <= POINTS_MOST && points.iter().all(Option::is_some), "{}", points.len());
        let place = |wanted: f64| points.iter().position(|value| *value == Some(wanted)).unwrap();
        let at_s = |point: usize| point as f64 * reduction.step_s();
        assert!(place(0.0) < place(99.0), "{points:?}");
        assert!((at_s(place(0.0)) - 1000.0).abs() <= reduction.step_s() * 2.0, "{points:?}");
        assert_eq!(reduction.points(&vec![None; 3600]).0, vec![None; POINTS_MOST]);
    }

    #[test]
    fn points_are_written_with_four_digits() {
        let points = Points(vec![Some(7.0), None, Some(1.0 / 3.0), Some(12_345.6)]);
        assert_eq!(serde_json::to_string(&points).unwrap(), "[7,null,0.3333,12346]");
    }
}
