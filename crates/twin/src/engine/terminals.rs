//! A terminal, and the way of a transaction through the database.

use std::collections::VecDeque;

use spindle_model::Instant;

/// What a terminal waits for; the time goes to one field of [`super::Waits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    Idle,
    Cpu,
    Read,
    Lock,
    File,
    Commit,
    Flushing,
}

#[derive(Debug, Clone)]
pub(super) struct Terminal {
    pub(super) waiting: Waiting,
    /// Since when it waits for that.
    pub(super) since: Instant,
    /// Its transaction; the last one's while it is idle.
    pub(super) work: Work,
}

/// What is left of a transaction.
#[derive(Debug, Clone, Default)]
pub(super) struct Work {
    pub(super) kind: usize,
    /// When it was to begin.
    pub(super) intended: Instant,
    pub(super) reads_left: u64,
    /// Pages of the file that many use, to make room.
    pub(super) file_writes_left: u64,
    /// Of each of its bursts, one before each read, each such write, and the commit.
    pub(super) burst_ns: u64,
    pub(super) log_bytes: f64,
    pub(super) dirtied_pages: u64,
    pub(super) row: Row,
    /// Whether its read is one of that file.
    pub(super) reads_file: bool,
}

/// The row that many change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Row {
    /// It takes none.
    #[default]
    None,
    /// It takes that row when it has so many reads left.
    Later {
        row: usize,
        at_reads_left: u64,
    },
    Held(usize),
}

impl Terminal {
    pub(super) fn idle() -> Terminal {
        Terminal { waiting: Waiting::Idle, since: Instant::ZERO, work: Work::default() }
    }
}

/// Terminals in line for something, the first in front.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// For a clean page.
    pub(super) pages: VecDeque<usize>,
    /// For room in the log.
    pub(super) room: VecDeque<usize>,
    /// For a transaction.
    pub(super) idle: VecDeque<usize>,
    /// Intended starts of transactions that found no terminal idle.
    pub(super) backlog: VecDeque<Instant>,
}
