//! The OLTP workloads of sysbench 1.0.20 (`src/lua/oltp_*.lua`), natively: the same tables, rows, statements
//! and transactions.
//!
//! Known deviations from the tool are in [`DEVIATIONS`]. Distributions are in `distribution.rs`.

mod client;
mod distribution;
mod loader;
mod table;
mod verify;

use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use distribution::Distribution;
use distribution::Rows;

use crate::protocol::{Endpoint, KindSummary, Metric};
use crate::sql::Session;
use crate::workload::{
    Check, Client, Complaint, Data, Declared, Example, Facts, OnProgress, RATE_MAX, TERMINALS_MAX, Workload,
    default_number, whole_number,
};
use spindle_base::child::RunAs;

/// A script of the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Script {
    /// `oltp_read_write`: 10 point selects, 4 range selects, 2 updates, 1 delete and 1 insert.
    ReadWrite,
    /// `oltp_read_only`: the selects of `read-write`.
    ReadOnly,
    /// `oltp_write_only`: the writes of `read-write`.
    WriteOnly,
    /// `oltp_point_select`: a select of one row by its key.
    PointSelect,
    /// `oltp_insert`: an insert of one row at the end.
    Insert,
    /// `oltp_update_index`: an update of one row and of its entry in the secondary index.
    UpdateIndex,
    /// `oltp_update_non_index`: an update of one row without an index.
    UpdateNonIndex,
    /// `oltp_delete`: a delete of one row, while rows are left.
    Delete,
}

impl Script {
    pub const ALL: [Script; 8] = [
        Script::ReadWrite,
        Script::ReadOnly,
        Script::WriteOnly,
        Script::PointSelect,
        Script::Insert,
        Script::UpdateIndex,
        Script::UpdateNonIndex,
        Script::Delete,
    ];

    fn kinds(self) -> &'static [&'static str] {
        match self {
            Script::ReadWrite => &["read-write"],
            Script::ReadOnly => &["read-only"],
            Script::WriteOnly => &["write-only"],
            Script::PointSelect => &["point-select"],
            Script::Insert => &["insert"],
            Script::UpdateIndex => &["update-index"],
            Script::UpdateNonIndex => &["update-non-index"],
            Script::Delete => &["delete"],
        }
    }

    fn is_transaction(self) -> bool {
        matches!(self, Script::ReadWrite | Script::ReadOnly | Script::WriteOnly)
    }

    fn writes(self) -> bool {
        !matches!(self, Script::ReadOnly | Script::PointSelect)
    }

    fn has_points(self) -> bool {
        matches!(self, Script::ReadWrite | Script::ReadOnly | Script::PointSelect)
    }

    fn has_ranges(self) -> bool {
        matches!(self, Script::ReadWrite | Script::ReadOnly)
    }

    fn has_index_updates(self) -> bool {
        matches!(self, Script::ReadWrite | Script::WriteOnly | Script::UpdateIndex)
    }

    fn has_other_updates(self) -> bool {
        matches!(self, Script::ReadWrite | Script::WriteOnly | Script::UpdateNonIndex)
    }

    fn has_deletes(self) -> bool {
        self.has_replacements() || self == Script::Delete
    }

    /// True if the script deletes a row and inserts it again.
    fn has_replacements(self) -> bool {
        matches!(self, Script::ReadWrite | Script::WriteOnly)
    }
}

pub const FACTS: Facts = Facts {
    example: Example::of_size(
        "rows",
        r#"{"script": "read-write", "tables": 10, "distribution": "uniform", "terminals": 16}"#,
    ),
    ..Facts::SQL
};

/// The OLTP workloads of sysbench, natively.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Script of the tool.
    #[arg(long, value_enum, default_value_t = Script::ReadWrite)]
    pub script: Script,
    /// Number of tables.
    #[arg(long, default_value_t = 10, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 1_000))]
    pub tables: u32,
    /// Initial rows of each table, about 240 bytes each.
    #[arg(long, default_value_t = 100_000, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub rows: u32,
    /// Distribution of the requested rows. The tool's own default is `special`.
    #[arg(long, value_enum)]
    pub distribution: Distribution,
    /// Exponent of `zipfian`: row k is requested with a frequency of 1 / k^exponent. Default: the tool's 0.8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[arg(long)]
    pub rand_zipfian_exp: Option<f64>,
    /// Number of concurrent connections. Each sends one transaction after the other.
    #[serde(default = "default_number::<8, u32>")]
    #[arg(long, default_value_t = 8, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = TERMINALS_MAX))]
    pub terminals: u32,
    /// Every statement is its own transaction (`--skip-trx`).
    #[serde(default)]
    #[arg(long)]
    pub autocommit: bool,
    /// Single-row selects per transaction of `read-write` and `read-only`.
    #[serde(default = "default_number::<10, u32>")]
    #[arg(long, default_value_t = 10, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 10_000))]
    pub point_selects: u32,
    /// Rows per range select.
    #[serde(default = "default_number::<100, u32>")]
    #[arg(long, default_value_t = 100, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub range_size: u32,
    /// Open loop: transactions started per second, independent of earlier answers. A transaction waits if all
    /// connections are busy. Latency counts from the scheduled start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[arg(long, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = RATE_MAX))]
    pub rate: Option<u32>,
}

