//! A run: every trial of a plan without a record, each from the same snapshot, each writing one line.
//!
//! A trial that fails is a row with `error`, and the run goes on. A run stops at a failure that every trial
//! would share: no server on this machine, a records file that cannot be written. It also stops at the user's
//! request.

mod cause;
pub mod client;
mod data_set;
mod further;
mod order;
mod phases;
mod pilot;
pub mod preflight;
mod probe;
mod trial;
mod work_directory;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use itertools::Itertools as _;

use crate::host::control_group;
use crate::host::interrupt::Interrupt;
use crate::host::other_runs::{OtherRuns, RunHead, Turn};
use crate::host::progress::{Progress, Waiting};
use crate::host::provenance::{self, Machine};
use crate::host::trial_time::TrialTime;
use crate::record::input::Records;
use crate::record::records_file::{self, FILE_NAME, RecordsFile, Resume};
use crate::record::{Cell, Header, NextStep, Provenance, Trial};
use crate::report;
use crate::scenario::Scenario;
use crate::scenario::dilation::DilationRule;
use crate::scenario::plan::{Plan, PlannedTrial};
use crate::server::Instance;
use crate::volume::{self, mounts::Mounts};
use crate::watch::Publisher;
use data_set::DataSets;
pub(crate) use data_set::SNAPSHOTS;
use order::Order;
use pilot::Pilots;
use preflight::{Found, Servers};
use spindle_base::Mistake;
use spindle_base::dilation::Dilation;
use spindle_base::text::{self, plural};
use trial::Laboratory;
use trial::trace::{self, Traces};
pub(crate) use trial::trace::{TRACES, clear as clear_traces};
use work_directory::WorkDirectory;
pub use work_directory::clear_leftovers as clear_work_directories;

#[derive(Debug, Clone)]
pub struct Options {
    /// As the user named it, for sentences about mistakes in it.
    pub scenario_path: PathBuf,
    pub directory: PathBuf,
    pub resume: Resume,
    /// Begins only when no other run is active on this machine.
    pub wait: bool,
    /// Disturbed trials are not repeated.
    pub keep_disturbed: bool,
    /// The block trace of each measured window is kept, of at most that many bytes of requests.
    pub trace_bytes: Option<u64>,
    /// Real time of this run: a block that would not end in it is not begun, but the first.
    pub at_most: Option<Duration>,
    /// This binary. The load generator is one of its sub-commands.
    pub program: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub records: PathBuf,
    pub trials_run: usize,
    /// In the file, those of earlier runs among them.
    pub trials_total: usize,
    /// Failed trials in the file, of this run and of earlier ones.
    pub trials_failed: usize,
}

pub(crate) use crate::record::records_file::RESULTS;

/// `spindle-results/NAME-HASH` in the working directory.
pub fn default_directory(scenario: &Scenario) -> PathBuf {
    Path::new(RESULTS).join(format!("{}-{}", scenario.name, &scenario.hash()[..8]))
}

/// Checks before any work that files of an earlier run in the directory are ours.
///
/// # Errors
/// [`Mistake`].
pub(crate) fn check_directory(directory: &Path) -> Result<()> {
    records_file::check_directory(directory)?;
    trace::check_directory(directory)?;
    data_set::check_directory(directory)
}

/// Trials of one run are compared with each other.
fn check_processor(measured_on: &Machine, here: &Machine, directory: &Path) -> Result<(), Mistake> {
    // Earlier records do not have it.
    if measured_on.cpu_model.is_empty() || measured_on.processor() == here.processor() {
        return Ok(());
    }
    Err(Mistake::new(format!(
        "--output {}: its trials are of another processor ({}) than this machine's ({}); name another directory, or start over with --fresh",
        directory.display(),
        measured_on.processor(),
        here.processor(),
    )))
}

