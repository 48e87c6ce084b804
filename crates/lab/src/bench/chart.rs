//! A bench as one self-contained page: it loads nothing from the network, and every number in a chart is in
//! its table.

use std::collections::BTreeMap;

use anyhow::Context as _;
use minijinja::{AutoEscape, Environment, Value, context};
use serde::Serialize;

use super::{Access, Bench, Row};
use crate::report::ECHARTS;
use spindle_base::units::format_size_bytes;

const TEMPLATE: &str = include_str!("chart.html");

#[derive(Debug, Serialize)]
struct Chart {
    title: &'static str,
    x: &'static str,
    y: &'static str,
    x_log: bool,
    y_log: bool,
    /// Categories of a bar chart; without them a line chart over numbers.
    categories: Option<Vec<String>>,
    series: Vec<Series>,
}

#[derive(Debug, Serialize)]
struct Series {
    name: String,
    data: SeriesData,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum SeriesData {
    Bars(Vec<f64>),
    Line(Vec<(f64, f64)>),
}

/// The page as HTML. `origin` is one line about where the numbers come from, `table` is the same bench as
/// text.
///
/// # Errors
/// The template does not fit the data, which is a bug.
pub fn page(bench: &Bench, origin: &str, table: &str) -> anyhow::Result<String> {
    let charts: Vec<Chart> =
        [by_threads(&bench.rows), fsync(&bench.rows), deterioration(bench)].into_iter().flatten().collect();
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("chart", TEMPLATE).context("parsing the chart's template")?;
    // JSON inside a script element must not close the element. JSON itself never needs a bare `<`.
    let data = serde_json::to_string(&charts)?.replace('<', "\\u003c");
    environment
        .get_template("chart")
        .and_then(|template| {
            template.render(context! {
                title => &bench.target,
                summary => &bench.summary,
                provenance => origin,
                charts => Value::from(minijinja::value::Serde(&charts)),
                table,
                data => Value::from_safe_string(data),
                echarts => Value::from_safe_string(ECHARTS.to_owned()),
            })
        })
        .context("laying out the chart")
}

fn by_threads(rows: &[Row]) -> Option<Chart> {
    let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for row in rows {
        let question = row.question;
        if matches!(question.access, Access::RandomRead | Access::RandomWrite) && row.per_second > 0.0 {
            let unit = format_size_bytes(question.block_bytes);
            let name = format!("{} {unit}, {}", question.access.words(), question.place.words());
            lines.entry(name).or_default().push((question.iodepth as f64, row.per_second));
        }
    }
    let series = lines.into_iter().map(|(name, mut data)| {
        data.sort_by(|left, right| left.0.total_cmp(&right.0));
        Series { name, data: SeriesData::Line(data) }
    });
    let series: Vec<Series> = series.collect();
    (!series.is_empty()).then_some(Chart {
        title: "Random access by iodepth",
        x: "iodepth",
        y: "requests a second",
        x_log: true,
        y_log: true,
        categories: None,
        series,
    })
}

fn fsync(rows: &[Row]) -> Option<Chart> {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.question.access == Access::Fsync).collect();
    let name = |row: &&Row| format_size_bytes(row.question.block_bytes);
    (!rows.is_empty()).then(|| Chart {
        title: "Writes with fsync, one after the other",
        x: "unit",
        y: "a second",
        x_log: false,
        y_log: false,
        categories: Some(rows.iter().map(name).collect()),
        series: vec![Series {
            name: "write and fsync".to_owned(),
            data: SeriesData::Bars(rows.iter().map(|row| row.per_second).collect()),
        }],
    })
}

fn deterioration(bench: &Bench) -> Option<Chart> {
    let curve = bench.deterioration.as_ref()?;
    let line = |points: &[super::deterioration::Point]| {
        SeriesData::Line(points.iter().map(|point| (point.at_s / 3600.0, point.per_second)).collect())
    };
    Some(Chart {
        title: "Random writes over hours, and after a pause",
        x: "hours",
        y: "writes a second",
        x_log: false,
        y_log: false,
        categories: None,
        series: vec![
            Series { name: "writing".to_owned(), data: line(&curve.points) },
            Series { name: "after the pause".to_owned(), data: line(&curve.recovery) },
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Arm, Place, Question};

    #[test]
    fn a_page_has_its_numbers_and_asks_nobody_for_more() {
        let question =
            Question { place: Place::Raw, access: Access::RandomRead, block_bytes: 4_096, iodepth: 16 };
        let row = Row {
            question,
            per_second: 1234.0,
            bytes_per_s: 0.0,
            latency_us_mean: 0.0,
            latency_us_p50: None,
            latency_us_p99: None,
            latency_us_p999: None,
            requests: 1,
            seconds: 1.0,
        };
        let bench = Bench {
            target: "</script><b>".to_owned(),
            summary: String::new(),
            arm: Arm::Virtual,
            seed: 1,
            size_bytes: 0,
            rows: vec![row],
            deterioration: None,
            notes: Vec::new(),
        };
        let page = page(&bench, "here, today", "the table").unwrap();
        assert!(
            page.contains("1234") && page.contains("the table") && page.contains("random read 4 KiB, raw")
        );
        assert!(!page.contains("</script><b>") && !page.contains("src=\"http"));
    }
}
