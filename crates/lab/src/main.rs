use std::process::ExitCode;

use clap::Parser as _;
use spindle_lab::cli::{self, Cli};

fn main() -> ExitCode {
    Cli::parse().execute().unwrap_or_else(|error| cli::fail(&error))
}