pub fn run(scenario: &Scenario, plan: &Plan, options: &Options, interrupt: &Interrupt) -> Result<Outcome> {
    let servers = preflight::servers(scenario);
    let Found { versions, tools } = preflight::servers_and_tools(scenario, &servers, &options.scenario_path)?;
    let turn = options.wait.then(|| wait_for_other_runs(interrupt)).transpose()?;
    volume::clear_leftovers().context("clearing the remains of an interrupted run")?;
    work_directory::clear_leftovers();
    control_group::clear_leftovers(Path::new("/"));
    let work_directory = WorkDirectory::make()?;
    preflight::stacks(scenario, work_directory.path(), &options.scenario_path)?;
    let asked = header(scenario, plan, options, &tools);
    let (mut records, header, kept) = RecordsFile::open(&options.directory, &asked, options.resume)?;
    let mut data_sets = DataSets::open(&options.directory)?;
    if options.resume.fresh {
        trace::clear(&options.directory)?;
    }
    let traces =
        options.trace_bytes.map(|limit_bytes| Traces::open(&options.directory, limit_bytes)).transpose()?;

    let mut so_far = Records { header: header.clone(), trials: kept, notes: Vec::new() };
    let mut order = Order::new(plan, scenario.run.until, !options.keep_disturbed, &so_far);
    order.end_after(options.at_most);
    let to_come = order.still_left(&so_far);
    if !to_come.is_empty() {
        check_processor(&header.machine, &asked.machine, &options.directory)?;
    }
    let kept_count = so_far.trials.len();
    let mut progress =
        Progress::new(kept_count + to_come.len(), kept_count, plan.estimate.per_trial, plan.estimate.load);
    introduce(scenario, plan, kept_count, to_come.len(), records.path(), &progress);
    if let Some(words) = trace::untraced_words(&so_far.trials).filter(|_| options.trace_bytes.is_some()) {
        progress.say(&words);
    }
    let (other_runs, publisher) = announce(scenario, to_come.len(), records.path(), &mut progress);
    drop(turn);

    let pilot_scenario = pilot::scenario(scenario);
    let laboratory = |scenario, cell, dilation| Laboratory {
        scenario,
        cell,
        servers: &servers,
        versions: &versions,
        scenario_hash: &header.provenance.scenario_hash,
        program: &options.program,
        work_directory: work_directory.path(),
        interrupt,
        other_runs: &other_runs,
        publisher: &publisher,
        dilation,
        traces: traces.as_ref(),
    };
    let mut pilots = kept_pilots(&so_far.trials);
    if let DilationRule::AsNeeded { at_most } = scenario.run.dilation {
        for cell in cells_of(plan, &to_come).filter(|cell| !pilots.contains_key(&cell.name)).collect_vec() {
            let laboratory = Laboratory { traces: None, ..laboratory(&pilot_scenario, cell, Dilation::NONE) };
            let steps = pilot::steps(laboratory, at_most, scenario.run.seed, &mut data_sets, &mut progress)?;
            pilots.insert(cell.name.clone(), steps);
        }
    }
    let dilations = pilot::dilations(&pilots, scenario.run.dilation.most());
    let mut left = order.next(&so_far);
    while !left.is_empty() {
        for planned in &left {
            let cell = &plan.cells[planned.cell_index];
            if let Some(words) = repetition(&cell.name, planned.trial, &so_far) {
                progress.say(&words);
            }
            let found = dilations.get(cell.name.as_str()).copied();
            let dilation = scenario.dilation_of(&cell.server).or(found).unwrap_or_default();
            let mut trial =
                laboratory(scenario, cell, dilation).run(planned, &mut data_sets, &mut progress)?;
            trial.pilot = pilots.get(&cell.name).cloned().unwrap_or_default();
            records.append(&trial)?;
            progress.trial_finished(&line(&trial));
            so_far.trials.push(trial);
        }
        left = order.next(&so_far);
        let further = if left.is_empty() { None } else { order.trials_left(&so_far) };
        progress.expect(further.map_or_else(|| order.still_left(&so_far).len() as u64, u64::from));
    }
    publisher.end();
    let trials_failed = so_far.trials.iter().filter(|trial| trial.error.is_some()).count();
    let trials_run = so_far.trials.len() - kept_count;
    Ok(Outcome {
        records: records.path().to_owned(),
        trials_run,
        trials_total: so_far.trials.len(),
        trials_failed,
    })
}

/// Says why a trial is repeated. `None` for its first attempt.
fn repetition(cell: &str, number: u32, so_far: &Records) -> Option<String> {
    let earlier = so_far.trials.iter().find(|trial| (trial.cell.as_str(), trial.trial) == (cell, number))?;
    let reason = report::disturbance(so_far, earlier)?;
    Some(format!("{cell}, trial {number} was disturbed by the host ({reason}) and is repeated"))
}

/// The cells of these trials, each once.
fn cells_of<'a>(plan: &'a Plan, trials: &[PlannedTrial]) -> impl Iterator<Item = &'a Cell> {
    let indices: BTreeSet<usize> = trials.iter().map(|planned| planned.cell_index).collect();
    indices.into_iter().map(|index| &plan.cells[index])
}

/// A run that goes on keeps the dilations that it began with.
fn kept_pilots(kept: &[Trial]) -> Pilots {
    let with_pilot = kept.iter().filter(|trial| !trial.pilot.is_empty());
    with_pilot.map(|trial| (trial.cell.clone(), trial.pilot.clone())).collect()
}

