//! `spindle load`: the load generator alone, against a running server.

mod arguments;
mod mistake;
mod output;

use std::io::BufReader;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use spindle_load::process::serve_standard;
use spindle_load::{RunSpec, Summary, Workload, WorkloadSpec};

pub use arguments::LoadArgs;
use arguments::{LoadCommand, RunArgs};
use output::Output;

use crate::cmd::output::print_answer;
use crate::host::trial_time::TrialTime;
use crate::run::client::ClientProcess;
use spindle_base::text;

const CONNECT_PATIENCE: Duration = Duration::from_secs(60);
/// Default length of the measured window.
const DURATION: Duration = Duration::from_secs(30);
/// Default limit of fixed work.
const AT_MOST: Duration = Duration::from_secs(7 * 24 * 3600);

pub fn run(args: LoadArgs) -> Result<()> {
    match args.command {
        LoadCommand::Client => {
            // The parent gets the error as an event and prints it.
            let served = serve_standard(BufReader::new(std::io::stdin()), std::io::stdout().lock());
            std::process::exit(i32::from(served.is_err()));
        }
        LoadCommand::Workload(workload, run) => run_workload(*workload, &run),
    }
}

/// The steps of a run.
#[derive(Debug, Clone, Copy)]
struct Plan {
    prepare: bool,
    once: bool,
    /// Length of the window, or the limit of fixed work.
    duration: Duration,
}

impl Plan {
    fn new(workload: &WorkloadSpec, args: &RunArgs) -> Plan {
        let is_done_once = workload.facts().is_done_once;
        let once = args.once || (is_done_once && args.duration.is_none());
        let otherwise = if once { AT_MOST } else { DURATION };
        Plan { prepare: args.prepare || is_done_once, once, duration: args.duration.unwrap_or(otherwise) }
    }
}

fn run_workload(mut spec: WorkloadSpec, args: &RunArgs) -> Result<()> {
    let plan = mistake::plan(&mut spec, args)?;
    eprintln!("seed {}", args.seed);
    let spec = RunSpec { once: plan.once, ..RunSpec::new(args.server.clone(), spec, args.seed) };
    let workload = spec.workload.build()?;
    if plan.prepare {
        prepare(&*workload, &spec)?;
    }
    let summary = if plan.duration.is_zero() { None } else { Some(measure(&spec, plan, args.warm_up)?) };
    let checks = if args.verify { workload.verify(&spec.endpoint)? } else { Vec::new() };
    let output = Output::new(&spec.workload, &*workload, args.seed, summary, checks)?;

    print_answer(args.json, &output, || text::lines(&output.text()))?;
    match output.failed_checks() {
        0 => Ok(()),
        failed => bail!("the database violates {failed} of its conditions"),
    }
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
    result?;
    eprintln!("loaded in {:.1} s", bar.elapsed().as_secs_f64());
    Ok(())
}

fn measure(spec: &RunSpec, plan: Plan, warm_up: Duration) -> Result<Summary> {
    let program = std::env::current_exe().context("looking for our own binary")?;
    let mut client = ClientProcess::spawn(&program, spec, &TrialTime::real())?;
    client.wait_ready(CONNECT_PATIENCE)?;
    if !plan.once {
        client.watch(warm_up, &mut |_| ())?;
    }
    let summary = client.measure(plan.duration, &mut |second| {
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
