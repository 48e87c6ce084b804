//! The records file of a run. It is opened and locked before the first trial, grows by one flushed line at a
//! time, and is read back when a run is resumed.
//!
//! A line counts once its newline is on the disk. A torn last line, left by `kill -9` or a full disk, is cut
//! off.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rustix::fs::FlockOperation;

use super::input::parse_unmasked;
use super::{Header, Line, Trial, masking};
use crate::host::private_directory::PrivateDirectory;
use spindle_base::Mistake;

pub const FILE_NAME: &str = "records.jsonl";
/// Default directory of results, relative to the working directory.
pub(crate) const RESULTS: &str = "spindle-results";
pub(crate) const LOCK_NAME: &str = "lock";
/// In the directory of a run.
pub const PAGE_NAME: &str = "report.html";
/// The files of a run's results.
pub(crate) const NAMES: [&str; 2] = [FILE_NAME, PAGE_NAME];

#[derive(Debug)]
pub struct RecordsFile {
    path: PathBuf,
    file: File,
    /// Held as long as this process lives; the kernel releases it even after `kill -9`.
    _lock: File,
}

/// Which records of an earlier run are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resume {
    /// All of them.
    pub fresh: bool,
    /// Failed trials, so that they run again.
    pub retry_failed: bool,
}

impl RecordsFile {
    /// Opens or creates `directory/records.jsonl`, and returns its header and the trials that are kept. The header has the
    /// machine that measured these.
    pub fn open(
        directory: &Path,
        header: &Header,
        resume: Resume,
    ) -> Result<(RecordsFile, Header, Vec<Trial>)> {
        let mut header = header.clone();
        masking::mask_header(&mut header);
        let place = open_directory(directory)?;
        let lock = lock(&place, directory)?;
        let path = directory.join(FILE_NAME);
        let mut file = place.file(FILE_NAME)?;
        // A torn line can end inside a character.
        let mut text = Vec::new();
        file.read_to_end(&mut text).with_context(|| format!("reading {}", path.display()))?;
        let end = text.iter().rposition(|byte| *byte == b'\n');
        let whole = if resume.fresh { 0 } else { end.map_or(0, |end| end + 1) };
        let (mut rewrite, mut trials, mut measured_on) = (true, Vec::new(), None);
        if whole > 0 {
            let text = str::from_utf8(&text[..whole]).map_err(|error| {
                Mistake::new(format!("{}: no text in UTF-8 at byte {}", path.display(), error.valid_up_to()))
            })?;
            let old = parse_unmasked(text, path.display())?;
            ensure!(
                old.header.provenance.scenario_hash == header.provenance.scenario_hash,
                Mistake::new(format!(
                    "--output {}: holds the records of another scenario (`{}`); name another directory, or start over with --fresh",
                    directory.display(),
                    old.header.scenario.name,
                ))
            );
            // The prose or the number of trials may have changed since.
            let state = |header: &Header| (header.format, header.scenario.clone(), header.cells.clone());
            rewrite = state(&old.header) != state(&header);
            (trials, measured_on) = (old.trials, Some(old.header.machine));
        }
        if resume.retry_failed {
            let before = trials.len();
            trials.retain(|trial| trial.error.is_none());
            rewrite |= trials.len() < before;
        }
        if let Some(machine) = measured_on.filter(|_| !trials.is_empty()) {
            header.machine = machine;
        }
        if rewrite {
            let lines =
                std::iter::once(Line::Header(header.clone())).chain(trials.iter().cloned().map(Line::Trial));
            place.replace(FILE_NAME, |file| {
                lines.map(encode).try_for_each(|line| file.write_all(line.as_bytes()))
            })?;
            file = place.file(FILE_NAME)?;
        } else if whole < text.len() {
            file.set_len(whole as u64)
                .with_context(|| format!("cutting a torn line off {}", path.display()))?;
        }
        Ok((RecordsFile { path, file, _lock: lock }, header, trials))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns once the line is on the disk.
    pub fn append(&mut self, trial: &Trial) -> Result<()> {
        let line = encode(Line::Trial(trial.clone()));
        self.file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.sync_data())
            .with_context(|| format!("writing a record to {}", self.path.display()))
    }
}

/// Opens the directory of the records and the page; created if missing.
fn open_directory(directory: &Path) -> Result<PrivateDirectory> {
    PrivateDirectory::make(directory, 0o755)
}

/// Checks before any work that an existing results directory and the files that a run opens in it are ours.
///
/// # Errors
/// [`Mistake`].
pub(crate) fn check_directory(directory: &Path) -> Result<()> {
    match PrivateDirectory::open(directory)? {
        Some(place) => [LOCK_NAME, FILE_NAME, PAGE_NAME].iter().try_for_each(|name| place.check_file(name)),
        None => Ok(()),
    }
}

/// The place of the page.
pub(crate) fn page_path(records: &Path) -> PathBuf {
    records.with_file_name(PAGE_NAME)
}

/// Writes the page next to the records.
pub(crate) fn write_page(records: &Path, page: &str) -> Result<PathBuf> {
    let directory = records.parent().context("records are in a directory")?;
    open_directory(directory)?.replace(PAGE_NAME, |file| file.write_all(page.as_bytes()))?;
    Ok(directory.join(PAGE_NAME))
}

fn lock(place: &PrivateDirectory, directory: &Path) -> Result<File> {
    try_lock(place, directory)?.ok_or_else(|| {
        let words = "another spindle is running there; wait for it with --wait, or name another directory";
        Mistake::new(format!("--output {}: {words}", directory.display())).into()
    })
}

/// `None` if another process holds the lock.
fn try_lock(place: &PrivateDirectory, directory: &Path) -> Result<Option<File>> {
    let file = place.file(LOCK_NAME)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("locking {}", directory.join(LOCK_NAME).display())),
    }
}

/// Keeps runs out of a directory as long as the file is open. `None` if a run is in it.
///
/// # Errors
/// The directory is missing, or not ours.
pub(crate) fn hold(directory: &Path) -> Result<Option<File>> {
    try_lock(&PrivateDirectory::open(directory)?.context("the directory was removed meanwhile")?, directory)
}

/// Whether a run is in the directory now. Nothing is created.
pub(crate) fn is_held(directory: &Path) -> bool {
    directory.join(LOCK_NAME).exists() && !matches!(hold(directory), Ok(Some(_)))
}

pub(super) fn encode(mut line: Line) -> String {
    match &mut line {
        Line::Header(header) => masking::mask_header(header),
        Line::Trial(trial) => masking::mask_trial(trial),
    }
    let mut text = serde_json::to_string(&line).expect("records always become JSON");
    text.push('\n');
    text
}
