//! The command line.

use clap::{Parser, Subcommand};
use spindle_lab::cmd::load;

#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Drive a server that already runs with a workload.
    Load(load::LoadArgs),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Load(args) => load::run(args),
    }
}
