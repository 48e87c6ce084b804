//! Runs the scenarios of a study, one after the other, within a budget of time.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use spindle_base::Mistake;
use spindle_base::text;

use super::{directory_of, smoke};
use crate::claims::Folder;
use crate::host::interrupt::{Interrupt, Interrupted};
use crate::host::provenance;
use crate::record::records_file::{self, Resume};
use crate::report::{self, Format};
use crate::run;
use crate::scenario::plan::{Plan, plan};
use crate::scenario::{Bounds, Scenario};
use crate::server::Trust;

/// Why a scenario was not run, in its directory.
pub(super) const REFUSED: &str = "not-run.txt";
/// Parts that no machine in common use has may take longer than a part of the budget alone.
const LEAST: Duration = Duration::from_secs(20);

#[derive(Debug, Clone)]
pub struct RepeatOptions {
    /// The results of the study are in a directory of its name in this one.
    pub output: PathBuf,
    /// Time for all scenarios together; without it, each runs to its own end.
    pub budget: Option<Duration>,
    /// Tiny data and one short trial, which shows that everything works.
    pub smoke: bool,
    pub seed: Option<u64>,
    /// Names of scenarios; all without one.
    pub only: Vec<String>,
    pub resume: Resume,
    pub program: PathBuf,
}

/// A scenario that this machine can run.
struct Part {
    name: &'static str,
    scenario: Scenario,
    plan: Plan,
}

/// Runs every scenario that this machine can run, and says which it cannot.
///
/// # Errors
/// The user asked to stop, or results cannot be written.
pub fn repeat(folder: &Folder, options: &RepeatOptions, interrupt: &Interrupt) -> Result<()> {
    let mut parts = Vec::new();
    for (name, text) in folder.scenarios {
        if !options.only.is_empty() && !options.only.iter().any(|only| name.contains(only.as_str())) {
            continue;
        }
        match part(name, text, folder.scenarios.len(), options) {
            Ok(part) => parts.push(part),
            Err(mistake) => refuse(folder, options, name, &mistake.to_string())?,
        }
    }
    let began = Instant::now();
    while !parts.is_empty() {
        let left = options.budget.map(|budget| budget.saturating_sub(began.elapsed()));
        let at_most = left.map(|left| share(left, &parts));
        let part = parts.remove(0);
        run_part(folder, &part, at_most, options, interrupt)?;
    }
    Ok(())
}

/// The part of the time left that the first of the parts may take.
fn share(left: Duration, parts: &[Part]) -> Duration {
    let total: f64 = parts.iter().map(|part| part.plan.estimate.total.as_secs_f64()).sum();
    let first = parts[0].plan.estimate.total.as_secs_f64();
    left.mul_f64(if total > 0.0 { first / total } else { 1.0 }).max(LEAST)
}

fn part(name: &'static str, text: &str, scenarios: usize, options: &RepeatOptions) -> Result<Part, Mistake> {
    let bounds = Bounds { memory_bytes: provenance::memory_bytes(), trust: Trust::MayRun };
    let mut scenario = Scenario::parse(name, text, &bounds)?;
    if let Some(seed) = options.seed {
        scenario.run.seed = seed;
    }
    if options.smoke {
        smoke::shrink(&mut scenario);
    }
    let mut plan = plan(&scenario);
    if options.smoke {
        plan.trials.truncate(smoke::trials(scenarios));
    }
    Ok(Part { name, scenario, plan })
}

fn run_part(
    folder: &Folder,
    part: &Part,
    at_most: Option<Duration>,
    options: &RepeatOptions,
    interrupt: &Interrupt,
) -> Result<()> {
    let directory = directory_of(&options.output, folder, part.name);
    let of_run = run::Options {
        scenario_path: PathBuf::from(format!("studies/{}/{}.toml", folder.study, part.name)),
        directory: directory.clone(),
        resume: options.resume,
        wait: false,
        keep_disturbed: options.smoke,
        trace_bytes: None,
        at_most,
        program: options.program.clone(),
    };
    eprintln!("{}, {}", folder.study, words(part, at_most));
    std::fs::create_dir_all(options.output.join(folder.study))
        .with_context(|| format!("making {}", options.output.display()))?;
    run::check_directory(&directory)?;
    match run::run(&part.scenario, &part.plan, &of_run, interrupt) {
        Ok(outcome) => {
            let _ = std::fs::remove_file(directory.join(REFUSED));
            write_page(&outcome.records)
        }
        Err(error) if error.is::<Interrupted>() => Err(error),
        Err(error) => match error.downcast::<Mistake>() {
            Ok(mistake) => refuse(folder, options, part.name, &mistake.to_string()),
            Err(error) => refuse(folder, options, part.name, &text::causes(&error)),
        },
    }
}

fn words(part: &Part, at_most: Option<Duration>) -> String {
    let total = text::duration(part.plan.estimate.total);
    match at_most.filter(|at_most| *at_most < part.plan.estimate.total) {
        Some(at_most) => {
            format!("{}: about {total}, of which {} are spent", part.name, text::duration(at_most))
        }
        None => format!("{}: about {total}", part.name),
    }
}

fn write_page(records: &Path) -> Result<()> {
    let read = report::read(records)?;
    records_file::write_page(records, &report::render(&read, Format::Html, false)?).map(|_| ())
}

/// Says that a scenario is not run here, and keeps the reason for the report.
fn refuse(folder: &Folder, options: &RepeatOptions, name: &str, reason: &str) -> Result<()> {
    eprintln!("spindle: {}, {name}: not run here: {}", folder.study, text::one_line(reason));
    let directory = directory_of(&options.output, folder, name);
    let writing = || format!("writing {}", directory.join(REFUSED).display());
    std::fs::create_dir_all(&directory).with_context(writing)?;
    std::fs::write(directory.join(REFUSED), format!("{}\n", text::one_line(reason))).with_context(writing)
}
