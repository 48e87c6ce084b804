//! The root cause of a failure. A client reports a broken connection; the cause may be a dead server, and its
//! cause a full disk.

use std::time::Duration;

use anyhow::Error;

use crate::server::Running;
use crate::volume::mounts::Mounts;

/// Maximum time between a dying server's last closed connection and the end of its process.
const DYING_TIME: Duration = Duration::from_millis(500);

/// The last words of a dead server; otherwise the error that was noticed.
pub(super) fn of_server(noticed: Error, running: &mut dyn Running) -> Error {
    running.check_alive(DYING_TIME).err().unwrap_or(noticed)
}

/// The fault of the storage, if any; otherwise the error that was noticed. Programs that write to faulty
/// storage report it in words of their own.
pub(super) fn of_storage(noticed: Error, mounts: &mut Mounts) -> Error {
    mounts.check().err().unwrap_or(noticed)
}
