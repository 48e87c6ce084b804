//! `spindle load`: the load generator alone, against a server that already runs.

use std::io::{BufReader, Write};
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde::de::DeserializeOwned;
use spindle_load::mysqlslap::LoadType;
use spindle_load::runner::{histogram, serve_standard};
use spindle_load::sql::Engine;
use spindle_load::{
    Check, Endpoint, RunSpec, Summary, Workload, WorkloadSpec, bulk, custom, fsync_loop, insert_growth, oltp,
    scan, slap, sql_bench, sysbench, tpcc, wide_tables,
};

use crate::client::ClientProcess;
use crate::server::endpoint::parse as parse_endpoint;
use crate::user_error::UserError;

const CONNECT_PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub struct LoadArgs {
    #[command(subcommand)]
    workload: WorkloadCommand,
}

#[derive(Debug, Subcommand)]
enum WorkloadCommand {
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
struct TpccArgs {
    /// Warehouses of the database, about 100 MB each.
    #[arg(long, default_value = "10")]
    warehouses: NonZeroU32,
    /// The rules of another kit: `tpcc-mysql` or `dbt2`.
    #[arg(long, value_parser = parse_name::<tpcc::Preset>)]
    preset: Option<tpcc::Preset>,
    /// Keying and think times, as the standard has them; take ten terminals a warehouse.
    #[arg(long, conflicts_with = "rate")]
    wait_times: bool,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Args)]
struct OltpArgs {
    /// `read-write`, `read-only`, `write-only`, `point-select`, `insert`, `update-index`, `update-non-index` or `delete`.
    #[arg(long, default_value = "read-write", value_parser = parse_name::<oltp::Script>)]
    script: oltp::Script,
    /// Tables of the database.
    #[arg(long, default_value = "10")]
    tables: NonZeroU32,
    /// Rows of each table, about 240 bytes each.
    #[arg(long, default_value = "100000")]
    rows: NonZeroU32,
    /// Which rows are asked for: `uniform`, `gaussian`, `special` (sysbench's own default) or `pareto`.
    #[arg(long, value_parser = parse_name::<oltp::Distribution>)]
    distribution: oltp::Distribution,
    /// Every statement is its own transaction.
    #[arg(long)]
    autocommit: bool,
    /// Selects of one row in each transaction of `read-write` and `read-only`.
    #[arg(long, default_value = "10")]
    point_selects: NonZeroU32,
    /// Rows of each select of a range.
    #[arg(long, default_value = "100")]
    range_size: NonZeroU32,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Args)]
struct SysbenchArgs {
    /// As of `oltp`.
    #[arg(long, default_value = "read-write", value_parser = parse_name::<oltp::Script>)]
    script: oltp::Script,
    /// Tables of the database.
    #[arg(long, default_value = "10")]
    tables: NonZeroU32,
    /// Rows of each table.
    #[arg(long, default_value = "100000")]
    rows: NonZeroU32,
    /// As of `oltp`.
    #[arg(long, value_parser = parse_name::<oltp::Distribution>)]
    distribution: oltp::Distribution,
    /// Every statement is its own transaction.
    #[arg(long)]
    autocommit: bool,
    /// The tool: a path, or a name that is looked for in PATH.
    #[arg(long, default_value = "sysbench")]
    program: PathBuf,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Args)]
struct WideTablesArgs {
    /// `insert` or `select`.
    #[arg(long, value_parser = parse_name::<wide_tables::Mode>)]
    mode: wide_tables::Mode,
    #[arg(long, default_value = "40")]
    tables: NonZeroU32,
    /// Rows of each table, about 380 bytes each; 625,000 or 1,600,000 when it is not given.
    #[arg(long)]
    rows: Option<NonZeroU32>,
    /// Which rows are asked for: `narrow` (the first tenth) or `wide`.
    #[arg(long, default_value = "wide", value_parser = parse_name::<wide_tables::Range>)]
    range: wide_tables::Range,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Args)]
