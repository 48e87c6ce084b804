//! The memory of a trial's servers where the scenario limits it: a control group for each of them.
//!
//! A database is loaded outside of the groups, and a trial's storage is mounted anew, so the page cache of a
//! group begins empty and holds only what its own server has touched.

use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result};

use crate::host::control_group::MemoryGroup;

/// The groups of the first server and of the further ones; empty without a limit.
#[derive(Debug)]
pub(in crate::run) struct ServerMemory(Vec<MemoryGroup>);

impl ServerMemory {
    pub(super) fn of(limit_bytes: Option<u64>, server_count: usize) -> Result<ServerMemory> {
        let limited = limit_bytes.into_iter().flat_map(|bytes| (0..server_count).map(move |at| (at, bytes)));
        let groups = limited.map(|(number, bytes)| MemoryGroup::make(Path::new("/"), number, bytes));
        let groups: Result<Vec<MemoryGroup>> = groups.collect();
        groups.map(ServerMemory).context("limiting the memory of the server")
    }

    /// The group that a server's processes enter. The first is number 0.
    pub(in crate::run) fn group(&self, server: usize) -> Option<PathBuf> {
        self.0.get(server).map(|group| group.directory().to_owned())
    }

    /// # Errors
    /// The kernel killed a process of a server for lack of memory.
    pub(super) fn check(&self) -> Result<()> {
        self.0.iter().enumerate().try_for_each(|(number, group)| match number {
            0 => group.check(),
            _ => group.check().with_context(|| format!("server {}", number + 1)),
        })
    }

    /// The error that was noticed, behind its cause if that is the limit.
    pub(super) fn cause(&self, noticed: Error) -> Error {
        match self.check() {
            Ok(()) => noticed,
            Err(limit) => noticed.context(format!("{limit:#}")),
        }
    }

    /// # Errors
    /// Processes of a server are left.
    pub(super) fn remove(self) -> Result<()> {
        self.0.into_iter().try_for_each(MemoryGroup::remove)
    }
}
