//! Options of `spindle load` that cannot be satisfied. They are refused before any connection or load.

use anyhow::{Result, ensure};
use spindle_load::foreign::Length;
use spindle_load::sql::{NO_ENGINES, describe};
use spindle_load::{Target, WorkloadSpec};

use super::Plan;
use super::arguments::RunArgs;
use spindle_base::{Mistake, near, text};

fn at_option(workload: &WorkloadSpec, key: &str, message: String) -> Mistake {
    match workload.option(key) {
        Some(option) => Mistake::at(option, message),
        None => Mistake::new(message),
    }
}

/// Reads the files that the workload names, and plans the run.
///
/// # Errors
/// A [`Mistake`] that names the option.
pub(super) fn plan(workload: &mut WorkloadSpec, args: &RunArgs) -> Result<Plan> {
    if let Err((key, message)) = workload.read_files("".as_ref()) {
        return Err(at_option(workload, key, message).into());
    }
    if let Some((key, message)) = workload.complaint() {
        return Err(at_option(workload, &key, message).into());
    }
    let target = Target::of(&args.server);
    let no_engines = || at_option(workload, "engine", NO_ENGINES.to_owned());
    ensure!(workload.engine().is_none() || target == Target::Mysql, no_engines());
    let plan = Plan::new(workload, args);
    let kind = workload.kind();
    if plan.once {
        let known = near::list(&WorkloadSpec::kinds_that(|facts| facts.is_fixed_work));
        let message =
            format!("needs fixed work, and `{kind}` has no end; the workloads of fixed work are {known}");
        ensure!(workload.facts().is_fixed_work, Mistake::of_flag("once", message));
        let message = "has no meaning for fixed work that is done once; leave it out, or give a `--duration`";
        ensure!(args.warm_up.is_zero(), Mistake::of_flag("warm_up", message));
    }
    if let Some(tool) = workload.build()?.tool() {
        tool.command(&args.server, args.seed, Length::Endless)
            .map_err(|error| Mistake::of_flag("server", error.to_string()))?;
        let duration = text::duration(plan.duration);
        let message = format!("{duration} is not a whole number of seconds, which `{kind}` needs");
        ensure!(plan.duration.subsec_nanos() == 0, Mistake::of_flag("duration", message));
    }
    let message = format!("`{kind}` cannot run on {}", describe(&args.server));
    ensure!(workload.facts().runs_on.contains(&target), Mistake::of_flag("server", message));
    Ok(plan)
}