struct InsertGrowthArgs {
    /// Rows at the beginning, about 210 bytes each.
    #[arg(long, default_value = "100000")]
    rows: NonZeroU64,
    /// Rows of one statement.
    #[arg(long, default_value = "1000")]
    batch: NonZeroU32,
    /// Secondary indexes.
    #[arg(long, default_value = "3")]
    indexes: NonZeroU32,
    /// Rows of one step of the curve.
    #[arg(long, default_value = "1000000")]
    step_rows: NonZeroU64,
    /// Steps that are told apart.
    #[arg(long, default_value = "20")]
    steps: NonZeroU32,
    /// `innodb`, `myisam` or `myrocks`; otherwise the server's default.
    #[arg(long, value_parser = parse_name::<Engine>)]
    engine: Option<Engine>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Args)]
struct BulkArgs {
    /// Rows of one transaction, about 170 bytes each.
    #[arg(long, default_value = "100000")]
    rows: NonZeroU32,
    /// `load-data` (COPY on PostgreSQL) or `insert`.
    #[arg(long, default_value = "load-data", value_parser = parse_name::<bulk::Method>)]
    method: bulk::Method,
    /// Rows of one statement of `insert`.
    #[arg(long, default_value = "1000")]
    batch: NonZeroU32,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Args)]
struct ScanArgs {
    /// Rows of the table, about 250 bytes each.
    #[arg(long, default_value = "1000000")]
    rows: NonZeroU32,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Args)]
struct SlapArgs {
    /// `mixed`, `read`, `write`, `update` or `key`.
    #[arg(long, default_value = "mixed", value_parser = parse_name::<LoadType>)]
    load_type: LoadType,
    /// Of one round, all clients together; otherwise 11 of each.
    #[arg(long)]
    queries: Option<NonZeroU32>,
    /// The table has a primary key.
    #[arg(long)]
    autoincrement: bool,
    #[arg(long, default_value = "1")]
    int_columns: NonZeroU32,
    #[arg(long, default_value = "1")]
    char_columns: NonZeroU32,
    /// `innodb`, `myisam` or `myrocks`; otherwise the server's default.
    #[arg(long, value_parser = parse_name::<Engine>)]
    engine: Option<Engine>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Args)]
struct FsyncLoopArgs {
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Args)]
struct CustomArgs {
    /// The file.
    file: PathBuf,
    /// `NAME=NUMBER`: in the place of the file's own; may be given several times.
    #[arg(long = "parameter", value_parser = parse_parameter)]
    parameters: Vec<(String, i64)>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Args)]
struct SqlBenchArgs {
    /// As in the other workloads.
    #[arg(long, value_parser = parse_endpoint)]
    server: Endpoint,
    /// `alter-table`, `atis`, `big-tables`, `connect`, `create`, `insert`, `select`, `transactions`, `wisconsin`; all when none is named.
    #[arg(long, value_delimiter = ',', value_parser = parse_name::<sql_bench::Test>)]
    tests: Vec<sql_bench::Test>,
    /// Every count is divided by it.
    #[arg(long, default_value = "1")]
    divisor: NonZeroU32,
    /// `innodb`, `myisam` or `myrocks`; otherwise the server's default.
    #[arg(long, value_parser = parse_name::<Engine>)]
    engine: Option<Engine>,
    /// One JSON object instead of a table.
    #[arg(long)]
    json: bool,
    #[arg(long, default_value = "1")]
    seed: u64,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// `socket:/path` or `mysql://user:password@host:port/database`, `postgres:/directory-of-the-socket` or
    /// `postgresql://user:password@host:port/database`, `sqlite:/path`.
    #[arg(long, value_parser = parse_endpoint)]
    server: Endpoint,
    /// Connections that send one transaction after the other; otherwise 8, 40 of `wide-tables`, and 1 of `insert-growth`, `bulk`, `scan` and
    /// `fsync-loop`.
    #[arg(long)]
    terminals: Option<NonZeroU32>,
    /// Open loop, of `tpcc` and `oltp`: so many transactions a second start, whether those before were answered or not, as far as there are
    /// idle connections; latency counts from when each should have started.
    #[arg(long)]
    rate: Option<NonZeroU32>,
    /// Length of the measured window: `30s`, `5m`, `500ms`.
    #[arg(long, default_value = "30s", value_parser = parse_duration)]
    duration: Duration,
    /// Time before the measured window, in which the same load runs unmeasured.
    #[arg(long, default_value = "0s", value_parser = parse_duration)]
    warm_up: Duration,
    /// Makes the tables first; drops what is in them.
    #[arg(long)]
    prepare: bool,
    /// Checks the consistency of the database afterwards.
    #[arg(long)]
    verify: bool,
    /// One JSON object instead of a table.
    #[arg(long)]
    json: bool,
    #[arg(long, default_value = "1")]
    seed: u64,
}

