//! `spindle query`: queries in fragments, over one server or several.

mod ask;
mod fragments;
mod load;
mod print;
mod serve;
mod servers;

use anyhow::Result;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct QueryArguments {
    #[command(subcommand)]
    command: Option<QueryCommand>,
    #[command(flatten)]
    ask: ask::AskArguments,
}

#[derive(Debug, Subcommand)]
enum QueryCommand {
    /// Load files into a table of one server or of several, each row into its shard
    Load(Box<load::LoadArguments>),
    /// Serve clients of MySQL's protocol, whose queries are answered in fragments
    Serve(Box<serve::ServeArguments>),
}

pub fn run(arguments: &QueryArguments) -> Result<()> {
    match &arguments.command {
        None => ask::run(&arguments.ask),
        Some(QueryCommand::Load(arguments)) => load::run(arguments),
        Some(QueryCommand::Serve(arguments)) => serve::run(arguments),
    }
}
