//! The kernel's own threads on the path of a request.
//!
//! The loop driver hands every request to a kernel worker of normal priority. While the database keeps all
//! cores busy, such a worker waits for its turn (up to a time slice, 3 ms). No real drive causes that wait.
//! So the workers of our loop device get the real-time priority of the receiving threads. They are recognised
//! by the name that the kernel gives them while they work for a device. Their priority is reset when the disk
//! goes down.

use std::path::Path;

use spindle_base::proc;

use crate::realtime::{self, RECEIVING};

/// Gives real-time priority to the workers that serve this loop device now. New ones appear at any time, so
/// call it repeatedly.
pub(crate) fn hurry(device: &Path) {
    let Some(device) = device.file_name().and_then(|name| name.to_str()) else { return };
    for (process, name) in unbound_workers() {
        if name.rsplit(['-', '+']).next() == Some(device) && realtime::fifo_priority(process).is_none() {
            realtime::set_fifo_of(process, RECEIVING);
        }
    }
}

/// Resets the priority of all workers that have the one of [`hurry`], including those of emulators killed
/// since.
pub(crate) fn relax() {
    for (process, _) in unbound_workers() {
        if realtime::fifo_priority(process) == Some(RECEIVING) {
            realtime::set_other(process);
        }
    }
}

/// Process ids and names of the kernel's workers that are not bound to a core (workqueue.rst).
fn unbound_workers() -> impl Iterator<Item = (u32, String)> {
    proc::processes().filter_map(|process| {
        let name = proc::name(process)?;
        name.starts_with("kworker/u").then_some((process, name))
    })
}
