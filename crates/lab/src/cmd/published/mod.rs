//! `spindle published`: studies, their claims, and what a run says about them.

mod show;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;
use spindle_base::text;

use crate::claims::{self, ComparisonFormat, Format, Study, support};
use crate::cmd::output::{columns, print};
use crate::report;

#[derive(Debug, Args)]
pub struct PublishedArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the studies: their claims, and how many checks the studies' own figures support.
    List(Layout),
    /// Show a study or one of its claims: text, checks, errata.
    Show {
        /// Study, such as `x25m-2009-tpcc-mysql`, or claim, such as `X-01`.
        #[arg(value_name = "ID")]
        name: String,
        #[command(flatten)]
        layout: Layout,
    },
    /// Hold runs against the claims of the studies whose rows their cells repeat.
    ///
    /// The scenario names the rows in its tables `[[published]]`. Each claim is confirmed, direction only,
    /// contradicted, not decided or not testable (docs/commands.md has the rule).
    Compare {
        /// Records files, or directories of runs.
        #[arg(required = true)]
        records: Vec<PathBuf>,
        /// Layout of the answer.
        #[arg(long, value_enum, default_value = "text")]
        format: ComparisonFormat,
        /// The same as `--format json`.
        #[arg(long, conflicts_with = "format")]
        json: bool,
    },
}

#[derive(Debug, Args)]
struct Layout {
    /// Layout of the answer.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl Layout {
    fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

/// Fails with a [`spindle_base::Mistake`] of the user.
pub fn run(arguments: &PublishedArguments) -> Result<()> {
    match &arguments.command {
        Command::List(layout) => list(layout.format()),
        Command::Show { name, layout } => {
            let named = claims::find(name)?;
            print(&show::page(named, layout.format())?)
        }
        Command::Compare { records, format, json } => {
            let format = if *json { ComparisonFormat::Json } else { *format };
            let read = |path: &PathBuf| Ok((shown(path), report::read(path)?));
            let runs = records.iter().map(read).collect::<Result<Vec<_>, spindle_base::Mistake>>()?;
            print(&claims::compare(&runs)?.lay_out(format)?)
        }
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// A study in one line.
#[derive(Debug, Serialize)]
struct Summary {
    study: &'static str,
    title: &'static str,
    author: &'static str,
    year: u32,
    claims: usize,
    checks: usize,
    /// Checks whose figures the study prints.
    checks_with_rows: usize,
    /// Those that the study's own figures support.
    checks_supported: usize,
}

impl Summary {
    fn new(study: &'static Study) -> Summary {
        let supports: Vec<_> = study.checks().map(|(_, check)| support(study, check)).collect();
        let source = &study.source;
        Summary {
            study: study.slug(),
            title: source.title_en.as_ref().unwrap_or(&source.title),
            author: &source.author,
            year: source.year,
            claims: study.claims.len(),
            checks: supports.len(),
            checks_with_rows: supports.iter().flatten().count(),
            checks_supported: supports.iter().flatten().filter(|support| support.holds).count(),
        }
    }

    fn fields(&self) -> [String; 7] {
        [
            self.study.to_owned(),
            self.year.to_string(),
            self.claims.to_string(),
            self.checks.to_string(),
            self.checks_with_rows.to_string(),
            self.checks_supported.to_string(),
            self.title.to_owned(),
        ]
    }
}

fn list(format: Format) -> Result<()> {
    let summaries: Vec<Summary> = claims::studies().iter().map(Summary::new).collect();
    let heads = ["study", "year", "claims", "checks", "with rows", "supported", "title"].map(str::to_owned);
    let rows = summaries.iter().map(Summary::fields);
    print(&match format {
        Format::Json => text::json(&summaries)? + "\n",
        Format::Text => columns(std::iter::once(heads).chain(rows)),
        Format::Md => {
            let line = |fields: [String; 7]| {
                format!("| {} |\n", fields.map(|field| report::escaped(&field)).join(" | "))
            };
            line(heads) + "|---|--:|--:|--:|--:|--:|---|\n" + &rows.map(line).collect::<String>()
        }
    })
}
