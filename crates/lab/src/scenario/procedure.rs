//! The procedure of a run: the table `[run]`, cells with more trials, and the workloads that it suits.

pub mod dilation;
pub(super) mod more_trials;
pub(super) mod settle;
pub(super) mod span;
pub(super) mod until;
pub(super) mod warm_up;

use std::time::Duration;

use spindle_base::Mistake;
use spindle_base::near;
use spindle_base::text;
use spindle_load::{Target, WorkloadSpec};
use spindle_stats::looks::FEWEST_PAIRS;

use self::span::DurationOr;
use super::file::{DurationText, Once, RunTable, ScenarioFile};
use super::{RunSettings, Scenario};
use crate::host::provenance::cpu_count;
use crate::record::StartState;

const DURATION_MAX: Duration = Duration::from_secs(24 * 3600);
/// In a shorter window any workload has too few transactions for a meaningful result.
const MEASURE_MIN: Duration = Duration::from_millis(100);

/// The settings of a run. A missing warm-up is that of the workloads, if they have one, or else as long as
/// the window.
pub(super) fn settings(file: &ScenarioFile) -> Result<RunSettings, Mistake> {
    let run = &file.run;
    let once = run.measure == DurationOr::Else(Once);
    let start = run.start.unwrap_or(if once { StartState::Cold } else { StartState::Warm });
    let of_kits = || file.matrix.workload.iter().filter_map(|name| file.workloads[name].warm_up()).max();
    let (key, measure) = match (run.measure, run.at_most) {
        (DurationOr::For(_), Some(_)) if run.trials.is_some() => {
            let message = "has no meaning with `trials`, unless measure = \"once\"; leave it out";
            return Err(Mistake::at("run.at_most", message));
        }
        (DurationOr::For(duration), _) => ("measure", duration),
        (DurationOr::Else(Once), Some(DurationText(duration))) => ("at_most", duration),
        (DurationOr::Else(Once), None) => {
            let message = "is missing; measure = \"once\" needs it, so that a trial ends on slow storage too";
            return Err(Mistake::at("run.at_most", message));
        }
    };
    if once && run.enough.is_some() {
        let message = "has no meaning with measure = \"once\", whose window ends with the work; leave it out";
        return Err(Mistake::at("run.enough", message));
    }
    if run.at_least.is_some() && run.enough.is_none() {
        let message =
            "has a meaning with `enough` only: without it every window has its full length; leave it out";
        return Err(Mistake::at("run.at_least", message));
    }
    let at_least = run.at_least.map_or(Duration::ZERO, |DurationText(at_least)| at_least);
    if at_least > measure {
        let message = format!("must be at most {}, the length of the window", text::duration(measure));
        return Err(Mistake::at("run.at_least", message));
    }
    if let Some(DurationText(at_most)) = run.at_most {
        bounded("at_most", at_most, MEASURE_MIN)?;
    }
    if run.warm_up.is_some() && start == StartState::Cold {
        let message = "has no meaning with start = \"cold\"; leave it out";
        return Err(Mistake::at("run.warm_up", message));
    }
    if run.warm_up.is_some() && once {
        let message = "has no meaning with measure = \"once\", which is warm after a pass; leave it out";
        return Err(Mistake::at("run.warm_up", message));
    }
    if run.idle.is_some() && start != StartState::Cold {
        let message = "has a meaning with start = \"cold\" only; leave it out";
        return Err(Mistake::at("run.idle", message));
    }
    let settle = settle::rule(run, start)?;
    let cpu_affinity = cpu_affinity(run)?;
    let unless_given = match start {
        _ if once || start == StartState::Cold => Duration::ZERO,
        StartState::Warm if settle.is_ruled() => Duration::ZERO,
        _ => of_kits().unwrap_or(measure),
    };
    Ok(RunSettings {
        trials: run.trials.unwrap_or(FEWEST_PAIRS),
        until: until::rule(run)?,
        start,
        warm_up: warm_up::rule(run, start, unless_given)?,
        settle,
        idle: bounded("idle", run.idle.map_or(Duration::ZERO, |DurationText(idle)| idle), Duration::ZERO)?,
        measure: bounded(key, measure, MEASURE_MIN)?,
        enough: run.enough,
        at_least,
        once,
        recovery: run.recovery,
        dilation: dilation::rule(run)?,
        cpu_affinity,
        a_a: false,
        seed: run.seed,
    })
}

