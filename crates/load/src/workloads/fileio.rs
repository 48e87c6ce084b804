//! The workload `fileio`: the tool's file I/O test, on a directory and without a database.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::foreign::sysbench::{self, output};
use crate::foreign::{self, Figures, Length, Program, Tool};
use crate::protocol::{Endpoint, KindSummary, Metric, Second};
use crate::sql::describe;
use crate::workload::{
    Check, Data, Declared, Example, Facts, OnProgress, Progress, TERMINALS_MAX, Target, Workload,
    default_number, whole_number,
};
use spindle_base::child::RunAs;
use spindle_base::histogram;
use spindle_base::text::plural;

const MIB: f64 = 1_048_576.0;

/// The requests to the files. Random positions are uniform over all files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Sequential reads.
    Seqrd,
    /// Sequential writes of new files. The tool removes those that are there, so that each write makes a file longer.
    Seqwr,
    /// Sequential overwrites.
    Seqrewr,
    /// Random reads.
    Rndrd,
    /// Random writes.
    Rndwr,
    /// Random reads and writes, three to two.
    Rndrw,
}

impl Mode {
    fn name(self) -> &'static str {
        self.kinds()[0]
    }

    fn kinds(self) -> &'static [&'static str] {
        match self {
            Mode::Seqrd => &["seqrd"],
            Mode::Seqwr => &["seqwr"],
            Mode::Seqrewr => &["seqrewr"],
            Mode::Rndrd => &["rndrd"],
            Mode::Rndwr => &["rndwr"],
            Mode::Rndrw => &["rndrw"],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Sync {
    #[default]
    Fsync,
    Fdatasync,
}

impl Display for Sync {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Sync::Fsync => "fsync",
            Sync::Fdatasync => "fdatasync",
        })
    }
}

pub const FACTS: Facts = Facts {
    example: Example::of_size(
        "total_mib",
        r#"{"mode": "rndrw", "block_bytes": 16384, "terminals": 16, "fsync_every": 100}"#,
    ),
    runs_on: &[Target::Directory],
    ..Facts::FOREIGN
};

/// The tool's `--file-block-size` if it is not given.
const DEFAULT_BLOCK_BYTES: u32 = 16_384;

/// Reads and writes of files in a directory, executed by sysbench.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Requests of the threads.
    #[arg(long, value_enum)]
    pub mode: Mode,
    /// Number of files. All have the same size.
    #[serde(default = "default_number::<64, u32>")]
    #[arg(long, default_value_t = 64, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 10_000))]
    pub files: u32,
    /// Total size of all files, in MiB.
    #[arg(long, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 1 << 24), example = 1024)]
    pub total_mib: u32,
    /// Size of a request, in bytes.
    #[arg(long, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 1 << 24), example = 16384)]
    pub block_bytes: u32,
    /// Number of concurrent threads. Each has one outstanding request.
    #[serde(default = "default_number::<1, u32>")]
    #[arg(long, default_value_t = 1, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = TERMINALS_MAX))]
    pub terminals: u32,
    /// Requests of a thread between synchronisations of all files (`--file-fsync-freq`). 0: never. Each file that is
    /// synchronised counts as a request, as in the tool.
    #[arg(long)]
    #[schemars(example = 100)]
    pub fsync_every: u32,
    /// Synchronise all files at the end of a run (`--file-fsync-end`).
    #[serde(default)]
    #[arg(long)]
    pub fsync_at_end: bool,
    /// System call of a synchronisation.
    #[serde(default)]
    #[arg(long, value_enum, default_value_t)]
    pub sync: Sync,
    /// Bypass the page cache, also while the files are created.
    #[serde(default = "yes")]
    #[arg(long, default_value_t = yes(), action = clap::ArgAction::Set)]
    pub direct: bool,
    /// Program of the tool: a path, or a name that is searched in `PATH`.
    #[serde(default = "sysbench::path")]
    #[arg(long, default_value = sysbench::NAME)]
    pub program: PathBuf,
}

fn yes() -> bool {
    true
}

impl Declared for Spec {
    fn data(&self) -> Option<Data> {
        let words = format!("{} of {} MiB together", plural(self.files as usize, "file"), self.total_mib);
        Some(Data { words, bytes: self.total_bytes() })
    }

    fn data_set(&self) -> String {
        let cache = if self.direct { "past" } else { "through" };
        format!(
            "fileio, {} files of {} MiB together, in writes of {} bytes {cache} the page cache",
            self.files,
            self.total_mib,
            self.creation_block_bytes()
        )
    }

    fn deviations(&self) -> Vec<&'static str> {
        foreign::DEVIATIONS.to_vec()
    }

    fn workload(&self, run_as: RunAs) -> Result<Box<dyn Workload>> {
        Ok(Box::new(Fileio { spec: self.clone(), run_as }))
    }
}

impl Spec {
    fn total_bytes(&self) -> u64 {
        u64::from(self.total_mib) << 20
    }

    /// The size of a file, rounded as in the tool.
    fn file_bytes(&self) -> u64 {
        self.total_bytes() / u64::from(self.files)
    }

    /// The size of the writes that create the files: the tool's default where it divides a file, whatever the
    /// size of the requests. How a file lies depends on it: a flash drive that got parts of pages has programmed
    /// the pages together otherwise, and file systems choose other places for small direct writes.
    fn creation_block_bytes(&self) -> u32 {
        match self.file_bytes().is_multiple_of(DEFAULT_BLOCK_BYTES.into()) {
            true => DEFAULT_BLOCK_BYTES,
            false => self.block_bytes,
        }
    }

