//! Waits of a database engine inside this process, by a stopwatch in the engine. The engine works on the
//! thread of its client, so each thread counts its own.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Waits of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// From the decision to commit until the engine returned.
    pub commit: Duration,
    /// Sleeps while another connection had the lock.
    pub lock: Duration,
}

thread_local! {
    static WAITS: Cell<Option<Waits>> = const { Cell::new(None) };
    static COMMITTING_SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The waits of this thread since the last call; `None` without an engine on this thread.
pub fn take() -> Option<Waits> {
    let waits = WAITS.take();
    WAITS.set(waits.map(|_| Waits::default()));
    waits
}

/// This thread has an engine with a stopwatch.
pub(super) fn begin() {
    WAITS.set(Some(WAITS.get().unwrap_or_default()));
}

/// Called by the engine before its first write of a commit.
pub(super) fn commit_begins() {
    COMMITTING_SINCE.set(COMMITTING_SINCE.get().or_else(|| Some(Instant::now())));
}

fn change(change: impl FnOnce(&mut Waits)) {
    if let Some(mut waits) = WAITS.get() {
        change(&mut waits);
        WAITS.set(Some(waits));
    }
}

/// Ends the commit of a statement, if it had one, when the statement has ended.
#[derive(Debug)]
pub(super) struct CommitEnd;

impl Drop for CommitEnd {
    fn drop(&mut self) {
        if let Some(since) = COMMITTING_SINCE.take() {
            change(|waits| waits.commit += since.elapsed());
        }
    }
}

/// Sleeps for this long because of another connection's lock.
pub(super) fn sleep_for_lock(duration: Duration) {
    let before = Instant::now();
    std::thread::sleep(duration);
    change(|waits| waits.lock += before.elapsed());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_without_an_engine_has_no_waits() {
        sleep_for_lock(Duration::from_millis(1));
        assert_eq!(take(), None);
        begin();
        commit_begins();
        drop(CommitEnd);
        sleep_for_lock(Duration::from_millis(2));
        let waits = take().unwrap();
        assert!(waits.lock >= Duration::from_millis(2), "{waits:?}");
        assert_eq!(take(), Some(Waits::default()));
    }
}
