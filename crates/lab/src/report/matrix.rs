//! The curves of a sweep and the table of tests, as text and as Markdown.

use std::fmt::Write as _;

use super::markdown::escaped;
use super::text::{WIDTH, capitalized, wrapped};
use super::view::{CurveView, StudyTable, SweepView};
use super::{View, format};
use spindle_base::text::one_line;

/// The longest title of a curve at the head of its column.
const TITLE_MOST: usize = 28;

impl SweepView {
    /// What the table of its figures is of.
    pub(super) fn caption(&self) -> String {
        let metric = capitalized(&self.metric);
        format!("{metric} by `{}`, with 95 % intervals; {}.", self.key, self.legend())
    }

    fn legend(&self) -> &'static str {
        match self.is_numeric {
            true => "peak: the best; level: not told from the peak; knee: from here on the same within 5 %",
            false => "peak: the best; level: not told from the peak",
        }
    }

    /// A figure, its interval, and the marks of its place.
    fn figure(&self, curve: &CurveView, index: usize, between: &str) -> String {
        let point = &curve.points[index];
        let Some(mean) = point.mean else { return "-".to_owned() };
        let mark = format::mark(point.has_few_events, point.is_not_steady);
        let number = format::number;
        let interval = point.interval.map_or_else(String::new, |range| {
            format!(" ({}{between}{})", number(range.low), number(range.high))
        });
        let marks: String = point.marks.iter().map(|mark| format!(" {mark}")).collect();
        format!("{}{mark}{interval}{marks}", number(mean))
    }
}

/// The curves for a terminal, in tables of at most [`WIDTH`] columns.
pub(super) fn text(view: &View) -> String {
    let mut page = String::new();
    for sweep in &view.sweeps {
        let _ = writeln!(page, "{}\n", wrapped(&sweep.caption(), ""));
        let axis = column(&sweep.key, sweep.values.iter().map(|value| value.value.clone()));
        let mut columns: Vec<Vec<String>> = Vec::new();
        for curve in &sweep.curves {
            let figures = (0..sweep.values.len()).map(|index| sweep.figure(curve, index, "-"));
            let column = column(&curve.title, figures);
            let width = |column: &Vec<String>| column[0].chars().count() + 2;
            if width(&axis) + columns.iter().map(width).sum::<usize>() + width(&column) > WIDTH {
                page += &table(&axis, &std::mem::take(&mut columns));
            }
            columns.push(column);
        }
        page += &table(&axis, &columns);
        for sentence in &sweep.sentences {
            page += &(wrapped(&format!("- {sentence}"), "  ") + "\n");
        }
        page.push('\n');
    }
    page
}

/// A head and its fields, of one width.
fn column(head: &str, fields: impl Iterator<Item = String>) -> Vec<String> {
    let head: String = one_line(head).chars().take(TITLE_MOST).collect();
    let lines: Vec<String> = std::iter::once(head).chain(fields).collect();
    let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    lines.iter().map(|line| format!("{line:<width$}")).collect()
}

fn table(axis: &[String], columns: &[Vec<String>]) -> String {
    let line = |index: usize| {
        let fields = columns.iter().map(|column| column[index].as_str());
        let fields: Vec<&str> = std::iter::once(axis[index].as_str()).chain(fields).collect();
        fields.join("  ").trim_end().to_owned() + "\n"
    };
    (0..axis.len()).map(line).collect::<String>() + "\n"
}

/// The curves as sections of a page.
pub(super) fn markdown(view: &View) -> String {
    let mut page = String::new();
    for sweep in &view.sweeps {
        let _ = writeln!(page, "## By {}\n\n{}\n", escaped(&sweep.key), escaped(&sweep.caption()));
        let titles: String =
            sweep.curves.iter().map(|curve| format!(" {} |", escaped(&curve.title))).collect();
        let rule = "--:|".repeat(sweep.curves.len());
        let _ = writeln!(page, "| {} |{titles}\n|--:|{rule}", escaped(&sweep.key));
        for (index, value) in sweep.values.iter().enumerate() {
            let figures =
                sweep.curves.iter().map(|curve| format!(" {} |", sweep.figure(curve, index, " to ")));
            let _ = writeln!(page, "| {} |{}", escaped(&value.value), figures.collect::<String>());
        }
        page.push('\n');
        for sentence in &sweep.sentences {
            let _ = writeln!(page, "- {}", escaped(sentence));
        }
        page.push('\n');
    }
    page + &view.study.as_ref().map_or_else(String::new, study)
}

/// A row for each test, and from the second storage on two columns: the figure and its change.
fn study(table: &StudyTable) -> String {
    let base = format::the(&table.storages[0]);
    let mut page = format!(
        "## Tests by storage\n\nUp/Down: change against {}. In brackets where the trials do not show it.\n\n",
        escaped(&base)
    );
    let further: String =
        table.storages[1..].iter().map(|storage| format!(" {} | Up/Down |", escaped(storage))).collect();
    let rule = "--:|--:|".repeat(table.storages.len() - 1);
    let _ =
        writeln!(page, "| test | figure | {} |{further}\n|---|---|--:|{rule}", escaped(&table.storages[0]));
    for row in &table.rows {
        let _ = write!(page, "| {} | {} |", escaped(&row.test), escaped(&row.metric));
        for (index, cell) in row.cells.iter().enumerate() {
            let mark = cell.as_ref().map_or("", |cell| format::mark(cell.has_few_events, cell.is_not_steady));
            let _ = write!(page, " {}{mark} |", format::optional(cell.as_ref().map(|cell| cell.mean)));
            if index > 0 {
                let change = cell.as_ref().and_then(|cell| cell.change_text.as_deref());
                let _ = write!(page, " {} |", change.unwrap_or("-"));
            }
        }
        page.push('\n');
    }
    page + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_column_have_one_width() {
        let column = column("a long title of a curve, as a user wrote it", ["1".to_owned()].into_iter());
        assert_eq!(column, ["a long title of a curve, as ", "1                           "]);
    }
}
