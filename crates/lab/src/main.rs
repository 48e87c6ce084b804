use std::process::ExitCode;

use spindle_lab::cmd::cli::{self, Cli};

fn main() -> ExitCode {
    Cli::of_process().execute().unwrap_or_else(|error| cli::fail(&error))
}
