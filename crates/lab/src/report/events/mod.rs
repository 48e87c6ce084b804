//! The figures before and after each event, as text and as Markdown.

use std::fmt::Write as _;

use itertools::Itertools as _;

use super::markdown::escaped;
use super::text::wrapped;
use super::view::{EventFigure, EventLevel, EventRow};
use super::{Ratio, View, format};

impl EventRow {
    /// `at 20 s`.
    fn time(&self) -> String {
        format!("at {} s", format::number(self.planned_s))
    }
}

impl EventLevel {
    /// `checkpoint age`, `pages written per second`.
    fn title(&self) -> String {
        [&self.name, self.unit_words].into_iter().filter(|words| !words.is_empty()).join(" ")
    }

    /// Before and after.
    fn means(&self) -> [String; 2] {
        [&self.before, &self.after].map(|figure| format::of_unit(figure.mean, self.unit))
    }

    /// Whether the trials show that it changed.
    fn has_changed(&self) -> bool {
        let interval = self.ratio.as_ref().and_then(|ratio| ratio.interval);
        interval.is_some_and(|interval| interval.low > 1.0 || interval.high < 1.0)
    }
}

fn figure(figure: &EventFigure) -> String {
    let interval = figure.interval.map_or_else(String::new, |range| format!(" ({range})"));
    format!("{}{interval}", format::number(figure.mean))
}

fn ratio_or_dash(ratio: Option<&Ratio>) -> String {
    ratio.map_or_else(|| "-".to_owned(), Ratio::text)
}

/// A sentence for each event and cell, and one about what changed in the server.
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
        let changes = row.levels.iter().filter(|level| level.has_changed()).map(|level| {
            let ([before, after], ratio) = (level.means(), ratio_or_dash(level.ratio.as_ref()));
            format!("{} {before} before, {after} after, ratio {ratio}", level.title())
        });
        let changes = changes.collect_vec();
        if !changes.is_empty() {
            let changes = changes.join("; ");
            let sentence = format!("- {}, of the server and the cores{of_cell}: {changes}", row.time());
            let _ = writeln!(page, "{}", wrapped(&sentence, "  "));
        }
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
            ratio_or_dash(row.ratio.as_ref()),
            figure(&row.before.p95_ms),
            figure(&row.after.p95_ms),
        );
    }
    page + "\n" + &markdown_of_levels(view)
}

fn markdown_of_levels(view: &View) -> String {
    let rows = view.events.iter().flat_map(|row| row.levels.iter().map(move |level| (row, level)));
    let mut page = String::new();
    for (row, level) in rows {
        if page.is_empty() {
            page = format!(
                "The server and the cores, means over the seconds. The variation is from second to second: the standard \
                 deviation over the mean.\n\n\
                 | {} | time | event | figure | before | after | after to before | variation before | after |\n\
                 |---|--:|---|---|--:|--:|--:|--:|--:|\n",
                view.subject
            );
        }
        let [before, after] = level.means();
        let [uneven_before, uneven_after] = match level.variation {
            Some(variation) => variation.map(format::number),
            None => ["-", "-"].map(str::to_owned),
        };
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {before} | {after} | {} | {uneven_before} | {uneven_after} |",
            escaped(&row.title),
            row.time(),
            escaped(&row.change),
            level.title(),
            ratio_or_dash(level.ratio.as_ref()),
        );
    }
    if page.is_empty() { page } else { page + "\n" }
}
