//! The database with another buffer pool: fewer reads, by the reuse of pages in its block trace.

use spindle_base::Mistake;
use spindle_model::Operation;
use spindle_twin::trace::MissCurve;
use spindle_twin::{Facts, Flushing, Innodb, Kind};

use super::source::Source;
use crate::record::FileClass;

/// What a block trace tells of other buffer pools.
#[derive(Debug)]
pub struct Memory {
    curve: MissCurve,
    pool_pages: u64,
    page_bytes: u64,
}

impl Memory {
    /// # Errors
    /// The run kept no trace of the data's storage, or hardly any page was read twice in it.
    pub fn of(source: &Source<'_>) -> Result<Memory, Mistake> {
        let trace = source.traces[source.mount_of(FileClass::Data)].as_ref();
        let trace = trace.ok_or_else(|| {
            Mistake::new("another buffer pool needs a block trace, which `spindle run --trace` keeps")
        })?;
        let page_bytes = source.paging.page_bytes;
        let reads = trace.requests.iter().filter(|request| request.operation == Operation::Read);
        let pages = reads.flat_map(|read| {
            let first = read.offset_bytes / page_bytes;
            first..first + read.size_bytes.div_ceil(page_bytes)
        });
        let curve = MissCurve::of(&pages.collect::<Vec<_>>()).ok_or_else(|| {
            Mistake::new("another buffer pool cannot be predicted: hardly any page was read twice in the trace; measure for longer")
        })?;
        Ok(Memory { curve, pool_pages: source.paging.pool_pages, page_bytes })
    }

    pub fn pool_bytes(&self) -> u64 {
        self.pool_pages * self.page_bytes
    }

    /// Share of the reads that are left with a pool of that size, and whether the trace is long enough to know.
    pub fn left(&self, pool_bytes: u64) -> (f64, bool) {
        let more = (pool_bytes / self.page_bytes).saturating_sub(self.pool_pages) as f64;
        (self.curve.left(more), more <= self.curve.known_pages())
    }

    /// The facts with a pool of that size, which is not smaller than the measured one.
    pub fn with_pool(&self, facts: &Facts, pool_bytes: u64) -> Facts {
        let (left, _) = self.left(pool_bytes);
        let kinds =
            facts.kinds.iter().map(|kind| Kind { reads: kind.reads * left, ..kind.clone() }).collect();
        let flushing = match facts.flushing.clone() {
            Flushing::Innodb(innodb) => {
                Flushing::Innodb(Innodb { buffer_pool_pages: pool_bytes / self.page_bytes, ..innodb })
            }
            other @ Flushing::Writeback(_) => other,
        };
        Facts { kinds, flushing, ..facts.clone() }
    }
}
