//! What a bench leaves behind: one JSON line per row, flushed at once, under a line that says where the
//! numbers come from.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::Comparison;
use crate::bench::{Arm, Deterioration, Row};
use crate::host::provenance::Machine;
use spindle_base::Mistake;

/// Raised when a reader of the old format would misread the new one.
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
    /// The bench ended here.
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
    /// One sentence: what was measured.
    pub summary: String,
    pub arm: Arm,
    pub seed: u64,
    /// Of the resolved stack, profile included; empty for a real target.
    pub stack_hash: String,
    /// Parameters without a source, as sentences.
    pub assumptions: Vec<String>,
    /// Empty in virtual time.
    pub fio_version: String,
    /// Does it again.
    pub command: String,
}

impl Header {
    /// Where the numbers come from, in one line.
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
    /// Opened before the first row, so that a directory that cannot be written costs no measurement.
    pub fn create(directory: &Path, header: Header) -> Result<BenchFile> {
        std::fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
        let path = directory.join(FILE_NAME);
        let file = match File::create_new(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(Mistake::new(format!(
                    "--output {}: holds the records of a bench already; name another directory",
                    directory.display()
                ))
                .into());
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

    /// Returns when the line is on the disk.
    pub fn append(&mut self, line: &Line) -> Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        self.file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.sync_data())
            .with_context(|| format!("writing a record to {}", self.path.display()))
    }
}
