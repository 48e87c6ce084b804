//! `spindle load`: the load generator alone, against a server that already runs.

use std::io::{BufReader, Write};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde::de::DeserializeOwned;
use spindle_load::runner::{histogram, serve_standard};
use spindle_load::{Check, Endpoint, RunSpec, Summary, Workload, WorkloadSpec, oltp, sysbench, tpcc};

use crate::client::ClientProcess;
use crate::server::endpoint::parse as parse_endpoint;

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
struct RunArgs {
    /// `socket:/path` or `mysql://user:password@host:port/database`, `postgres:/directory-of-the-socket` or
    /// `postgresql://user:password@host:port/database`, `sqlite:/path`.
    #[arg(long, value_parser = parse_endpoint)]
    server: Endpoint,
    /// Connections that send one transaction after the other.
    #[arg(long, default_value = "8")]
    terminals: NonZeroU32,
    /// Open loop: so many transactions a second start, whether those before were answered or not, as far as there are
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
                terminals: args.run.terminals.get(),
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
                terminals: args.run.terminals.get(),
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
                terminals: args.run.terminals.get(),
                autocommit: args.autocommit,
                program: args.program,
            };
            run_workload(WorkloadSpec::Sysbench(spec), &args.run)
        }
    }
}

fn run_workload(workload: WorkloadSpec, args: &RunArgs) -> Result<()> {
    eprintln!("seed {}", args.seed);
    let spec = RunSpec { endpoint: args.server.clone(), workload, seed: args.seed };
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
        "transaction     committed  rolled back  retried   failed    p50 ms    p95 ms    p99 ms\n".to_owned();
    let mut total = 0;
    for kind in &summary.kinds {
        let latencies = histogram::decode(&kind.histogram)?;
        let quantile_ms = |share| latencies.value_at_quantile(share) as f64 / 1000.0;
        total += kind.committed + kind.rolled_back;
        text.push_str(&format!(
            "{:14}{:>11}{:>13}{:>9}{:>9}{:>10.2}{:>10.2}{:>10.2}\n",
            kind.name,
            kind.committed,
            kind.rolled_back,
            kind.retried,
            kind.failed,
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