fn cpu_affinity(run: &RunTable) -> Result<Option<u32>, Mistake> {
    let own = cpu_count();
    match run.cpu_affinity {
        Some(cores) if cores > own => {
            let message = format!(
                "{cores} is out of range; with {} it can be 1 to {own}",
                text::plural(own as usize, "core")
            );
            Err(Mistake::at("run.cpu_affinity", message))
        }
        cores => Ok(cores),
    }
}

fn bounded(key: &str, duration: Duration, shortest: Duration) -> Result<Duration, Mistake> {
    if duration > DURATION_MAX || duration < shortest {
        let (shortest, longest) = (text::duration(shortest), text::duration(DURATION_MAX));
        let message =
            format!("{} is out of range; it can be {shortest} to {longest}", text::duration(duration));
        return Err(Mistake::at(format!("run.{key}"), message));
    }
    Ok(duration)
}

/// Checks that every workload of the matrix can be measured in this way.
pub(super) fn check(scenario: &Scenario) -> Result<(), Mistake> {
    if scenario.run.once {
        check_fixed_work(scenario)?;
    }
    check_window(scenario)?;
    check_recovery(scenario)?;
    dilation::check(scenario)
}

/// Fixed work is done once, and begins with the server unless it only reads.
fn check_fixed_work(scenario: &Scenario) -> Result<(), Mistake> {
    let writer = scenario.workload_that(|workload| !workload.facts().is_read_only);
    if let Some(name) = writer.filter(|_| scenario.run.start != StartState::Cold) {
        let kind = scenario.workloads[name].kind();
        let others = near::list(&WorkloadSpec::kinds_that(|facts| facts.is_fixed_work && facts.is_read_only));
        let message = format!(
            "must be \"cold\" with measure = \"once\": workload `{name}` of kind `{kind}` is done from its beginning; the kinds that only read are {others}"
        );
        return Err(Mistake::at("run.start", message));
    }
    let Some(name) = scenario.workload_that(|workload| !workload.facts().is_fixed_work) else {
        return Ok(());
    };
    let kind = scenario.workloads[name].kind();
    let known = near::list(&WorkloadSpec::kinds_that(|facts| facts.is_fixed_work));
    let message = format!(
        "\"once\" needs fixed work, and workload `{name}` of kind `{kind}` has no end; the kinds of fixed work are {known}"
    );
    Err(Mistake::at("run.measure", message))
}

/// A server that is to be killed must be a process of ours that does not belong to a group.
fn check_recovery(scenario: &Scenario) -> Result<(), Mistake> {
    let is_ours = |name: &&String| {
        let (spec, facts) = (&scenario.servers[*name], scenario.servers[*name].facts());
        let has_process = facts
            .targets
            .iter()
            .any(|target| matches!(target, Target::Mysql | Target::Postgres | Target::Mock));
        has_process && !facts.runs_already() && spec.replication.is_none()
    };
    let other = scenario.matrix.server.iter().find(|name| !is_ours(name));
    match other.filter(|_| scenario.run.recovery) {
        Some(name) => {
            let message = format!(
                "needs a server of one process that Spindle starts, and `{name}` is not; leave it out"
            );
            Err(Mistake::at("run.recovery", message))
        }
        None => Ok(()),
    }
}

/// Foreign tools run for whole seconds, of which they are told the number.
fn check_window(scenario: &Scenario) -> Result<(), Mistake> {
    let measure = scenario.run.measure;
    let foreign = scenario.workload_that(|workload| workload.facts().has_tool);
    if let Some(name) = foreign.filter(|_| scenario.run.enough.is_some()) {
        let kind = scenario.workloads[name].kind();
        let message = format!(
            "cannot end a window of workload `{name}`: kind `{kind}` runs for its full time; leave it out"
        );
        return Err(Mistake::at("run.enough", message));
    }
    match foreign.filter(|_| measure.subsec_nanos() > 0) {
        Some(name) => {
            let kind = scenario.workloads[name].kind();
            let message = format!(
                "{} is not a number of whole seconds, and workload `{name}` of kind `{kind}` can measure no other",
                text::duration(measure)
            );
            Err(Mistake::at("run.measure", message))
        }
        None => Ok(()),
    }
}
