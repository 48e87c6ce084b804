//! The Star Schema Benchmark: 13 queries in four flights over a star made of TPC-H's rows.
//!
//! O'Neil, O'Neil, Chen and Revilak, "The Star Schema Benchmark and Augmented Fact Table Indexing", TPCTC
//! 2009. The rows come from the crate `tpchgen`, which makes those of TPC-H's own generator; the answers are
//! computed while the rows are made, and every answer of the server is compared with them.

mod calendar;
mod dimensions;
mod geography;
mod rows;
mod schema;
mod tally;
mod tpch;

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::Endpoint;
use crate::sql::{Engine, RowWriter, connect_and_create_database};
use crate::workload::analytic::{self, Analytic, Over, Query, Shard, Star};
use crate::workload::loading::{self, Task};
use crate::workload::{Complaint, Data, Declared, Example, Facts, OnProgress, Workload, whole_number};
use dimensions::Dimensions;
use spindle_base::child::RunAs;
use spindle_scatter::mapping::Mapping;
use tally::Tally;
use tpch::Scale;

pub const FACTS: Facts = Facts {
    is_fixed_work: true,
    is_done_once: true,
    is_read_only: true,
    example: Example::of_size("scale_percent", "{}"),
    ..Facts::SQL
};

/// The Star Schema Benchmark, with its 13 queries.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Scale factor in percent. A scale factor of one has six million rows of about 130 bytes.
    #[arg(long, default_value_t = 10, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 100_000))]
    pub scale_percent: u32,
    /// Queries, such as `Q1.1` and `Q4.3`, separated by commas. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[arg(long, value_delimiter = ',')]
    pub queries: Vec<String>,
    /// Storage engine, for MariaDB and MySQL only. Default: the server's `default_storage_engine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[arg(long, value_enum)]
    pub engine: Option<Engine>,
    /// Connections over which each query is split into fragments (docs/query.md), for MariaDB and MySQL only. With 1, as
    /// by default, the server answers it whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[arg(long, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 64))]
    pub split: Option<u32>,
    /// Servers over which the lines are spread by their order, for MariaDB and MySQL only; each has storage and `split` connections
    /// of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[arg(skip)]
    #[schemars(range(min = 1, max = 8))]
    pub shards: Option<u32>,
}

/// Of the fact table for each percent, as InnoDB stores it.
const PERCENT_BYTES: u64 = 60_000 * 130;
/// Orders of one transaction of the load.
const PART_ORDERS: u64 = 25_000;
/// Lines of an order, on average.
const LINES: u64 = 4;

/// Known deviations from the benchmark.
const DEVIATIONS: &[&str] = &[
    "The rows are TPC-H's, made into a star as the paper describes, and not those of the benchmark's own generator: cities within a nation, brands within a category and holidays are drawn or chosen here.",
    "Five customers or suppliers of TPC-H are one, so that there are as many as in the benchmark; keys of parts start again where the benchmark has fewer of them.",
    "There are no foreign keys, and no indexes besides the primary keys.",
    "The rows are the same for every seed.",
];

/// The queries of the benchmark, Q1.1 to Q4.3.
pub fn statements() -> Vec<Query> {
    analytic::queries(include_str!("queries.sql"))
}

impl Declared for Spec {
    fn contradiction(&self) -> Option<Complaint> {
        analytic::chosen(&statements(), &self.queries).err()
    }

    fn data(&self) -> Option<Data> {
        let words = format!("a scale factor of {}", f64::from(self.scale_percent) / 100.0);
        Some(Data { words, bytes: u64::from(self.scale_percent) * PERCENT_BYTES })
    }

    fn data_set(&self) -> String {
        let shards = self.over().shards_in_words();
        format!("ssb, {} percent, {:?}{shards}", self.scale_percent, self.engine)
    }

    fn deviations(&self) -> Vec<&'static str> {
        DEVIATIONS.to_vec()
    }

    fn engine(&self) -> Option<Engine> {
        self.engine
    }

    fn shards(&self) -> u32 {
        self.over().shards
    }

    fn workload(&self, _: RunAs) -> Result<Box<dyn Workload>> {
        let queries = analytic::chosen(&statements(), &self.queries);
        let queries = queries.map_err(|(key, words)| anyhow!("{key}: {words}"))?;
        Ok(Box::new(Analytic::new(self.clone(), queries, self.over())))
    }
}

/// All lines of an order are on one server.
fn mapping() -> Mapping {
    Mapping { column: "lo_orderkey".to_owned(), ..Mapping::default() }
}

impl Spec {
    fn over(&self) -> Over {
        Over::of(self.split, self.shards)
    }
}

impl Star for Spec {
    fn mapping(&self) -> Mapping {
        mapping()
    }

