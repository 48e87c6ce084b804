//! `spindle query --server URL 'SELECT ...'`: queries in fragments that servers answer side by side.

use std::fs;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use spindle_base::Mistake;
use spindle_base::text::plural;
use spindle_scatter::execute::{Route, Scatter};
use spindle_scatter::plan::Refusal;
use spindle_scatter::split::Options;
use spindle_scatter::sql::statements::statements;

use super::print;
use super::servers::ServersArguments;
use crate::cmd::output;

#[derive(Debug, Args)]
pub(super) struct AskArguments {
    /// Statements, each ended by a semicolon [default: those of --file, or of the standard input].
    statements: Option<String>,
    #[command(flatten)]
    servers: ServersArguments,
    /// File of statements.
    #[arg(long, value_name = "FILE", conflicts_with = "statements")]
    file: Option<PathBuf>,
    /// Fragments that a server answers at a time.
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    connections: u16,
    /// Show how each statement would be answered, and run none.
    #[arg(long)]
    explain: bool,
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Lines and columns.
    Table,
    /// Values between tabs.
    Tsv,
    /// Values between commas.
    Csv,
    /// An array of objects for each statement.
    Json,
}

pub(super) fn run(arguments: &AskArguments) -> Result<()> {
    let text = text(arguments)?;
    let statements = statements(&text);
    if statements.is_empty() {
        return Err(Mistake::new("there is no statement: name one, or a --file".to_owned()).into());
    }
    let limits = Options { connections: arguments.connections.into(), ..Options::default() };
    // MERGE: `Scatter::connect` takes the whole cluster.
    let mut scatter = Scatter::connect(arguments.servers.cluster()?.servers.remove(0), limits)?;
    for statement in statements {
        match arguments.explain {
            true => output::print(&explained(&scatter.route(statement)?))?,
            false => answer(&mut scatter, statement, arguments.format)?,
        }
    }
    Ok(())
}

fn text(arguments: &AskArguments) -> Result<String> {
    if let Some(statements) = &arguments.statements {
        return Ok(statements.clone());
    }
    if let Some(file) = &arguments.file {
        let read = fs::read_to_string(file);
        return read.map_err(|error| Mistake::of_flag("file", format!("{}: {error}", file.display())).into());
    }
    if io::stdin().is_terminal() {
        return Err(Mistake::new("there is no statement: name one, or a --file".to_owned()).into());
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).context("reading statements from the standard input")?;
    Ok(text)
}

fn explained(route: &Route) -> String {
    let (plan, splits) = match route {
        Route::Passthrough(Refusal(why)) => return format!("on one connection, because {why}\n"),
        Route::Split(plan, splits) => (plan, splits),
    };
    let mut text = String::new();
    for (block, split) in plan.blocks.iter().zip(splits) {
        text +=
            &format!("{} into {}, by {}:\n", plural(split.parts.len(), "fragment"), block.table, split.words);
        text.extend(split.parts.iter().map(|part| format!("  {}\n", block.fragment(part))));
    }
    let before = plan.blocks.iter().flat_map(|block| block.before_merge());
    text.extend(before.map(|statement| format!("then\n  {statement}\n")));
    text + &format!("merged by\n  {}\n", plan.merge)
}

fn answer(scatter: &mut Scatter, statement: &str, format: Format) -> Result<()> {
    let began = Instant::now();
    let answered = scatter.run(statement)?;
    let took_s = began.elapsed().as_secs_f64();
    output::print(&print::answer(&answered, format)?)?;
    let how = match &answered.fragments {
        Ok(count) => plural(*count, "fragment"),
        Err(Refusal(why)) => format!("on one connection, because {why}"),
    };
    eprintln!("{} in {took_s:.3} s; {how}", plural(answered.rows.len(), "row"));
    Ok(())
}