    /// The command without its verb.
    fn command(&self, endpoint: &Endpoint, block_bytes: u32, terminals: u32, seed: u64) -> Result<Command> {
        let mut command = sysbench::command(&self.program, "fileio", terminals, seed);
        command.args([
            format!("--file-num={}", self.files),
            format!("--file-total-size={}", self.total_bytes()),
            format!("--file-block-size={block_bytes}"),
            format!("--file-test-mode={}", self.mode.name()),
            format!("--file-fsync-freq={}", self.fsync_every),
            format!("--file-fsync-end={}", if self.fsync_at_end { "on" } else { "off" }),
            format!("--file-fsync-mode={}", self.sync),
        ]);
        command.args(["--file-io-mode=sync", "--file-rw-ratio=1.5"]);
        if self.direct {
            command.arg("--file-extra-flags=direct");
        }
        command.current_dir(directory(endpoint)?);
        Ok(command)
    }
}

fn directory(endpoint: &Endpoint) -> Result<&Path> {
    match endpoint {
        Endpoint::Directory { path } => Ok(path),
        _ => bail!("{} is no directory for files", describe(endpoint)),
    }
}

#[derive(Debug)]
struct Fileio {
    spec: Spec,
    run_as: RunAs,
}

impl Workload for Fileio {
    fn kinds(&self) -> &'static [&'static str] {
        self.spec.mode.kinds()
    }

    fn terminals(&self) -> u32 {
        self.spec.terminals
    }

    /// Runs the tool's own `prepare`, which does not report progress. The seed is unused: the tool writes
    /// zeros.
    fn load(&self, endpoint: &Endpoint, seed: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        let rows_total = self.spec.files.into();
        progress(Progress { rows_done: 0, rows_total })?;
        sysbench::prepare(
            self.spec.command(endpoint, self.spec.creation_block_bytes(), 1, seed)?,
            self.program(),
        )?;
        let check = self.lengths(endpoint, false)?;
        if !check.passed {
            bail!("after sysbench fileio prepare: {}: {}", check.name, check.detail);
        }
        progress(Progress { rows_done: rows_total, rows_total })
    }

    fn tool(&self) -> Option<&dyn Tool> {
        Some(self)
    }

    /// Checks the file sizes. The test that writes new files may end before they are as long.
    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>> {
        Ok(vec![self.lengths(endpoint, self.spec.mode == Mode::Seqwr)?])
    }

    fn metric(&self, kinds: &[KindSummary], duration_s: f64) -> Metric {
        Metric::committed_per_s("file requests per second", kinds, duration_s)
    }
}

impl Fileio {
    fn lengths(&self, endpoint: &Endpoint, may_be_shorter: bool) -> Result<Check> {
        let directory = directory(endpoint)?;
        let expected = self.spec.file_bytes();
        let mut violations = crate::workload::Violations::default();
        for index in 0..self.spec.files {
            let file = directory.join(format!("test_file.{index}"));
            let length =
                std::fs::metadata(&file).with_context(|| format!("looking for {}", file.display()))?.len();
            violations.note(length == expected || (may_be_shorter && length < expected), || {
                format!("test_file.{index} has {length} bytes, not {expected}")
            });
        }
        Ok(violations.check("files have their length", &format!("{} files", self.spec.files)))
    }
}

impl Tool for Fileio {
    fn program(&self) -> Program<'_> {
        sysbench::program(&self.spec.program, self.run_as)
    }

    fn command(&self, endpoint: &Endpoint, seed: u64, length: Length) -> Result<Command> {
        Ok(sysbench::run(
            self.spec.command(endpoint, self.spec.block_bytes, self.spec.terminals, seed)?,
            length,
        ))
    }

    /// The tool reports reads and writes in hundredths of a MiB, so requests are counted with that
    /// resolution.
    fn second(&self, line: &str) -> Result<Option<Second>> {
        let Some(second) = output::second(line)? else { return Ok(None) };
        let amount = |label: &str| output::number_after(second, label);
        let requests = (amount("reads:")? + amount("writes:")?) * MIB / f64::from(self.spec.block_bytes);
        let transactions = (requests + amount("fsyncs:")?).round() as u64;
        let p95_ms = Some(amount("latency (ms,95%):")?);
        Ok(Some(Second { transactions, p95_ms, ..Second::default() }))
    }

    fn figures(&self, lines: &[String]) -> Result<Figures> {
        let report = output::report(lines)?;
        for label in ["reads/s:", "writes/s:", "fsyncs/s:"] {
            output::number(lines, label)?;
        }
        let kind = KindSummary {
            name: self.spec.mode.name().to_owned(),
            committed: report.event_count,
            histogram: histogram::encode(&report.latencies),
            ..KindSummary::default()
        };
        Ok((report.duration, kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(files: u32, block_bytes: u32) -> Spec {
        let spec = serde_json::json!({
            "mode": "rndrd", "files": files, "total_mib": 1, "block_bytes": block_bytes, "fsync_every": 0,
        });
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn files_are_created_alike_for_requests_of_any_size() {
        for block_bytes in [1_024, 16_384, 1 << 20] {
            assert_eq!(spec(4, block_bytes).creation_block_bytes(), 16_384);
            assert_eq!(spec(4, block_bytes).data_set(), spec(4, 4_096).data_set());
        }
        // Files of 8 KiB.
        assert_eq!(spec(128, 4_096).creation_block_bytes(), 4_096);
        assert_ne!(spec(128, 4_096).data_set(), spec(128, 8_192).data_set());
    }
}
