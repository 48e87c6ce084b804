//! The OLTP workloads of sysbench 1.0.20 (`src/lua/oltp_*.lua`), natively: the same tables, rows, statements and transactions.
//!
//! Where they are not the tool's, [`DEVIATIONS`] says so. Distributions are in `distribution.rs`.

mod client;
mod distribution;
mod loader;
mod table;
mod verify;

use anyhow::Result;
use serde::{Deserialize, Serialize};

pub use distribution::Distribution;
use distribution::Rows;

use crate::protocol::{Endpoint, KindSummary};
use crate::sql::Session;
use crate::workload::{Check, Client, Count, Data, Headline, OnProgress, TERMINALS_MAX, Workload};

/// Which of the tool's scripts it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Script {
    /// `oltp_read_write`: 10 point selects, 4 selects of ranges, 2 updates, and one row deleted and inserted again.
    ReadWrite,
    /// `oltp_read_only`: the selects of `read-write`.
    ReadOnly,
    /// `oltp_write_only`: the writes of `read-write`.
    WriteOnly,
    /// `oltp_point_select`: one row by its key.
    PointSelect,
    /// `oltp_insert`: one row at the end.
    Insert,
    /// `oltp_update_index`: one row, and its entry in the secondary index.
    UpdateIndex,
    /// `oltp_update_non_index`: one row, no index.
    UpdateNonIndex,
    /// `oltp_delete`: one row, as long as there are some.
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

    /// A row deleted and inserted again.
    fn has_replacements(self) -> bool {
        matches!(self, Script::ReadWrite | Script::WriteOnly)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub script: Script,
    pub tables: u32,
    /// Of each table, when it is loaded.
    pub rows: u32,
    pub distribution: Distribution,
    /// Of `zipfian` (`--rand-zipfian-exp`); otherwise the tool's 0.8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rand_zipfian_exp: Option<f64>,
    pub terminals: u32,
    /// Every statement is its own transaction (`--skip-trx`).
    #[serde(default)]
    pub autocommit: bool,
    /// Of `read-write` and `read-only`.
    #[serde(default = "ten")]
    pub point_selects: u32,
    /// Rows of each range.
    #[serde(default = "hundred")]
    pub range_size: u32,
    /// Transactions per second of the open loop (`--rate`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
}

fn ten() -> u32 {
    10
}

fn hundred() -> u32 {
    100
}

impl Spec {
    pub(crate) fn counts(&self) -> Vec<Count> {
        let mut counts = vec![
            Count::new("tables", self.tables, 1_000),
            Count::new("rows", self.rows, 1_000_000_000),
            Count::new("terminals", self.terminals, TERMINALS_MAX),
            Count::new("point_selects", self.point_selects, 10_000),
            Count::new("range_size", self.range_size, 1_000_000),
        ];
        counts.extend(Count::rate(self.rate));
        counts
    }

    /// What else is wrong, with its key.
    pub(crate) fn complaint(&self) -> Option<(&'static str, String)> {
        let exponent = self.rand_zipfian_exp?;
        let complaint = if self.distribution != Distribution::Zipfian {
            "has no meaning unless the distribution is `zipfian`; leave it out".to_owned()
        } else if (0.0..=10.0).contains(&exponent) {
            return None;
        } else {
            format!("{exponent} is out of range; it can be 0 to 10")
        };
        Some(("rand_zipfian_exp", complaint))
    }

    fn zipfian_exp(&self) -> f64 {
        self.rand_zipfian_exp.unwrap_or(distribution::ZIPFIAN_EXP)
    }

    /// The column `k` is drawn from the same rows.
    pub(crate) fn data_set(&self) -> String {
        let exponent = self.rand_zipfian_exp.map_or(String::new(), |exponent| format!(" {exponent}"));
        let Spec { tables, rows, distribution, .. } = self;
        format!("oltp, {tables} tables of {rows} rows, k {distribution:?}{exponent}")
    }

    fn drawn_rows(&self) -> Rows {
        Rows::new(self.distribution, self.rows, self.zipfian_exp())
    }

    pub(crate) fn data(&self) -> Data {
        Data {
            words: format!("{} tables of {} rows", self.tables, self.rows),
            bytes: u64::from(self.tables) * u64::from(self.rows) * ROW_BYTES,
        }
    }
}

/// Bytes of a row with its part of the indexes, as InnoDB stores a loaded table.
const ROW_BYTES: u64 = 240;

/// Where it is not what the tool does.
pub const DEVIATIONS: &[&str] = &[
    "Rows are loaded with their numbers by LOAD DATA (COPY, multi-row INSERT), several streams at once, and are one transaction for \
     each 100,000.",
    "An event that loses a deadlock is tried again with the same rows; the tool draws new ones. Its latency goes on in both.",
    "BEGIN and COMMIT are sent as text, not as prepared statements.",
    "On SQLite a transaction that will write says so when it begins (BEGIN IMMEDIATE).",
];

#[derive(Debug)]
pub struct Oltp {
    spec: Spec,
}

impl Oltp {
    /// Its counts must be in range.
    pub(crate) fn new(spec: Spec) -> Oltp {
        Oltp { spec }
    }

    /// So that another may make them.
    pub(crate) fn drop_tables(&self, session: &mut dyn Session) -> Result<()> {
        loader::drop_tables(session, self.spec.tables)
    }

    /// After another made and filled the tables.
    ///
    /// # Errors
    /// One has another number of rows.
    pub(crate) fn finish_load(&self, session: &mut dyn Session) -> Result<()> {
        loader::finish(session, &self.spec)
    }
}

impl Workload for Oltp {
    fn kinds(&self) -> &'static [&'static str] {
        self.spec.script.kinds()
    }

    fn terminals(&self) -> u32 {
        self.spec.terminals
    }

    fn pauses(&self) -> bool {
        self.spec.rate.is_some()
    }

    fn load(&self, endpoint: &Endpoint, seed: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        loader::load(endpoint, &self.spec, seed, progress)
    }

    fn connect(&self, endpoint: &Endpoint, terminal: u32, seed: u64) -> Result<Box<dyn Client>> {
        Ok(Box::new(client::OltpClient::connect(endpoint, &self.spec, terminal, seed)?))
    }

    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>> {
        verify::verify(endpoint, &self.spec)
    }

    fn headline(&self, kinds: &[KindSummary], duration_s: f64) -> Headline {
        let committed: u64 = kinds.iter().map(|kind| kind.committed).sum();
        let name = if self.spec.script.is_transaction() {
            "transactions per second"
        } else {
            "statements per second"
        };
        Headline { name, value: committed as f64 / duration_s }
    }
}
