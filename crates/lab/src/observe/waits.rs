//! What the threads of a server wait for in the kernel, from looks at all of them (`/proc/PID/task/TID/syscall` and
//! `wchan`, proc(5)). No counter has these waits: a session of PostgreSQL reads through the kernel's page cache, which
//! reads more than it was asked for, and nobody tells for which of the device's reads somebody waited.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spindle_base::proc::{self, Wait};

use crate::server::telemetry::IsSession;

/// Reading: mean number of threads that wait for the lock of a file.
pub const FILE_LOCK_WAITERS: &str = "file_lock_waiters";
/// Reading: mean number of sessions that wait for a page that they read.
pub const READ_WAITERS: &str = "read_waiters";

/// Time between two looks. Each costs some ten microseconds a thread.
const STEP: Duration = Duration::from_millis(200);

/// The processes of a server.
#[derive(Debug, Clone, Copy)]
pub struct Watched {
    /// Zero where there is none of ours.
    pub server_id: u32,
    /// For a server with a process for each client; otherwise all threads count, and their reads are the server's to
    /// count.
    pub is_session: Option<IsSession>,
}

/// Numbers of threads.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Waits {
    pub file_locks: f64,
    /// `None` where sessions are not told from other threads.
    pub reads: Option<f64>,
}

impl Waits {
    /// One look. `sessions` keeps what is known of the server's processes from look to look. `None` where the kernel lets nobody look.
    pub fn look(watched: Watched, sessions: &mut BTreeMap<u32, bool>) -> Option<Waits> {
        if watched.server_id == 0 {
            return None;
        }
        // The title is read once: it lies in the memory of the process, and may let a reader wait.
        let mut is_wanted = |process: u32| match watched.is_session {
            Some(is_session) => {
                *sessions.entry(process).or_insert_with(|| is_session(&proc::command_line(process)))
            }
            None => true,
        };
        let waits = proc::family_waits(watched.server_id, &mut is_wanted)?;
        // On XFS (fs/xfs/xfs_inode.c); the kernel's other file systems give this wait no name of their own.
        let is_lock = |wait: &&Wait| wait.function == "xfs_ilock";
        let reads = waits.iter().filter(|wait| wait.is_read && !is_lock(wait)).count();
        Some(Waits {
            file_locks: waits.iter().filter(is_lock).count() as f64,
            reads: watched.is_session.map(|_| reads as f64),
        })
    }

    pub fn readings(self) -> impl Iterator<Item = (String, f64)> {
        let reads = self.reads.map(|reads| (READ_WAITERS.to_owned(), reads));
        [(FILE_LOCK_WAITERS.to_owned(), self.file_locks)].into_iter().chain(reads)
    }
}

/// Looks at a server five times a second, from a thread of its own.
#[derive(Debug)]
pub struct Lookout {
    seen: Arc<Mutex<Vec<Waits>>>,
    has_ended: Arc<AtomicBool>,
}

impl Lookout {
    pub fn begin(watched: Watched) -> Lookout {
        let lookout = Lookout { seen: Arc::default(), has_ended: Arc::default() };
        let (seen, has_ended) = (Arc::clone(&lookout.seen), Arc::clone(&lookout.has_ended));
        // Nobody waits for its end: a process that its disk keeps may keep it too.
        std::thread::spawn(move || {
            let mut sessions = BTreeMap::new();
            while !has_ended.load(Ordering::Relaxed) {
                if let Some(waits) = Waits::look(watched, &mut sessions) {
                    seen.lock().unwrap_or_else(PoisonError::into_inner).push(waits);
                }
                std::thread::sleep(STEP);
            }
        });
        lookout
    }

    /// The mean of the looks since the last call. `None` without any.
    pub fn take(&self) -> Option<Waits> {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        let mean = |values: Vec<f64>| spindle_stats::mean(&values);
        Some(Waits {
            file_locks: mean(seen.iter().map(|waits| waits.file_locks).collect())?,
            reads: mean(seen.iter().filter_map(|waits| waits.reads).collect()),
        })
    }
}

impl Drop for Lookout {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }
}
