//! The records of a bench: one JSON line per row, each flushed at once, after a header with the provenance.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::Comparison;
use crate::bench::{Arm, Deterioration, Row};
use crate::host::provenance::Machine;
use spindle_base::Mistake;

/// Increased when a reader of the old format would misread the new one.
pub const FORMAT: u32 = 1;
pub const FILE_NAME: &str = "bench.jsonl";
pub const CHART_NAME: &str = "bench.html";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum Line {
    Header(Header),
    Row(Row),
    Deterioration(Deterioration),
    Against(Comparison),
    /// The bench stopped here with an error.
    Error {
        error: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub format: u32,
    pub created_at: String,
    pub spindle_version: String,
    pub git_revision: String,
    pub machine: Machine,
    pub target: String,
    /// One sentence on the measured target.
    pub summary: String,
    pub arm: Arm,
    pub seed: u64,
    /// Hash of the resolved stack, profile included; empty for a real target.
    pub stack_hash: String,
    /// Sentences about parameters without a source.
    pub assumptions: Vec<String>,
    /// Empty in virtual time.
    pub fio_version: String,
    /// The command line that repeats the bench.
    pub command: String,
}

impl Header {
    /// Provenance of the numbers, in one line.
    pub fn origin(&self) -> String {
        format!(
            "{}, seed {}, {}; spindle {} ({}); made with: {}",
            self.arm.words(),
            self.seed,
            self.created_at,
            self.spindle_version,
            self.git_revision,
            self.command
        )
    }
}

#[derive(Debug)]
pub struct BenchFile {
    path: PathBuf,
    file: File,
}

impl BenchFile {
    /// Creates the file before the first row, so that an unwritable directory costs no measurement.
    pub fn create(directory: &Path, header: Header) -> Result<BenchFile> {
        std::fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
        let path = directory.join(FILE_NAME);
        let file = match File::create_new(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                bail!(Mistake::new(format!(
                    "--output {}: holds the records of a bench already; name another directory",
                    directory.display()
                )));
            }
            other => other.with_context(|| format!("making {}", path.display()))?,
        };
        let mut opened = BenchFile { path, file };
        opened.append(&Line::Header(header))?;
        Ok(opened)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns once the line is on disk.
    pub fn append(&mut self, line: &Line) -> Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        self.file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.sync_data())
            .with_context(|| format!("writing a record to {}", self.path.display()))
    }
}
