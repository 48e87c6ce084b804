//! `spindle query --server URL 'SELECT ...'`: a query in fragments that a server answers side by side.

mod print;

use std::fs;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use spindle_base::Mistake;
use spindle_base::text::plural;
use spindle_load::Endpoint;
use spindle_load::sql::describe;
use spindle_load::sql::mysql::options;
use spindle_scatter::execute::{Route, Scatter};
use spindle_scatter::plan::Refusal;
use spindle_scatter::servers::Server;
use spindle_scatter::split::Options;
use spindle_scatter::sql::statements::statements;

use crate::cmd::output;
use crate::server::endpoint;

#[derive(Debug, Args)]
pub struct QueryArguments {
    /// Statements, each ended by a semicolon [default: those of --file, or of the standard input].
    statements: Option<String>,
    /// The server, MariaDB or MySQL, and the database: `mysql://user:password@host:port/database` or
    /// `socket:/path`. A URL without a password takes it from the environment variable MYSQL_PWD.
    #[arg(long, value_name = "URL", value_parser = endpoint::parse_to_query)]
    server: Endpoint,
    /// File of statements.
    #[arg(long, value_name = "FILE", conflicts_with = "statements")]
    file: Option<PathBuf>,
    /// Fragments that the server answers at a time.
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    connections: u16,
    /// Show how each statement would be answered, and run none.
    #[arg(long)]
    explain: bool,
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Lines and columns.
    Table,
    /// Values between tabs.
    Tsv,
    /// Values between commas.
    Csv,
    /// An array of objects for each statement.
    Json,
}

pub fn run(arguments: &QueryArguments) -> Result<()> {
    let text = text(arguments)?;
    let statements = statements(&text);
    if statements.is_empty() {
        return Err(Mistake::new("there is no statement: name one, or a --file".to_owned()).into());
    }
    let limits = Options { connections: arguments.connections.into(), ..Options::default() };
    let mut scatter = Scatter::connect(server(&arguments.server)?, limits)?;
    for statement in statements {
        match arguments.explain {
            true => output::print(&explained(&scatter.route(statement)?))?,
            false => answer(&mut scatter, statement, arguments.format)?,
        }
    }
    Ok(())
}

fn text(arguments: &QueryArguments) -> Result<String> {
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

fn server(endpoint: &Endpoint) -> Result<Server> {
    Ok(Server { name: describe(endpoint), options: options(endpoint, true)?.into() })
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