impl RunArgs {
    fn terminals_or(&self, default: u32) -> u32 {
        self.terminals.map_or(default, NonZeroU32::get)
    }
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Output {
    seed: u64,
    summary: Option<Summary>,
    verification: Vec<OutputCheck>,
    /// Where the workload differs from its specification.
    deviations: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct OutputCheck {
    name: String,
    passed: bool,
    detail: String,
}

pub fn run(args: LoadArgs) -> Result<()> {
    match args.workload {
        WorkloadCommand::Client => {
            // The parent has the error as an event and will say it; twice would be noise.
            let served = serve_standard(BufReader::new(std::io::stdin()), std::io::stdout().lock());
            std::process::exit(i32::from(served.is_err()));
        }
        WorkloadCommand::Tpcc(args) => {
            let spec = tpcc::Spec {
                warehouses: args.warehouses.get(),
                terminals: args.run.terminals_or(8),
                preset: args.preset,
                wait_times: args.wait_times,
                rate: args.run.rate.map(NonZeroU32::get),
            };
            run_workload(WorkloadSpec::Tpcc(spec), &args.run)
        }
        WorkloadCommand::Oltp(args) => {
            let spec = oltp::Spec {
                script: args.script,
                tables: args.tables.get(),
                rows: args.rows.get(),
                distribution: args.distribution,
                terminals: args.run.terminals_or(8),
                autocommit: args.autocommit,
                point_selects: args.point_selects.get(),
                range_size: args.range_size.get(),
                rate: args.run.rate.map(NonZeroU32::get),
            };
            run_workload(WorkloadSpec::Oltp(spec), &args.run)
        }
        WorkloadCommand::Sysbench(args) => {
            let spec = sysbench::oltp::Spec {
                script: args.script,
                tables: args.tables.get(),
                rows: args.rows.get(),
                distribution: args.distribution,
                terminals: args.run.terminals_or(8),
                autocommit: args.autocommit,
                program: args.program,
            };
            run_workload(WorkloadSpec::Sysbench(spec), &args.run)
        }
        WorkloadCommand::WideTables(args) => {
            let spec = wide_tables::Spec {
                mode: args.mode,
                tables: args.tables.get(),
                rows: args.rows.map(NonZeroU32::get),
                range: args.range,
                terminals: args.run.terminals_or(40),
            };
            run_workload(WorkloadSpec::WideTables(spec), &args.run)
        }
        WorkloadCommand::InsertGrowth(args) => {
            let spec = insert_growth::Spec {
                rows: args.rows.get(),
                terminals: args.run.terminals_or(1),
                batch: args.batch.get(),
                indexes: args.indexes.get(),
                step_rows: args.step_rows.get(),
                steps: args.steps.get(),
                engine: args.engine,
            };
            run_workload(WorkloadSpec::InsertGrowth(spec), &args.run)
        }
        WorkloadCommand::Bulk(args) => {
            let spec = bulk::Spec {
                rows: args.rows.get(),
                method: args.method,
                batch: args.batch.get(),
                terminals: args.run.terminals_or(1),
            };
            run_workload(WorkloadSpec::Bulk(spec), &args.run)
        }
        WorkloadCommand::Scan(args) => {
            let spec = scan::Spec { rows: args.rows.get(), terminals: args.run.terminals_or(1) };
            run_workload(WorkloadSpec::Scan(spec), &args.run)
        }
        WorkloadCommand::Slap(args) => {
            let spec = slap::Spec {
                load_type: args.load_type,
                terminals: args.run.terminals_or(8),
                queries: args.queries.map(NonZeroU32::get),
                autoincrement: args.autoincrement,
                int_columns: args.int_columns.get(),
                char_columns: args.char_columns.get(),
                engine: args.engine,
            };
            run_workload(WorkloadSpec::Slap(spec), &args.run)
        }
        WorkloadCommand::FsyncLoop(args) => {
            let spec = fsync_loop::Spec { terminals: args.run.terminals_or(1) };
            run_workload(WorkloadSpec::FsyncLoop(spec), &args.run)
        }
        WorkloadCommand::SqlBench(args) => run_sql_bench(&args),
        WorkloadCommand::Custom(args) => {
            let mut spec = custom::Spec {
                file: args.file,
                terminals: args.run.terminals_or(8),
                parameters: args.parameters.into_iter().collect(),
                text: String::new(),
            };
            spec.read(Path::new("")).map_err(|(_, message)| UserError(message))?;
            if let Some(complaint) = spec.complaint() {
                return Err(UserError(complaint).into());
            }
            run_workload(WorkloadSpec::Custom(spec), &args.run)
        }
    }
}

/// One operation as `--json` prints it.
#[derive(Debug, Serialize)]
struct OutputOperation {
    name: &'static str,
    count: u64,
    seconds: f64,
    client_cpu_s: f64,
    storage_sensitive: bool,
}

/// Goes through the list once, in this process: there is one connection, and no window.
fn run_sql_bench(args: &SqlBenchArgs) -> Result<()> {
    eprintln!("seed {}", args.seed);
    let tests = if args.tests.is_empty() { sql_bench::Test::ALL.to_vec() } else { args.tests.clone() };
    let spec = sql_bench::Spec { tests, divisor: args.divisor.get(), engine: args.engine };
    let workload = WorkloadSpec::SqlBench(spec.clone());
    workload.build()?.load(&args.server, args.seed, &mut |_| {})?;
    let times = sql_bench::run_once(&args.server, &spec, args.seed)?;
    let operations: Vec<OutputOperation> = times
        .into_iter()
        .map(|time| OutputOperation {
            name: time.operation.name,
            count: time.operation.count,
            seconds: time.wall.as_secs_f64(),
            client_cpu_s: time.client_cpu.as_secs_f64(),
            storage_sensitive: time.operation.is_storage_sensitive,
        })
        .collect();
    let total_s: f64 = operations.iter().map(|operation| operation.seconds).sum();
    let mut output = std::io::stdout().lock();
    if args.json {
        let printed = serde_json::json!({
            "seed": args.seed,
            "divisor": spec.divisor,
            "total_s": total_s,
            "operations": operations,
            "skipped": spec.skipped(),
            "deviations": workload.deviations(),
        });
        serde_json::to_writer_pretty(&mut output, &printed)?;
        writeln!(output)?;
        return Ok(());
    }
    writeln!(output, "operation                             count     seconds  client CPU s  storage")?;
    for operation in &operations {
        let mark = if operation.storage_sensitive { "*" } else { "" };
        let OutputOperation { name, count, seconds, client_cpu_s, .. } = operation;
        let line = format!("{name:34}{count:>9}{seconds:>12.3}{client_cpu_s:>14.3}  {mark}");
        writeln!(output, "{}", line.trim_end())?;
    }
    writeln!(output, "{:34}{:>9}{total_s:>12.3}", "all", "")?;
    writeln!(output, "* each ends with a commit, or with a table made, changed or dropped")?;
    for skipped in spec.skipped() {
        writeln!(output, "skipped: {skipped}")?;
    }
    Ok(())
}

fn run_workload(workload: WorkloadSpec, args: &RunArgs) -> Result<()> {
    eprintln!("seed {}", args.seed);
    let spec = RunSpec { endpoint: args.server.clone(), workload, seed: args.seed, once: false };
    let workload = spec.workload.build()?;
    if args.prepare {
        prepare(&*workload, &spec)?;
    }
    let summary = if args.duration.is_zero() { None } else { Some(measure(&spec, args)?) };
    let checks = if args.verify { workload.verify(&spec.endpoint)? } else { Vec::new() };
    let failed = checks.iter().filter(|check| !check.passed).count();

    let mut output = std::io::stdout().lock();
    if args.json {
        let verification =
            checks.into_iter().map(|Check { name, passed, detail }| OutputCheck { name, passed, detail });
        let printed = Output {
            seed: args.seed,
            summary,
            verification: verification.collect(),
            deviations: spec.workload.deviations(),
        };
        serde_json::to_writer_pretty(&mut output, &printed)?;
        writeln!(output)?;
    } else {
        if let Some(summary) = &summary {
            write!(output, "{}", table(summary)?)?;
        }
        for check in &checks {
            let verdict = if check.passed { "ok    " } else { "FAILED" };
            writeln!(output, "{verdict}  {}: {}", check.name, check.detail)?;
        }
    }
    if failed > 0 {
        bail!("the database violates {failed} of its conditions");
    }
    Ok(())
}

fn prepare(workload: &dyn Workload, spec: &RunSpec) -> Result<()> {
    let bar = ProgressBar::new(0).with_style(
        ProgressStyle::with_template("loading {wide_bar} {percent} % of {len} rows, {eta} left")
            .context("the progress bar's template")?,
    );
    let result = workload.load(&spec.endpoint, spec.seed, &mut |progress| {
        bar.set_length(progress.rows_total);
        bar.set_position(progress.rows_done);
    });
    bar.finish_and_clear();
    eprintln!("loaded in {:.1} s", bar.elapsed().as_secs_f64());
    result
}

fn measure(spec: &RunSpec, args: &RunArgs) -> Result<Summary> {
    let program = std::env::current_exe().context("looking for our own binary")?;
    let mut client = ClientProcess::spawn(&program, spec)?;
    client.wait_ready(CONNECT_PATIENCE)?;
    client.watch(args.warm_up, &mut |_| ())?;
    let summary = client.measure(args.duration, &mut |second| {
        let quantiles = [("p50", second.p50_ms), ("p95", second.p95_ms), ("p99", second.p99_ms)];
        let quantiles =
            quantiles.into_iter().filter_map(|(name, ms)| Some(format!("  {name} {:.2} ms", ms?)));
        eprintln!(
            "{:6.1} s  {:7} transactions{}",
            second.at_s,
            second.transactions,
            quantiles.collect::<String>()
        );
    })?;
    client.stop()?;
    Ok(summary)
}

fn table(summary: &Summary) -> Result<String> {
    let mut text =
        "transaction     committed  rolled back  retried   failed   mean ms    p50 ms    p95 ms    p99 ms\n"
            .to_owned();
    let mut total = 0;
    for kind in &summary.kinds {
        let latencies = histogram::decode(&kind.histogram)?;
        let quantile_ms = |share| latencies.value_at_quantile(share) as f64 / 1000.0;
        total += kind.committed + kind.rolled_back;
        text.push_str(&format!(
            "{:14}{:>11}{:>13}{:>9}{:>9}{:>10.2}{:>10.2}{:>10.2}{:>10.2}\n",
            kind.name,
            kind.committed,
            kind.rolled_back,
            kind.retried,
            kind.failed,
            if latencies.is_empty() { 0.0 } else { latencies.mean() / 1000.0 },
            quantile_ms(0.50),
            quantile_ms(0.95),
            quantile_ms(0.99)
        ));
    }
    let all = format!("{:.1} transactions per second", total as f64 / summary.duration_s);
    let headline = format!("{:.1} {}", summary.headline_value, summary.headline_name);
    let commit = summary
        .commit_wait_s
        .map(|seconds| format!("; {:.0} % of the time in COMMIT", seconds / summary.terminal_time_s * 100.0));
    text.push_str(&format!(
        "{}{:.1} us client CPU per transaction{}\n",
        if headline == all { format!("{all}; ") } else { format!("{headline}; {all}; ") },
        summary.client_cpu_s * 1e6 / total.max(1) as f64,
        commit.unwrap_or_default()
    ));
    for (message, count) in &summary.errors {
        text.push_str(&format!("{count} times: {message}\n"));
    }
    Ok(text)
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
