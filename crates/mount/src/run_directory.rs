//! The directory with the state of all disks. What is up is found in it after a crash of any part.

use std::env;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use spindle_base::Mistake;

/// Directory about real disks. No disk can have this name.
pub(crate) const REAL: &str = "real";

/// The directory with the state of all disks: `/run/spindle`, or `$SPINDLE_RUN_DIRECTORY`.
pub(crate) fn run_directory() -> PathBuf {
    env::var_os("SPINDLE_RUN_DIRECTORY").map_or_else(|| PathBuf::from("/run/spindle"), PathBuf::from)
}

/// The state directory of the disk with that name.
///
/// # Errors
/// The name could leave the run directory, or is that of our own directory in it: a [`Mistake`].
pub fn state_directory(name: &str) -> Result<PathBuf> {
    let allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    let refused = |why: &str| Mistake::new(format!("a disk cannot be called {name:?}: {why}"));
    let fits = !name.is_empty() && !name.starts_with('.') && name.len() <= 64 && name.chars().all(allowed);
    ensure!(fits, refused("use up to 64 letters, digits, `-`, `_` and `.`"));
    ensure!(name != REAL, refused("the directory about real disks has that name"));
    Ok(run_directory().join(name))
}
