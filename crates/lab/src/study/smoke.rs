//! A scenario with tiny data and one short trial, which shows that everything works and measures nothing.

use std::time::Duration;

use serde_json::Value;
use spindle_load::WorkloadSpec;

use crate::record::StartState;
use crate::scenario::dilation::DilationRule;
use crate::scenario::{Scenario, Settle, WarmUp};

/// Counts that set the size of a workload, and what is enough of them.
const ENOUGH: [(&str, u64); 8] = [
    ("warehouses", 1),
    ("rows", 2_000),
    ("total_mib", 64),
    ("queries", 500),
    ("steps", 2),
    ("step_rows", 2_000),
    ("terminals", 8),
    ("scale_percent", 1),
];
/// Every count of sql-bench is divided by this.
const DIVISOR: u64 = 2_000;
/// Of a study, and of one of its scenarios. A trial takes about five seconds and a scenario's data three, so that a study takes about
/// two minutes.
const TRIALS_OF_STUDY: usize = 16;
const TRIALS_MOST: usize = 4;
/// Foreign tools run for whole seconds.
const WINDOW: Duration = Duration::from_secs(1);

/// Trials of each scenario of a study of so many.
pub(super) fn trials(scenarios: usize) -> usize {
    (TRIALS_OF_STUDY / scenarios).clamp(1, TRIALS_MOST)
}

pub(super) fn shrink(scenario: &mut Scenario) {
    for workload in scenario.workloads.values_mut() {
        *workload = small(workload);
    }
    scenario.servers.values_mut().for_each(|server| server.cores = None);
    scenario.more_trials.clear();
    let run = &mut scenario.run;
    (run.trials, run.until, run.enough, run.at_least) = (1, None, None, Duration::ZERO);
    run.dilation = DilationRule::default();
    if !run.once {
        let share = WINDOW.div_duration_f64(run.measure);
        scenario.events.iter_mut().for_each(|event| event.at = event.at.mul_f64(share));
        run.measure = WINDOW;
        run.idle = run.idle.min(WINDOW);
        run.warm_up = WarmUp::For(run.warm_up.most().min(WINDOW));
        run.settle = match run.start {
            StartState::WarmFast => Settle::For(WINDOW / 2),
            _ => Settle::For(Duration::ZERO),
        };
    }
}

/// The same workload with small counts; unchanged if they contradict each other.
fn small(workload: &WorkloadSpec) -> WorkloadSpec {
    let Ok(mut table) = serde_json::to_value(workload) else { return workload.clone() };
    for (key, enough) in ENOUGH {
        if let Some(count) = table.get(key).and_then(Value::as_u64) {
            table[key] = count.min(enough).into();
        }
    }
    if table.get("divisor").is_some() {
        table["divisor"] = DIVISOR.into();
    }
    let small = serde_json::from_value::<WorkloadSpec>(table).ok();
    small.filter(|spec| spec.complaint().is_none()).unwrap_or_else(|| workload.clone())
}
