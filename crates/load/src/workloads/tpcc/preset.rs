//! Rules of the kits behind published figures, where they differ from the standard. Sources:
//! Percona-Lab/tpcc-mysql `src/driver.c` and `add_fkey_idx.sql`, osdldbt/dbt2 `src/transaction_queue.c` and
//! `src/db.c`; the differences are listed in the comparison of kits by their own headers.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kit that a workload is to be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Default: 40 warehouses.
    TpccMysql,
    /// Defaults: 200 warehouses and 1,000 s of warm-up.
    Dbt2,
}

/// The rules that differ between kits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules {
    /// Cards per deck, by the index of the kind.
    pub(super) cards: [usize; 5],
    /// Every transaction draws its home warehouse from all.
    pub(super) any_home: bool,
    /// Order lines and payments may belong to another warehouse.
    pub(super) has_remote: bool,
    pub(super) fewest_lines: u32,
    pub(super) metric: &'static str,
    /// The metric includes the intended rollbacks, 1 % of the new orders.
    pub(super) counts_rollbacks: bool,
    /// Indexes besides those of the standard's transactions.
    pub(super) indexes: &'static [&'static str],
    /// Foreign keys, declared one by one after the rows and the indexes.
    pub(super) foreign_keys: &'static [&'static str],
}

const STANDARD: Rules = Rules {
    // Payment, Order-Status, Delivery and Stock-Level have their minimum share (clause 5.2.3); New-Order has
    // the rest.
    cards: [45, 43, 4, 4, 4],
    any_home: false,
    has_remote: true,
    fewest_lines: 5,
    metric: "new-order transactions per minute",
    counts_rollbacks: false,
    indexes: &[],
    foreign_keys: &[],
};

/// Indexes for the foreign keys. Each order line accesses a random page of the second one.
const TPCC_MYSQL_INDEXES: [&str; 2] = [
    "CREATE INDEX stock_by_item ON stock (s_i_id)",
    "CREATE INDEX order_line_by_stock ON order_line (ol_supply_w_id, ol_i_id)",
];

const TPCC_MYSQL_FOREIGN_KEYS: [&str; 10] = [
    "ALTER TABLE district ADD FOREIGN KEY (d_w_id) REFERENCES warehouse (w_id)",
    "ALTER TABLE customer ADD FOREIGN KEY (c_w_id, c_d_id) REFERENCES district (d_w_id, d_id)",
    "ALTER TABLE history ADD FOREIGN KEY (h_c_w_id, h_c_d_id, h_c_id) REFERENCES customer (c_w_id, c_d_id, c_id)",
    "ALTER TABLE history ADD FOREIGN KEY (h_w_id, h_d_id) REFERENCES district (d_w_id, d_id)",
    "ALTER TABLE new_orders ADD FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders (o_w_id, o_d_id, o_id)",
    "ALTER TABLE orders ADD FOREIGN KEY (o_w_id, o_d_id, o_c_id) REFERENCES customer (c_w_id, c_d_id, c_id)",
    "ALTER TABLE order_line ADD FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) REFERENCES orders (o_w_id, o_d_id, o_id)",
    "ALTER TABLE order_line ADD FOREIGN KEY (ol_supply_w_id, ol_i_id) REFERENCES stock (s_w_id, s_i_id)",
    "ALTER TABLE stock ADD FOREIGN KEY (s_w_id) REFERENCES warehouse (w_id)",
    "ALTER TABLE stock ADD FOREIGN KEY (s_i_id) REFERENCES item (i_id)",
];

pub(super) const NO_FOREIGN_KEYS: &str = "No foreign keys are declared.";

impl Preset {
    pub(super) fn warehouses(self) -> u32 {
        match self {
            Preset::TpccMysql => 40,
            Preset::Dbt2 => 200,
        }
    }

    pub(crate) fn warm_up(self) -> Option<Duration> {
        match self {
            Preset::TpccMysql => None,
            Preset::Dbt2 => Some(Duration::from_secs(1_000)),
        }
    }

    pub(super) fn deviations(self) -> &'static [&'static str] {
        match self {
            Preset::TpccMysql => &[
                "As tpcc-mysql: a deck of 23 (10/10/1/1/1), a home warehouse drawn for every transaction, foreign keys and their two indexes \
                 (SQLite has the indexes only). The figure includes intended rollbacks of new orders.",
                "Unlike tpcc-mysql, each terminal shuffles a deck of its own. The kit has one deck for all terminals, sends four statements \
                 for each line of an order, and commits a delivery after every district.",
            ],
            Preset::Dbt2 => &[
                NO_FOREIGN_KEYS,
                "As dbt2-run by default: a home warehouse drawn for every transaction, 6 to 15 lines, no remote lines and payments. \
                 NOTPM includes intended rollbacks of new orders.",
                "Unlike DBT-2, the transactions are not stored procedures, the mix is a deck of 100, and failed transactions do not count.",
            ],
        }
    }
}

pub(super) fn rules(preset: Option<Preset>) -> Rules {
    match preset {
        None => STANDARD,
        Some(Preset::TpccMysql) => Rules {
            cards: [10, 10, 1, 1, 1],
            any_home: true,
            metric: "new orders per minute, those rolled back by intent included",
            counts_rollbacks: true,
            indexes: &TPCC_MYSQL_INDEXES,
            foreign_keys: &TPCC_MYSQL_FOREIGN_KEYS,
            ..STANDARD
        },
        Some(Preset::Dbt2) => Rules {
            any_home: true,
            has_remote: false,
            fewest_lines: 6,
            metric: "NOTPM",
            counts_rollbacks: true,
            ..STANDARD
        },
    }
}
