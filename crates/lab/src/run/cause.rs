//! What broke first. Whoever notices a failure is often not who failed: a client sees a connection that
//! broke, where a server died, because a disk was full.

use std::time::Duration;

use anyhow::Error;

use crate::server::Running;
use crate::volume::mounts::Mounts;

/// A server that is about to die closes its connections a moment before it is gone.
const DYING_TIME: Duration = Duration::from_millis(500);

/// What a dead server said last, in the place of what others noticed of its death.
pub(super) fn of_server(noticed: Error, running: &mut dyn Running) -> Error {
    running.check_alive(DYING_TIME).err().unwrap_or(noticed)
}

/// What is wrong with the storage, if anything is: whoever writes to it fails in words of their own.
pub(super) fn of_storage(noticed: Error, mounts: &mut Mounts) -> Error {
    mounts.check().err().unwrap_or(noticed)
}
