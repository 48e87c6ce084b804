//! Draws transactions and the places of their reads.

use super::terminals::{Row, Work};
use crate::draw::Draws;
use crate::facts::{Access, Ahead, Facts};
use spindle_model::Instant;

#[derive(Debug)]
pub(super) struct Generator {
    pub(super) draws: Draws,
    weights: Vec<f64>,
    read_number: u64,
    ahead_number: u64,
    /// Number of the first page write.
    pub(super) first_write: u64,
}

impl Generator {
    pub(super) fn new(facts: &Facts, seed: u64) -> Generator {
        let mut draws = Draws::new(seed);
        // A recording starts anywhere, so that two seeds are two histories, and its reads and writes at the same time:
        // much of what is read was written a short while ago.
        let share = draws.below(1 << 32) as f64 / (1_u64 << 32) as f64;
        let weights = facts.kinds.iter().map(|kind| kind.weight).collect();
        Generator {
            draws,
            weights,
            read_number: facts.places.reads.at(share),
            ahead_number: 0,
            first_write: facts.places.writes.at(share),
        }
    }

    pub(super) fn transaction(&mut self, facts: &Facts, intended: Instant) -> Work {
        let draws = &mut self.draws;
        let index = draws.weighted(&self.weights);
        let kind = &facts.kinds[index];
        let reads = draws.poisson(kind.reads);
        // As many bursts as the mean transaction of its kind has reads, so that its cores' time stays the mean.
        let cpu_ns = kind.cpu_ns * (reads as f64 + 1.0) / (kind.reads + 1.0);
        let writes_per_read = facts.hot_file.map_or(0.0, |file| file.share * file.writes_per_read);
        let file_writes = draws.rounded(reads as f64 * writes_per_read);
        let row = match facts.locks {
            Some(locks) if kind.takes_lock => Row::Later {
                row: usize::try_from(draws.below(locks.row_count)).expect("a row in memory"),
                at_reads_left: (reads as f64 * (1.0 - locks.taken_after)) as u64,
            },
            _ => Row::None,
        };
        Work {
            kind: index,
            intended,
            reads_left: reads,
            file_writes_left: file_writes,
            burst_ns: (cpu_ns / ((reads + file_writes) as f64 + 1.0)) as u64,
            log_bytes: kind.log_bytes,
            dirtied_pages: draws.rounded(kind.dirtied_pages),
            row,
            reads_file: false,
        }
    }

    /// Whether the next read or write is of the file that many use.
    pub(super) fn uses_file(&mut self, facts: &Facts) -> bool {
        facts.hot_file.is_some_and(|file| self.draws.rounded(file.share) > 0)
    }

    /// Whether the next of so many reads and so many writes of that file, which are in no order, is a write.
    pub(super) fn writes_file_next(&mut self, reads: u64, writes: u64) -> bool {
        writes > 0 && self.draws.below(reads + writes) < writes
    }

    /// The place of the next read on which a terminal waits, and those of the read-ahead behind it.
    pub(super) fn read(&mut self, facts: &Facts) -> (Access, Vec<Access>) {
        let reads = &facts.places.reads;
        let number = self.read_number;
        self.read_number += 1;
        let access = reads.place(number, self.draws.any());
        let behind = match &facts.reading.ahead {
            Ahead::Traced(ahead) => {
                ahead[reads.index(number)].iter().map(|access| reads.again(number, *access)).collect()
            }
            Ahead::Counted { .. } => Vec::new(),
        };
        (access, behind)
    }

    /// Requests of read-ahead for one transaction, besides those behind its reads.
    pub(super) fn reads_ahead(&mut self, facts: &Facts) -> Vec<Access> {
        let Ahead::Counted { requests, pages } = facts.reading.ahead else { return Vec::new() };
        let mut accesses = Vec::new();
        for _ in 0..self.draws.poisson(requests) {
            let access = facts.places.reads.place(self.ahead_number, self.draws.any());
            self.ahead_number += 1;
            let size_bytes = (pages * facts.reading.page_bytes as f64) as u64;
            accesses.push(Access { size_bytes, ..access });
        }
        accesses
    }
}
