//! `spindle run SCENARIO`: plan, provision, load, run, verify, record; resumes where it stopped.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;

use crate::cmd::doctor::examine;
use crate::cmd::output::{allows_colour, check_output_directory, print};
use crate::host::interrupt::{Interrupt, Interrupted};
use crate::host::private_directory::refuse_foreign_link;
use crate::host::provenance;
use crate::record::records_file::{self, Resume};
use crate::report::{self, Format};
use crate::run;
use crate::run::virtual_answer;
use crate::scenario::plan::plan;
use crate::scenario::{Bounds, Scenario};
use crate::server::Trust;
use spindle_base::text::{self, plural};

const ENVIRONMENT: &str = "\
Environment:
  TMPDIR                  Directory for sockets, logs, and disk contents beyond the memory limit
                          [default: /tmp]
  SPINDLE_OVERLAY_MEMORY  Memory for data that is written to an emulated disk, for example 4G
                          [default: half of the machine's memory]
  SPINDLE_LOCK_DIRECTORY  Directory in which runs see each other [default: /tmp/spindle-runs]";

#[derive(Debug, Args)]
#[command(after_help = ENVIRONMENT)]
pub struct RunArguments {
    /// Scenario file (TOML).
    scenario: PathBuf,
    /// Directory for records, report and snapshots [default: spindle-results/NAME-HASH].
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
    /// Run failed trials again.
    #[arg(long)]
    retry_failed: bool,
    /// Delete the records of earlier runs in the output directory.
    #[arg(long, conflicts_with = "retry_failed")]
    fresh: bool,
    /// Begin when no other run is active on this machine. By default both go on, and their records say so.
    #[arg(long)]
    wait: bool,
}

/// Exit code 1 when every trial in the records failed. Single failed trials are rows.
pub fn run(arguments: &RunArguments) -> Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    arguments.output.as_deref().map_or(Ok(()), check_output_directory)?;
    let bounds = Bounds { memory_bytes: provenance::memory_bytes(), trust: Trust::MayRun };
    let scenario = Scenario::read(&arguments.scenario, &bounds)?;
    let plan = plan(&scenario);
    let blockers = emulation_blockers(&scenario);
    if !blockers.is_empty() {
        eprintln!(
            "spindle: no emulated disk can be mounted here ({}), so the table below is of the storage \
             alone, in virtual time and without a database; `spindle doctor` says what is missing",
            blockers.join(", ")
        );
        print(&text::lines(&virtual_answer::table(&scenario)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = run::Options {
        scenario_path: arguments.scenario.clone(),
        directory: arguments.output.clone().unwrap_or_else(|| run::default_directory(&scenario)),
        resume: Resume { fresh: arguments.fresh, retry_failed: arguments.retry_failed },
        wait: arguments.wait,
        program: std::env::current_exe().context("looking for our own binary")?,
    };
    if arguments.output.is_none() {
        refuse_foreign_link(Path::new(run::RESULTS))?;
    }
    run::check_directory(&options.directory)?;
    let outcome = match run::run(&scenario, &plan, &options, &interrupt) {
        Err(error) if error.is::<Interrupted>() => {
            eprintln!("spindle: interrupted; {}", how_to_go_on(&options, plan.trials.len()));
            return Ok(ExitCode::from(130));
        }
        result => result?,
    };
    let measured = plan.trials.len() - outcome.trials_failed;
    show(&outcome.records)?;
    if outcome.trials_failed > 0 && !arguments.retry_failed {
        let count = outcome.trials_failed;
        let (trials, them) = (plural(plan.trials.len(), "trial"), if count == 1 { "it" } else { "them" });
        eprintln!("{count} of {trials} failed; run {them} again with --retry-failed");
    }
    Ok(if measured > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is kept of a run that the user stopped, and the way to the rest.
fn how_to_go_on(options: &run::Options, trials_total: usize) -> String {
    let done = report::read(&options.directory).map_or(0, |records| records.trials.len());
    // The same option would delete what is kept.
    let command = if options.resume.fresh { "the same command without --fresh" } else { "the same command" };
    match done {
        0 => "no trial is done yet; the same command begins again".to_owned(),
        _ => format!("{done} of {trials_total} trials are done and kept; {command} goes on from there"),
    }
}

/// The reasons why the emulated disks of a scenario cannot come up here; empty when they can, or when it has
/// none.
pub(super) fn emulation_blockers(scenario: &Scenario) -> Vec<&'static str> {
    let is_measured = |name: &String| !scenario.servers[name].facts().is_for_tests;
    let needs_emulation = scenario.matrix.server.iter().any(is_measured)
        && scenario.stacks_in_use().iter().any(|name| scenario.stacks[*name].real().is_none());
    if needs_emulation { examine::emulation_blockers() } else { Vec::new() }
}

/// Prints the table to standard output, and writes the page next to the records.
fn show(path: &Path) -> Result<()> {
    let records = report::read(path)?;
    let page = records_file::write_page(path, &report::render(&records, Format::Html, false)?)?;
    let colour = std::io::stdout().is_terminal() && allows_colour();
    let table = report::render(&records, Format::Text, colour)?;
    print(&format!("{table}\nreport: {}\n", page.display()))
}
