//! The database with another buffer pool: fewer reads and fewer writes, by the reuse of pages in its block trace.

use spindle_base::Mistake;
use spindle_twin::trace::{Followed, List, MidpointList, MissCurve, page_uses};
use spindle_twin::{Ahead, Facts, Flushing, Innodb, Kind, Reading};

use super::source::Source;
use crate::record::FileClass;
use crate::server::telemetry::Rules;

/// What a block trace tells of other buffer pools.
#[derive(Debug)]
pub struct Memory {
    followed: Followed,
    curve: MissCurve,
    /// After which a change is written, in the time of the trace.
    oldest_change_ns: f64,
    pool_pages: u64,
    page_bytes: u64,
    list: List,
}

/// The server's list of pages in the measured cell. The trace has its turnover for a server of which no more is known.
fn measured_list(source: &Source<'_>, curve: &MissCurve, traced_ns: u64) -> List {
    let old_pages = source.measurement.series.server.get("old_pages");
    let old_pages = old_pages.and_then(|series| spindle_stats::mean(series)).filter(|pages| *pages > 0.0);
    let Some((rule, old_pages)) = source.paging.midpoint.zip(old_pages) else {
        return List::LastUse(curve.turnover_pages());
    };
    let list = MidpointList { rule, pages: old_pages / rule.older_share, never_leave: 0.0 };
    // Each page that moves there pushes another one out. Without that count, all are taken to have been.
    let traced = traced_ns as f64 / 1e9 / source.measurement.duration_s;
    let moved = source.paging.moved_to_head.map_or(f64::INFINITY, |moved| moved * traced);
    List::Midpoint(MidpointList { never_leave: (list.staying_pages() - moved).max(0.0), ..list })
}

/// What a larger buffer pool leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Larger {
    pool_bytes: u64,
    /// Share of the reads.
    pub reads_left: f64,
    /// Share of the writes for room.
    writes_left: f64,
    /// Whether the trace is long enough to know.
    pub is_known: bool,
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
        let followed = Followed::of(&page_uses(&trace.requests, page_bytes));
        let curve = MissCurve::of(&followed).ok_or_else(|| {
            Mistake::new("another buffer pool cannot be predicted: hardly any page was read twice in the trace; measure for longer")
        })?;
        Ok(Memory {
            list: measured_list(source, &curve, trace.duration_ns),
            followed,
            curve,
            oldest_change_ns: oldest_change_s(source) * 1e9,
            pool_pages: source.paging.pool_pages,
            page_bytes,
        })
    }

    pub fn pool_bytes(&self) -> u64 {
        self.pool_pages * self.page_bytes
    }

    /// With a pool of that size, which is not smaller than the measured one.
    pub fn larger(&self, pool_bytes: u64) -> Larger {
        let more = (pool_bytes / self.page_bytes).saturating_sub(self.pool_pages) as f64;
        let (list, part) = match self.list {
            List::LastUse(pages) => (List::LastUse(pages + more), 1.0),
            // The trace does not tell which pages the measured list keeps. Twice the pool has room for both those and
            // the others; a part of it has a part of the effect.
            List::Midpoint(list) => {
                let pool_pages = self.pool_pages as f64;
                let pages = list.pages + more.max(pool_pages);
                (List::Midpoint(MidpointList { pages, ..list }), (more / pool_pages).min(1.0))
            }
        };
        let answered = self.followed.answered(&list);
        Larger {
            pool_bytes,
            reads_left: self.curve.left(&self.followed, &answered).powf(part),
            writes_left: self.followed.writes_left(&answered, self.oldest_change_ns).powf(part),
            is_known: list.pages() <= self.curve.longest_pages(),
        }
    }

    /// The facts with that pool.
    pub fn with_pool(&self, facts: &Facts, larger: Larger) -> Facts {
        let Larger { pool_bytes, reads_left: left, writes_left: cold_left, .. } = larger;
        let (flushing, dirtied) = match &facts.flushing {
            Flushing::Innodb(innodb) => {
                let dirtied = innodb.hot_share + (1.0 - innodb.hot_share) * cold_left;
                let innodb = with_larger_pool(innodb, pool_bytes / self.page_bytes, left, cold_left);
                (Flushing::Innodb(innodb), dirtied)
            }
            other @ Flushing::Writeback(_) => (other.clone(), 1.0),
        };
        let with_pool = |kind: &Kind| Kind {
            reads: kind.reads * left,
            dirtied_pages: kind.dirtied_pages * dirtied,
            ..kind.clone()
        };
        let ahead = match facts.reading.ahead.clone() {
            Ahead::Counted { requests, pages } => Ahead::Counted { requests: requests * left, pages },
            // Behind each read that is left.
            traced @ Ahead::Traced(_) => traced,
        };
        Facts {
            kinds: facts.kinds.iter().map(with_pool).collect(),
            reading: Reading { ahead, ..facts.reading.clone() },
            flushing,
            ..facts.clone()
        }
    }
}

