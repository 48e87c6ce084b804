//! Two curves over one axis: which is ahead where, where they cross, and which values of the one equal those
//! of the other.

use serde::Serialize;
use spindle_stats::{CONFIDENCE, Comparison, Crossing, RatioAt, Sample, Verdict, compare, crossings};

use super::{Line, Range};
use crate::record::SweptValue;

/// More curves are compared with the first only.
const CURVES_MOST: usize = 4;

#[derive(Debug, Clone, Serialize)]
pub struct PairView {
    /// Indices into the curves.
    pub base: usize,
    pub other: usize,
    /// The other's merit divided by the base's, for each value: of times, how many times as fast.
    pub ratios: Vec<Option<PairRatio>>,
    pub crossings: Vec<Crossed>,
    /// On an axis of memory, the values of one curve that give as much as a value of the other.
    pub equivalents: Vec<Equivalent>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct PairRatio {
    pub ratio: f64,
    pub interval: Option<Range>,
    /// 1 where the other is shown to be ahead, -1 where the base is, 0 where no difference is shown.
    pub ahead: i8,
}

/// A place between values of the axis; the interval has no end where it reaches beyond them.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Crossed {
    pub at: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Whether the other is ahead after it.
    pub other_leads_after: bool,
}

/// The value of the slower curve that gives as much as the faster curve with one of its values.
#[derive(Debug, Clone, Serialize)]
pub struct Equivalent {
    /// Indices into the curves.
    pub slower: usize,
    pub faster: usize,
    /// Index of the faster curve's value.
    pub index: usize,
    /// `None` if no value of the slower one suffices.
    pub place: Option<Crossed>,
    /// The slower curve with its largest value, divided by the faster one with this one.
    pub at_most: Option<PairRatio>,
}

pub(super) fn pairs(values: &[SweptValue], lines: &[Line<'_>], merits: &[Vec<Vec<Sample>>]) -> Vec<PairView> {
    let differ = |left: &Line<'_>, right: &Line<'_>| {
        left.parts.len() == right.parts.len()
            && left.parts.iter().zip(&right.parts).filter(|(left, right)| left != right).count() == 1
    };
    let bases = if lines.len() > CURVES_MOST { 0..1 } else { 0..lines.len() };
    let each = bases.flat_map(|base| (base + 1..lines.len()).map(move |other| (base, other)));
    let each = each.filter(|(base, other)| differ(&lines[*base], &lines[*other]));
    each.map(|(base, other)| pair(values, merits, base, other)).collect()
}

fn pair(values: &[SweptValue], merits: &[Vec<Vec<Sample>>], base: usize, other: usize) -> PairView {
    let ratios: Vec<Option<Comparison>> = merits[base]
        .iter()
        .zip(&merits[other])
        .map(|(base, other)| compare(base, other, CONFIDENCE))
        .collect();
    let crossed = crossings(&along(values, &ratios)).into_iter().map(Crossed::from).collect();
    let ratios: Vec<Option<PairRatio>> = ratios.into_iter().map(|ratio| ratio.map(PairRatio::from)).collect();
    let is_memory = values.iter().all(|value| value.is_memory);
    // The one that is ahead with the smallest value needs less memory.
    let leads = ratios.iter().flatten().next().map_or(0, |ratio| ratio.ahead);
    let equivalents = match leads {
        1 if is_memory => equivalents(values, merits, base, other),
        -1 if is_memory => equivalents(values, merits, other, base),
        _ => Vec::new(),
    };
    PairView { base, other, ratios, crossings: crossed, equivalents }
}

fn along(values: &[SweptValue], ratios: &[Option<Comparison>]) -> Vec<RatioAt> {
    let at = |(value, ratio): (&SweptValue, &Option<Comparison>)| {
        ratio.map(|one| RatioAt {
            at: value.number.unwrap_or_default(),
            ratio: one.ratio,
            interval: one.interval,
        })
    };
    values.iter().zip(ratios).filter_map(at).collect()
}

/// For each value of the faster curve that the slower one does not reach with its smallest.
fn equivalents(
    values: &[SweptValue],
    merits: &[Vec<Vec<Sample>>],
    slower: usize,
    faster: usize,
) -> Vec<Equivalent> {
    let of_value = |index: usize| {
        let against = &merits[faster][index];
        let ratios: Vec<Option<Comparison>> =
            merits[slower].iter().map(|samples| compare(against, samples, CONFIDENCE)).collect();
        let points = along(values, &ratios);
        let place = crossings(&points).into_iter().find(|crossing| crossing.is_rising).map(Crossed::from);
        let is_less = points.first().is_some_and(|first| first.ratio < 1.0);
        let at_most = ratios.last().copied().flatten().map(PairRatio::from);
        is_less.then_some(Equivalent { slower, faster, index, place, at_most })
    };
    (0..values.len()).filter_map(of_value).collect()
}

impl From<Comparison> for PairRatio {
    fn from(comparison: Comparison) -> PairRatio {
        let ahead = match comparison.verdict {
            Verdict::Faster => 1,
            Verdict::Slower => -1,
            Verdict::NoDifferenceShown | Verdict::NotTested => 0,
        };
        let interval = comparison.interval.map(|interval| Range { low: interval.low, high: interval.high });
        PairRatio { ratio: comparison.ratio, interval, ahead }
    }
}

impl From<Crossing> for Crossed {
    fn from(crossing: Crossing) -> Crossed {
        let Crossing { at, low, high, is_rising } = crossing;
        Crossed { at, low, high, other_leads_after: is_rising }
    }
}
