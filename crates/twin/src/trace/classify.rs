//! The writes of a block trace by their purpose. A trace has no file names, but purposes have shapes:
//!
//! * A log continues where it ended, after a FLUSH. Its last block may be written again. A disk without a volatile cache
//!   gets no FLUSH; there the next write of a log comes later than at once, because it waits for the one before it.
//! * A doublewrite buffer is written at the same place again and again, many pages at once.
//! * A new file of a log is filled with zeroes first: large writes that continue each other for megabytes.
//! * What is left are pages of the data.
//!
//! Of the reads, those are read-ahead that follow the read before them at once and begin close behind it: a thread
//! that waits for its page sends no second read meanwhile.

use std::collections::BTreeMap;

use spindle_model::{Instant, Operation, Traced};

use crate::facts::{Access, Region};

/// The requests of one disk by purpose.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Classified {
    pub reads: Vec<Access>,
    /// For each of the reads, whether nobody waits for it.
    pub are_ahead: Vec<bool>,
    pub page_writes: Vec<Access>,
    /// The log with the most writes.
    pub log: Option<Region>,
    pub log_writes: u64,
    pub doublewrite: Option<Region>,
    pub doublewrites: u64,
    /// Bytes of zeroes in new files of a log.
    pub filled_bytes: u64,
    pub flushes: u64,
}

/// A write that others may continue.
#[derive(Debug)]
struct Chain {
    begin: u64,
    last_offset: u64,
    end: u64,
    flushes_before: u64,
    last_at: Instant,
    writes: Vec<usize>,
}

/// Chains that are looked at for each write.
const OPEN_CHAINS: usize = 128;
/// Longer than the kernel takes from one of several requests to the next, shorter than a drive for a page.
const AT_ONCE_NS: u64 = 50_000;
/// A log has at least that many writes one after the other.
const LOG_WRITES_LEAST: usize = 8;
/// Writes to one place that make a doublewrite buffer, and the least size of each.
const DOUBLEWRITES_LEAST: u64 = 3;
const DOUBLEWRITE_BYTES_LEAST: u64 = 128 << 10;
/// Of each write that fills a file, and of all of them: PostgreSQL's files have 16 MiB (`wal_segment_size`), which a file system may
/// have in two places.
const FILL_WRITE_BYTES_LEAST: u64 = 256 << 10;
const FILL_BYTES_LEAST: u64 = 4 << 20;

pub fn classify(requests: &[Traced]) -> Classified {
    let mut found = Classified::default();
    let of = |operation| requests.iter().filter(move |request| request.operation == operation);
    found.reads = of(Operation::Read).map(access).collect();
    found.are_ahead = are_ahead(&of(Operation::Read).collect::<Vec<_>>());
    found.flushes = of(Operation::Flush).count() as u64;
    let purposes = purposes(requests);
    let writes_of = |wanted: Purpose| -> Vec<Access> {
        let all = requests.iter().zip(&purposes);
        all.filter(|(request, purpose)| request.operation == Operation::Write && **purpose == wanted)
            .map(|(request, _)| access(request))
            .collect()
    };
    // What is left out is another log: a file system's journal, a binary log.
    found.page_writes = writes_of(Purpose::Page);
    let log = writes_of(Purpose::Log);
    (found.log_writes, found.log) = (log.len() as u64, Region::around(&log));
    let doublewrites = writes_of(Purpose::Doublewrite);
    (found.doublewrites, found.doublewrite) = (doublewrites.len() as u64, Region::around(&doublewrites));
    found.filled_bytes = writes_of(Purpose::Fill).iter().map(|access| access.size_bytes).sum();
    found
}

/// A page that was read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageUse {
    pub page: u64,
    pub at: Instant,
    pub is_write: bool,
}

/// All uses of the data's pages.
pub fn page_uses(requests: &[Traced], page_bytes: u64) -> Vec<PageUse> {
    let purposes = purposes(requests);
    let of_data = requests.iter().zip(&purposes).filter(|(request, purpose)| match request.operation {
        Operation::Read => true,
        Operation::Write => **purpose == Purpose::Page,
        _ => false,
    });
    let uses = of_data.flat_map(|(request, _)| {
        let first = request.offset_bytes / page_bytes;
        let is_write = request.operation == Operation::Write;
        let pages = first..first + request.size_bytes.div_ceil(page_bytes);
        pages.map(move |page| PageUse { page, at: request.at, is_write })
    });
    uses.collect()
}

