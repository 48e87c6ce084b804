//! The table for a terminal: at most 100 columns, and complete without colour.

use std::fmt::Write as _;

use itertools::Itertools as _;

use super::verdict::{Bound, Verdict, Word};
use super::{CellView, Quantiles, Ratio, View, format};

use spindle_base::text::{one_line, plural};

pub(super) const WIDTH: usize = 100;

pub(super) fn page(view: &View, colour: bool) -> String {
    let bold = |text: &str| if colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() };
    let mut page = format!("{}\n\n", bold(&wrapped(&view.header.scenario.title, "")));
    let _ = writeln!(page, "{}\n", wrapped(&introduction(view), ""));
    for (index, line) in table(view).iter().enumerate() {
        let line = line.trim_end();
        let _ = writeln!(page, "{}", if index == 0 { bold(line) } else { line.to_owned() });
    }
    for footnote in &view.footnotes {
        let _ = writeln!(page, "{}", wrapped(footnote, "  "));
    }
    if let Some(rows) = costs(view) {
        let _ = writeln!(page, "\n{}", wrapped(&format!("{}:", super::view::costs::CAPTION), ""));
        for (index, line) in rows.iter().enumerate() {
            let _ = writeln!(page, "{}", if index == 0 { bold(line) } else { line.clone() });
        }
    }
    if !view.sweeps.is_empty() {
        let _ = write!(page, "\n{}", super::matrix::text(view).trim_end());
        page.push('\n');
    }
    page.push('\n');
    for sentence in &view.verdict.sentences {
        let _ = writeln!(page, "{}", bold(&wrapped(sentence, "")));
    }
    page += &super::events::text(view);
    let sentences = view.verdict.details.iter().chain(&view.replication).map(|text| format!("- {text}"));
    let warnings = view.warnings.iter().map(|warning| {
        let trials = plural(warning.trial_count, "trial");
        format!("warning: {} ({trials}): {}", warning.title, warning.sentence)
    });
    let failures = view.failures.iter().map(|failure| {
        let again = if failure.repeated { " (was run again)" } else { "" };
        format!("failed: {}, trial {}{again}: {}", failure.title, failure.trial, failure.error)
    });
    let notes = view.notes.iter().map(|note| format!("note: {note}"));
    for text in sentences.chain(warnings).chain(failures).chain(notes) {
        page += &(wrapped(&text, "  ") + "\n");
    }
    page
}

fn introduction(view: &View) -> String {
    let metric = view.metric.as_deref().unwrap_or("throughput");
    let compared = match &view.baseline_title {
        _ if view.cells.len() == 1 => String::new(),
        Some(title) => format!(" Ratio: compared with {}, and its 95 % interval.", format::the(title)),
        None if view.cells.iter().any(|cell| cell.ratio.is_some()) => {
            " Ratio: compared with the first of the same workload, and its 95 % interval.".to_owned()
        }
        None => String::new(),
    };
    format!("{}; latency in ms; {}.{compared}", capitalized(metric), trials(view))
}

pub(super) fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