/// Of the reads, and of the pages that become dirty and are written for room, those shares are left.
fn with_larger_pool(innodb: &Innodb, pool_pages: u64, reads_left: f64, cold_left: f64) -> Innodb {
    let hot = innodb.hot_share;
    let cold = (1.0 - hot) * cold_left;
    let written_for_read =
        if reads_left > 0.0 { innodb.written_for_read * cold_left / reads_left } else { 0.0 };
    let cold_pages = written_for_read.min(1.0) * pool_pages as f64;
    Innodb {
        buffer_pool_pages: pool_pages,
        hot_share: if hot + cold > 0.0 { hot / (hot + cold) } else { hot },
        written_for_read,
        usual_cold_pages: cold_pages,
        first_cold_pages: cold_pages as u64,
        ..innodb.clone()
    }
}

/// How old a change becomes that nothing else has written, for the room in the log.
fn oldest_change_s(source: &Source<'_>) -> f64 {
    let Rules::Innodb(rules) = &source.paging.rules else { return f64::INFINITY };
    let log_bytes_per_s = source.paging.log_bytes / source.measurement.duration_s;
    rules.oldest_change_bytes(source.paging.page_bytes) / log_bytes_per_s
}

#[cfg(test)]
mod tests {
    use spindle_model::{Instant, Rng};
    use spindle_twin::trace::{Midpoint, PageUse};

    use super::*;

    #[test]
    fn a_part_of_twice_the_pool_has_a_part_of_its_effect() {
        let mut rng = Rng::new(1);
        let mut page_use = |now| PageUse { page: rng.below(2_000), at: Instant(now), is_write: now % 3 == 0 };
        let followed = Followed::of(&(0..20_000).map(&mut page_use).collect::<Vec<_>>());
        let rule = Midpoint { older_share: 0.37, not_within_s: 0.0 };
        let memory = Memory {
            curve: MissCurve::of(&followed).expect("pages are read again"),
            followed,
            oldest_change_ns: 1e9,
            pool_pages: 500,
            page_bytes: 1,
            list: List::Midpoint(MidpointList { rule, pages: 400.0, never_leave: 0.0 }),
        };
        let left = |pool_bytes| {
            let Larger { reads_left, writes_left, .. } = memory.larger(pool_bytes);
            [reads_left, writes_left]
        };
        assert_eq!(left(500), [1.0, 1.0]);
        let (half, twice, more) = (left(750), left(1_000), left(1_200));
        for what in 0..2 {
            let of = |left: [f64; 2]| left[what];
            assert!(
                1.0 > of(half) && of(half) > of(twice) && of(twice) > of(more),
                "{half:?} {twice:?} {more:?}"
            );
            assert!((of(half).powi(2) - of(twice)).abs() < 1e-9, "{half:?} {twice:?}");
        }
    }
}
