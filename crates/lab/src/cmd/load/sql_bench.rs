//! `spindle load sql-bench`: the list once, in this process: there is one connection, and no window.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;
use spindle_load::{WorkloadSpec, sql_bench};

use super::arguments::SqlBenchArgs;
use super::mistake;

/// One operation as `--json` prints it.
#[derive(Debug, Serialize)]
struct OutputOperation {
    name: &'static str,
    count: u64,
    seconds: f64,
    client_cpu_s: f64,
    storage_sensitive: bool,
}

pub(super) fn run(args: &SqlBenchArgs) -> Result<()> {
    let tests = if args.tests.is_empty() { sql_bench::Test::ALL.to_vec() } else { args.tests.clone() };
    let spec = sql_bench::Spec { tests, divisor: args.divisor, engine: args.engine };
    let workload = WorkloadSpec::SqlBench(spec.clone());
    mistake::check_parameters(&workload, &args.server)?;
    eprintln!("seed {}", args.seed);
    workload.build()?.load(&args.server, args.seed, &mut |_| Ok(()))?;
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