impl Declared for Spec {
    fn contradiction(&self) -> Option<Complaint> {
        let exponent = self.rand_zipfian_exp?;
        let complaint = if self.distribution != Distribution::Zipfian {
            "is for the distribution `zipfian` only; leave it out".to_owned()
        } else if (0.0..=10.0).contains(&exponent) {
            return None;
        } else {
            format!("{exponent} is out of range; it can be 0 to 10")
        };
        Some(("rand_zipfian_exp", complaint))
    }

    fn data(&self) -> Option<Data> {
        Some(Data {
            words: format!("{} tables of {} rows", self.tables, self.rows),
            bytes: u64::from(self.tables) * u64::from(self.rows) * ROW_BYTES,
        })
    }

    fn read_only_types(&self) -> &'static [&'static str] {
        if self.script.writes() { &[] } else { self.script.kinds() }
    }

    /// Includes the distribution, because the column `k` is drawn from it.
    fn data_set(&self) -> String {
        let exponent = self.rand_zipfian_exp.map_or(String::new(), |exponent| format!(" {exponent}"));
        let Spec { tables, rows, distribution, .. } = self;
        format!("oltp, {tables} tables of {rows} rows, k {distribution:?}{exponent}")
    }

    fn deviations(&self) -> Vec<&'static str> {
        DEVIATIONS.to_vec()
    }

    fn workload(&self, _: RunAs) -> Result<Box<dyn Workload>> {
        Ok(Box::new(self.clone()))
    }
}

impl Spec {
    fn zipfian_exp(&self) -> f64 {
        self.rand_zipfian_exp.unwrap_or(distribution::ZIPFIAN_EXP)
    }

    fn drawn_rows(&self) -> Rows {
        Rows::new(self.distribution, self.rows, self.zipfian_exp())
    }

    /// Drops the tables, so that the foreign tool can create its own.
    pub(super) fn drop_tables(&self, session: &mut dyn Session) -> Result<()> {
        loader::drop_tables(session, self.tables)
    }

    /// Completes tables that the foreign tool created and filled.
    ///
    /// # Errors
    /// A table has a different number of rows.
    pub(super) fn finish_load(&self, session: &mut dyn Session) -> Result<()> {
        loader::finish(session, self)
    }
}

/// Bytes of a row with its share of the indexes, as InnoDB stores a loaded table.
const ROW_BYTES: u64 = 240;

/// Known deviations from the tool.
const DEVIATIONS: &[&str] = &[
    "Rows are loaded with their numbers by concurrent streams of LOAD DATA (COPY, INSERT), 100,000 rows per transaction.",
    "An event that loses a deadlock is retried with the same rows; the tool draws new ones. Both include the retries in the latency.",
    "BEGIN and COMMIT are sent as text, not as prepared statements.",
    "On SQLite, writing transactions begin with BEGIN IMMEDIATE.",
];

impl Workload for Spec {
    fn kinds(&self) -> &'static [&'static str] {
        self.script.kinds()
    }

    fn terminals(&self) -> u32 {
        self.terminals
    }

    fn takes_more_terminals(&self) -> bool {
        true
    }

    fn rate_per_s(&self) -> Option<u32> {
        self.rate
    }

    fn load(&self, endpoint: &Endpoint, seed: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        loader::load(endpoint, self, seed, progress)
    }

    fn connect(&self, endpoint: &Endpoint, terminal: u32, seed: u64) -> Result<Box<dyn Client>> {
        Ok(Box::new(client::OltpClient::connect(endpoint, self, terminal, seed)?))
    }

    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>> {
        verify::verify(endpoint, self)
    }

    fn metric(&self, kinds: &[KindSummary], duration_s: f64) -> Metric {
        let name =
            if self.script.is_transaction() { "transactions per second" } else { "statements per second" };
        Metric::committed_per_s(name, kinds, duration_s)
    }
}
