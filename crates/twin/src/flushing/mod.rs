//! How changed pages reach the storage, by the rules of each server.
//!
//! One file per rule. A rule owns the list of dirty pages, and says what to write next; it knows no drive and
//! no terminal.

mod innodb;
mod throttle;
mod writeback;

pub use innodb::{Innodb, InnodbRules, Neighbors, Part, Recording};
pub use writeback::{BackgroundWriting, Writeback};

use crate::draw::Draws;
use crate::facts::{Access, Mount, Places};
use innodb::Cleaner;
pub(crate) use throttle::{Seen, Throttle};
use writeback::Writer;

/// Steps in which a rule sees time pass.
pub(crate) const TICKS_PER_SECOND: u64 = 10;

/// The rule of a server, with what it needs to know.
#[derive(Debug, Clone, PartialEq)]
pub enum Flushing {
    /// A page cleaner with a doublewrite buffer, adaptive to the age of the checkpoint.
    Innodb(Innodb),
    /// The kernel's page cache takes the pages and writes them in the background.
    Writeback(Writeback),
}

impl Flushing {
    /// The server's own writing by time, and the share of it that it does.
    pub(crate) fn background(&self) -> Option<(BackgroundWriting, f64)> {
        match self {
            Flushing::Innodb(_) => None,
            Flushing::Writeback(writeback) => Some((writeback.background, writeback.background_share)),
        }
    }

    /// The mounts that are written.
    pub(crate) fn mounts(&self) -> Vec<usize> {
        match self {
            Flushing::Innodb(innodb) => vec![innodb.mount, innodb.log.mount, innodb.doublewrite.mount],
            Flushing::Writeback(writeback) => vec![writeback.mount],
        }
    }
}

/// What is sent next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Phase {
    Write {
        mount: usize,
        access: Access,
    },
    /// Writes that are sent together.
    Batch {
        mount: usize,
        accesses: Vec<Access>,
    },
    Flush {
        mount: usize,
    },
}

/// A rule at work.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one of them in a simulation")]
pub(crate) enum Flusher {
    Innodb(Cleaner),
    Writeback(Writer),
}

impl Flusher {
    /// `first_write` is the number of the first page write in a recording.
    pub(crate) fn new(
        flushing: &Flushing,
        first_write: u64,
        mounts: &[Mount],
        places: &Places,
        draws: &mut Draws,
    ) -> Flusher {
        match flushing {
            Flushing::Innodb(innodb) => {
                let rotates = mounts[innodb.mount].rotates;
                Flusher::Innodb(Cleaner::new(innodb.clone(), first_write, rotates))
            }
            Flushing::Writeback(writeback) => {
                let Mount { rotates, has_volatile_cache, .. } = mounts[writeback.mount];
                let throttle = Throttle::new(rotates, has_volatile_cache);
                Flusher::Writeback(Writer::new(*writeback, places, draws, throttle))
            }
        }
    }

    /// A transaction made that many clean pages dirty. `log_end` is the end of the log, in bytes.
    pub(crate) fn changed(&mut self, log_end: f64, pages: u64, draws: &mut Draws) {
        match self {
            Flusher::Innodb(cleaner) => cleaner.changed(log_end, pages),
            Flusher::Writeback(writer) => writer.changed(pages, draws),
        }
    }

    /// The server's background writer asks the kernel to write these pages now.
    pub(crate) fn ask_for(&mut self, pages: Vec<Access>) {
        if let Flusher::Writeback(writer) = self {
            writer.ask_for(pages);
        }
    }

    /// The server reads from this mount through the page cache.
    pub(crate) fn read(&mut self, mount: usize, bytes: u64) {
        if let Flusher::Writeback(writer) = self
            && writer.mount() == mount
        {
            writer.read(bytes);
        }
    }

    /// Whether pages that were asked for are not on their way yet.
    pub(crate) fn is_asked(&self) -> bool {
        match self {
            Flusher::Innodb(_) => false,
            Flusher::Writeback(writer) => writer.is_asked(),
        }
    }

    /// A read takes a clean page. `false` if it has to wait until dirty ones are written.
    pub(crate) fn takes_page(&mut self) -> bool {
        match self {
            Flusher::Innodb(cleaner) => cleaner.takes_page(),
            Flusher::Writeback(_) => true,
        }
    }

    /// Whether a transaction that writes has to wait before it begins.
    pub(crate) fn is_full(&self, log_end: f64) -> bool {
        match self {
            Flusher::Innodb(cleaner) => cleaner.is_full(log_end),
            Flusher::Writeback(writer) => writer.is_full(),
        }
    }

    /// So many times a second as [`TICKS_PER_SECOND`] says.
    pub(crate) fn tick(&mut self) {
        match self {
            Flusher::Innodb(cleaner) => cleaner.tick(),
            Flusher::Writeback(writer) => writer.tick(),
        }
    }

    /// Whether the next phase can begin while so many of its requests are under way. InnoDB's waits for all of them.
    pub(crate) fn sends_beside(&mut self, under_way: u64) -> bool {
        match self {
            Flusher::Innodb(_) => under_way == 0,
            Flusher::Writeback(writer) => writer.throttle().lets_through(under_way),
        }
    }

    /// What holds buffered writes to this mount back. InnoDB's go past the page cache (`O_DIRECT`).
    pub(crate) fn throttle(&mut self, mount: usize) -> Option<&mut Throttle> {
        match self {
            Flusher::Writeback(writer) if writer.mount() == mount => Some(writer.throttle()),
            _ => None,
        }
    }

    /// What to do next. `None` until more is to be written.
    pub(crate) fn next(&mut self, log_end: f64, places: &Places, draws: &mut Draws) -> Option<Phase> {
        match self {
            Flusher::Innodb(cleaner) => cleaner.next(log_end, places, draws),
            Flusher::Writeback(writer) => writer.next(),
        }
    }
}