fn are_ahead(reads: &[&Traced]) -> Vec<bool> {
    /// `read_ahead_kb` of a block device (Documentation/ABI/stable/sysfs-block).
    const WINDOW_BYTES: u64 = 128 << 10;
    let follows = |(before, read): (&&Traced, &&Traced)| {
        let behind = read.offset_bytes.checked_sub(before.offset_bytes + before.size_bytes);
        read.at.0 - before.at.0 < AT_ONCE_NS && behind.is_some_and(|behind| behind < WINDOW_BYTES)
    };
    let first = reads.first().map(|_| false);
    first.into_iter().chain(reads.iter().zip(reads.iter().skip(1)).map(follows)).collect()
}

impl Classified {
    /// The reads that somebody waits for, and behind each of them those of the kernel's read-ahead. `share` is the part
    /// of the reads that is waited for, where it is known: fewer or more than those that look so, evenly.
    pub fn waited_reads(&self, share: Option<f64>) -> (Vec<Access>, Vec<Vec<Access>>) {
        let all = self.reads.len();
        let likely = self.are_ahead.iter().filter(|is_ahead| !**is_ahead).count();
        let wanted = share.map_or(likely, |share| (share * all as f64).round() as usize);
        let mut taken = EvenPart::new(wanted, likely);
        let mut added = EvenPart::new(wanted.saturating_sub(likely), all - likely);
        let mut waited = Vec::new();
        let mut ahead: Vec<Vec<Access>> = Vec::new();
        for (read, is_ahead) in self.reads.iter().zip(&self.are_ahead) {
            let is_waited = if *is_ahead { added.has_next() } else { taken.has_next() };
            match ahead.last_mut() {
                Some(behind) if !is_waited => behind.push(*read),
                _ => {
                    waited.push(*read);
                    ahead.push(Vec::new());
                }
            }
        }
        (waited, ahead)
    }
}

/// So many of so many, at even distances.
#[derive(Debug)]
struct EvenPart {
    wanted: usize,
    of: usize,
    sum: usize,
}

impl EvenPart {
    fn new(wanted: usize, of: usize) -> EvenPart {
        let wanted = wanted.min(of);
        // The first is taken, if any is.
        EvenPart { wanted, of, sum: of - wanted }
    }

