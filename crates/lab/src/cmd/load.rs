//! `spindle load`: the load generator alone, against a server that already runs.

mod arguments;
mod mistake;
mod sql_bench;

use std::io::{BufReader, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use spindle_base::histogram;
use spindle_load::runner::serve_standard;
use spindle_load::{
    Check, RunSpec, Summary, Workload, WorkloadSpec, bulk, custom, fsync_loop, insert_growth, oltp, scan,
    slap, sysbench, tpcc, wide_tables,
};

pub use arguments::LoadArgs;
use arguments::{RunArgs, WorkloadCommand};

use crate::run::client::ClientProcess;
use spindle_base::Mistake;
use spindle_base::text;

const CONNECT_PATIENCE: Duration = Duration::from_secs(60);

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
                warehouses: args.warehouses,
                terminals: args.run.terminals_or(8),
                preset: args.preset,
                wait_times: args.wait_times,
                rate: args.run.rate,
            };
            run_workload(WorkloadSpec::Tpcc(spec), &args.run)
        }
        WorkloadCommand::Oltp(args) => {
            let spec = oltp::Spec {
                script: args.scripts.script,
                tables: args.scripts.tables,
                rows: args.scripts.rows,
                distribution: args.scripts.distribution,
                rand_zipfian_exp: args.rand_zipfian_exp,
                terminals: args.run.terminals_or(8),
                autocommit: args.scripts.autocommit,
                point_selects: args.point_selects,
                range_size: args.range_size,
                rate: args.run.rate,
            };
            run_workload(WorkloadSpec::Oltp(spec), &args.run)
        }
        WorkloadCommand::Sysbench(args) => {
            let spec = sysbench::oltp::Spec {
                script: args.scripts.script,
                tables: args.scripts.tables,
                rows: args.scripts.rows,
                distribution: args.scripts.distribution,
                terminals: args.run.terminals_or(8),
                autocommit: args.scripts.autocommit,
                program: args.program,
            };
            run_workload(WorkloadSpec::Sysbench(spec), &args.run)
        }
        WorkloadCommand::WideTables(args) => {
            let spec = wide_tables::Spec {
                mode: args.mode,
                tables: args.tables,
                rows: args.rows,
                range: args.range,
                terminals: args.run.terminals_or(40),
            };
            run_workload(WorkloadSpec::WideTables(spec), &args.run)
        }
        WorkloadCommand::InsertGrowth(args) => {
            let spec = insert_growth::Spec {
                rows: args.rows,
                terminals: args.run.terminals_or(1),
                batch: args.batch,
                indexes: args.indexes,
                step_rows: args.step_rows,
                steps: args.steps,
                engine: args.engine,
            };
            run_workload(WorkloadSpec::InsertGrowth(spec), &args.run)
        }
        WorkloadCommand::Bulk(args) => {
            let spec = bulk::Spec {
                rows: args.rows,
                method: args.method,
                batch: args.batch,
                terminals: args.run.terminals_or(1),
            };
            run_workload(WorkloadSpec::Bulk(spec), &args.run)
        }
        WorkloadCommand::Scan(args) => {
            let spec = scan::Spec { rows: args.rows, terminals: args.run.terminals_or(1) };
            run_workload(WorkloadSpec::Scan(spec), &args.run)
        }
        WorkloadCommand::Slap(args) => {
            let spec = slap::Spec {
                load_type: args.load_type,
                terminals: args.run.terminals_or(8),
                queries: args.queries,
                autoincrement: args.autoincrement,
                int_columns: args.int_columns,
                char_columns: args.char_columns,
                engine: args.engine,
            };
            run_workload(WorkloadSpec::Slap(spec), &args.run)
        }
        WorkloadCommand::FsyncLoop(args) => {
            let spec = fsync_loop::Spec { terminals: args.run.terminals_or(1) };
            run_workload(WorkloadSpec::FsyncLoop(spec), &args.run)
        }
        WorkloadCommand::SqlBench(args) => sql_bench::run(&args),
        WorkloadCommand::Custom(args) => {
            let mut spec = custom::Spec {
                file: args.file,
                terminals: args.run.terminals_or(8),
                parameters: args.parameters.into_iter().collect(),
                text: String::new(),
            };
            spec.read(Path::new("")).map_err(|(_, message)| Mistake::new(message))?;
            if let Some(complaint) = spec.complaint() {
                return Err(Mistake::new(complaint).into());
            }
            run_workload(WorkloadSpec::Custom(spec), &args.run)
        }
    }
}

fn run_workload(workload: WorkloadSpec, args: &RunArgs) -> Result<()> {
    mistake::check(&workload, args)?;
    eprintln!("seed {}", args.seed);
    let spec = RunSpec::new(args.server.clone(), workload, args.seed);
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
        writeln!(output, "{}", text::json(&printed)?)?;
    } else {
        if let Some(summary) = &summary {
            write!(output, "{}", text::lines(&table(summary)?))?;
        }
        for check in &checks {
            let verdict = if check.passed { "ok    " } else { "FAILED" };
            writeln!(output, "{verdict}  {}", text::one_line(&format!("{}: {}", check.name, check.detail)))?;
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
        Ok(())
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
    let rate = format!("{:.1}", total as f64 / summary.duration_s);
    let headline = format!("{:.1}", summary.headline_value);
    // The headline says it already where what it counts are the transactions.
    let is_said = headline == rate && summary.headline_name.ends_with(" per second");
    let all = if is_said { String::new() } else { format!("{rate} transactions per second; ") };
    let commit = summary
        .commit_wait_s
        .map(|seconds| format!("; {:.0} % of the time in COMMIT", seconds / summary.terminal_time_s * 100.0));
    text.push_str(&format!(
        "{headline} {}; {all}{:.1} us client CPU per transaction{}\n",
        summary.headline_name,
        summary.client_cpu_s * 1e6 / total.max(1) as f64,
        commit.unwrap_or_default()
    ));
    for (message, count) in &summary.errors {
        text.push_str(&format!("{count} times: {message}\n"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headline: (&str, f64), expect: &str) {
        let kind = spindle_load::KindSummary {
            name: "a".to_owned(),
            committed: 50,
            histogram: histogram::encode(&histogram::new()),
            ..Default::default()
        };
        let summary = Summary {
            duration_s: 10.0,
            headline_name: headline.0.to_owned(),
            headline_value: headline.1,
            kinds: vec![kind],
            ..Summary::default()
        };
        let text = table(&summary).unwrap();
        assert_eq!(text.lines().last().unwrap(), expect);
    }

    #[test]
    fn a_rate_is_said_once() {
        check(("statements per second", 5.0), "5.0 statements per second; 0.0 us client CPU per transaction");
        check(
            ("rows per second", 500.0),
            "500.0 rows per second; 5.0 transactions per second; 0.0 us client CPU per transaction",
        );
        check(
            ("orders per minute", 5.0),
            "5.0 orders per minute; 5.0 transactions per second; 0.0 us client CPU per transaction",
        );
    }
}
