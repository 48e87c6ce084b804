//! `spindle compare A [B]`: ratio, interval, verdict.

use std::process::ExitCode;

use clap::Args;

use crate::cmd::output::print;
use crate::report::compare::{self, Format};
use crate::report::verdict::{Expectation, Met};
use spindle_base::units::parse_share_per_million;

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
    /// A difference up to this share does not matter: the cells are then the same.
    #[arg(long, value_name = "SHARE", default_value = "5 %", value_parser = share)]
    pub within: f64,
    /// Exit with 0 if every pair is as expected, with 1 if one is not, and with 3 if that is not known yet or
    /// not comparable.
    #[arg(long, value_enum, value_name = "VERDICT")]
    pub expect: Option<Expectation>,
    /// Layout of the comparison.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// Fails with a [`spindle_base::Mistake`] of the user.
pub fn run(arguments: &CompareArguments) -> anyhow::Result<ExitCode> {
    let (baseline, candidate) = compare::sides(&arguments.baseline, arguments.candidate.as_deref())?;
    let comparisons = match &candidate {
        Some(candidate) => compare::between(&baseline, candidate, arguments.anyway, arguments.within)?,
        None => compare::within(&baseline, arguments.within)?,
    };
    let format = if arguments.json { Format::Json } else { arguments.format };
    print(&comparisons.lay_out(format)?)?;
    Ok(ExitCode::from(match arguments.expect.map(|expectation| comparisons.meet(expectation)) {
        None | Some(Met::Yes) => 0,
        Some(Met::No) => 1,
        Some(Met::Open) => 3,
    }))
}

/// A margin. The error continues clap's sentence about the option.
fn share(text: &str) -> Result<f64, String> {
    match parse_share_per_million(text)? {
        1..=500_000 => Ok(parse_share_per_million(text)? as f64 / 1e6),
        _ => Err("write more than 0 %, and at most 50 %".to_owned()),
    }
}
