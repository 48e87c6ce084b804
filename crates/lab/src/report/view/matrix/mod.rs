//! What the cells of a matrix say together: curves over a swept value, and a table of tests by storage.

mod pair;
mod study;
mod words;

use itertools::Itertools as _;
use serde::Serialize;
use spindle_stats::{Sample, knee, peak};

use self::pair::PairView;
pub use self::study::StudyTable;
use super::{CellView, Range, metric, samples};
use crate::record::{Cell, SweptValue};
use crate::report::Records;

/// A figure within this share of the peak is the same for a buyer.
const MARGIN: f64 = 0.05;

/// The cells along one swept axis, as curves.
#[derive(Debug, Clone, Serialize)]
pub struct SweepView {
    pub key: String,
    /// In rising order, if all are numbers.
    pub values: Vec<SweptValue>,
    pub is_numeric: bool,
    pub metric: String,
    pub lower_is_better: bool,
    pub curves: Vec<CurveView>,
    /// Curves that differ in one axis only.
    pub pairs: Vec<PairView>,
    /// Peaks, knees, and where curves cross.
    pub sentences: Vec<String>,
}

/// One combination of the other axes.
#[derive(Debug, Clone, Serialize)]
pub struct CurveView {
    pub title: String,
    /// One for each value of the axis.
    pub points: Vec<PointView>,
    pub peak: PeakView,
    /// `None` on an axis of words.
    pub knee: Option<KneeView>,
}

#[derive(Debug, Clone, Serialize)]
pub struct PointView {
    /// Name of the cell; empty if the matrix has none.
    pub cell: String,
    /// `None` without a measured trial.
    pub mean: Option<f64>,
    pub interval: Option<Range>,
    pub has_few_events: bool,
    pub is_not_steady: bool,
    /// `peak`, `level` (not told from the peak), `knee`, `knee?` (it may be here).
    pub marks: Vec<&'static str>,
}

/// Indices into the axis.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct PeakView {
    pub index: usize,
    /// Values that the trials do not tell from the peak, and the peak itself.
    pub level: Vec<usize>,
}

/// Indices into the axis: the range in which the knee lies ([`spindle_stats::Knee`]).
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq)]
pub struct KneeView {
    pub earliest: usize,
    pub latest: usize,
}

/// Cells of one curve, by their places on the axis.
struct Line<'a> {
    /// The parts of its cells' names that its axis does not change.
    parts: Vec<&'a str>,
    title: String,
    cells: Vec<Option<&'a Cell>>,
}

impl SweepView {
    /// One for each swept axis and metric.
    pub(super) fn all(records: &Records, cells: &[CellView]) -> Vec<SweepView> {
        let keys = records.header.cells.iter().flat_map(|cell| &cell.sweep).map(|value| &value.key).unique();
        let metrics = cells.iter().filter_map(|cell| Some(&cell.throughput.as_ref()?.name)).unique();
        let each = keys.cartesian_product(metrics.collect_vec());
        each.filter_map(|(key, metric)| SweepView::new(records, cells, key, metric)).collect()
    }

    fn new(records: &Records, cells: &[CellView], key: &str, metric: &str) -> Option<SweepView> {
        let (values, lines) = lines(records, key, metric);
        let is_numeric = is_numeric(&values);
        let with_merits = lines.into_iter().map(|line| (line.merits(records), line));
        let (merits, lines): (Vec<_>, Vec<_>) =
            with_merits.filter(|(merits, _)| peak(merits).is_some()).unzip();
        let any = lines.iter().flat_map(|line| line.cells.iter().flatten());
        let lower_is_better =
            any.filter_map(|cell| super::metric(records, &cell.name)).next()?.lower_is_better;
        let curve = |(line, merits): (&Line<'_>, &Vec<Vec<Sample>>)| {
            let found = peak(merits)?;
            let knee = knee(&found, MARGIN);
            let knee = is_numeric.then_some(KneeView { earliest: knee.earliest, latest: knee.latest });
            let peak = PeakView { index: found.index, level: found.level };
            let point =
                |(index, cell): (usize, &Option<&Cell>)| point(*cell, cells, marks(&peak, knee, index));
            let points = line.cells.iter().enumerate().map(point).collect();
            Some(CurveView { title: line.title.clone(), points, peak, knee })
        };
        let curves = lines.iter().zip(&merits).filter_map(curve).collect();
        let mut view = SweepView {
            key: key.to_owned(),
            pairs: if is_numeric { pair::pairs(&values, &lines, &merits) } else { Vec::new() },
            values,
            is_numeric,
            metric: metric.to_owned(),
            lower_is_better,
            curves,
            sentences: Vec::new(),
        };
        view.sentences = words::sentences(&view);
        Some(view)
    }

