//! A workload that is a file of SQL with parameters, described in `docs/custom-workloads.md`.

mod client;
mod expression;
mod parameters;
mod program;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::{Endpoint, KindSummary, Metric};
use crate::sql::{Value, connect, connect_and_create_database};
use crate::workload::loading::{self, Task};
use crate::workload::{
    Check, Client, Complaint, Data, Declared, Facts, OnProgress, Progress, TERMINALS_MAX, Workload,
    default_number, kept_for_good, whole_number,
};
use expression::Expression;
use parameters::Parameters;
use program::{LoadStep, Program};
use spindle_base::child::RunAs;
use spindle_base::random::Random;

pub const FACTS: Facts = Facts::SQL;

/// A file of SQL with parameters (docs/custom-workloads.md).
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Path of the file, relative to the scenario.
    #[schemars(example = "accounts.sql")]
    pub file: PathBuf,
    /// Number of concurrent connections. Each sends one transaction after the other.
    #[serde(default = "default_number::<8, u32>")]
    #[arg(long, default_value_t = 8, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = TERMINALS_MAX))]
    pub terminals: u32,
    /// Numbers that replace the file's own parameters.
    #[serde(default)]
    #[command(flatten)]
    pub parameters: Parameters,
    /// The content of the file, put in by [`Declared::read_files`]: so it is part of every hash, and the load
    /// process needs no file.
    #[serde(default)]
    #[arg(skip)]
    #[schemars(skip)]
    pub text: String,
}

/// Rows of one transaction of the load.
const CHUNK: u64 = 100_000;

impl Declared for Spec {
    /// The first mistake in the file; the sentence names file and line.
    fn contradiction(&self) -> Option<Complaint> {
        Some(("file", self.program().err()?))
    }

    /// `None` also if the file is wrong.
    fn data(&self) -> Option<Data> {
        let rows = self.program().ok()?.load;
        let bytes = |step: &LoadStep| match step {
            LoadStep::Rows { count, columns, .. } => {
                // Half as much again, for indexes.
                count * (20 + columns.iter().map(Expression::width).sum::<u64>()) * 3 / 2
            }
            LoadStep::Statement(_) => 0,
        };
        Some(Data {
            words: format!("the rows of {}", self.file.display()),
            bytes: rows.iter().map(bytes).sum(),
        })
    }

    fn data_set(&self) -> String {
        format!("custom, {:?}, {}", self.parameters.0, self.text)
    }

    fn read_files(&mut self, directory: &Path) -> Result<(), Complaint> {
        if !self.text.is_empty() {
            return Err(("text", "cannot be given; write the SQL into a file, and name that".to_owned()));
        }
        let path = directory.join(&self.file);
        self.text = std::fs::read_to_string(&path)
            .map_err(|error| ("file", format!("{} cannot be read: {error}", path.display())))?;
        Ok(())
    }

    fn workload(&self, _: RunAs) -> Result<Box<dyn Workload>> {
        let program = self.program().map_err(|complaint| anyhow!(complaint))?;
        let names = program.transactions.iter().map(|transaction| transaction.name.clone());
        Ok(Box::new(Custom { kinds: kept_for_good(names), spec: self.clone(), program }))
    }
}

impl Spec {
    fn program(&self) -> Result<Program, String> {
        Program::parse(&self.text, &self.parameters.0)
            .map_err(|mistake| format!("{}, line {}: {}", self.file.display(), mistake.line, mistake.message))
    }
}

#[derive(Debug)]
struct Custom {
    spec: Spec,
    program: Program,
    kinds: &'static [&'static str],
}

impl Custom {
    fn place(&self, line: usize) -> String {
        format!("{}, line {line}", self.spec.file.display())
    }
}

fn task(table: &str, columns: &[Expression], (first, end): (u64, u64), seed: &[u64]) -> Task {
    let (columns, seed) = (columns.to_vec(), [seed, &[first]].concat());
    Task {
        table: table.to_owned(),
        part: format!(", rows {first} to {end}"),
        row_count: end - first,
        rows: Arc::new(move |output, count| {
            let mut random = Random::seeded(&seed);
            (first..end).try_for_each(|row| {
                for (index, column) in columns.iter().enumerate() {
                    if index > 0 {
                        output.write_all(b"\t")?;
                    }
                    match column.value(&mut random, row) {
                        Value::Text(text) => output.write_all(&text)?,
                        Value::Integer(value) => write!(output, "{value}")?,
                        Value::Real(_) | Value::Null => unreachable!("no expression draws it"),
                    }
                }
                output.write_all(b"\n")?;
                count();
                Ok(())
            })
        }),
    }
}

impl Workload for Custom {
    fn kinds(&self) -> &'static [&'static str] {
        self.kinds
    }

    fn terminals(&self) -> u32 {
        self.spec.terminals
    }

    fn load(&self, endpoint: &Endpoint, seed: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        let mut session = connect_and_create_database(endpoint)?;
        let dialect = session.dialect();
        let rows = |step: &LoadStep| if let LoadStep::Rows { count, .. } = step { *count } else { 0 };
        let rows_total = self.program.load.iter().map(rows).sum();
        let mut rows_before = 0;
        for (index, step) in (0..).zip(&self.program.load) {
            match step {
                LoadStep::Statement(statement) => {
                    session.execute(&statement.text).with_context(|| self.place(statement.line))?;
                }
                LoadStep::Rows { line, table, count, columns } => {
                    let chunks = (0..*count).step_by(CHUNK as usize);
                    let chunks = chunks.map(|first| {
                        task(table, columns, (first, (first + CHUNK).min(*count)), &[seed, index])
                    });
                    let mut progress = |done: Progress| {
                        progress(Progress { rows_done: rows_before + done.rows_done, rows_total })
                    };
                    loading::load(endpoint, chunks.collect(), &mut progress)
                        .with_context(|| self.place(*line))?;
                    rows_before += count;
                }
            }
        }
        for step in &self.program.load {
            let LoadStep::Rows { table, .. } = step else { continue };
            session.execute_each(dialect.after_load(table))?;
        }
        Ok(())
    }

    fn connect(&self, endpoint: &Endpoint, terminal: u32, seed: u64) -> Result<Box<dyn Client>> {
        let file = self.spec.file.display().to_string();
        let place = (terminal, self.spec.terminals);
        Ok(Box::new(client::CustomClient::connect(endpoint, &self.program, place, seed, file)?))
    }

    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>> {
        let mut session = connect(endpoint)?;
        let mut checks = Vec::new();
        for condition in &self.program.checks {
            let query = &condition.query;
            let answer = session.number(&query.text).with_context(|| self.place(query.line))?;
            checks.push(Check {
                name: condition.name.clone(),
                passed: answer != 0,
                detail: format!("{} answers {answer}", query.text.replace('\n', " ")),
            });
        }
        Ok(checks)
    }

    fn metric(&self, kinds: &[KindSummary], duration_s: f64) -> Metric {
        Metric::committed_per_s("transactions per second", kinds, duration_s)
    }
}
