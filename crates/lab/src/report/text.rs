//! The table for a terminal: at most 100 columns, and complete without colour.

use std::fmt::Write as _;

use itertools::Itertools as _;

use super::{CellView, Quantiles, Ratio, View, format};

use spindle_base::text::one_line;

const WIDTH: usize = 100;

pub(super) fn page(view: &View, colour: bool) -> String {
    let bold = |text: &str| if colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() };
    let mut page = format!("{}\n\n", bold(&wrapped(&view.header.scenario.title, "")));
    let unit = view.metric.as_deref().unwrap_or("throughput");
    let baseline = view.baseline.as_deref().unwrap_or("first cell");
    let _ = writeln!(
        page,
        "{}\n",
        wrapped(
            &format!("{unit}; latency in ms; ratio to {baseline} with its 95 % interval; {}", trials(view)),
            ""
        )
    );
    for (index, line) in table(view).iter().enumerate() {
        let line = line.trim_end();
        let _ = writeln!(page, "{}", if index == 0 { bold(line) } else { line.to_owned() });
    }
    let _ = writeln!(page, "\n{}", bold(&wrapped(&view.verdict.sentence, "")));
    let sentences = view.verdict.details.iter().chain(&view.replication).map(|text| format!("- {text}"));
    let warnings = view.warnings.iter().map(|warning| {
        let trials = format::plural(warning.trial_count, "trial");
        format!("warning: {} ({trials}): {}", warning.cell, warning.sentence)
    });
    let failures = view.failures.iter().map(|failure| {
        let again = if failure.repeated { " (was run again)" } else { "" };
        format!("failed: {}, trial {}{again}: {}", failure.cell, failure.trial, failure.error)
    });
    let notes = view.notes.iter().map(|note| format!("note: {note}"));
    for text in sentences.chain(warnings).chain(failures).chain(notes) {
        page += &(wrapped(&text, "  ") + "\n");
    }
    page
}

fn trials(view: &View) -> String {
    match view.cells.iter().map(|cell| cell.trials.len()).all_equal_value() {
        Ok(count) => format!("{} per cell", format::plural(count, "trial")),
        Err(_) => {
            let parts = view.cells.iter().map(|cell| format!("{} {}", cell.name, cell.trials.len()));
            format!("trials: {}", parts.format(", "))
        }
    }
}

/// The bottleneck of a cell. If the trials disagree, the number of trials in agreement follows.
pub(super) fn bottleneck(cell: &CellView) -> String {
    match &cell.bottleneck {
        Some(found) if found.trial_count == cell.trials.len() => found.name.clone(),
        Some(found) => format!("{} ({}/{})", found.name, found.trial_count, cell.trials.len()),
        None => "-".to_owned(),
    }
}

/// Width of each column; with the gaps they add up to [`WIDTH`].
const COLUMNS: [(&str, usize, bool); 8] = [
    ("cell", 16, false),
    ("throughput", 10, true),
    ("p50", 6, true),
    ("p95", 6, true),
    ("p99", 6, true),
    ("ratio", 22, true),
    ("bottleneck", 16, false),
    ("warnings", 11, false),
];

fn table(view: &View) -> Vec<String> {
    let mut rows = vec![COLUMNS.map(|(name, ..)| name.to_owned())];
    if view.lower_is_better {
        rows[0][1] = "seconds".to_owned();
    }
    for cell in &view.cells {
        let latency =
            |pick: fn(&Quantiles) -> Option<f64>| format::optional(cell.latency.as_ref().and_then(pick));
        let throughput = cell.throughput.as_ref();
        let ratio = match &cell.ratio {
            Some(ratio) => terse(ratio),
            None if view.baseline.as_deref() == Some(&cell.name) => "1".to_owned(),
            None => "-".to_owned(),
        };
        let warnings = match cell.warnings.as_slice() {
            [] => String::new(),
            [only] => only.clone(),
            many => format!("{} kinds", many.len()),
        };
        rows.push([
            cell.name.clone(),
            throughput.map_or_else(|| "none".to_owned(), |throughput| format::number(throughput.mean)),
            latency(|l| l.p50_ms),
            latency(|l| l.p95_ms),
            latency(|l| l.p99_ms),
            ratio,
            bottleneck(cell),
            warnings,
        ]);
    }
    rows.iter().map(aligned).collect()
}

fn terse(ratio: &Ratio) -> String {
    let interval = match ratio.interval {
        Some(range) => format!("{}-{}", format::number(range.low), format::number(range.high)),
        None => "one trial".to_owned(),
    };
    format!("{} ({interval})", format::number(ratio.ratio))
}

fn aligned(row: &[String; 8]) -> String {
    let mut line = String::new();
    for ((_, width, right), text) in COLUMNS.iter().zip(row) {
        let text = shortened(&one_line(text), *width);
        line += &if *right { format!("{text:>width$} ") } else { format!("{text:<width$} ") };
    }
    line
}

/// Shortened in the middle, because names of cells differ at either end.
fn shortened(text: &str, width: usize) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= width {
        return text.to_owned();
    }
    let (start, rest) = characters.split_at((width - 1) / 2);
    let end = &rest[rest.len() - (width - 1 - start.len())..];
    format!("{}…{}", String::from_iter(start), String::from_iter(end))
}

/// Wraps at spaces before [`WIDTH`]; further lines start with `indent`.
pub(crate) fn wrapped(text: &str, indent: &str) -> String {
    let mut lines: Vec<String> = vec![String::new()];
    let text = one_line(text);
    // Keeps a number and its unit on one line.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace(" %", "\u{a0}%");
    for word in text.split(' ') {
        let line = lines.last_mut().expect("starts with one line");
        let used = line.chars().count();
        if used > indent.len() && used + 1 + word.chars().count() > WIDTH {
            lines.push(format!("{indent}{word}"));
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n").replace('\u{a0}', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_fit_the_terminal() {
        let widths: usize = COLUMNS.iter().map(|(_, width, _)| width + 1).sum();
        assert!(widths <= WIDTH + 1, "{widths}");
    }

    #[test]
    fn long_names_are_cut_in_the_middle() {
        assert_eq!(shortened("hdd-7200/mariadb-11", 11), "hdd-7…db-11");
        assert_eq!(shortened("hdd", 11), "hdd");
    }

    #[test]
    fn prose_is_broken_at_spaces() {
        let text = wrapped(&"words ".repeat(60), "  ");
        assert!(text.lines().count() > 3 && text.lines().all(|line| line.chars().count() <= WIDTH));
    }
}
