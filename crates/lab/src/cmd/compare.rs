//! `spindle compare A [B]`: ratio, interval, verdict.

use clap::Args;

use crate::cmd::output::print;
use crate::report::compare::{self, Format};

#[derive(Debug, Args)]
pub struct CompareArguments {
    /// The baseline: a records file or the directory of a run, or either with a cell, as RECORDS:CELL.
    #[arg(value_name = "A")]
    pub baseline: String,
    /// The candidate: the same, or a cell of A's records alone. A cell has its name or its label.
    #[arg(value_name = "B")]
    pub candidate: Option<String>,
    /// Compare cells although more than their storage differs, such as the size of the database.
    #[arg(long)]
    pub anyway: bool,
    /// Layout of the comparison.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// Fails with a [`spindle_base::Mistake`] of the user.
pub fn run(arguments: &CompareArguments) -> anyhow::Result<()> {
    let (baseline, candidate) = compare::sides(&arguments.baseline, arguments.candidate.as_deref())?;
    let comparisons = match &candidate {
        Some(candidate) => compare::between(&baseline, candidate, arguments.anyway)?,
        None => compare::within(&baseline)?,
    };
    let format = if arguments.json { Format::Json } else { arguments.format };
    print(&comparisons.lay_out(format)?)
}
