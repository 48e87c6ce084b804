//! A bench as text: one line per row, then conclusions from the rows.

use super::{Access, Bench, Deterioration, Place, Question, Row};
use spindle_base::units::format_size_bytes;
use spindle_stats::steady::SNIA_ROUNDS;

/// Other block sizes are compared with this one, a page of InnoDB.
const REFERENCE_BLOCK_BYTES: u64 = 16 << 10;

pub fn render(bench: &Bench) -> String {
    let mut text =
        format!("{}: {}\n{}, seed {}\n", bench.target, bench.summary, bench.arm.words(), bench.seed);
    text.push_str(&rows(&bench.rows));
    text.push_str(&block_size_effect(bench));
    text.push_str(&file_system_effect(bench));
    if let Some(deterioration) = &bench.deterioration {
        text.push_str(&deterioration_lines(deterioration));
    }
    for note in &bench.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}

fn rows(rows: &[Row]) -> String {
    let mut text = format!(
        "\n{:<12} {:<17} {:>8} {:>8} {:>11} {:>9} {:>12} {:>12} {:>12}\n",
        "on", "access", "block", "iodepth", "a second", "MB/s", "mean us", "p50 us", "p99 us"
    );
    for row in rows {
        let question = row.question;
        text.push_str(&format!(
            "{:<12} {:<17} {:>8} {:>8} {:>11} {:>9.1} {:>12.1} {:>12} {:>12}\n",
            question.place.words(),
            question.access.words(),
            format_size_bytes(question.block_bytes),
            question.iodepth,
            rate(row.per_second),
            row.bytes_per_s / 1e6,
            row.latency_us_mean,
            optional(row.latency_us_p50),
            optional(row.latency_us_p99),
        ));
    }
    text
}

pub(super) fn optional(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.1}"))
}

/// At least three digits, and none beyond the precision of the measurement.
pub(super) fn rate(per_second: f64) -> String {
    let decimals = if per_second < 100.0 { 1 } else { 0 };
    format!("{per_second:.decimals$}")
}

/// Requests a second with other block sizes, divided by those with 16 KiB.
fn block_size_effect(bench: &Bench) -> String {
    let mut text = String::new();
    for row in &bench.rows {
        let question = row.question;
        let is_random = matches!(question.access, Access::RandomRead | Access::RandomWrite);
        let reference = Question { block_bytes: REFERENCE_BLOCK_BYTES, ..question };
        if !is_random || question == reference {
            continue;
        }
        let Some(reference) = bench.find(&reference) else { continue };
        text.push_str(&format!(
            "  {:<13} {:>8}, iodepth {:>3}: {:.2} times the requests of 16 KiB, {:.2} times the bytes\n",
            question.access.words(),
            format_size_bytes(question.block_bytes),
            question.iodepth,
            row.per_second / reference.per_second,
            row.bytes_per_s / reference.bytes_per_s
        ));
    }
    headed("block-size effect", &text)
}

fn file_system_effect(bench: &Bench) -> String {
    let mut text = String::new();
    for row in bench.rows.iter().filter(|row| row.question.place == Place::FileSystem) {
        let Some(raw) = bench.find(&Question { place: Place::Raw, ..row.question }) else { continue };
        text.push_str(&format!(
            "  {:<13} {:>8}, iodepth {:>3}: {:.2} times the raw device\n",
            row.question.access.words(),
            format_size_bytes(row.question.block_bytes),
            row.question.iodepth,
            row.per_second / raw.per_second
        ));
    }
    headed("file system against raw", &text)
}

fn headed(title: &str, lines: &str) -> String {
    if lines.is_empty() { String::new() } else { format!("\n{title}\n{lines}") }
}

fn deterioration_lines(curve: &Deterioration) -> String {
    let Some(last) = curve.points.last() else { return String::new() };
    let ratio = |rate: f64| rate / curve.fastest_per_s();
    let mut text = format!(
        "  {} random writes, iodepth {}, {:.1} h, {} GB written{}\n",
        format_size_bytes(curve.block_bytes),
        curve.iodepth,
        last.at_s / 3600.0,
        rate(last.written_bytes as f64 / 1e9),
        if curve.cut_short { " (stopped at the limit of requests; --full has a higher one)" } else { "" },
    );
    for (name, value) in [
        ("fastest", curve.fastest_per_s()),
        ("slowest", curve.slowest_per_s()),
        ("at the end", last.per_second),
        ("after the pause", curve.recovered_per_s()),
    ] {
        text.push_str(&format!("  {name:<16} {:>9} a second  {:.2}\n", rate(value), ratio(value)));
    }
    let steady = match curve.steady_from() {
        Some(point) => format!("steady from {:.1} h on", point.at_s / 3600.0),
        None => "not steady at the end".to_owned(),
    };
    text.push_str(&format!(
        "  {steady} (SNIA: each {SNIA_ROUNDS} points within 20 %, their line within 10 %)\n"
    ));
    text.push_str(&format!("  the pause is {:.1} h\n", curve.idle_s / 3600.0));
    headed("write deterioration and recovery", &text)
}