    fn has_next(&mut self) -> bool {
        self.sum += self.wanted;
        let is_due = self.wanted > 0 && self.sum >= self.of;
        self.sum -= if is_due { self.of } else { 0 };
        is_due
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Page,
    Log,
    Journal,
    Doublewrite,
    Fill,
}

fn access(request: &Traced) -> Access {
    Access { offset_bytes: request.offset_bytes, size_bytes: request.size_bytes }
}

/// Of each request that is a write.
fn purposes(requests: &[Traced]) -> Vec<Purpose> {
    let mut purposes: Vec<Purpose> = vec![Purpose::Page; requests.len()];
    // First, because on a slow drive without a volatile cache they look like a log.
    mark_fills(requests, &mut purposes);
    for (number, log) in logs(requests, &purposes).iter().enumerate() {
        let purpose = if number == 0 { Purpose::Log } else { Purpose::Journal };
        log.writes.iter().for_each(|index| purposes[*index] = purpose);
    }
    mark_doublewrites(requests, &mut purposes);
    purposes
}

/// Chains that are long enough for a log, joined where one ends near the begin of another; that with the most
/// writes first.
fn logs(requests: &[Traced], purposes: &[Purpose]) -> Vec<Chain> {
    let mut open: Vec<Chain> = Vec::new();
    let mut ended: Vec<Chain> = Vec::new();
    let mut flushes = 0;
    let has_flushes = requests.iter().any(|request| request.operation == Operation::Flush);
    for (index, request) in requests.iter().enumerate() {
        match request.operation {
            Operation::Flush => flushes += 1,
            Operation::Write if purposes[index] == Purpose::Page => {
                let Access { offset_bytes: offset, size_bytes } = access(request);
                let end = offset + size_bytes;
                let continued = open.iter().position(|chain| {
                    let is_later = match has_flushes {
                        true => flushes > chain.flushes_before,
                        false => request.at - chain.last_at >= AT_ONCE_NS,
                    };
                    (chain.last_offset..=chain.end).contains(&offset) && end >= chain.end && is_later
                });
                let mut chain = match continued {
                    Some(position) => open.remove(position),
                    None => Chain {
                        begin: offset,
                        last_offset: 0,
                        end: 0,
                        flushes_before: 0,
                        last_at: request.at,
                        writes: vec![],
                    },
                };
                chain.last_offset = offset;
                chain.end = end;
                chain.flushes_before = flushes;
                chain.last_at = request.at;
                chain.writes.push(index);
                open.push(chain);
                if open.len() > OPEN_CHAINS {
                    ended.push(open.remove(0));
                }
            }
            _ => {}
        }
    }
    ended.append(&mut open);
    ended.retain(|chain| chain.writes.len() >= LOG_WRITES_LEAST);
    joined(ended)
}

/// Chains of one log: it was interrupted where it was idle for long, or where its file began again.
fn joined(mut chains: Vec<Chain>) -> Vec<Chain> {
    const NEAR: u64 = 1 << 20;
    chains.sort_by_key(|chain| chain.begin);
    let mut logs: Vec<Chain> = Vec::new();
    for mut chain in chains {
        match logs.last_mut() {
            Some(log) if chain.begin <= log.end + NEAR => {
                log.end = log.end.max(chain.end);
                log.writes.append(&mut chain.writes);
            }
            _ => logs.push(chain),
        }
    }
    logs.sort_by_key(|log| std::cmp::Reverse(log.writes.len()));
    logs
}

fn mark_doublewrites(requests: &[Traced], purposes: &mut [Purpose]) {
    let is_large = |request: &Traced| {
        request.operation == Operation::Write && request.size_bytes >= DOUBLEWRITE_BYTES_LEAST
    };
    let mut times: BTreeMap<u64, u64> = BTreeMap::new();
    for request in requests.iter().filter(|request| is_large(request)) {
        *times.entry(request.offset_bytes).or_default() += 1;
    }
    for (request, purpose) in requests.iter().zip(purposes) {
        let repeated = times.get(&request.offset_bytes).is_some_and(|count| *count >= DOUBLEWRITES_LEAST);
        if *purpose == Purpose::Page && is_large(request) && repeated {
            *purpose = Purpose::Doublewrite;
        }
    }
}

fn mark_fills(requests: &[Traced], purposes: &mut [Purpose]) {
    let large = (0..requests.len()).filter(|index| {
        let Traced { operation, size_bytes, .. } = requests[*index];
        operation == Operation::Write && size_bytes >= FILL_WRITE_BYTES_LEAST
    });
    let large: Vec<usize> = large.collect();
    let end = |index: usize| requests[index].offset_bytes + requests[index].size_bytes;
    for run in large.chunk_by(|before, next| requests[*next].offset_bytes == end(*before)) {
        let bytes: u64 = run.iter().map(|index| requests[*index].size_bytes).sum();
        if bytes >= FILL_BYTES_LEAST {
            run.iter().for_each(|index| purposes[*index] = Purpose::Fill);
        }
    }
}

#[cfg(test)]
mod tests {
    use spindle_model::Instant;

    use super::*;

    fn request(operation: Operation, offset_bytes: u64, size_bytes: u64) -> Traced {
        Traced { at: Instant::ZERO, operation, offset_bytes, size_bytes, force_unit_access: false }
    }

    /// Twenty commits, with page writes and a batch of the doublewrite buffer between them.
    fn requests() -> Vec<Traced> {
        let mut requests = Vec::new();
        for commit in 0..20 {
            requests.push(request(Operation::Read, (7 + commit * 13) << 20, 16 << 10));
            requests.push(request(Operation::Write, (1 << 30) + commit * 1_024, 1_536));
            requests.push(request(Operation::Flush, 0, 0));
            if commit % 5 == 0 {
                requests.push(request(Operation::Write, 2 << 30, 1 << 20));
                requests.push(request(Operation::Flush, 0, 0));
                // Neighbours: one after the other, without a FLUSH between them.
                for page in 0..10 {
                    requests.push(request(
                        Operation::Write,
                        (100 << 20) + (commit * 10 + page) * 16_384,
                        16_384,
                    ));
                }
                requests.push(request(Operation::Flush, 0, 0));
            }
        }
        requests
    }

