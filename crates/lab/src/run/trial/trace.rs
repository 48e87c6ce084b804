//! The block traces of a run: a file beside the records for each trial and mount.
//!
//! The emulator, which has the same user, writes the file. Nobody else can have prepared its name: the
//! directory is ours alone, and the file is made anew.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use spindle_base::text::plural;
use spindle_mount::trace::TraceHead;

use super::{Attempt, Laboratory};
use crate::host::private_directory::PrivateDirectory;
use crate::record::{TraceView, Trial};

pub(crate) const TRACES: &str = "traces";
const EXTENSION: &str = "trace";
/// Most letters of a cell's name in a file name, which can have 255.
const CELL_LETTERS_MOST: usize = 180;

/// The directory of a run's traces.
#[derive(Debug)]
pub(in crate::run) struct Traces {
    directory: PathBuf,
    limit_bytes: u64,
}

impl Traces {
    /// Makes the directory, if it is missing.
    pub(in crate::run) fn open(results: &Path, limit_bytes: u64) -> Result<Traces> {
        // Absolute, because the emulator is another process.
        let directory =
            std::path::absolute(results.join(TRACES)).context("looking for the working directory")?;
        PrivateDirectory::make(&directory, 0o755)?;
        Ok(Traces { directory, limit_bytes })
    }

    /// Most bytes of the requests of one trace.
    pub(in crate::run) fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// A file that does not exist. A trial that is repeated has a trace for each of its rows.
    fn new_path(&self, cell: &str, trial: u32, mount: &str) -> PathBuf {
        let mut attempt = 1;
        loop {
            let path = self.directory.join(file_name(cell, trial, mount, attempt));
            if fs::symlink_metadata(&path).is_err() {
                return path;
            }
            attempt += 1;
        }
    }
}

/// `CELL,TRIAL,MOUNT.trace`, with `+` for the `/` of the cell's name.
fn file_name(cell: &str, trial: u32, mount: &str, attempt: u32) -> String {
    let safe = |letter: char| match letter {
        '/' => '+',
        letter if letter.is_ascii_alphanumeric() || "-_.=".contains(letter) => letter,
        _ => '_',
    };
    let cell: String = cell.chars().take(CELL_LETTERS_MOST).map(safe).collect();
    let attempt = if attempt > 1 { format!(",{attempt}") } else { String::new() };
    format!("{cell},{trial},{mount}{attempt}.{EXTENSION}")
}

/// Checks before any work that an existing directory is ours.
///
/// # Errors
/// [`spindle_base::Mistake`].
pub(in crate::run) fn check_directory(results: &Path) -> Result<()> {
    PrivateDirectory::open(&results.join(TRACES)).map(drop)
}

/// Removes the traces of the records that were in this directory.
///
/// # Errors
/// A trace that cannot be removed, or a directory that is not ours.
pub(crate) fn clear(results: &Path) -> Result<()> {
    let directory = results.join(TRACES);
    if PrivateDirectory::open(&directory)?.is_none() {
        return Ok(());
    }
    let clearing = || format!("removing the block traces in {}", directory.display());
    for entry in fs::read_dir(&directory).with_context(clearing)? {
        let path = entry.with_context(clearing)?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            fs::remove_file(&path).with_context(clearing)?;
        }
    }
    // It stays while it has files of others.
    let _ = fs::remove_dir(&directory);
    Ok(())
}

/// Says that earlier trials have no trace; `None` if all of them have.
pub(in crate::run) fn untraced_words(kept: &[Trial]) -> Option<String> {
    let measured = kept.iter().filter_map(|trial| trial.measurement.as_ref());
    let count = measured.filter(|found| found.mounts.iter().all(|mount| mount.trace.is_none())).count();
    let were = if count == 1 { "was" } else { "were" };
    (count > 0).then(|| {
        format!("{} {were} recorded without a block trace, and --trace adds none", plural(count, "trial"))
    })
}

fn view(path: &Path, head: &TraceHead) -> TraceView {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    TraceView {
        file: format!("{TRACES}/{name}"),
        requests: head.request_count,
        duration_s: head.duration_ns as f64 / 1e9,
        is_complete: head.is_complete,
    }
}

impl Attempt<'_, '_> {
    /// Writes the traces of the window, if there are any, and names them in the measurement.
    pub(super) fn keep_traces(&mut self) -> Result<()> {
        let Laboratory { traces: Some(traces), cell, .. } = *self.laboratory else { return Ok(()) };
        let trial = self.planned.trial;
        let saved = self.mounts.save_traces(|mount| traces.new_path(&cell.name, trial, mount))?;
        let Some((measurement, _)) = &mut self.finding.measured else { return Ok(()) };
        for (mount, saved) in measurement.mounts.iter_mut().zip(saved) {
            mount.trace = saved.map(|(path, head)| view(&path, &head));
            if let Some(trace) = mount.trace.as_ref().filter(|trace| !trace.is_complete) {
                let TraceView { file, duration_s, .. } = trace;
                let words = format!("warning: {file} is full: it ends {duration_s:.1} s after its begin");
                self.phases.progress.say(&words);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_of_letters_that_every_file_system_has() {
        let check = |cell: &str, attempt: u32, expect: &str| {
            assert_eq!(file_name(cell, 2, "data", attempt), expect);
        };
        check("hdd", 1, "hdd,2,data.trace");
        check("hdd/tpcc/terminals=16", 1, "hdd+tpcc+terminals=16,2,data.trace");
        check("../a b", 3, "..+a_b,2,data,3.trace");
        let long = file_name(&"x".repeat(400), u32::MAX, "doublewrite", u32::MAX);
        assert!(long.len() < 255, "{long}");
    }

    #[test]
    fn a_trial_that_is_repeated_has_a_second_file_and_all_go_with_the_records() {
        let results = tempfile::tempdir().unwrap();
        let traces = Traces::open(results.path(), 1 << 20).unwrap();
        for expect in ["hdd,1,data.trace", "hdd,1,data,2.trace", "hdd,1,data,3.trace"] {
            let path = traces.new_path("hdd", 1, "data");
            assert_eq!(path.file_name().unwrap(), expect);
            fs::write(path, "").unwrap();
        }
        let own = traces.directory.join("notes.txt");
        fs::write(&own, "mine").unwrap();
        clear(results.path()).unwrap();
        assert_eq!(fs::read_dir(&traces.directory).unwrap().count(), 1);
        fs::remove_file(own).unwrap();
        clear(results.path()).unwrap();
        assert!(!traces.directory.exists());
        clear(results.path()).unwrap();
    }

    #[test]
    fn a_directory_that_others_may_write_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let results = tempfile::tempdir().unwrap();
        let traces = Traces::open(results.path(), 1 << 20).unwrap();
        fs::set_permissions(&traces.directory, fs::Permissions::from_mode(0o777)).unwrap();
        for refused in [check_directory(results.path()), clear(results.path())] {
            assert!(refused.unwrap_err().is::<spindle_base::Mistake>());
        }
    }
}
