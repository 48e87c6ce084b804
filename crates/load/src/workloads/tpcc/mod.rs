//! TPC-C: an order-entry business with five transactions over nine tables.
//!
//! Follows the TPC Benchmark C standard, revision 5.11. Known deviations are in [`DEVIATIONS`]; the report
//! prints that list. A [`Preset`] follows another kit's rules instead. The audit bounds of clause 9.2.2.5 are
//! tests of the input generator (`terminal/input.rs`). The consistency conditions 3.3.2.1 to 3.3.2.12 are the
//! verification of every trial (`verify/`).
//!
//! The metric is committed new orders per minute. It excludes the 1 % of new orders that clause 2.4.1.4 rolls
//! back, though the standard counts them: a rollback needs no log write, and the metric counts work that
//! reached the storage. Multiply by 1/0.99 to compare with kits that include them.

mod data;
mod preset;
mod random;
mod spec;
mod terminal;
mod verify;

use std::time::Duration;

use anyhow::Result;

use crate::protocol::{Endpoint, KindSummary, Metric};
use crate::workload::{Check, Client, Data, Declared, Example, Facts, OnProgress, Workload};
use spindle_base::child::RunAs;
use spindle_base::text::plural;

pub use preset::Preset;

pub use spec::Spec;

pub const FACTS: Facts = Facts {
    needs_transactions: true,
    example: Example::of_size("warehouses", r#"{"terminals": 16}"#),
    ..Facts::SQL
};

impl Declared for Spec {
    fn data(&self) -> Option<Data> {
        let words = plural(self.warehouses as usize, "warehouse");
        Some(Data { words, bytes: u64::from(self.warehouses) * WAREHOUSE_BYTES })
    }

    fn data_set(&self) -> String {
        let keys = if preset::rules(self.preset).foreign_keys.is_empty() { "" } else { ", foreign keys" };
        format!("tpcc, {} warehouses{keys}", self.warehouses)
    }

    fn deviations(&self) -> Vec<&'static str> {
        let waits = if self.wait_times { None } else { Some(NO_WAIT_TIMES) };
        let preset = self.preset.map_or(&[preset::NO_FOREIGN_KEYS][..], Preset::deviations);
        waits.into_iter().chain(preset.iter().copied()).chain(DEVIATIONS.iter().copied()).collect()
    }

    fn read_only_types(&self) -> &'static [&'static str] {
        &[KINDS[2], KINDS[4]]
    }

    fn warm_up(&self) -> Option<Duration> {
        self.preset?.warm_up()
    }

    fn workload(&self, _: RunAs) -> Result<Box<dyn Workload>> {
        Ok(Box::new(self.clone()))
    }
}

/// Size of one warehouse with its indexes. Ten of them, with redo and undo logs, fill 909 MiB of a disk after
/// the load (MariaDB 10.11); the rest is for growth.
const WAREHOUSE_BYTES: u64 = 100 << 20;

const NO_WAIT_TIMES: &str = "No keying and think times: terminals send as soon as they are answered, or at a rate, so the limit of 12.86 new \
                             orders a minute per warehouse does not hold.";

const DEVIATIONS: &[&str] = &[
    "The scenario sets the number of terminals; the standard has ten per warehouse. With fewer terminals than warehouses, a terminal \
     has a fixed set of home warehouses and draws one per transaction, so that all data is used.",
    "Deliveries are executed immediately instead of queued, all ten districts in one transaction.",
    "The metric counts committed new orders only. The standard also counts the 1 % of intended rollbacks.",
    "Response times are reported, not checked against the standard's limits (90 % within 5 s, Stock-Level within 20 s).",
    "Isolation is REPEATABLE READ, not SERIALIZABLE. Rows that a transaction changes are locked before or while they are read. \
     Rows and columns that no transaction changes are read without locks.",
    "On PostgreSQL, writing transactions run at its default_transaction_isolation, which is READ COMMITTED unless set. An UPDATE then \
     continues with the newest row, as with InnoDB at REPEATABLE READ; PostgreSQL's REPEATABLE READ would refuse it. Order-Status and \
     Stock-Level are read-only and have one snapshot (REPEATABLE READ).",
    "Lines of an order are read and written with one statement per table (IN lists, multi-row INSERT), stock rows in \
     key order. Delivery does the same with its districts.",
    "All initial rows have one fixed date, so that one seed gives one database.",
    "The mix is a shuffled deck of 100 cards (45/43/4/4/4) per terminal.",
    "Condition 3.3.2.11 also counts the deliveries since the load, because its original form holds for a fresh database only. \
     The server aggregates the data of the conditions, the client compares.",
    "SQLite has no decimal numbers. Its amounts are floating-point numbers, rounded to cents for comparison. It has one \
     writing transaction at a time.",
    "No terminal screens are drawn. The consistency conditions are the only ACID tests.",
];

const KINDS: [&str; 5] = ["new-order", "payment", "order-status", "delivery", "stock-level"];

const DISTRICTS: u32 = 10;
const CUSTOMERS_PER_DISTRICT: u32 = 3_000;
const ORDERS_PER_DISTRICT: u32 = 3_000;
/// In a fresh database, orders from this number on are undelivered.
const FIRST_NEW_ORDER: u32 = 2_101;
const ITEMS: u32 = 100_000;

impl Workload for Spec {
    fn kinds(&self) -> &'static [&'static str] {
        &KINDS
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

    fn pauses(&self) -> bool {
        self.wait_times || self.rate.is_some()
    }

    fn load(&self, endpoint: &Endpoint, seed: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        data::load(endpoint, self.warehouses, &preset::rules(self.preset), seed, progress)
    }

    fn connect(&self, endpoint: &Endpoint, terminal: u32, seed: u64) -> Result<Box<dyn Client>> {
        Ok(Box::new(terminal::Terminal::connect(endpoint, self, terminal, seed)?))
    }

    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>> {
        verify::verify(endpoint, self.warehouses)
    }

    fn metric(&self, kinds: &[KindSummary], duration_s: f64) -> Metric {
        let rules = preset::rules(self.preset);
        let counted =
            |kind: &KindSummary| kind.committed + if rules.counts_rollbacks { kind.rolled_back } else { 0 };
        let new_orders = kinds.iter().find(|kind| kind.name == KINDS[0]).map_or(0, counted);
        Metric::rate(rules.metric, new_orders as f64 * 60.0 / duration_s)
    }
}
