//! The statements of published benchmarks over one server, over partitions and over shards: each is answered as one
//! server does, or the reason is told.

mod spark;
mod tpch;

use std::path::Path;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use serde_json::{Value, json};
use spindle_base::Mistake;
use spindle_load::workload::analytic::Query;
use spindle_load::workloads::{ontime, ssb};
use spindle_load::{Endpoint, WorkloadSpec};
use spindle_scatter::execute::Scatter;
use spindle_scatter::mapping::Mapping;
use spindle_scatter::plan::Refusal;
use spindle_scatter::servers::Server;
use spindle_scatter::shards::Cluster;
use spindle_scatter::split::Options;

use crate::in_check_all;
use crate::query_support::{asked, heads, text};
use crate::server_support::*;

/// A database, whole and as shards, on one server.
struct Star {
    socket: String,
    database: String,
    server: OwnServer,
}

impl Star {
    fn load(workload: Value) -> Option<Star> {
        let star = Star::empty()?;
        let mut workload: WorkloadSpec = serde_json::from_value(workload).unwrap();
        workload.read_files(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        workload.build().unwrap().load(&star.server.endpoint(), SEED, &mut |_| Ok(())).unwrap();
        Some(star)
    }

    fn empty() -> Option<Star> {
        let server = OwnServer::empty(installed("mariadb")?, &[("innodb_buffer_pool_size", "64M")]);
        let Endpoint::MysqlSocket { path, database, .. } = server.endpoint() else { panic!("no socket") };
        Some(Star { socket: path.to_string_lossy().into_owned(), database, server })
    }

    fn database(&self, database: &str) -> Server {
        let options =
            OptsBuilder::new().socket(Some(&self.socket)).user(Some("root")).db_name(Some(database));
        Server { name: database.to_owned(), options: options.into() }
    }

    fn direct(&self) -> Conn {
        self.database(&self.database).connect().unwrap()
    }

    fn scatter(&self, databases: &[String], mapping: Option<Mapping>) -> Scatter {
        let servers = databases.iter().map(|database| self.database(database)).collect();
        let options = Options { connections: 2, rows_least: 1.0, ..Options::default() };
        Scatter::connect(Cluster { servers, mapping }, options).unwrap()
    }

    fn whole(&self) -> Scatter {
        self.scatter(std::slice::from_ref(&self.database), None)
    }

    /// These tables over so many shards by these columns, the others as copies.
    fn shards(&self, sharded: &[(&str, &str)], count: usize) -> Scatter {
        let mut connection = self.direct();
        let tables: Vec<String> = connection.query("SHOW TABLES").unwrap();
        let names: Vec<String> = (0..count).map(|shard| format!("shard_{shard}_of_{count}")).collect();
        for (shard, name) in names.iter().enumerate() {
            connection.query_drop(format!("CREATE DATABASE {name}")).unwrap();
            for table in &tables {
                let rows = match sharded.iter().find(|(name, _)| name == table) {
                    Some((_, column)) => format!(" WHERE {column} MOD {count} = {shard}"),
                    None => String::new(),
                };
                connection.query_drop(format!("CREATE TABLE {name}.`{table}` LIKE `{table}`")).unwrap();
                connection
                    .query_drop(format!("INSERT INTO {name}.`{table}` SELECT * FROM `{table}`{rows}"))
                    .unwrap();
                let _: Vec<mysql::Row> = connection.query(format!("ANALYZE TABLE {name}.`{table}`")).unwrap();
            }
        }
        let columns = sharded.iter().map(|(table, column)| ((*table).to_owned(), (*column).to_owned()));
        let mapping =
            Mapping { column: sharded[0].1.to_owned(), columns: columns.collect(), ..Mapping::default() };
        self.scatter(&names, Some(mapping))
    }
}

/// Rows in any order, by the only certain column where there is one.
fn compared(query: &Query, rows: Vec<Vec<Option<Vec<u8>>>>) -> Vec<Vec<Option<String>>> {
    let kept = |mut row: Vec<Option<String>>| match query.compared_column {
        Some(column) => vec![row.swap_remove(column)],
        None => row,
    };
    let mut rows: Vec<_> = text(rows).into_iter().map(kept).collect();
    rows.sort();
    rows
}

/// Fragments, or one connection, give the server's own answer; or the reason why nobody answers.
fn outcome(direct: &mut Conn, scatter: &mut Scatter, query: &Query) -> String {
    let name = query.name;
    let (expected_heads, expected) =
        asked(direct, query.sql).unwrap_or_else(|error| panic!("{name}: {error}"));
    let answer = match scatter.run(query.sql) {
        Err(error) if error.is::<Mistake>() => return format!("refused: {error}"),
        answer => answer.unwrap_or_else(|error| panic!("{name}: {error:#}")),
    };
    assert_eq!(expected_heads, heads(&answer.columns), "{name}");
    assert_eq!(compared(query, expected), compared(query, answer.rows), "{name}");
    match answer.fragments {
        Ok(_) => "fragments".to_owned(),
        Err(Refusal(why)) => format!("whole: {why}"),
    }
}

#[track_caller]
fn check_all(star: &Star, queries: &[Query], ways: Vec<Scatter>) {
    let mut direct = star.direct();
    for mut scatter in ways {
        for query in queries {
            assert_eq!(outcome(&mut direct, &mut scatter, query), "fragments", "{}", query.name);
        }
    }
}

#[test]
fn the_statements_of_the_study_of_shard_query_have_one_servers_answers() {
    let Some(star) = in_check_all(|| Star::load(json!({"kind": "ontime", "rows": 30_000}))) else { return };
    let shards = |count| star.shards(&[("ontime_fact", "date_id")], count);
    check_all(&star, &ontime::statements(), vec![star.whole(), shards(2), shards(3)]);
}

/// The published statement counts the same rows twice.
#[test]
fn mistake_12_the_ratio_of_q6_is_1000_as_published() {
    let Some(star) = in_check_all(|| Star::load(json!({"kind": "ontime", "rows": 30_000}))) else { return };
    let statements = ontime::statements();
    let query = statements.iter().find(|query| query.name == "Q6").unwrap();
    let ratios: Vec<(i32, f64)> = star.direct().query(query.sql).unwrap();
    assert!(!ratios.is_empty() && ratios.iter().all(|(_, ratio)| *ratio == 1000.0), "{ratios:?}");
}

#[test]
fn the_statements_over_partitions_have_one_servers_answers() {
    let loaded = || Star::load(json!({"kind": "ontime", "rows": 30_000, "partitions": "years"}));
    let Some(star) = in_check_all(loaded) else { return };
    check_all(
        &star,
        &ontime::statements(),
        vec![star.whole(), star.shards(&[("ontime_fact", "date_id")], 2)],
    );
}

#[test]
fn the_statements_of_the_star_schema_benchmark_have_one_servers_answers() {
    let Some(star) = in_check_all(|| Star::load(json!({"kind": "ssb", "scale_percent": 1}))) else { return };
    let shards = |count| star.shards(&[("lineorder", "lo_orderkey")], count);
    check_all(&star, &ssb::statements(), vec![star.whole(), shards(2), shards(3)]);
}
