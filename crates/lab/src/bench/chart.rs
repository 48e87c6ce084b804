//! A bench as one self-contained page: it loads nothing from the network, and every number in a chart is in
//! its table.

use std::collections::BTreeMap;

use anyhow::Context as _;
use minijinja::context;
use serde_json::{Value, json};

use super::deterioration::Point;
use super::{Access, Bench, Deterioration, Question, Row};
use crate::report::{filled, script_safe};
use spindle_base::units::format_size_bytes;

const TEMPLATE: &str = include_str!("chart.html");

/// The page as HTML. `origin` is one line about where the numbers come from, `table` is the same bench as
/// text.
///
/// # Errors
/// The template does not fit the data, which is a bug.
pub fn page(bench: &Bench, origin: &str, table: &str) -> anyhow::Result<String> {
    let charts =
        [by_iodepth(&bench.rows), fsync(&bench.rows), bench.deterioration.as_ref().map(deterioration)];
    let charts: Vec<Value> = charts.into_iter().flatten().collect();
    let content = context! {
        title => &bench.target,
        summary => &bench.summary,
        provenance => origin,
        charts => minijinja::Value::from(minijinja::value::Serde(&charts)),
        table,
        data => script_safe(&charts)?,
    };
    filled(TEMPLATE, content).context("laying out the chart")
}

fn by_iodepth(rows: &[Row]) -> Option<Value> {
    let mut lines: BTreeMap<String, Vec<(u64, f64)>> = BTreeMap::new();
    for row in rows {
        let Question { access, block_bytes, place, iodepth } = row.question;
        if matches!(access, Access::RandomRead | Access::RandomWrite) && row.per_second > 0.0 {
            let name = format!("{} {}, {}", access.words(), format_size_bytes(block_bytes), place.words());
            lines.entry(name).or_default().push((iodepth, row.per_second));
        }
    }
    let series = lines.into_iter().map(|(name, mut data)| {
        data.sort_by_key(|(iodepth, _)| *iodepth);
        json!({ "name": name, "data": data })
    });
    let series: Vec<Value> = series.collect();
    (!series.is_empty()).then(|| {
        json!({
            "title": "Random access by iodepth",
            "x": "iodepth",
            "y": "requests a second",
            "x_log": true,
            "y_log": true,
            "series": series,
        })
    })
}

/// A bar chart, because it has `categories`.
fn fsync(rows: &[Row]) -> Option<Value> {
    let rows = rows.iter().filter(|row| row.question.access == Access::Fsync);
    let bars = rows.map(|row| (format_size_bytes(row.question.block_bytes), row.per_second));
    let (categories, rates): (Vec<String>, Vec<f64>) = bars.unzip();
    (!rates.is_empty()).then(|| {
        json!({
            "title": "Writes with fsync, one after the other",
            "x": "block size",
            "y": "a second",
            "categories": categories,
            "series": [{ "name": "write and fsync", "data": rates }],
        })
    })
}

fn deterioration(curve: &Deterioration) -> Value {
    let line = |points: &[Point]| -> Vec<(f64, f64)> {
        points.iter().map(|point| (point.at_s / 3600.0, point.per_second)).collect()
    };
    json!({
        "title": "Random writes over hours, and after a pause",
        "x": "hours",
        "y": "writes a second",
        "series": [
            { "name": "writing", "data": line(&curve.points) },
            { "name": "after the pause", "data": line(&curve.recovery) },
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Arm, Place};

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
