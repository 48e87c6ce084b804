//! Waits of a database engine inside this process, by a stopwatch in the engine. The engine works on the
//! thread of its client.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

thread_local! {
    /// Time in commits since the last [`take_commit`]; `None` without an engine on this thread.
    static COMMIT: Cell<Option<Duration>> = const { Cell::new(None) };
    static COMMITTING_SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sleeps of all threads while another connection had the lock. They count as they end and not with their
/// transaction, which may wait for longer than a window.
static LOCK_WAIT_NS: AtomicU64 = AtomicU64::new(0);
static HAS_ENGINE: AtomicBool = AtomicBool::new(false);

/// Time of this thread from the decision to commit until the engine returned, since the last call. `None`
/// without an engine on this thread.
pub fn take_commit() -> Option<Duration> {
    let commit = COMMIT.take();
    COMMIT.set(commit.map(|_| Duration::ZERO));
    commit
}

/// Time that the threads of this process have slept for locks. `None` without an engine in this process.
pub fn lock_wait() -> Option<Duration> {
    let wait = || Duration::from_nanos(LOCK_WAIT_NS.load(Ordering::Relaxed));
    HAS_ENGINE.load(Ordering::Relaxed).then(wait)
}

/// This thread has an engine with a stopwatch.
pub(super) fn begin() {
    HAS_ENGINE.store(true, Ordering::Relaxed);
    COMMIT.set(Some(COMMIT.get().unwrap_or_default()));
}

/// Called by the engine before its first write of a commit.
pub(super) fn commit_begins() {
    COMMITTING_SINCE.set(COMMITTING_SINCE.get().or_else(|| Some(Instant::now())));
}

/// Ends the commit of a statement, if it had one, when the statement has ended.
#[derive(Debug)]
pub(super) struct CommitEnd;

impl Drop for CommitEnd {
    fn drop(&mut self) {
        if let Some(since) = COMMITTING_SINCE.take() {
            COMMIT.set(COMMIT.get().map(|sum| sum + since.elapsed()));
        }
    }
}

/// Sleeps for this long because of another connection's lock.
pub(super) fn sleep_for_lock(duration: Duration) {
    let before = Instant::now();
    std::thread::sleep(duration);
    let slept_ns = u64::try_from(before.elapsed().as_nanos()).unwrap_or(u64::MAX);
    LOCK_WAIT_NS.fetch_add(slept_ns, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_without_an_engine_has_no_stopwatch() {
        assert_eq!(take_commit(), None);
        begin();
        commit_begins();
        std::thread::sleep(Duration::from_millis(1));
        drop(CommitEnd);
        assert!(take_commit().unwrap() >= Duration::from_millis(1));
        assert_eq!(take_commit(), Some(Duration::ZERO));
        let before = lock_wait().unwrap();
        sleep_for_lock(Duration::from_millis(2));
        assert!(lock_wait().unwrap() - before >= Duration::from_millis(2));
    }
}
