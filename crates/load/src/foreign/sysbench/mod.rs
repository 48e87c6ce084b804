//! sysbench 1.0 (Debian's package), for the workloads `sysbench` (its OLTP scripts) and `fileio` (its file
//! I/O).
//!
//! Latencies come from `--histogram`, whose bins are logarithmic: 1024 from 1 us to 100 s, each 1.8 % wide.
//! So a latency is correct within 0.9 % or half a microsecond; values below 1 us or above 100 s are clamped.
//! For each second the tool reports one quantile, the 95th percentile. It reports its last second only if an
//! event ends after it.

pub(crate) mod output;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::{Length, Program, execute};
use spindle_base::child::RunAs;

pub(crate) const NAME: &str = "sysbench";

/// The default of the option `program`.
pub(crate) fn path() -> PathBuf {
    NAME.into()
}

pub(crate) fn program(path: &Path, run_as: RunAs) -> Program<'_> {
    let is_complaint = |line: &str| line.starts_with("FATAL: ");
    Program { name: NAME, package: "sysbench", path, run_as, is_complaint }
}

/// `test` is a script or a built-in test of the tool.
pub(crate) fn command(program: &Path, test: &str, terminals: u32, seed: u64) -> Command {
    let mut command = Command::new(program);
    // Zero would select the time of day, and the tool's numbers have 31 bits.
    let seed = 1 + seed % u64::from(i32::MAX as u32 - 1);
    command.args([test.to_owned(), format!("--threads={terminals}"), format!("--rand-seed={seed}")]);
    command
}

/// Runs a command, given without its verb, with `prepare`, which creates the data of the test.
pub(crate) fn prepare(mut command: Command, program: Program<'_>) -> Result<()> {
    command.arg("prepare");
    execute(command, "sysbench prepare", program).map(drop)
}

/// A run without a limit on events; zero is no limit, for time too.
pub(crate) fn run(mut command: Command, length: Length) -> Command {
    let seconds = match length {
        Length::Seconds(seconds) => seconds,
        Length::Endless => 0,
    };
    command.args([format!("--time={seconds}"), "--events=0".to_owned()]);
    command.args(["--report-interval=1", "--histogram=on", "--percentile=95", "run"]);
    command
}