/// Announces a run with trials left to others, publishes its state, and tells the user of the runs that go on
/// already.
fn announce(
    scenario: &Scenario,
    left: usize,
    records: &Path,
    progress: &mut Progress,
) -> (OtherRuns, Publisher) {
    if left == 0 {
        return (OtherRuns::default(), Publisher::default());
    }
    let head = RunHead::own(&scenario.title, &scenario.name);
    let other_runs = match OtherRuns::announce(head.clone()) {
        Ok(other_runs) => other_runs,
        Err(error) => {
            progress.say(&format!("warning: runs beside this one will not be noticed: {error:#}"));
            return (OtherRuns::default(), Publisher::default());
        }
    };
    for run in other_runs.look() {
        let words = phases::other_run(&run);
        progress.say(&format!("{words}; with --wait, a run begins after the others"));
    }
    let publisher = Publisher::open(&head, &records_file::page_path(records), progress.standing())
        .unwrap_or_else(|error| {
            progress.say(&format!("warning: `spindle watch` will not see this run: {error:#}"));
            Publisher::default()
        });
    let ours = publisher.clone();
    progress.listen(move |standing| ours.standing(standing));
    (other_runs, publisher)
}

/// Says for whom it waits, and for how long so far.
fn wait_for_other_runs(interrupt: &Interrupt) -> Result<Turn> {
    let mut waiting = Waiting::begin();
    let turn = Turn::wait(interrupt, &mut |others| {
        let party = others.iter().map(|run| run.process_id.to_string()).join(" ");
        let names = others.iter().map(RunHead::words).join(" and ");
        let words = if others.is_empty() { "another waiting run, which begins first" } else { &names };
        waiting.for_party(party, words);
    })?;
    waiting.end();
    Ok(turn)
}

/// A server on these mounts. Makes its runtime directory.
fn instance(
    mounts: &Mounts,
    runtime_directory: &Path,
    settings: &BTreeMap<String, String>,
    time: &TrialTime,
) -> Result<Instance> {
    std::fs::create_dir_all(runtime_directory)
        .with_context(|| format!("making {}", runtime_directory.display()))?;
    Ok(Instance {
        data_directory: mounts.data_directory(),
        class_directories: mounts.class_directories(),
        runtime_directory: runtime_directory.to_owned(),
        settings: settings.clone(),
        environment: time.environment(),
        control_group: None,
        changing: Vec::new(),
    })
}

fn header(scenario: &Scenario, plan: &Plan, options: &Options, tools: &BTreeMap<String, String>) -> Header {
    let deviations = |name: &String| {
        let tool = tools.get(name).map(|version| format!("The clients are a foreign tool: {version}."));
        let listed = scenario.workloads[name].deviations().into_iter().map(str::to_owned);
        tool.into_iter()
            .chain(listed)
            .map(move |deviation| format!("{name}: {deviation}"))
            .collect::<Vec<_>>()
    };
    Header {
        format: crate::record::FORMAT,
        created_at: provenance::now(),
        provenance: Provenance {
            spindle_version: provenance::SPINDLE_VERSION.to_owned(),
            git_revision: provenance::GIT_REVISION.to_owned(),
            scenario_hash: scenario.hash(),
            kernel: provenance::kernel(),
            seed: scenario.run.seed,
            ..Provenance::default()
        },
        scenario: scenario.head(),
        cells: plan.cells.clone(),
        machine: provenance::machine(),
        deviations: scenario.matrix.workload.iter().flat_map(deviations).collect(),
        report_command: format!("spindle report {}", options.directory.join(FILE_NAME).display()),
        source: None,
    }
}

fn introduce(
    scenario: &Scenario,
    plan: &Plan,
    kept: usize,
    left: usize,
    records: &Path,
    progress: &Progress,
) {
    progress.say(&format!("{} (seed {})", scenario.title, scenario.run.seed));
    let total = plan.trials.len();
    let amount = match (scenario.run.until, kept, left) {
        (until, 0, _) => {
            let (trials, cells) = (plural(total, "trial"), plural(plan.cells.len(), "cell"));
            let about = format!("{trials} in {cells}, about {}", text::duration(plan.estimate.total));
            until.map_or(about.clone(), |until| format!("{about}; then further ones {}", until.words()))
        }
        (Some(_), kept, 0) => format!("{} done, nothing left to run", plural(kept, "trial")),
        (Some(until), kept, _) => format!("{} done, goes on {}", plural(kept, "trial"), until.words()),
        (None, ..) => match total - left {
            1 if left == 0 => "the only trial is done".to_owned(),
            done if left == 0 => format!("all {done} trials are done"),
            done => format!("{done} of {total} trials are done, {left} to go"),
        },
    };
    progress.say(&format!("{amount}; records in {}", records.display()));
}

fn line(trial: &Trial) -> String {
    let name = format!("{}, trial {}", trial.cell, trial.trial);
    let Some(measurement) = &trial.measurement else {
        return format!("{name}: failed: {}", trial.error.as_deref().unwrap_or("no measurement"));
    };
    let bottleneck = &measurement.bottleneck;
    // The line may go on.
    let step = |next: &NextStep| format!(". {}", next.sentence.trim_end_matches('.'));
    let next = bottleneck.next.as_ref().map(step).unwrap_or_default();
    let metric = &measurement.metric;
    let decimals = if metric.lower_is_better { 2 } else { 0 };
    format!("{name}: {:.decimals$} {}, {}{next}", metric.value, metric.name, bottleneck.short())
}
