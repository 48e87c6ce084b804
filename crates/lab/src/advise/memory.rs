//! The database with another buffer pool: fewer reads and fewer writes, by the reuse of pages in its block trace.

use spindle_base::Mistake;
use spindle_twin::trace::{Followed, MissCurve, Rewrites, page_uses};
use spindle_twin::{Ahead, Facts, Flushing, Innodb, Kind, Reading};

use super::source::Source;
use crate::record::FileClass;
use crate::server::telemetry::{Midpoint, Rules};

/// What a block trace tells of other buffer pools.
#[derive(Debug)]
pub struct Memory {
    curve: MissCurve,
    rewrites: Rewrites,
    /// After which a change is written, in the time of the trace.
    oldest_change_ns: f64,
    pool_pages: u64,
    page_bytes: u64,
    /// `None` for a server without such a list.
    list: Option<MidpointList>,
}

/// A list of pages with a midpoint, in the measured cell.
///
/// A trace of misses has pages that left the older part without another use; in a larger pool the same page is used
/// again in time, and stays for as long as the whole list lasts.
#[derive(Debug, Clone, Copy)]
struct MidpointList {
    rule: Midpoint,
    /// In the measured pool, which has other pages too.
    pages: f64,
    reads_per_s: f64,
}

impl MidpointList {
    /// `None` for another server, and where the list was not sampled.
    fn of(source: &Source<'_>) -> Option<MidpointList> {
        let rule = source.paging.midpoint?;
        let old_pages = spindle_stats::mean(source.measurement.series.server.get("old_pages")?)?;
        let reads = source.paging.foreground_reads?;
        (old_pages > 0.0).then(|| MidpointList {
            rule,
            pages: old_pages / rule.older_share,
            reads_per_s: reads / source.measurement.duration_s,
        })
    }

    /// Pages that enter before a page leaves the list, with a pool that is larger by `more` pages.
    fn turnover_pages(&self, more: f64) -> f64 {
        let pages = self.pages + more;
        let older = self.rule.older_share * pages;
        // Where time presses, no page is used again late enough to stay.
        if older >= self.reads_per_s * self.rule.not_within_s { pages } else { older }
    }
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
            curve,
            rewrites: Rewrites::of(&followed),
            oldest_change_ns: oldest_change_s(source) * 1e9,
            pool_pages: source.paging.pool_pages,
            page_bytes,
            list: MidpointList::of(source),
        })
    }

    pub fn pool_bytes(&self) -> u64 {
        self.pool_pages * self.page_bytes
    }

    /// Share of the reads that are left with a pool of that size, and whether the trace is long enough to know.
    pub fn left(&self, pool_bytes: u64) -> (f64, bool) {
        let pages = self.turnover_pages(pool_bytes);
        (self.curve.left(pages), pages <= self.curve.longest_pages())
    }

    /// Pages that enter before a page leaves a pool of that size.
    fn turnover_pages(&self, pool_bytes: u64) -> f64 {
        let more = (pool_bytes / self.page_bytes).saturating_sub(self.pool_pages) as f64;
        let measured = self.curve.turnover_pages();
        let Some(list) = &self.list else { return measured + more };
        // Twice the pool makes the whole difference; for a part of it, a part is taken.
        let part = (more / self.pool_pages as f64).min(1.0);
        measured + (list.turnover_pages(more) - measured).max(0.0) * part
    }

    /// Share of the writes for room that are left with a pool of that size.
    fn writes_left(&self, pool_bytes: u64) -> f64 {
        let pages = self.turnover_pages(pool_bytes);
        self.rewrites.left(self.curve.turnover_pages(), pages, self.oldest_change_ns)
    }

    /// The facts with a pool of that size, which is not smaller than the measured one.
    pub fn with_pool(&self, facts: &Facts, pool_bytes: u64) -> Facts {
        let (left, _) = self.left(pool_bytes);
        let (flushing, dirtied) = match &facts.flushing {
            Flushing::Innodb(innodb) => {
                let cold_left = self.writes_left(pool_bytes);
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
    use spindle_twin::trace::PageUse;

    use super::*;

    const RULE: Midpoint = Midpoint { older_share: 0.37, not_within_s: 1.0 };

    /// Misses of InnoDB's list under skewed reads. `moves`: pages of its older part are used again late enough.
    fn misses(pool: usize, moves: bool) -> Vec<PageUse> {
        let mut rng = Rng::new(1);
        let mut list: Vec<u64> = Vec::new();
        let mut missed = Vec::new();
        for _ in 0..200_000 {
            let page = rng.below(4_000).min(rng.below(4_000)).min(rng.below(4_000));
            let midpoint = list.len() - (list.len() as f64 * RULE.older_share) as usize;
            match list.iter().position(|other| *other == page) {
                Some(place) if place < midpoint || moves => {
                    list.remove(place);
                    list.insert(0, page);
                }
                Some(_) => {}
                None => {
                    missed.push(PageUse { page, at: Instant(0), is_write: false });
                    list.insert(midpoint, page);
                    list.truncate(pool);
                }
            }
        }
        missed
    }

    #[test]
    fn a_larger_list_leaves_as_many_reads_as_it_really_does() {
        const POOL: usize = 500;
        // Fewer pages are in the older part than are read in the time.
        let small = misses(POOL, false);
        let list = MidpointList { rule: RULE, pages: POOL as f64, reads_per_s: 200.0 };
        let curve = MissCurve::of(&Followed::of(&small)).expect("pages are read again");
        let rewrites = Rewrites::of(&Followed::of(&[]));
        let memory = Memory {
            curve,
            rewrites,
            oldest_change_ns: f64::INFINITY,
            pool_pages: POOL as u64,
            page_bytes: 1,
            list: Some(list),
        };
        assert_eq!(memory.left(POOL as u64), (1.0, true));
        // The larger the step, the more pages have other uses than the trace tells.
        for (times, most) in [(2, 0.15), (4, 0.3)] {
            let really = misses(times * POOL, true).len() as f64 / small.len() as f64;
            let (left, is_known) = memory.left((times * POOL) as u64);
            assert!(is_known && (left / really - 1.0).abs() < most, "{times}: {left} instead of {really}");
        }
    }
}
