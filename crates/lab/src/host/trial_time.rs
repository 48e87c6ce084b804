//! The time of a trial. Devices, servers and clients live in dilated time; this process keeps the real one.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use spindle_base::dilation::{Clock, Dilation, VARIABLE};

/// The preload library, `crates/dilate`.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libspindle_dilate.so"));

/// Environment variables of a process.
pub type Environment = Vec<(&'static str, OsString)>;

#[derive(Debug, Clone)]
pub struct TrialTime {
    pub clock: Clock,
    /// Where the preload library lies; `None` if nothing is dilated.
    library: Option<PathBuf>,
}

impl TrialTime {
    /// Time as it is.
    pub fn real() -> TrialTime {
        TrialTime { clock: Clock::start(Dilation::NONE), library: None }
    }

    /// Begins now. The directory must be one that the users of all servers may enter.
    ///
    /// # Errors
    /// The preload library cannot be written.
    pub fn start(dilation: Dilation, directory: &Path) -> Result<TrialTime> {
        let mut time = TrialTime { clock: Clock::start(dilation), library: None };
        if !dilation.is_none() {
            time.library = Some(write_library(directory)?);
        }
        Ok(time)
    }

    /// What puts a process, and those that it starts, into this time.
    pub fn environment(&self) -> Environment {
        let Some(library) = &self.library else { return Environment::new() };
        let mut preloaded = OsString::from(library);
        // A library of the user's own, such as another allocator, stays.
        if let Some(theirs) = std::env::var_os("LD_PRELOAD").filter(|theirs| !theirs.is_empty()) {
            preloaded.push(":");
            preloaded.push(theirs);
        }
        vec![("LD_PRELOAD", preloaded), (VARIABLE, self.clock.environment().into())]
    }

    /// See [`Dilation::patience`].
    pub fn patience(&self, dilated: Duration) -> Duration {
        self.clock.dilation.patience(dilated)
    }

    /// How long to wait in real time for something that takes this long in the trial's.
    pub fn real_time_of(&self, dilated: Duration) -> Duration {
        self.clock.dilation.real(dilated)
    }
}

/// Writes the library once.
fn write_library(directory: &Path) -> Result<PathBuf> {
    let path = directory.join("libspindle_dilate.so");
    if !path.exists() {
        let writing = || format!("writing {}", path.display());
        fs::write(&path, LIBRARY).with_context(writing)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).with_context(writing)?;
    }
    Ok(path)
}