    fn load(&self, endpoint: &Endpoint, shard: Shard, _: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        let mut session = connect_and_create_database(endpoint)?;
        let dialect = session.dialect();
        analytic::check_dialect("ssb", dialect, self.engine, self.over())?;
        session.execute_each(schema::create(dialect, self.engine))?;
        let scale = Scale { percent: self.scale_percent };
        let dimensions = Arc::new(Dimensions::new(scale));
        for (table, rows) in dimension_rows(&dimensions) {
            session.load(table, rows).with_context(|| format!("loading the table {table}"))?;
        }
        let part_count = scale.orders().div_ceil(PART_ORDERS);
        let tallies: Vec<Arc<Mutex<Tally>>> = (0..part_count).map(|_| Arc::default()).collect();
        let tasks = (1..).zip(&tallies).map(|(part, tally)| {
            task(scale, (part, part_count as i32), shard, dimensions.clone(), tally.clone())
        });
        loading::load(endpoint, tasks.collect(), progress)?;
        session
            .execute_each(schema::TABLES.into_iter().filter_map(|(table, _)| dialect.after_load(table)))?;
        let mut all = Tally::default();
        for tally in tallies {
            all.add(std::mem::take(&mut *tally.lock().unwrap_or_else(PoisonError::into_inner)));
        }
        let answers = match shard.index {
            0 => all.answers(&statements()),
            _ => Vec::new(),
        };
        let row_counts = [
            ("date", calendar::days().len() as u64),
            ("customer", dimensions.customers.len() as u64),
            ("supplier", dimensions.suppliers.len() as u64),
            ("part", dimensions.parts.len() as u64),
            (schema::LINEORDER, all.lines),
        ];
        analytic::store(&mut *session, &answers, &row_counts)
    }
}

/// What fills the tables besides the fact table.
fn dimension_rows(dimensions: &Arc<Dimensions>) -> [(&'static str, RowWriter); 4] {
    let [customers, suppliers, parts] = [(); 3].map(|()| dimensions.clone());
    [
        ("date", Box::new(|output| calendar::days().into_iter().try_for_each(|day| day.write(output)))),
        (
            "customer",
            Box::new(move |output| customers.customers.iter().try_for_each(|row| row.write(output))),
        ),
        (
            "supplier",
            Box::new(move |output| suppliers.suppliers.iter().try_for_each(|row| row.write(output))),
        ),
        ("part", Box::new(move |output| parts.parts.iter().try_for_each(|row| row.write(output)))),
    ]
}

/// The lines of one part of all orders. The tally is replaced by every attempt to send them.
fn task(
    scale: Scale,
    (part, part_count): (i32, i32),
    shard: Shard,
    dimensions: Arc<Dimensions>,
    tally: Arc<Mutex<Tally>>,
) -> Task {
    let days = calendar::days();
    let mapping = mapping();
    Task {
        table: schema::LINEORDER.to_owned(),
        part: format!(", part {part} of {part_count}"),
        row_count: scale.orders() * LINES / part_count as u64,
        rows: Arc::new(move |output, count| {
            let mut of_part = Tally::default();
            for line in rows::lines(scale, part, part_count, &days) {
                let is_here = shard.has(&mapping, line.order_key().into());
                of_part.note(&line, is_here, &dimensions);
                if is_here {
                    line.write(output)?;
                }
                count();
            }
            *tally.lock().unwrap_or_else(PoisonError::into_inner) = of_part;
            Ok(())
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_benchmark_has_thirteen_queries() {
        let names: Vec<&str> = statements().iter().map(|query| query.name).collect();
        let expect = [
            "Q1.1", "Q1.2", "Q1.3", "Q2.1", "Q2.2", "Q2.3", "Q3.1", "Q3.2", "Q3.3", "Q3.4", "Q4.1", "Q4.2",
            "Q4.3",
        ];
        assert_eq!(names, expect);
        assert!(statements().iter().all(|query| query.sql.starts_with("select") && !query.sql.contains(';')));
    }

    #[test]
    fn the_cardinalities_are_those_of_the_benchmark() {
        let check = |percent, parts, orders| {
            let scale = Scale { percent };
            assert_eq!((scale.parts(), scale.orders()), (parts, orders));
        };
        check(1, 2_000, 15_000);
        check(100, 200_000, 1_500_000);
        check(1_000, 800_000, 15_000_000);
        let dimensions = Dimensions::new(Scale { percent: 1 });
        let Dimensions { customers, suppliers, parts } = &dimensions;
        assert_eq!((customers.len(), suppliers.len(), parts.len()), (300, 20, 2_000));
    }

    /// The rows, and with them all answers, are the same in every version.
    #[test]
    fn the_answers_are_the_same_for_ever() {
        let scale = Scale { percent: 1 };
        let (dimensions, days) = (Dimensions::new(scale), calendar::days());
        let mut whole = Tally::default();
        rows::lines(scale, 1, 1, &days).for_each(|line| whole.note(&line, true, &dimensions));
        let mut parted = Tally::default();
        for part in 1..=3 {
            rows::lines(scale, part, 3, &days).for_each(|line| parted.note(&line, true, &dimensions));
        }
        let words = |tally: &Tally| {
            let answers = tally.answers(&statements());
            let words = |(query, answer): (Query, analytic::Answer)| {
                format!("{} {} {}", query.name, answer.row_count, answer.digest)
            };
            answers.into_iter().map(words).collect::<Vec<String>>()
        };
        assert_eq!(words(&whole), words(&parted));
        assert_eq!(whole.lines, 60_175);
        let expect = [
            "Q1.1 1 3e4e1582a5e01fb9",
            "Q1.2 1 5683f5123a0deb77",
            "Q1.3 1 966207cc41a4f254",
            "Q2.1 172 fb5f8e953dc4e398",
            "Q2.2 48 fce74b6f5fc5a069",
            "Q2.3 6 32511ab3a180ca2e",
            "Q3.1 150 3560e5cd0385553f",
            "Q3.2 28 08b83b1f51709073",
            "Q3.3 0 4f53cda18c2baa0c",
            "Q3.4 0 4f53cda18c2baa0c",
            "Q4.1 35 f1c426ae085d66c8",
            "Q4.2 92 bc5feea9116c0746",
            "Q4.3 3 4ca9b1b29f4b9a41",
        ];
        assert_eq!(words(&whole), expect);
    }
}