    /// The cells at the peaks of the curves.
    pub(super) fn peaks(&self) -> impl Iterator<Item = &str> {
        self.curves.iter().map(|curve| curve.points[curve.peak.index].cell.as_str())
    }
}

fn is_numeric(values: &[SweptValue]) -> bool {
    values.iter().all(|value| value.number.is_some_and(|number| number > 0.0))
}

/// The axis, and its curves with at least one figure of that metric.
fn lines<'a>(records: &'a Records, key: &str, metric: &str) -> (Vec<SweptValue>, Vec<Line<'a>>) {
    let swept = |cell: &'a Cell| Some((cell, cell.sweep.iter().find(|value| value.key == key)?));
    let cells: Vec<(&Cell, &SweptValue)> = records.header.cells.iter().filter_map(swept).collect();
    let mut values: Vec<SweptValue> = cells.iter().map(|(_, value)| (*value).clone()).collect();
    values = values.into_iter().unique_by(|value| value.value.clone()).collect();
    if is_numeric(&values) {
        values.sort_by(|left, right| left.number.partial_cmp(&right.number).expect("numbers"));
    }
    let mut lines: Vec<Line<'a>> = Vec::new();
    for (cell, value) in cells {
        let own = value.assignment();
        let parts: Vec<&str> = cell.name.split('/').filter(|part| *part != own).collect();
        let index = lines.iter().position(|line| line.parts == parts).unwrap_or_else(|| {
            let title = std::iter::once(cell.storage_label()).chain(parts[1..].iter().copied()).join(", ");
            lines.push(Line { parts, title, cells: vec![None; values.len()] });
            lines.len() - 1
        });
        let place = values.iter().position(|other| other.value == value.value).expect("a value of the axis");
        lines[index].cells[place] = Some(cell);
    }
    let counts = |cell: &&Cell| super::metric(records, &cell.name).is_some_and(|found| found.name == metric);
    lines.retain(|line| line.cells.iter().flatten().any(&counts));
    (values, lines)
}

impl Line<'_> {
    /// Figures of which the higher is the better, for each value of the axis.
    fn merits(&self, records: &Records) -> Vec<Vec<Sample>> {
        self.cells.iter().map(|cell| cell.map_or_else(Vec::new, |cell| merits(records, &cell.name))).collect()
    }
}

/// The figures of a cell; of times, their inverse.
fn merits(records: &Records, cell: &str) -> Vec<Sample> {
    let is_time = metric(records, cell).is_some_and(|metric| metric.lower_is_better);
    let merit =
        |sample: Sample| Sample { value: if is_time { 1.0 / sample.value } else { sample.value }, ..sample };
    samples(records, cell).into_iter().map(merit).collect()
}

fn point(cell: Option<&Cell>, views: &[CellView], marks: Vec<&'static str>) -> PointView {
    let view = cell.and_then(|cell| views.iter().find(|view| view.name == cell.name));
    let throughput = view.and_then(|view| view.throughput.as_ref());
    PointView {
        cell: cell.map_or_else(String::new, |cell| cell.name.clone()),
        mean: throughput.map(|throughput| throughput.mean),
        interval: throughput.and_then(|throughput| throughput.interval),
        has_few_events: view.is_some_and(|view| view.has_few_events),
        is_not_steady: view.is_some_and(|view| view.is_not_steady),
        marks,
    }
}

fn marks(peak: &PeakView, knee: Option<KneeView>, index: usize) -> Vec<&'static str> {
    let of_peak = match index == peak.index {
        true => Some("peak"),
        false => peak.level.contains(&index).then_some("level"),
    };
    let of_knee = match knee {
        Some(knee) if knee.earliest == index && knee.latest == index => Some("knee"),
        Some(knee) if (knee.earliest..=knee.latest).contains(&index) => Some("knee?"),
        _ => None,
    };
    of_peak.into_iter().chain(of_knee).collect()
}
