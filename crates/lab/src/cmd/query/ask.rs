//! `spindle query --server URL 'SELECT ...'`: queries in fragments that servers answer side by side.

use std::fs;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use spindle_base::Mistake;
use spindle_base::text::plural;
use spindle_scatter::execute::{Assigned, Route, Scatter};
use spindle_scatter::plan::Refusal;
use spindle_scatter::shards::Cluster;
use spindle_scatter::spark;
use spindle_scatter::sql::statements::statements;

use super::fragments::FragmentsArguments;
use super::print;
use super::servers::ServersArguments;
use crate::cmd::output;
use crate::host::interrupt::Interrupt;

#[derive(Debug, Args)]
pub(super) struct AskArguments {
    /// Statements, each ended by a semicolon [default: those of --file, or of the standard input].
    statements: Option<String>,
    #[command(flatten)]
    servers: ServersArguments,
    /// File of statements.
    #[arg(long, value_name = "FILE", conflicts_with = "statements")]
    file: Option<PathBuf>,
    #[command(flatten)]
    fragments: FragmentsArguments,
    /// Show how each statement would be answered, and run none.
    #[arg(long)]
    explain: bool,
    /// Print each statement's plan for another engine that merges the fragments, and run none.
    #[arg(long, value_name = "ENGINE", conflicts_with = "explain")]
    emit: Option<Engine>,
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// Spark SQL with the servers behind JDBC, for `spark-sql -f`.
    Spark,
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
    let interrupt = Interrupt::listen()?;
    let cluster = arguments.servers.cluster()?;
    let mut scatter = Scatter::connect(cluster.clone(), arguments.fragments.options())?;
    for statement in statements {
        match (arguments.explain, arguments.emit) {
            (true, _) => output::print(&explained(&cluster, &scatter.route(statement)?))?,
            (false, Some(Engine::Spark)) => output::print(&in_spark(&cluster, &scatter.route(statement)?)?)?,
            (false, None) => answer(&mut scatter, &interrupt, statement, arguments.format)?,
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

fn explained(cluster: &Cluster, route: &Route) -> String {
    let name = |server: usize| &cluster.servers[server].name;
    let (plan, all) = match route {
        Route::Passthrough(server, Refusal(why)) => {
            return format!("on one connection to {}, because {why}\n", name(*server));
        }
        Route::Split(plan, all) => (plan, all),
    };
    let mut text = String::new();
    for Assigned { block, server, split } in all {
        let block = &plan.blocks[*block];
        let count = plural(split.parts.len(), "fragment");
        text += &format!("{count} on {} into {}, by {}:\n", name(*server), block.table, split.words);
        text.extend(split.parts.iter().map(|part| format!("  {}\n", block.fragment(part))));
    }
    let before = plan.blocks.iter().flat_map(|block| block.before_merge());
    text.extend(before.map(|statement| format!("then\n  {statement}\n")));
    text + &format!("merged on {} by\n  {}\n", name(0), plan.merge)
}

fn in_spark(cluster: &Cluster, route: &Route) -> Result<String> {
    let script = match route {
        Route::Split(plan, all) => spark::script(plan, all, &cluster.servers),
        Route::Passthrough(_, refusal) => Err(refusal.clone()),
    };
    script.map_err(|Refusal(why)| Mistake::new(format!("there is no script, because {why}")).into())
}

fn answer(scatter: &mut Scatter, interrupt: &Interrupt, statement: &str, format: Format) -> Result<()> {
    let began = Instant::now();
    let killer = scatter.killer();
    let answered = interrupt.end_on_signal(|| killer.kill_for_good(), || scatter.run(statement));
    interrupt.check()?;
    let answered = answered?;
    let took_s = began.elapsed().as_secs_f64();
    output::print(&print::answer(&answered, format)?)?;
    let how = match &answered.fragments {
        Ok(count) => plural(*count, "fragment"),
        Err(Refusal(why)) => format!("on one connection, because {why}"),
    };
    eprintln!("{} in {took_s:.3} s; {how}", plural(answered.rows.len(), "row"));
    Ok(())
}
