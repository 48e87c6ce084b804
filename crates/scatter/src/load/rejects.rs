//! Rows that are not loaded, each with its place and the reason, in a CSV file.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use spindle_base::Mistake;

const HEADER: [&str; 5] = ["file", "line", "server", "reason", "record"];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reject {
    pub(super) file: String,
    pub(super) line: u64,
    /// Whose words the reason has; empty for a row that went to none.
    pub(super) server: String,
    pub(super) reason: String,
    /// As the file has it, without the terminator of its line.
    pub(super) record: Vec<u8>,
}

/// Made with the first row.
#[derive(Debug)]
pub(super) struct RejectFile {
    path: PathBuf,
    file: Option<File>,
}

impl RejectFile {
    /// # Errors
    /// [`Mistake`]: it has rows of another load.
    pub(super) fn new(path: &Path) -> Result<RejectFile, Mistake> {
        if fs::metadata(path).is_ok_and(|found| found.len() > 0) {
            let words = format!("{} has rows of another load; move it away", path.display());
            return Err(Mistake::of_flag("rejects", words));
        }
        Ok(RejectFile { path: path.to_owned(), file: None })
    }

    /// The file of a load that goes on, without what its state does not have.
    pub(super) fn again(path: &Path, bytes: u64) -> Result<RejectFile> {
        let mut rejects = RejectFile { path: path.to_owned(), file: None };
        if bytes > 0 || path.exists() {
            let opening = || format!("opening {}", path.display());
            let mut file = OpenOptions::new().write(true).open(path).with_context(opening)?;
            file.set_len(bytes).and_then(|()| file.seek(SeekFrom::End(0))).with_context(opening)?;
            rejects.file = Some(file);
        }
        Ok(rejects)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size of the file.
    pub(super) fn append(&mut self, rejects: &[Reject]) -> Result<u64> {
        let writing = || format!("writing {}", self.path.display());
        let mut file = match self.file.take() {
            Some(file) => file,
            None => File::create(&self.path).with_context(writing)?,
        };
        let is_new = file.stream_position().with_context(writing)? == 0;
        let mut writer = csv::Writer::from_writer(Vec::new());
        if is_new {
            writer.write_record(HEADER).with_context(writing)?;
        }
        for reject in rejects {
            let line = reject.line.to_string();
            let [file, line, server, reason] =
                [&reject.file, &line, &reject.server, &reject.reason].map(|text| text.as_bytes());
            writer.write_record([file, line, server, reason, &reject.record]).with_context(writing)?;
        }
        let text = writer.into_inner().expect("memory takes everything");
        file.write_all(&text).and_then(|()| file.sync_data()).with_context(writing)?;
        let size = file.stream_position().with_context(writing)?;
        self.file = Some(file);
        Ok(size)
    }
}