    #[test]
    fn a_read_that_follows_at_once_and_close_is_read_ahead() {
        let read = |at_us: u64, offset_kib: u64| Traced {
            at: Instant(at_us * 1_000),
            ..request(Operation::Read, offset_kib << 10, 8 << 10)
        };
        // How many reads are behind each one that is waited for.
        let behind = |reads: &[Traced], share: Option<f64>| -> Vec<usize> {
            let (waited, ahead) = classify(reads).waited_reads(share);
            assert_eq!(waited.len(), ahead.len());
            ahead.iter().map(Vec::len).collect()
        };
        assert_eq!(behind(&[read(0, 512), read(5, 520), read(9, 560), read(900, 64)], None), [2, 0]);
        let one_after_the_other = [read(0, 512), read(500, 520)];
        assert_eq!(
            behind(&one_after_the_other, None),
            [0, 0],
            "a thread had its page and asked for the next"
        );
        assert_eq!(
            behind(&[read(0, 512), read(5, 4_096), read(9, 256)], None),
            [0, 0, 0],
            "two other threads"
        );
        // Four reads of threads, each with one of read-ahead behind it.
        let pairs: Vec<Traced> = (0..4)
            .flat_map(|pair| [read(pair * 900, pair << 10), read(pair * 900 + 5, (pair << 10) + 8)])
            .collect();
        for (share, expect) in [
            (0.5, vec![1, 1, 1, 1]),
            (0.25, vec![3, 3]),
            (0.75, vec![0, 0, 1, 0, 0, 1]),
            (1.0, vec![0; 8]),
            (0.0, vec![7]),
        ] {
            assert_eq!(behind(&pairs, Some(share)), expect, "{share}");
        }
    }

    #[test]
    fn writes_are_told_apart_by_their_shapes() {
        let found = classify(&requests());
        assert_eq!([found.reads.len(), found.page_writes.len()], [20, 40]);
        assert_eq!([found.log_writes, found.doublewrites, found.flushes], [20, 4, 28]);
        assert_eq!(found.log.map(|region| region.offset_bytes), Some(1 << 30));
        assert_eq!(found.doublewrite, Some(Region { offset_bytes: 2 << 30, size_bytes: 1 << 20 }));
    }

    #[test]
    fn a_new_file_of_a_log_is_none_of_the_pages() {
        const MIB: u64 = 1 << 20;
        // A page that is written meanwhile does not end it, and one large write or two are pages side by side.
        let mut requests: Vec<Traced> = (0..16)
            .flat_map(|part| {
                let page = request(Operation::Write, (100 + part) * MIB, 8_192);
                [request(Operation::Write, (1_000 + part) * MIB, MIB), page]
            })
            .collect();
        requests.extend([2_000, 2_001, 3_000].map(|mib| request(Operation::Write, mib * MIB, MIB)));
        for after_ns in [0, 8_000_000] {
            for (number, request) in requests.iter_mut().enumerate() {
                request.at = Instant(number as u64 * after_ns);
            }
            let found = classify(&requests);
            assert_eq!((found.filled_bytes, found.page_writes.len()), (16 * MIB, 16 + 3), "{after_ns}");
        }
    }

    #[test]
    fn a_log_is_known_without_a_flush_by_its_times() {
        let at = |us: u64, request: Traced| Traced { at: Instant(us * 1_000), ..request };
        let mut without: Vec<Traced> = Vec::new();
        for commit in 0..20 {
            without.push(at(commit * 900, request(Operation::Write, (1 << 30) + commit * 1_024, 1_536)));
            // Neighbours, sent at once.
            without.extend((0..10).map(|page| {
                let offset = (100 << 20) + (commit * 10 + page) * 16_384;
                at(commit * 900 + 20 + page, request(Operation::Write, offset, 16_384))
            }));
        }
        let found = classify(&without);
        assert_eq!([found.log_writes, found.page_writes.len() as u64], [20, 200]);
        assert_eq!(found.log.map(|region| region.offset_bytes), Some(1 << 30));
    }

    #[test]
    fn an_empty_trace_has_nothing() {
        assert_eq!(classify(&[]), Classified::default());
    }
}
