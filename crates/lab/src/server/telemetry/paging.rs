//! What a server did with pages and its log over a window, in terms common to all servers, and its rules for
//! writing changed pages.

use spindle_twin::trace::Midpoint;
use spindle_twin::{BackgroundWriting, InnodbRules};

/// Counts over a window. A count that the server lacks is zero, unless it says `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct Paging {
    pub page_bytes: u64,
    /// Size of the server's own cache of pages.
    pub pool_pages: u64,
    /// The setting that sizes that cache.
    pub pool_setting: &'static str,
    /// Pages for which a session waited. `None` where the machine's page cache may have answered.
    pub foreground_reads: Option<f64>,
    /// Changed pages that were written.
    pub written_pages: f64,
    /// Those among them that were written to make room for a page that was read.
    pub written_for_room: f64,
    /// Those that the server's background writer wrote, by time. Zero for a server without one.
    pub written_by_time: f64,
    /// Bytes of changes in the log.
    pub log_bytes: f64,
    /// Writes of the log; `None` if the server does not count them.
    pub log_writes: Option<f64>,
    /// Calls of fsync for data files.
    pub data_syncs: f64,
    /// Batches of the doublewrite buffer.
    pub doublewrite_batches: f64,
    /// Whether commits that come together share a write and a flush of the logs.
    pub groups_commits: bool,
    /// `None` for a server whose cache treats all pages alike.
    pub midpoint: Option<Midpoint>,
    /// Pages that moved to the head of that cache's list. `None` if the server does not count them.
    pub moved_to_head: Option<f64>,
    pub rules: Rules,
}

/// How changed pages reach the storage.
#[derive(Debug, Clone, PartialEq)]
pub enum Rules {
    Innodb(InnodbRules),
    /// The kernel writes them in the background, and the server some of them by time.
    PageCache(BackgroundWriting),
}
