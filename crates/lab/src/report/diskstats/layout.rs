//! The rows as text: columns of pt-diskstats, one table per trial.

use itertools::Itertools as _;
use spindle_base::text::{one_line, plural};

use super::{DiskStats, Operation, Row, Table};
use crate::report::wrapped;

const KIB: f64 = 1024.0;

/// Columns of an operation, after its prefix.
const OF_OPERATION: [&str; 6] = ["s", "avkb", "mb_s", "mrg", "cnc", "rt"];
/// A flush moves nothing and is merged with nothing.
const OF_FLUSH: [usize; 3] = [0, 4, 5];

const WITHOUT_ROWS: &str = "No trial of these records has the kernel's counters of a block device: the storage \
    was a plain directory, or nothing was measured.";
const CONCURRENCY: &str = "c: throughput x response time of all operations differs by more than 5 % from the \
    requests in flight that the kernel counted itself, so concurrency and response times of the row are \
    uncertain.";
const BUSY: &str = "b: busy is more than 5 % above the mean number of requests in flight, or above 100 %, which \
    no device can be. Newer kernels count busy time in whole clock ticks, so short requests look longer than \
    they are. Use the concurrency.";

impl DiskStats {
    pub(in crate::report) fn page(&self) -> String {
        if self.tables.is_empty() {
            return wrapped(WITHOUT_ROWS, "") + "\n";
        }
        let rows = || self.tables.iter().flat_map(|table| &table.rows);
        let count = rows().count();
        let note = |sentence: &str, violations: usize| {
            let share = format!("{violations} of {}", plural(count, "row"));
            (violations > 0).then(|| format!("{}\n", wrapped(&format!("{sentence} ({share})"), "  ")))
        };
        let notes = [
            note(CONCURRENCY, rows().filter(|row| row.violates_concurrency()).count()),
            note(BUSY, rows().filter(|row| row.violates_busy()).count()),
        ];
        let notes: String = notes.into_iter().flatten().collect();
        let tables = self.tables.iter().map(Table::text).join("\n");
        if notes.is_empty() { tables } else { format!("{tables}\n{notes}") }
    }
}

impl Table {
    /// The title is a comment, as the first name of the columns is in pt-diskstats.
    fn text(&self) -> String {
        let rows = std::iter::once(heads()).chain(self.rows.iter().map(fields)).collect_vec();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths = (0..rows[0].len()).map(width).collect_vec();
        let line = |row: &Vec<String>| {
            let padded = row.iter().zip(&widths).enumerate().map(|(column, (field, &width))| match column {
                // Names stand on the left.
                1 => format!("{field:width$}"),
                _ => format!("{field:>width$}"),
            });
            let line = padded.collect_vec().join(" ");
            format!("{}\n", line.trim_end())
        };
        format!("# {}\n{}", one_line(&self.title), rows.iter().map(line).collect::<String>())
    }
}

fn heads() -> Vec<String> {
    let of = |prefix: &'static str| OF_OPERATION.map(move |name| format!("{prefix}_{name}"));
    let flush = of("fl");
    let flush = OF_FLUSH.map(|column| flush[column].clone());
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect_vec();
    let parts = [names(&["#ts", "device"]), of("rd").into(), of("wr").into(), of("ds").into(), flush.into()];
    parts.into_iter().chain([names(&["busy", "in_prg", "mark"])]).flatten().collect()
}

/// A dash is a figure that the record does not have.
fn fields(row: &Row) -> Vec<String> {
    let dash = || "-".to_owned();
    // Braces mark what is summed up, as in pt-diskstats.
    let at = if row.is_window { format!("{{{:.1}}}", row.at_s) } else { format!("{:.1}", row.at_s) };
    let flush = operation(row.flush);
    let marks = [(row.violates_concurrency(), "c"), (row.violates_busy(), "b")];
    let parts = [
        vec![at, one_line(&row.device)],
        operation(row.read).into(),
        operation(row.write).into(),
        row.discard.map_or_else(|| OF_OPERATION.map(|_| dash()), operation).into(),
        OF_FLUSH.map(|column| flush[column].clone()).into(),
        vec![
            row.busy.map_or_else(dash, percent),
            row.in_progress.map_or_else(dash, |count| count.to_string()),
            marks.iter().filter(|(is_set, _)| *is_set).map(|(_, mark)| *mark).collect(),
        ],
    ];
    parts.into_iter().flatten().collect()
}

/// In the order of [`OF_OPERATION`].
fn operation(operation: Operation) -> [String; OF_OPERATION.len()] {
    [
        format!("{:.1}", operation.per_s),
        format!("{:.1}", operation.bytes_mean / KIB),
        format!("{:.1}", operation.bytes_per_s / KIB / KIB),
        operation.merged.map_or_else(|| "-".to_owned(), percent),
        format!("{:.2}", operation.concurrency),
        format!("{:.2}", operation.response_ms),
    ]
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}
