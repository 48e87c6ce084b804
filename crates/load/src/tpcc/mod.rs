//! TPC-C: an order-entry business with five transactions over nine tables.
//!
//! Follows the TPC Benchmark C standard, revision 5.11. Where it does not, [`DEVIATIONS`] says so; the report prints that
//! list. A [`Preset`] follows another kit's rules instead. The audit bounds of clause 9.2.2.5 are tests of the input generator (`input.rs`), the consistency conditions
//! 3.3.2.1 to 3.3.2.12 are the verification of every trial (`verify.rs`, `conditions.rs`).
//!
//! The headline is committed new orders per minute. The new orders that end in the rollback that clause 2.4.1.4 asks
//! for (1 %) are not counted, though the standard counts them into tpmC: a rollback needs no log write, and the headline is
//! to measure what reached the storage. Multiply by 1/0.99 to compare with kits that count them.

mod conditions;
mod deck;
mod delivery;
mod facts;
mod input;
mod loader;
mod new_order;
mod order_status;
mod payment;
mod population;
mod preset;
mod random;
mod schema;
mod statements;
mod stock_level;
mod terminal;
mod verify;
mod wait_times;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::protocol::{Endpoint, KindSummary};
use crate::workload::{Check, Client, Count, Data, Headline, OnProgress, TERMINALS_MAX, Workload};
use spindle_base::random::Random;

pub use preset::Preset;

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(try_from = "Written")]
pub struct Spec {
    pub warehouses: u32,
    pub terminals: u32,
    /// The standard's rules, or a kit's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Keying and think times, as the standard has them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wait_times: bool,
    /// Transactions per second of the open loop, of all kinds together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    warehouses: Option<u32>,
    terminals: u32,
    preset: Option<Preset>,
    #[serde(default)]
    wait_times: bool,
    rate: Option<u32>,
}

impl TryFrom<Written> for Spec {
    /// In serde's words, so that whoever explains those explains these.
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Spec, &'static str> {
        let Written { warehouses, terminals, preset, wait_times, rate } = written;
        let warehouses = warehouses.or(preset.map(Preset::warehouses));
        if wait_times && rate.is_some() {
            return Err("`rate` has no place beside `wait_times`: the pauses make the rate");
        }
        let warehouses = warehouses.ok_or("missing field `warehouses`")?;
        Ok(Spec { warehouses, terminals, preset, wait_times, rate })
    }
}

impl Spec {
    /// The standard's rules, as fast as terminals are answered.
    pub fn new(warehouses: u32, terminals: u32) -> Spec {
        Spec { warehouses, terminals, preset: None, wait_times: false, rate: None }
    }

    pub(crate) fn counts(&self) -> Vec<Count> {
        let mut counts = vec![
            Count::new("warehouses", self.warehouses, 10_000),
            Count::new("terminals", self.terminals, TERMINALS_MAX),
        ];
        counts.extend(Count::rate(self.rate));
        counts
    }

    pub(crate) fn data(&self) -> Data {
        Data {
            words: format!("{} warehouses", self.warehouses),
            bytes: u64::from(self.warehouses) * WAREHOUSE_BYTES,
        }
    }

    pub(crate) fn data_set(&self) -> String {
        let keys = if preset::rules(self.preset).foreign_keys.is_empty() { "" } else { ", foreign keys" };
        format!("tpcc, {} warehouses{keys}", self.warehouses)
    }

    /// Where this kit differs from the standard, as sentences for a report.
    pub(crate) fn deviations(&self) -> Vec<&'static str> {
        let waits = if self.wait_times { None } else { Some(NO_WAIT_TIMES) };
        let preset = self.preset.map_or(&[preset::NO_FOREIGN_KEYS][..], Preset::deviations);
        waits.into_iter().chain(preset.iter().copied()).chain(DEVIATIONS.iter().copied()).collect()
    }
}

/// Of one warehouse with its indexes. Ten of them, with redo and undo logs, fill 909 MiB of a disk once they are loaded (MariaDB 10.11); the rest is
/// for growth.
const WAREHOUSE_BYTES: u64 = 100 << 20;

