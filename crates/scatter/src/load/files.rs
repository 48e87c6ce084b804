//! One shard's rows in a file of their own, for LOAD DATA elsewhere or later.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use spindle_base::Mistake;

use super::batch::Batch;
use super::ledger::{Counts, Ledger};

#[derive(Debug)]
pub(super) struct Part<'a> {
    shard: usize,
    path: PathBuf,
    file: File,
    ledger: &'a Ledger,
}

/// The file of a shard, counted from 1.
pub(super) fn path(directory: &Path, table: &str, shard: usize) -> PathBuf {
    directory.join(format!("{}-{}.data", table.replace('/', "_"), shard + 1))
}

/// The files are not there yet, and their directory is.
pub(super) fn prepare(directory: &Path, table: &str, shards: usize) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    for shard in 0..shards {
        let path = path(directory, table, shard);
        if path.exists() {
            return Err(Mistake::of_flag("split_into", format!("{} is there already", path.display())).into());
        }
    }
    Ok(())
}

impl<'a> Part<'a> {
    pub(super) fn create(
        directory: &Path,
        table: &str,
        shard: usize,
        ledger: &'a Ledger,
    ) -> Result<Part<'a>> {
        let path = path(directory, table, shard);
        let file = File::create_new(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(Part { shard, path, file, ledger })
    }

    pub(super) fn take(&mut self, batch: &Batch) -> Result<()> {
        self.file.write_all(&batch.bytes).with_context(|| format!("writing {}", self.path.display()))?;
        let counts = Counts { loaded: batch.rows.len() as u64, ..Counts::default() };
        self.ledger.begin(self.shard, batch.to, counts, Vec::new())?;
        self.ledger.finish(self.shard)
    }
}
