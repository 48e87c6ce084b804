//! `spindle run SCENARIO`: plan, provision, load, run, verify, record; resumes where it stopped.

mod trace;
mod virtual_answer;

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
use crate::record::input::Records;
use crate::record::records_file::{self, Resume};
use crate::report::{self, Format};
use crate::run;
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
    /// Do not repeat trials that the host disturbed, such as by other programs.
    #[arg(long, env = "SPINDLE_KEEP_DISTURBED", hide_env = true)]
    keep_disturbed: bool,
    /// Run the first cell twice instead of the matrix: two names for one storage, which a comparison should not
    /// tell apart.
    #[arg(long)]
    a_a: bool,
    /// Keep a block trace of each measured window beside the records.
    #[arg(long)]
    trace: bool,
    /// Size at which a trace ends. Predictions for other storage need its first part, for more memory all of it.
    #[arg(long, value_name = "SIZE", value_parser = trace::parse_limit, default_value = "64MiB", requires = "trace")]
    trace_limit: u64,
}

/// Exit code 1 when every trial in the records failed. Single failed trials are rows.
pub fn run(arguments: &RunArguments) -> Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    arguments.output.as_deref().map_or(Ok(()), check_output_directory)?;
    let bounds = Bounds { memory_bytes: provenance::memory_bytes(), trust: Trust::MayRun };
    let mut scenario = Scenario::read(&arguments.scenario, &bounds)?;
    scenario.run.a_a = arguments.a_a;
    let untraced = if arguments.trace { trace::left_out(&scenario)? } else { None };
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
        keep_disturbed: arguments.keep_disturbed,
        trace_bytes: arguments.trace.then_some(arguments.trace_limit),
        at_most: None,
        program: std::env::current_exe().context("looking for our own binary")?,
    };
    if arguments.output.is_none() {
        refuse_foreign_link(Path::new(run::RESULTS))?;
    }
    run::check_directory(&options.directory)?;
    warn_of_nearly_full(&scenario);
    if let Some(words) = untraced {
        eprintln!("spindle: {words}");
    }
    let outcome = match run::run(&scenario, &plan, &options, &interrupt) {
        Err(error) if error.is::<Interrupted>() => {
            eprintln!("spindle: interrupted; {}", how_to_go_on(&options, &scenario, plan.trials.len()));
            return Ok(ExitCode::from(130));
        }
        result => result?,
    };
    let measured = outcome.trials_total - outcome.trials_failed;
    let records = report::read(&outcome.records)?;
    show(&outcome.records, &records)?;
    let errors: Vec<&str> = records.trials.iter().filter_map(|trial| trial.error.as_deref()).collect();
    if let Some(words) = failed(&errors, outcome.trials_total, arguments.retry_failed) {
        eprintln!("{words}");
    }
    Ok(if measured > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn warn_of_nearly_full(scenario: &Scenario) {
    for filled in scenario.filled() {
        if let Some(warning) = filled.nearly_full_warning() {
            eprintln!("spindle: warning: stacks.{}: {warning}", filled.stack);
        }
    }
}

/// Whether a disk under test was full. A server may give the room back as it dies; then only its own words,
/// those of every program for ENOSPC, name the reason. The host's own disks fill with other words.
fn is_of_full_disk(error: &str) -> bool {
    let is_of_host = ["the host could not keep", "as a snapshot: "].iter().any(|words| error.contains(words));
    let words = ["the file system on the emulated disk is full", "No space left on device"];
    !is_of_host && words.iter().any(|words| error.contains(words))
}

/// The number of failed trials, and the way to run them again. A disk that was full is full again.
fn failed(errors: &[&str], trials_total: usize, is_again: bool) -> Option<String> {
    let (count, trials) = (errors.len(), plural(trials_total, "trial"));
    let full = errors.iter().filter(|error| is_of_full_disk(error)).count();
    match count {
        0 => None,
        _ if full > 0 => Some(format!(
            "{count} of {trials} failed, {full} of them on a full disk: raise the `size` of its stack, or leave \
             `size` out, and run again"
        )),
        _ if is_again => None,
        _ => {
            let them = if count == 1 { "it" } else { "them" };
            Some(format!("{count} of {trials} failed; run {them} again with --retry-failed"))
        }
    }
}

/// What is kept of a run that the user stopped, and the way to the rest.
fn how_to_go_on(options: &run::Options, scenario: &Scenario, trials_total: usize) -> String {
    let done = report::read(&options.directory).map_or(0, |records| records.trials.len());
    // The same option would delete what is kept.
    let command = if options.resume.fresh { "the same command without --fresh" } else { "the same command" };
    match done {
        0 => "no trial is done yet; the same command begins again".to_owned(),
        _ if scenario.run.until.is_some() => {
            format!("{} done and kept; {command} goes on from there", plural(done, "trial"))
        }
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
fn show(path: &Path, records: &Records) -> Result<()> {
    let page = records_file::write_page(path, &report::render(records, Format::Html, false)?)?;
    let colour = std::io::stdout().is_terminal() && allows_colour();
    let table = report::render(records, Format::Text, colour)?;
    print(&format!("{table}\nreport: {}\n", page.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_needs_another_size_rather_than_another_try() {
        let check = |errors: &[&str], is_again, expect| {
            assert_eq!(failed(errors, 6, is_again).as_deref(), expect, "{errors:?}");
        };
        check(&[], false, None);
        check(&["killed"], false, Some("1 of 6 trials failed; run it again with --retry-failed"));
        check(&["killed"], true, None);
        let full = "postgres died: PANIC: could not write to file: No space left on device";
        let words = "2 of 6 trials failed, 1 of them on a full disk: raise the `size` of its stack, or leave \
                     `size` out, and run again";
        check(&["killed", full], false, Some(words));
        check(&["killed", full], true, Some(words));
        let of_host = "loading the database: keeping the loaded database as a snapshot: copying: No space \
                       left on device (os error 28)";
        check(&[of_host], false, Some("1 of 6 trials failed; run it again with --retry-failed"));
    }
}
