//! The arguments of `spindle load`.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;
use spindle_load::mysqlslap::LoadType;
use spindle_load::sql::Engine;
use spindle_load::{Endpoint, bulk, oltp, sql_bench, tpcc, wide_tables};

use crate::server::endpoint::parse as parse_endpoint;

#[derive(Debug, Args)]
pub struct LoadArgs {
    #[command(subcommand)]
    pub(super) workload: WorkloadCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum WorkloadCommand {
    /// TPC-C.
    Tpcc(TpccArgs),
    /// The OLTP workloads of sysbench, natively.
    Oltp(OltpArgs),
    /// The OLTP workloads of sysbench, by sysbench itself.
    Sysbench(SysbenchArgs),
    /// Forty wide tables with three indexes each, filled or read.
    WideTables(WideTablesArgs),
    /// A table that grows until its indexes are larger than memory.
    InsertGrowth(InsertGrowthArgs),
    /// Many rows at once into an empty table.
    Bulk(BulkArgs),
    /// A table read from end to end.
    Scan(ScanArgs),
    /// The generated statements of mysqlslap, natively.
    Slap(SlapArgs),
    /// Commits of one row and nothing else.
    FsyncLoop(FsyncLoopArgs),
    /// A file of SQL with parameters (docs/custom-workloads.md).
    Custom(CustomArgs),
    /// The lists of operations of MySQL's sql-bench, once.
    SqlBench(SqlBenchArgs),
    /// The load process itself: reads a run's specification and commands, writes events.
    #[command(hide = true)]
    Client,
}

#[derive(Debug, Args)]
pub(super) struct TpccArgs {
    /// Warehouses of the database, about 100 MB each.
    #[arg(long, default_value = "10", value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) warehouses: u32,
    /// The rules of another kit: `tpcc-mysql` or `dbt2`.
    #[arg(long, value_parser = parse_name::<tpcc::Preset>)]
    pub(super) preset: Option<tpcc::Preset>,
    /// Keying and think times, as the standard has them; take ten terminals a warehouse.
    #[arg(long, conflicts_with = "rate")]
    pub(super) wait_times: bool,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

// What the scripts of sysbench have in common, whoever runs them. No doc comment: clap would say it of the whole command.
#[derive(Debug, Args)]
pub(super) struct ScriptArgs {
    /// `read-write`, `read-only`, `write-only`, `point-select`, `insert`, `update-index`, `update-non-index` or `delete`.
    #[arg(long, default_value = "read-write", value_parser = parse_name::<oltp::Script>)]
    pub(super) script: oltp::Script,
    /// Tables of the database.
    #[arg(long, default_value = "10", value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) tables: u32,
    /// Rows of each table, about 240 bytes each.
    #[arg(long, default_value = "100000", value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) rows: u32,
    /// Which rows are asked for: `uniform`, `gaussian`, `special` (sysbench's own default) or `pareto`; of `oltp` also `zipfian`.
    #[arg(long, value_parser = parse_name::<oltp::Distribution>)]
    pub(super) distribution: oltp::Distribution,
    /// Every statement is its own transaction.
    #[arg(long)]
    pub(super) autocommit: bool,
}

#[derive(Debug, Args)]
pub(super) struct OltpArgs {
    #[command(flatten)]
    pub(super) scripts: ScriptArgs,
    /// Of `zipfian`: row k is asked for as often as 1 / k^exponent; otherwise 0.8.
    #[arg(long, allow_negative_numbers = true)]
    pub(super) rand_zipfian_exp: Option<f64>,
    /// Selects of one row in each transaction of `read-write` and `read-only`.
    #[arg(long, default_value = "10", value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) point_selects: u32,
    /// Rows of each select of a range.
    #[arg(long, default_value = "100", value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) range_size: u32,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

#[derive(Debug, Args)]
pub(super) struct SysbenchArgs {
    #[command(flatten)]
    pub(super) scripts: ScriptArgs,
    /// The tool: a path, or a name that is looked for in PATH.
    #[arg(long, default_value = "sysbench")]
    pub(super) program: PathBuf,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

#[derive(Debug, Args)]
pub(super) struct WideTablesArgs {
    /// `insert` or `select`.
    #[arg(long, value_parser = parse_name::<wide_tables::Mode>)]
    pub(super) mode: wide_tables::Mode,
    #[arg(long, default_value = "40", value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) tables: u32,
    /// Rows of each table, about 380 bytes each; 625,000 or 1,600,000 when it is not given.
    #[arg(long, value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) rows: Option<u32>,
    /// Which rows are asked for: `narrow` (the first tenth) or `wide`.
    #[arg(long, default_value = "wide", value_parser = parse_name::<wide_tables::Range>)]
    pub(super) range: wide_tables::Range,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

#[derive(Debug, Args)]
pub(super) struct InsertGrowthArgs {
    /// Rows at the beginning, about 210 bytes each.
    #[arg(long, default_value = "100000", value_parser = parse_count::<u64>, allow_negative_numbers = true)]
    pub(super) rows: u64,
    /// Rows of one statement.
    #[arg(long, default_value = "1000", value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) batch: u32,
    /// Secondary indexes.
    #[arg(long, default_value = "3", value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) indexes: u32,
    /// Rows of one step of the curve.
    #[arg(long, default_value = "1000000", value_parser = parse_count::<u64>, allow_negative_numbers = true)]
    pub(super) step_rows: u64,
    /// Steps that are told apart.
    #[arg(long, default_value = "20", value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) steps: u32,
    /// `innodb`, `myisam`, `aria` or `myrocks`; otherwise the server's default.
    #[arg(long, value_parser = parse_name::<Engine>)]
    pub(super) engine: Option<Engine>,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

#[derive(Debug, Args)]
pub(super) struct BulkArgs {
    /// Rows of one transaction, about 170 bytes each.
    #[arg(long, default_value = "100000", value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) rows: u32,
    /// `load-data` (COPY on PostgreSQL) or `insert`.
    #[arg(long, default_value = "load-data", value_parser = parse_name::<bulk::Method>)]
    pub(super) method: bulk::Method,
    /// Rows of one statement of `insert`.
    #[arg(long, default_value = "1000", value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) batch: u32,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

#[derive(Debug, Args)]
pub(super) struct ScanArgs {
    /// Rows of the table, about 250 bytes each.
    #[arg(long, default_value = "1000000", value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) rows: u32,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

#[derive(Debug, Args)]
pub(super) struct SlapArgs {
    /// `mixed`, `read`, `write`, `update` or `key`.
    #[arg(long, default_value = "mixed", value_parser = parse_name::<LoadType>)]
    pub(super) load_type: LoadType,
    /// Of one round, all clients together; otherwise 11 of each.
    #[arg(long, value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) queries: Option<u32>,
    /// The table has a primary key.
    #[arg(long)]
    pub(super) autoincrement: bool,
    #[arg(long, default_value = "1", value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) int_columns: u32,
    #[arg(long, default_value = "1", value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) char_columns: u32,
    /// `innodb`, `myisam`, `aria` or `myrocks`; otherwise the server's default.
    #[arg(long, value_parser = parse_name::<Engine>)]
    pub(super) engine: Option<Engine>,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

#[derive(Debug, Args)]
pub(super) struct FsyncLoopArgs {
    #[command(flatten)]
    pub(super) run: RunArgs,
}

#[derive(Debug, Args)]
pub(super) struct CustomArgs {
    /// The file.
    pub(super) file: PathBuf,
    /// `NAME=NUMBER`: in the place of the file's own; may be given several times.
    #[arg(long = "parameter", value_parser = parse_parameter)]
    pub(super) parameters: Vec<(String, i64)>,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

#[derive(Debug, Args)]
pub(super) struct SqlBenchArgs {
    /// As in the other workloads.
    #[arg(long, value_parser = parse_endpoint)]
    pub(super) server: Endpoint,
    /// `alter-table`, `atis`, `big-tables`, `connect`, `create`, `insert`, `select`, `transactions`, `wisconsin`; all when none is named.
    #[arg(long, value_delimiter = ',', value_parser = parse_name::<sql_bench::Test>)]
    pub(super) tests: Vec<sql_bench::Test>,
    /// Every count is divided by it.
    #[arg(long, default_value = "1", value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) divisor: u32,
    /// `innodb`, `myisam`, `aria` or `myrocks`; otherwise the server's default.
    #[arg(long, value_parser = parse_name::<Engine>)]
    pub(super) engine: Option<Engine>,
    /// One JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
    /// Of all that is random; otherwise from the clock, because a run that repeats another one's choices writes what is there already. It is told
    /// before anything else.
    #[arg(long, default_value_t = seed_of_now(), hide_default_value = true)]
    pub(super) seed: u64,
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// `socket:/path` or `mysql://user:password@host:port/database`, `postgres:/directory-of-the-socket` or
    /// `postgresql://user:password@host:port/database`, `sqlite:/path`. Everybody on this machine can read a password in an option; without one
    /// there, it is taken from the environment, from MYSQL_PWD or PGPASSWORD.
    #[arg(long, value_parser = parse_endpoint)]
    pub(super) server: Endpoint,
    /// Connections that send one transaction after the other; otherwise 8, 40 of `wide-tables`, and 1 of `insert-growth`, `bulk`, `scan` and
    /// `fsync-loop`.
    #[arg(long, value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) terminals: Option<u32>,
    /// Open loop, of `tpcc` and `oltp`: so many transactions a second start, whether those before were answered or not, as far as there are
    /// idle connections; latency counts from when each should have started.
    #[arg(long, value_parser = parse_count::<u32>, allow_negative_numbers = true)]
    pub(super) rate: Option<u32>,
    /// Length of the measured window: `30s`, `5m`, `500ms`.
    #[arg(long, default_value = "30s", value_parser = parse_duration, allow_hyphen_values = true)]
    pub(super) duration: Duration,
    /// Time before the measured window, in which the same load runs unmeasured.
    #[arg(long, default_value = "0s", value_parser = parse_duration, allow_hyphen_values = true)]
    pub(super) warm_up: Duration,
    /// Makes the tables first; drops what is in them.
    #[arg(long)]
    pub(super) prepare: bool,
    /// Checks the consistency of the database afterwards.
    #[arg(long)]
    pub(super) verify: bool,
    /// One JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
    /// Of all that is random; otherwise from the clock, because a run that repeats another one's choices writes what is there already. It is told
    /// before anything else.
    #[arg(long, default_value_t = seed_of_now(), hide_default_value = true)]
    pub(super) seed: u64,
}

/// Milliseconds, so that it is short enough to be typed again.
fn seed_of_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |since| since.as_millis() as u64)
}

impl RunArgs {
    pub(super) fn terminals_or(&self, default: u32) -> u32 {
        self.terminals.unwrap_or(default)
    }
}

/// What a workload allows it says itself ([`spindle_load::WorkloadSpec::complaint`]).
fn parse_count<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let number: u64 = text.parse().map_err(|_| "write a whole number from 1 on".to_owned())?;
    T::try_from(number).map_err(|_| "no count can be that large".to_owned())
}

/// A name as scenarios write it.
fn parse_name<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

fn parse_parameter(text: &str) -> Result<(String, i64), String> {
    let parsed = text.split_once('=').and_then(|(name, value)| Some((name.to_owned(), value.parse().ok()?)));
    parsed.ok_or_else(|| "write NAME=NUMBER".to_owned())
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor_s = match &text[number.len()..] {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("write a number and a unit: ms, s, m or h".to_owned()),
    };
    let number: f64 = number.parse().map_err(|_| "write a number and a unit, such as 30s".to_owned())?;
    Duration::try_from_secs_f64(number * factor_s).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn durations_need_a_unit() {
        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(parse_duration(text).ok(), expect.map(Duration::from_millis), "{text}");
        };
        check("30s", Some(30_000));
        check("500ms", Some(500));
        check("1.5m", Some(90_000));
        check("30", None);
        check("s", None);
        check("-1s", None);
    }

