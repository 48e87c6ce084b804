//! `spindle dataset`: real sample data that packages ship.

use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;
use spindle_base::{Mistake, near, text};
use spindle_load::Endpoint;

use crate::cmd::output::{columns, print, print_answer};
use crate::dataset::{self, Dataset, Package};
use crate::server::endpoint;

#[derive(Debug, Args)]
pub struct DatasetArguments {
    #[command(subcommand)]
    command: DatasetCommand,
}

#[derive(Debug, Subcommand)]
enum DatasetCommand {
    /// List the data sets: rows, size, licence, package.
    List {
        /// Print a JSON array of objects instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// Fetch the package of a data set, and fill a new table with it.
    Load {
        /// Name from `spindle dataset list`, for example `flights`.
        name: String,
        /// The server: `socket:/path`, `mysql://user:password@host:port/database`,
        /// `postgres:/directory-of-the-socket`, `postgresql://user:password@host:port/database` or
        /// `sqlite:/path`.
        #[arg(long, value_parser = endpoint::parse)]
        server: Endpoint,
        /// Name of the table [default: the name of the data set].
        #[arg(long, value_parser = plain_name)]
        table: Option<String>,
    },
}

/// A line of the list.
#[derive(Debug, Serialize)]
struct Entry {
    name: &'static str,
    about: &'static str,
    rows: u64,
    /// Of the CSV file.
    bytes: u64,
    licence: &'static str,
    package: &'static str,
    /// The command that loads it.
    get: String,
}

pub fn run(arguments: &DatasetArguments) -> Result<()> {
    match &arguments.command {
        DatasetCommand::List { json } => {
            let entries: Vec<Entry> = dataset::all().map(entry).collect();
            print_answer(*json, &entries, || {
                let next = "\nspindle dataset load NAME --server URL\n";
                columns(entries.iter().map(row)) + next
            })
        }
        DatasetCommand::Load { name, server, table } => load(name, server, table.as_deref()),
    }
}

fn load(name: &str, server: &Endpoint, table: Option<&str>) -> Result<()> {
    let (package, dataset) = dataset::all().find(|(_, dataset)| dataset.name == name).ok_or_else(|| {
        let names: Vec<&str> = dataset::all().map(|(_, dataset)| dataset.name.as_str()).collect();
        Mistake::new(format!("`{name}` is no data set{}", near::hint(name, &names)))
    })?;
    let table = table.map_or_else(|| dataset.table(), str::to_owned);
    let rows = dataset::load((package, dataset), server, &table, &mut |words| eprintln!("{words}"))?;
    print(&format!("{rows} rows in the table {table}\n"))
}

fn entry((package, dataset): (&'static Package, &'static Dataset)) -> Entry {
    Entry {
        name: &dataset.name,
        about: &dataset.about,
        rows: dataset.rows,
        bytes: dataset.bytes,
        licence: &package.licence,
        package: &package.name,
        get: format!("spindle dataset load {} --server URL", dataset.name),
    }
}

fn row(entry: &Entry) -> [String; 6] {
    let Entry { name, about, rows, bytes, licence, package, .. } = entry;
    let [name, about, licence, package] = [name, about, licence, package].map(|word| (*word).to_owned());
    [name, format!("{rows} rows"), text::size(*bytes), licence, package, about]
}

/// A name that needs no quotes in any database.
fn plain_name(text: &str) -> Result<String, String> {
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
    if is_plain {
        Ok(text.to_owned())
    } else {
        Err("write letters, digits and `_`, a letter first".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_table_is_no_statement() {
        assert_eq!(plain_name("flights_2").as_deref(), Ok("flights_2"));
        for text in ["", "2", "a b", "t; DROP TABLE t", "`t`"] {
            assert!(plain_name(text).is_err(), "{text}");
        }
    }
}
