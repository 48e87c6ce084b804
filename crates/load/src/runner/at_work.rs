//! The number of terminals at work. Further ones are connected, and wait.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct AtWork {
    count: AtomicU32,
    /// Guards no data; a terminal that waits holds it between its look and its sleep.
    lock: Mutex<()>,
    changed: Condvar,
}

impl AtWork {
    pub(super) fn new(count: u32) -> AtWork {
        AtWork { count: AtomicU32::new(count), lock: Mutex::new(()), changed: Condvar::new() }
    }

    pub(super) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, count: u32) {
        let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.count.store(count, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Whether the terminal of this number is at work. If not, it has waited for that, at most for so long.
    pub(super) fn is_called(&self, terminal: u32, longest: Duration) -> bool {
        if terminal < self.count() {
            return true;
        }
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if terminal >= self.count() {
            drop(self.changed.wait_timeout(guard, longest).unwrap_or_else(PoisonError::into_inner));
        }
        false
    }
}