    #[test]
    fn servers_are_named_by_socket_or_url() {
        assert_eq!(
            parse_endpoint("socket:/run/db").unwrap(),
            Endpoint::MysqlSocket { path: "/run/db".into(), user: "root".into(), database: "spindle".into() }
        );
        assert_eq!(
            parse_endpoint("mysql://me:p%40ss@db.example:3307/shop").unwrap(),
            Endpoint::MysqlTcp {
                host: "db.example".into(),
                port: 3307,
                user: "me".into(),
                password: "p@ss".into(),
                database: "shop".into()
            }
        );
        assert_eq!(
            parse_endpoint("sqlite:/tmp/shop.db").unwrap(),
            Endpoint::Sqlite { path: "/tmp/shop.db".into(), pragmas: BTreeMap::new() }
        );
        assert_eq!(
            parse_endpoint("postgres:/run/postgresql").unwrap(),
            Endpoint::PostgresSocket {
                directory: "/run/postgresql".into(),
                port: 5432,
                user: "postgres".into(),
                database: "spindle".into()
            }
        );
        assert_eq!(
            parse_endpoint("postgresql://me@db.example").unwrap(),
            Endpoint::PostgresTcp {
                host: "db.example".into(),
                port: 5432,
                user: "me".into(),
                password: String::new(),
                database: "spindle".into()
            }
        );
        assert!(parse_endpoint("postgres:").is_err());
        assert!(parse_endpoint("/run/db").is_err());
        assert!(parse_endpoint("socket:").is_err());
    }
}
