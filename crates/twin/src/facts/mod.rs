//! What is known of a database: its transactions, its log, its pages, its places on the disk.
//!
//! Times are in nanoseconds of model time, sizes in bytes, pages are the server's.

mod places;

use std::sync::Arc;

use spindle_model::Device;

pub use places::{Access, Places, Region, Stream};

use crate::flushing::Flushing;

/// A database under load, as one measured cell and the sources of its server describe it.
#[derive(Debug, Clone)]
pub struct Facts {
    pub arrivals: Arrivals,
    /// Never empty.
    pub kinds: Vec<Kind>,
    pub core_count: u64,
    /// Processor time of a second in which nothing happens: background threads, sampling. A share of one core.
    pub background_cores: f64,
    pub reading: Reading,
    pub commit: Commit,
    pub flushing: Flushing,
    /// Rows that many transactions change. `None` if the measured cell hardly waited for locks.
    pub locks: Option<Locks>,
    /// `None` if the measured cell hardly waited for a file.
    pub hot_file: Option<HotFile>,
    pub places: Places,
}

/// How transactions arrive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrivals {
    /// Each terminal starts its next transaction when the last one is answered.
    Closed { terminals: u64 },
    /// Poisson arrivals, served by at most that many connections; others wait.
    Open { per_second: f64, connections: u64 },
}

/// One type of transaction. The figures are means.
#[derive(Debug, Clone, PartialEq)]
pub struct Kind {
    pub name: String,
    /// Share of all transactions; the shares of all kinds add up to any positive number.
    pub weight: f64,
    /// Requests of reads on which the transaction waits.
    pub reads: f64,
    pub cpu_ns: f64,
    /// Bytes of the log; zero for a transaction that changes nothing and so commits without waiting.
    pub log_bytes: f64,
    /// Pages that become dirty, beyond those that were dirty before.
    pub dirtied_pages: f64,
    /// Whether it takes one of the rows of [`Locks`].
    pub takes_lock: bool,
}

/// How the data is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The mount of the data.
    pub mount: usize,
    pub page_bytes: u64,
    pub ahead: Ahead,
}

/// Reads besides those on which transactions wait.
#[derive(Debug, Clone, PartialEq)]
pub enum Ahead {
    /// The server's: so many requests for each transaction, of so many pages each.
    Counted { requests: f64, pages: f64 },
    /// The kernel's: what it sent behind each of the recorded reads on which somebody waited.
    Traced(Arc<[Vec<Access>]>),
}

impl Ahead {
    /// The part of a recording's reads on which somebody waited.
    pub fn waited_share(&self) -> f64 {
        let Ahead::Traced(ahead) = self else { return 1.0 };
        let behind: usize = ahead.iter().map(Vec::len).sum();
        ahead.len() as f64 / (ahead.len() + behind) as f64
    }
}

/// How a commit becomes durable.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// Whether the client waits for it. Otherwise the log is written and flushed once a second.
    pub is_waited_for: bool,
    /// Whether those that wait share a round of the logs. Otherwise each has its own.
    pub is_grouped: bool,
    /// Written one after the other for a group of commits: the redo log, then a binary log.
    pub stages: Vec<Stage>,
}

/// A log of a group commit: one write of all its bytes, and one FLUSH.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    pub mount: usize,
    pub region: Region,
    /// A write ends at a multiple of this.
    pub block_bytes: u64,
}

/// Rows that are changed by many transactions and locked until they commit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Locks {
    pub row_count: u64,
    /// The share of a transaction's reads that is done before it takes its row.
    pub taken_after: f64,
}

/// The file that transactions use most, where its reads and writes exclude each other: XFS lets a buffered read keep
/// the file's lock shared until its page has come, and a buffered write needs it alone (`xfs_file_buffered_read` and
/// `xfs_file_buffered_write` in fs/xfs/xfs_file.c).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HotFile {
    /// Of all reads, and of all page writes of the transactions.
    pub share: f64,
    /// Pages that a transaction writes for each page that it reads, to make room.
    pub writes_per_read: f64,
}

/// How long to simulate. The first part only brings the database into motion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub settle_ns: u64,
    pub measure_ns: u64,
    /// The window ends earlier after that many transactions.
    pub enough: u64,
    pub seed: u64,
}

/// The storage of a simulation, in the numbering of the facts' mounts.
#[derive(Debug)]
pub struct Drives {
    pub mounts: Vec<Mount>,
}

/// One block device.
#[derive(Debug)]
pub struct Mount {
    pub device: Box<dyn Device>,
    /// Whether FLUSH stops all other requests on their way to the device, as the loop driver's one worker does
    /// (lo_req_flush and loop_process_work in drivers/block/loop.c), below which every emulated disk lies.
    pub flush_stops_the_queue: bool,
    /// Whether the device has a cache that FLUSH empties. Without one the kernel sends no FLUSH
    /// (Documentation/block/writeback_cache_control.rst).
    pub has_volatile_cache: bool,
    /// Whether the kernel takes it for a drive that rotates.
    pub rotates: bool,
}

impl Facts {
    /// Of a transaction, whatever its kind.
    pub fn mean(&self, figure: impl Fn(&Kind) -> f64) -> f64 {
        let weights: f64 = self.kinds.iter().map(|kind| kind.weight).sum();
        self.kinds.iter().map(|kind| kind.weight * figure(kind)).sum::<f64>() / weights
    }

    /// # Panics
    /// There is no kind of transaction, or a mount that the drives do not have.
    pub(crate) fn check(&self, drives: &Drives) {
        assert!(!self.kinds.is_empty(), "facts without a transaction");
        assert!(self.kinds.iter().map(|kind| kind.weight).sum::<f64>() > 0.0, "kinds without a weight");
        assert!(self.core_count > 0, "facts without a core");
        let mounts = self.commit.stages.iter().map(|stage| stage.mount);
        let all = mounts.chain([self.reading.mount]).chain(self.flushing.mounts());
        assert!(all.into_iter().all(|mount| mount < drives.mounts.len()), "a mount without a drive");
    }
}
