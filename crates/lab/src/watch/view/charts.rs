//! The last minutes of the clients: throughput, and two quantiles of latency.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Color;
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Borders, Chart, Dataset, GraphType, Sparkline};

use super::Paint;
use crate::report::format::number;
use crate::watch::state::TrialState;

/// Below this, lines with axes have no room.
const AXES_HEIGHT: u16 = 7;
/// Below this, one chart stands beside no other.
const PAIR_WIDTH: u16 = 60;
/// The axis of time covers this much at least.
const SECONDS_LEAST: usize = 60;
/// Room above the highest point.
const HEADROOM: f64 = 1.1;

/// A line of a chart.
struct Curve<'a> {
    name: &'static str,
    values: &'a [f64],
    colour: Color,
    /// Lines differ without colours too.
    marker: Marker,
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, trial: &TrialState, paint: Paint) {
    let series = &trial.series;
    let curve = |name, values, colour, marker| Curve { name, values, colour, marker };
    let throughput = [curve("", &series.transactions_per_s, Color::Cyan, Marker::Braille)];
    let latency = [
        curve("p50", &series.p50_ms, Color::Green, Marker::Braille),
        curve("p99", &series.p99_ms, Color::Yellow, Marker::Dot),
    ];
    let is_pair = area.width >= PAIR_WIDTH;
    let areas = if is_pair {
        Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).spacing(1).split(area)
    } else {
        Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).split(area)
    };
    for (area, title, curves) in
        [(areas[0], "transactions/s", &throughput[..]), (areas[1], "latency, ms", &latency[..])]
    {
        if area.height >= AXES_HEIGHT {
            lines(frame, area, title, curves, paint);
        } else {
            bars(frame, area, title, curves, paint);
        }
    }
}

/// ` latency, ms: p50 12.3, p99 45.6 `.
fn heading(title: &str, curves: &[Curve<'_>], paint: Paint) -> Line<'static> {
    let mut spans = vec![Span::styled(format!(" {title}"), paint.bold())];
    for (index, curve) in curves.iter().enumerate() {
        let value = curve.values.last().map_or_else(|| "-".to_owned(), |value| number(*value));
        let before = if index == 0 { ": " } else { ", " };
        let mark = if curve.marker == Marker::Dot { " •" } else { "" };
        let words = [curve.name, value.as_str()].join(" ");
        spans.push(Span::raw(before));
        spans.push(Span::styled(format!("{}{mark}", words.trim_start()), paint.style(curve.colour)));
    }
    spans.push(Span::raw(" "));
    Line::from(spans)
}

fn highest(curves: &[Curve<'_>]) -> f64 {
    let values = curves.iter().flat_map(|curve| curve.values.iter().copied());
    values.filter(|value| value.is_finite()).fold(0.0, f64::max)
}

fn lines(frame: &mut Frame<'_>, area: Rect, title: &str, curves: &[Curve<'_>], paint: Paint) {
    let length = curves.iter().map(|curve| curve.values.len()).max().unwrap_or(0).max(SECONDS_LEAST);
    let points: Vec<Vec<(f64, f64)>> = curves.iter().map(|curve| points(curve.values)).collect();
    let datasets = curves.iter().zip(&points).map(|(curve, points)| {
        let dataset = Dataset::default().marker(curve.marker).graph_type(GraphType::Line);
        dataset.style(paint.style(curve.colour)).data(points)
    });
    let top = match highest(curves) * HEADROOM {
        0.0 => 1.0,
        top => top,
    };
    let span = (length - 1) as f64;
    let time = Axis::default().bounds([-span, 0.0]).labels([format!("-{length} s"), "now".to_owned()]);
    let value = Axis::default().bounds([0.0, top]).labels(["0".to_owned(), number(top)]);
    let block = Block::new().borders(Borders::TOP).title(heading(title, curves, paint));
    let chart = Chart::new(datasets.collect()).block(block).x_axis(time).y_axis(value).legend_position(None);
    frame.render_widget(chart, area);
}

/// The newest value is at zero.
fn points(values: &[f64]) -> Vec<(f64, f64)> {
    let last = values.len() as f64 - 1.0;
    values.iter().enumerate().map(|(index, value)| (index as f64 - last, *value)).collect()
}

/// The last curve as bars, of as many seconds as there are columns.
fn bars(frame: &mut Frame<'_>, area: Rect, title: &str, curves: &[Curve<'_>], paint: Paint) {
    let Some(curve) = curves.last() else { return };
    let newest = curve.values.len().saturating_sub(usize::from(area.width));
    let top = highest(curves);
    // Bars are of whole numbers, so the highest is made a large one.
    const STEPS: f64 = 1000.0;
    let height = |value: &f64| if top > 0.0 { (value / top * STEPS) as u64 } else { 0 };
    let data: Vec<u64> = curve.values[newest..].iter().map(height).collect();
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    frame.render_widget(heading(title, curves, paint), head);
    frame.render_widget(
        Sparkline::default().data(data).max(STEPS as u64).style(paint.style(curve.colour)),
        body,
    );
}