const NO_WAIT_TIMES: &str = "No keying and think times: terminals send as fast as they are answered, or at a rate, so the limit of 12.86 tpmC \
                             per warehouse does not hold.";

const DEVIATIONS: &[&str] = &[
    "As many terminals as the scenario says, not ten per warehouse. With fewer terminals than warehouses a terminal owns a \
     fixed set of home warehouses and draws one per transaction, so that all data is used.",
    "Deliveries are executed at once, all ten districts in one transaction, and not queued.",
    "The headline counts committed new orders only, without the 1 % that roll back by intent; the standard counts them.",
    "Response times are reported, not checked against the standard's limits (90 % within 5 s, Stock-Level within 20 s).",
    "Isolation is REPEATABLE READ, not SERIALIZABLE: rows that are changed are locked before or while they are read; rows \
     and columns that no transaction changes are read without locks.",
    "On PostgreSQL transactions that write run at its default_transaction_isolation, READ COMMITTED unless set: an UPDATE goes on \
     with the newest row, as InnoDB's does at REPEATABLE READ, where PostgreSQL's REPEATABLE READ would refuse it. Order-Status and \
     Stock-Level are read only and have one snapshot (REPEATABLE READ).",
    "Lines of an order are read and written with one statement per table (IN lists, multi-row INSERT), stock rows in \
     key order; Delivery handles its districts likewise.",
    "All rows of the initial population carry one fixed date, so that one seed gives one database.",
    "The mix is a shuffled deck of 100 cards (45/43/4/4/4) per terminal.",
    "Condition 3.3.2.11 also counts the deliveries made since the population; without them it holds for a fresh database \
     only. The server aggregates what the conditions need, the client compares.",
    "SQLite has no decimal numbers: there amounts are floating-point numbers, rounded to cents where they are compared. One \
     transaction writes at a time.",
    "No terminal screens are drawn, and no ACID tests other than the consistency conditions are run.",
];

pub const KINDS: [&str; 5] = ["new-order", "payment", "order-status", "delivery", "stock-level"];

/// Tells the random numbers of think times from those of inputs.
const WAITS: u64 = 1;
const DISTRICTS: u32 = 10;
const CUSTOMERS_PER_DISTRICT: u32 = 3_000;
const ORDERS_PER_DISTRICT: u32 = 3_000;
/// Orders from this one on are not delivered in a fresh database.
const FIRST_NEW_ORDER: u32 = 2_101;
const ITEMS: u32 = 100_000;

#[derive(Debug)]
pub struct Tpcc {
    spec: Spec,
}

impl Tpcc {
    /// Its counts must be in range.
    pub(crate) fn new(spec: Spec) -> Tpcc {
        Tpcc { spec }
    }
}

impl Workload for Tpcc {
    fn kinds(&self) -> &'static [&'static str] {
        &KINDS
    }

    fn terminals(&self) -> u32 {
        self.spec.terminals
    }

    fn pauses(&self) -> bool {
        self.spec.wait_times || self.spec.rate.is_some()
    }

    fn load(&self, endpoint: &Endpoint, seed: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        loader::load(endpoint, self.spec.warehouses, &preset::rules(self.spec.preset), seed, progress)
    }

    fn connect(&self, endpoint: &Endpoint, terminal: u32, seed: u64) -> Result<Box<dyn Client>> {
        let inputs = input::Generator::new(&self.spec, terminal, seed);
        let waits = self.spec.wait_times.then(|| Random::seeded(&[seed, u64::from(terminal), WAITS]));
        Ok(Box::new(terminal::Terminal::connect(endpoint, inputs, waits)?))
    }

    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>> {
        verify::verify(endpoint, self.spec.warehouses)
    }

    fn headline(&self, kinds: &[KindSummary], duration_s: f64) -> Headline {
        let rules = preset::rules(self.spec.preset);
        let counted =
            |kind: &KindSummary| kind.committed + if rules.counts_rollbacks { kind.rolled_back } else { 0 };
        let new_orders = kinds.iter().find(|kind| kind.name == KINDS[0]).map_or(0, counted);
        Headline { name: rules.headline, value: new_orders as f64 * 60.0 / duration_s }
    }
}
