//! The figures before and after each event, as text and as Markdown.

use std::fmt::Write as _;

use super::markdown::escaped;
use super::text::wrapped;
use super::view::{EventFigure, EventRow};
use super::{View, format};

impl EventRow {
    /// `at 20 s`.
    fn time(&self) -> String {
        format!("at {} s", format::number(self.planned_s))
    }
}

fn figure(figure: &EventFigure) -> String {
    let interval = figure.interval.map_or_else(String::new, |range| format!(" ({range})"));
    format!("{}{interval}", format::number(figure.mean))
}

/// A sentence for each event and cell.
pub(super) fn text(view: &View) -> String {
    let mut page = String::new();
    for row in &view.events {
        let of_cell =
            if view.cells.len() > 1 { format!(", {}", format::the(&row.title)) } else { String::new() };
        let ratio = row.ratio.as_ref().map_or_else(String::new, |ratio| format!(", ratio {}", ratio.text()));
        let sentence = format!(
            "- {}, {}{of_cell}: {} {} before, {} after{ratio}; p95 ms {} before, {} after",
            row.time(),
            row.change,
            figure(&row.before.metric),
            row.metric,
            figure(&row.after.metric),
            figure(&row.before.p95_ms),
            figure(&row.after.p95_ms),
        );
        let _ = writeln!(page, "{}", wrapped(&sentence, "  "));
    }
    page
}

/// A table with a row for each event and cell.
pub(super) fn markdown(view: &View) -> String {
    if view.events.is_empty() {
        return String::new();
    }
    let mut page = format!(
        "## Before and after each event\n\n\
         | {} | time | event | figure | before | after | after to before | p95 ms before | p95 ms after |\n\
         |---|--:|---|---|--:|--:|--:|--:|--:|\n",
        view.subject
    );
    for row in &view.events {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            escaped(&row.title),
            row.time(),
            escaped(&row.change),
            escaped(&row.metric),
            figure(&row.before.metric),
            figure(&row.after.metric),
            row.ratio.as_ref().map_or_else(|| "-".to_owned(), super::Ratio::text),
            figure(&row.before.p95_ms),
            figure(&row.after.p95_ms),
        );
    }
    page + "\n"
}
