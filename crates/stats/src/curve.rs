//! A curve of figures over a swept value: its peak, its knee, and where two curves cross.
//!
//! The knee is the capacity up to which more of the swept value pays: Jain, "The Art of Computer Systems
//! Performance Analysis" (1991), section 3.3. He reads it off the curve; here it is the smallest value from
//! which on, up to the peak, the figure is the same as the peak's within a margin. "The same" is the test of
//! equivalence of [`crate::equivalence`], "less" is its opposite: the whole interval lies below the margin.
//! Values between the two are open, so the knee has a range.
//!
//! Where two curves cross is the zero of the logarithm of their ratio, linear between neighbours over the
//! logarithm of the swept value. Its interval is the range in which the band of the ratio's intervals
//! contains one, the inversion of the pointwise test: Fieller, "Some problems in interval estimation",
//! Journal of the Royal Statistical Society B 16 (1954).

use crate::{CONFIDENCE, Comparison, Interval, Sample, Verdict, compare};

/// A ratio of two figures at a swept value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioAt {
    /// Positive.
    pub at: f64,
    pub ratio: f64,
    pub interval: Option<Interval>,
}

impl RatioAt {
    fn inverse(self) -> RatioAt {
        let inverse = |one: Interval| Interval { low: 1.0 / one.high, high: 1.0 / one.low };
        RatioAt { ratio: 1.0 / self.ratio, interval: self.interval.map(inverse), ..self }
    }
}

/// The peak of a curve, as indices into its points.
#[derive(Debug, Clone, PartialEq)]
pub struct Peak {
    pub index: usize,
    /// Points that the trials do not tell from the peak, and the peak itself, in order.
    pub level: Vec<usize>,
    /// The peak divided by each point; `None` where a figure is missing or zero.
    pub ratios: Vec<Option<Comparison>>,
}

/// The knee of a curve, as indices into its points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Knee {
    /// From here on no point up to the peak is shown to be less than the peak by more than the margin.
    pub earliest: usize,
    /// From here on every point up to the peak is shown to be the same within the margin.
    pub latest: usize,
}

/// Where one curve passes another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossing {
    pub at: f64,
    /// Ends of the interval; `None` for an end beyond the swept values.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// The ratio is above one after it.
    pub is_rising: bool,
}

impl Crossing {
    /// Whether the ratio is shown to be on either side of one within the swept values.
    pub fn is_shown(&self) -> bool {
        self.low.is_some() && self.high.is_some()
    }
}

/// The peak of figures of which the higher is the better. `None` without a positive figure.
pub fn peak(points: &[Vec<Sample>]) -> Option<Peak> {
    let level = |samples: &Vec<Sample>| {
        let logarithms: Vec<f64> = samples.iter().map(|sample| sample.value.ln()).collect();
        crate::mean(&logarithms).filter(|mean| mean.is_finite())
    };
    let levels = points.iter().enumerate().filter_map(|(index, samples)| Some((index, level(samples)?)));
    // Of equal figures the first, which costs least.
    let first_largest = |best: (usize, f64), one: (usize, f64)| if one.1 > best.1 { one } else { best };
    let (index, _) = levels.reduce(first_largest)?;
    let ratios: Vec<Option<Comparison>> =
        points.iter().map(|samples| compare(samples, &points[index], CONFIDENCE)).collect();
    let is_level = |at: usize| {
        at == index || ratios[at].is_some_and(|ratio| ratio.verdict == Verdict::NoDifferenceShown)
    };
    let level = (0..points.len()).filter(|at| is_level(*at)).collect();
    Some(Peak { index, level, ratios })
}

/// The knee of a curve with this peak.
///
/// # Panics
/// If the margin is not positive.
pub fn knee(peak: &Peak, margin: f64) -> Knee {
    assert!(margin > 0.0, "a margin is positive, not {margin}");
    let interval = |at: usize| peak.ratios[at].and_then(|ratio| ratio.interval);
    let is_same = |at: usize| {
        interval(at).is_some_and(|one| one.high <= 1.0 + margin && one.low >= 1.0 / (1.0 + margin))
    };
    let is_less = |at: usize| match (peak.ratios[at], interval(at)) {
        (None, _) => true,
        (Some(_), Some(interval)) => interval.low > 1.0 + margin,
        (Some(ratio), None) => ratio.ratio > 1.0 + margin,
    };
    let from = |holds: &dyn Fn(usize) -> bool| {
        (0..peak.index).rev().take_while(|at| holds(*at)).last().unwrap_or(peak.index)
    };
    Knee { earliest: from(&|at| !is_less(at)), latest: from(&is_same) }
}

/// The crossings of two curves, from the ratio of one to the other at each swept value, in rising order.
pub fn crossings(ratios: &[RatioAt]) -> Vec<Crossing> {
    let usable = |one: &&RatioAt| one.at > 0.0 && one.ratio > 0.0 && one.ratio.is_finite();
    let points: Vec<RatioAt> = ratios.iter().filter(usable).copied().collect();
    // A ratio of exactly one belongs to the side from which the curve comes.
    let mut crossings = Vec::new();
    let mut before: Option<usize> = None;
    for (index, point) in points.iter().enumerate() {
        if point.ratio == 1.0 {
            continue;
        }
        if let Some(last) = before
            && (points[last].ratio > 1.0) != (point.ratio > 1.0)
        {
            crossings.push(crossing(&points, last, index));
        }
        before = Some(index);
    }
    crossings
}

/// The crossing between two points on different sides of one.
fn crossing(points: &[RatioAt], last: usize, next: usize) -> Crossing {
    let at = zero(points[last].at, points[last].ratio.ln(), points[next].at, points[next].ratio.ln());
    let is_rising = points[next].ratio > 1.0;
    // A falling ratio is the inverse of a rising one.
    let rising: Vec<RatioAt> =
        points.iter().map(|one| if is_rising { *one } else { one.inverse() }).collect();
    let upper = |index: usize| rising[index].interval.map_or(f64::INFINITY, |interval| interval.high.ln());
    let lower = |index: usize| rising[index].interval.map_or(f64::NEG_INFINITY, |interval| interval.low.ln());
    let low = (0..=last).rev().find(|index| upper(*index) < 0.0);
    let high = (next..points.len()).find(|index| lower(*index) > 0.0);
    // A neighbour without an interval says nothing, so the end stays at the point that is clear.
    let end = |clear: usize, of_clear: f64, open: usize, of_open: f64| match of_open.is_finite() {
        true => zero(points[clear].at, of_clear, points[open].at, of_open),
        false => points[clear].at,
    };
    Crossing {
        at,
        low: low.map(|clear| end(clear, upper(clear), clear + 1, upper(clear + 1))),
        high: high.map(|clear| end(clear, lower(clear), clear - 1, lower(clear - 1))),
        is_rising,
    }
}

/// The zero of a line through two points, over the logarithm of the first coordinate.
fn zero(left: f64, of_left: f64, right: f64, of_right: f64) -> f64 {
    let share = of_left / (of_left - of_right);
    (left.ln() + share * (right.ln() - left.ln())).exp()
}

#[cfg(test)]
#[path = "curve_tests.rs"]
mod tests;
