//! `spindle compare A [B]`: ratio, interval, verdict.

use std::path::Path;

use clap::Args;

use spindle_base::Mistake;

use crate::cmd::output::print_answer;
use crate::report;
use crate::report::compare::{self, Side};

#[derive(Debug, Args)]
pub struct CompareArguments {
    /// The baseline: a records file, or FILE:CELL.
    #[arg(value_name = "A")]
    pub baseline: String,
    /// The candidate: a records file, or FILE:CELL.
    #[arg(value_name = "B")]
    pub candidate: Option<String>,
    /// Print the comparison as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Fails with a [`Mistake`] of the user.
pub fn run(arguments: &CompareArguments) -> anyhow::Result<()> {
    let baseline = side(&arguments.baseline)?;
    let comparisons = match &arguments.candidate {
        Some(candidate) => compare::between(&baseline, &side(candidate)?)?,
        None => compare::within(&baseline)?,
    };
    print_answer(arguments.json, &comparisons, || compare::text(&comparisons))
}

fn side(argument: &str) -> Result<Side, Mistake> {
    // An existing file of the whole name takes precedence, so a colon in a file name needs no escape.
    let (file, cell) = match argument.rsplit_once(':') {
        Some((file, cell)) if !Path::new(argument).exists() => (file, Some(cell.to_owned())),
        _ => (argument, None),
    };
    Ok(Side { file: file.to_owned(), records: report::read(Path::new(file))?, cell })
}
