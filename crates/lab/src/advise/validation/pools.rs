//! Predicts cells with a larger buffer pool from those with a smaller one on the same storage.

use serde::Serialize;

use super::{Known, at_dilation_of};
use crate::advise::memory::Memory;
use crate::advise::prediction::predict;
use crate::advise::source::Source;
use crate::record::{Cell, SweptValue};

/// A prediction for another buffer pool beside its measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PoolComparison {
    /// Names of the cells.
    pub from: String,
    pub of: String,
    /// Size of the predicted pool, 1 for that of the cell from which it is predicted.
    pub times: f64,
    /// Reads on which a transaction waits.
    pub predicted_reads: f64,
    pub measured_reads: f64,
    /// Changed pages that are written for each transaction.
    pub predicted_writes: f64,
    pub measured_writes: f64,
    /// In the unit of the workload's metric.
    pub predicted: f64,
    pub measured: f64,
    /// Whether the trace is long enough to know.
    pub is_known: bool,
}

impl PoolComparison {
    /// 0.1 if the prediction is 10 % too high.
    pub fn error_of_reads(&self) -> f64 {
        self.predicted_reads / self.measured_reads - 1.0
    }

    pub fn error_of_writes(&self) -> f64 {
        self.predicted_writes / self.measured_writes - 1.0
    }

    pub fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }
}

/// Each cell from all that have the same storage and load, a smaller pool and a block trace.
pub(super) fn compare_pools(known: &[Known<'_>]) -> Vec<PoolComparison> {
    let mut comparisons = Vec::new();
    for from in known {
        let larger = |of: &&Known<'_>| {
            apart_from_memory(of.source.cell) == apart_from_memory(from.source.cell)
                && of.source.paging.pool_pages > from.source.paging.pool_pages
        };
        let mut larger = known.iter().filter(larger).peekable();
        if larger.peek().is_none() {
            continue;
        }
        if let Ok(memory) = Memory::of(&from.source) {
            comparisons.extend(larger.filter_map(|of| compare(from, &memory, of)));
        }
    }
    comparisons
}

fn compare(from: &Known<'_>, memory: &Memory, of: &Known<'_>) -> Option<PoolComparison> {
    let pool_bytes = of.source.paging.pool_pages * of.source.paging.page_bytes;
    let larger = memory.larger(pool_bytes);
    let facts = memory.with_pool(&at_dilation_of(from, of), larger);
    let outcome = predict(&facts, &of.storage, of.source.measurement.duration_s, 1);
    Some(PoolComparison {
        from: from.source.cell.name.clone(),
        of: of.source.cell.name.clone(),
        times: pool_bytes as f64 / memory.pool_bytes() as f64,
        predicted_reads: reads(&from.source)? * larger.reads_left,
        measured_reads: reads(&of.source)?,
        predicted_writes: facts.mean(|kind| kind.dirtied_pages),
        measured_writes: of.source.paging.written_pages / of.source.transactions(),
        predicted: outcome.per_second() * from.source.metric_of_transaction(),
        measured: of.source.measurement.metric.value,
        is_known: larger.is_known,
    })
}

/// `None` if the server does not count them.
fn reads(source: &Source<'_>) -> Option<f64> {
    Some(source.paging.foreground_reads? / source.transactions())
}

/// Storage, server, workload and swept values, without sizes of memory.
fn apart_from_memory(cell: &Cell) -> (&str, (&str, &str), Vec<&SweptValue>) {
    (cell.layout_name(), cell.bases(), cell.sweep.iter().filter(|value| !value.is_memory).collect())
}
