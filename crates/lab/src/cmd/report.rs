//! `spindle report RECORDS`: prints a report again.

use std::{io::IsTerminal as _, path::PathBuf};

use anyhow::Context as _;
use clap::Args;

use crate::cmd::output::{allows_colour, check_output_file, print};
use crate::host::private_directory::write_beside;
use crate::report::{self, Format};

#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Records file that `spindle run` wrote (JSON lines), or its directory.
    pub records: PathBuf,
    /// Layout of the report.
    #[arg(long, value_enum, default_value = "html")]
    pub format: Format,
    /// File to write. By default the report goes to standard output, but HTML never to a terminal: it becomes
    /// a file next to the records.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Unusable records and an invalid output are mistakes of the user.
pub fn run(arguments: &ReportArguments) -> anyhow::Result<()> {
    arguments.output.as_deref().map_or(Ok(()), check_output_file)?;
    let path = report::records_path(&arguments.records);
    let records = report::read(&arguments.records)?;
    let terminal = std::io::stdout().is_terminal();
    let colour = terminal && arguments.output.is_none() && allows_colour();
    let text = report::render(&records, arguments.format, colour)?;
    match &arguments.output {
        Some(output) => {
            std::fs::write(output, text)
                .with_context(|| format!("writing the report to {}", output.display()))?;
            println!("{}", output.display());
        }
        // On a terminal, half a megabyte of HTML goes to a file.
        None if terminal && arguments.format == Format::Html => {
            let beside = path.with_extension("html");
            write_beside(&beside, &text)?;
            println!("{}", beside.display());
        }
        None => print(&text)?,
    }
    Ok(())
}
