//! The answer as one self-contained page: price against throughput, and a table whose rows open.

use anyhow::{Context as _, Result};
use minijinja::{Value, context};

use super::{HEADS, fields};
use crate::advise::answer::Answer;
use crate::advise::row::Row;
use crate::report::{STYLE, filled};

const TEMPLATE: &str = include_str!("page.html");

pub(super) fn page(answer: &Answer) -> Result<String> {
    let content = context! {
        style => Value::from_safe_string(STYLE.to_owned()),
        heads => HEADS,
        warning => answer.warning(),
        sentence => answer.sentence(),
        basis => answer.basis(),
        doubts => &answer.doubts,
        metric => &answer.metric,
        need => &answer.need,
        years => answer.years,
        points => points(answer),
        rows => answer.rows.iter().zip(1..).map(|(row, rank)| row_of(row, rank)).collect::<Vec<_>>(),
        left_out => &answer.left_out,
    };
    filled(TEMPLATE, content).context("laying out the answer")
}

fn row_of(row: &Row, rank: usize) -> Value {
    let life = row.life.as_ref();
    context! {
        rank,
        fields => fields(row, rank),
        label => &row.label,
        meets => row.meets(),
        // For sorting.
        keys => [
            rank as f64,
            0.0,
            row.predicted,
            row.times_todays,
            row.p95_ms.unwrap_or(f64::MAX),
            row.p99_ms.unwrap_or(f64::MAX),
            0.0,
            row.price.as_ref().map_or(f64::MAX, |price| price.total),
            life.and_then(|life| life.years()).unwrap_or(f64::MAX),
            0.0,
            0.0,
        ],
        price => row.price.as_ref().map(|price| context! {
            words => &price.formula,
            source => &price.source,
            date => &price.date,
            left_out => &price.left_out,
            per_unit => row.price_per_unit.map(|each| format!("{each:.3} {}", price.currency)),
        }),
        unpriced => &row.unpriced,
        headroom => row.headroom.map(|headroom| format!("{:+.0} %", headroom * 100.0)),
        life => life.map(|life| context! {
            drive_writes => format!("{:.2}", life.drive_writes_per_day),
            amplification => life.write_amplification.map(|amplification| format!("{amplification:.2}")),
            by_cycles => life.years_by_cycles.map(|years| format!("{years:.1}")),
            by_bytes => life.years_by_bytes_written.map(|years| format!("{years:.1}")),
        }),
        reasons => &row.reasons_for,
        against => &row.against,
    }
}

/// Places of the priced storages in a chart with logarithmic axes, in percent of its sides. Only those in the
/// currency of the most rows: prices in others are not comparable.
fn points(answer: &Answer) -> Option<Value> {
    let priced: Vec<(&Row, f64)> = answer
        .rows
        .iter()
        .filter_map(|row| Some((row, row.price.as_ref()?.total)))
        .filter(|(_, total)| *total > 0.0)
        .collect();
    let (first, _) = *priced
        .iter()
        .max_by_key(|(row, _)| priced.iter().filter(|(other, _)| other.is_priced_as(row)).count())?;
    let currency = first.price.as_ref()?.currency.clone();
    let same: Vec<(&Row, f64)> = priced.into_iter().filter(|(row, _)| row.is_priced_as(first)).collect();
    let axis = |values: Vec<f64>| {
        let low = values.iter().copied().fold(f64::MAX, f64::min).ln();
        let high = values.iter().copied().fold(f64::MIN, f64::max).ln();
        move |value: f64| 5.0 + 90.0 * (value.ln() - low) / (high - low).max(f64::MIN_POSITIVE)
    };
    let across = axis(same.iter().map(|(_, total)| *total).collect());
    let up = axis(same.iter().map(|(row, _)| row.predicted).collect());
    let pareto = answer.pareto();
    let mut line: Vec<(f64, f64)> = same
        .iter()
        .filter(|(row, _)| pareto.contains(&row.name.as_str()))
        .map(|(row, total)| (across(*total), 100.0 - up(row.predicted)))
        .collect();
    line.sort_by(|a, b| a.0.total_cmp(&b.0));
    let points = same.iter().map(|(row, total)| {
        context! {
            x => across(*total),
            y => 100.0 - up(row.predicted),
            name => &row.name,
            words => format!("{}: {:.0} for {}", row.label, row.predicted, row.price_words()),
            meets => row.meets(),
            is_best => pareto.contains(&row.name.as_str()),
        }
    });
    Some(context! {
        currency,
        points => points.collect::<Vec<_>>(),
        line => line.iter().map(|(x, y)| format!("{x:.2},{y:.2}")).collect::<Vec<_>>().join(" "),
    })
}