fn trials(view: &View) -> String {
    match view.cells.iter().map(|cell| cell.trials.len()).all_equal_value() {
        Ok(count) => format!("{} each", plural(count, "trial")),
        Err(_) => {
            let count = |cell: &CellView| format!("{} of {}", cell.trials.len(), format::the(&cell.title));
            format!("trials: {}", view.cells.iter().map(count).format(", "))
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

/// Names of the columns, and whether they are of numbers.
const COLUMNS: [(&str, bool); 8] = [
    ("", false),
    ("throughput", true),
    ("p50", true),
    ("p95", true),
    ("p99", true),
    ("ratio, verdict", true),
    ("bottleneck", false),
    ("warnings", false),
];

/// The most that a column takes, without the first, which takes the rest of [`WIDTH`] and several lines.
const WIDEST: [usize; 7] = [10, 6, 6, 6, 33, 14, 8];

fn table(view: &View) -> Vec<String> {
    let mut rows = vec![COLUMNS.map(|(name, _)| name.to_owned())];
    view.subject.clone_into(&mut rows[0][0]);
    if view.lower_is_better {
        "seconds".clone_into(&mut rows[0][1]);
    }
    rows.extend(view.cells.iter().map(row));
    let longest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let mut widths = [0; 8];
    for (index, most) in WIDEST.iter().enumerate() {
        widths[index + 1] = longest(index + 1).min(*most);
    }
    widths[0] = longest(0).min(WIDTH - widths.iter().map(|width| width + 1).sum::<usize>());
    rows.iter().flat_map(|row| aligned(row, &widths, |column| COLUMNS[column].1)).collect()
}

fn row(cell: &CellView) -> [String; 8] {
    let latency =
        |pick: fn(&Quantiles) -> Option<f64>| format::optional(cell.latency.as_ref().and_then(pick));
    let throughput = cell.throughput.as_ref().map(|throughput| throughput.marked(cell));
    let ratio = match &cell.ratio {
        Some(ratio) => terse(ratio, cell.verdict.as_ref()),
        None if cell.is_baseline() => "1".to_owned(),
        None => "-".to_owned(),
    };
    let warnings = match cell.warnings.as_slice() {
        [] => String::new(),
        // Its column has room for a short one. The sentences are below the table.
        [only] if only.len() <= WIDEST[6] => only.clone(),
        some => plural(some.len(), "kind"),
    };
    [
        one_line(&cell.title),
        throughput.unwrap_or_else(|| "none".to_owned()),
        latency(|l| l.p50_ms),
        latency(|l| l.p95_ms),
        latency(|l| l.p99_ms),
        ratio,
        bottleneck(cell),
        warnings,
    ]
}

fn costs(view: &View) -> Option<Vec<String>> {
    let mut rows = super::view::costs::rows(view)?;
    rows.iter_mut().for_each(|row| row[0] = one_line(&row[0]));
    let longest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..rows[0].len()).map(longest).collect();
    widths[0] = widths[0].min(WIDTH - widths[1..].iter().map(|width| width + 1).sum::<usize>());
    let lines = rows.iter().flat_map(|row| aligned(row, &widths, |_| true));
    Some(lines.map(|line| line.trim_end().to_owned()).collect())
}

/// A ratio that is not of the storage has no interval, and so its reader looks for the reason.
fn terse(ratio: &Ratio, verdict: Option<&Verdict>) -> String {
    let bound = verdict.and_then(|verdict| verdict.bound).map_or("", Bound::mark);
    let word = verdict.map_or("", |verdict| verdict.word.name());
    let interval = match ratio.interval {
        _ if verdict.is_some_and(|verdict| verdict.word == Word::NotComparable) => {
            return format!("{} {word}", format::number(ratio.ratio));
        }
        Some(range) => format!("{}-{}", format::number(range.low), format::number(range.high)),
        None => "one trial".to_owned(),
    };
    format!("{bound}{} ({interval}) {word}", format::number(ratio.ratio))
}

/// The lines of a row: a long first field is broken at spaces.
fn aligned(row: &[String], widths: &[usize], is_right: impl Fn(usize) -> bool) -> Vec<String> {
    let first = broken(&row[0], widths[0]);
    let mut lines: Vec<String> =
        first.iter().map(|part| format!("{part:<width$} ", width = widths[0])).collect();
    for (column, (text, &width)) in row.iter().zip(widths).enumerate().skip(1) {
        let text = shortened(&one_line(text), width);
        lines[0] += &if is_right(column) { format!("{text:>width$} ") } else { format!("{text:<width$} ") };
    }
    lines
}

/// Broken at spaces, further lines indented. A word that is too long is shortened.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("starts with one line");
        let used = line.chars().count();
        if used == 0 {
            *line = shortened(word, width);
        } else if used + 1 + word.chars().count() <= width {
            *line += &format!(" {word}");
        } else {
            lines.push(format!("  {}", shortened(word, width.saturating_sub(2))));
        }
    }
    lines
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
    fn the_first_column_has_room() {
        let others: usize = WIDEST.iter().map(|width| width + 1).sum();
        assert!(WIDTH - others >= 10, "{others}");
    }

    #[test]
    fn a_long_label_takes_several_lines() {
        assert_eq!(
            broken("data on the SSD, log on the disk", 16),
            ["data on the SSD,", "  log on the", "  disk"]
        );
        assert_eq!(broken("hdd-7200/mariadb-11", 11), ["hdd-7…db-11"]);
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
