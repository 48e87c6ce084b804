//! What one transaction costs: its requests to the storage and its processor time, as a table for each
//! format.

use itertools::Itertools as _;

use super::{CellView, View};
use crate::record::PerTransaction;
use crate::report::format;

/// Name, and the figure.
type Column = (&'static str, fn(&PerTransaction) -> Option<f64>);

const COLUMNS: [Column; 8] = [
    ("reads", |of| Some(of.reads)),
    ("writes", |of| Some(of.writes)),
    ("flushes", |of| Some(of.flushes)),
    ("fsyncs", |of| of.fsyncs),
    ("KiB read", |of| Some(of.read_kib)),
    ("KiB written", |of| Some(of.write_kib)),
    ("server us", |of| Some(of.server_cpu_us)),
    ("client us", |of| Some(of.client_cpu_us)),
];

pub(in crate::report) const CAPTION: &str =
    "Per transaction, mean of the trials (server us, client us: processor time)";

/// The heads, and a row for each measured cell. A figure that no cell has is left out. `None` without a cell.
pub(in crate::report) fn rows(view: &View) -> Option<Vec<Vec<String>>> {
    let cells =
        view.cells.iter().filter_map(|cell| Some((cell, cell.per_transaction.as_ref()?))).collect_vec();
    let is_known = |(_, figure): &Column| cells.iter().any(|(_, of)| figure(of).is_some());
    let columns = COLUMNS.into_iter().filter(is_known).collect_vec();
    let head = std::iter::once(view.subject).chain(columns.iter().map(|(name, _)| *name));
    let row = |(cell, of): &(&CellView, &PerTransaction)| {
        let figures = columns.iter().map(|(_, figure)| format::optional(figure(of)));
        std::iter::once(cell.title.clone()).chain(figures).collect_vec()
    };
    let rows = std::iter::once(head.map(str::to_owned).collect_vec()).chain(cells.iter().map(row));
    (!cells.is_empty()).then(|| rows.collect())
}
