//! The pilot of `dilation = "as needed"`: short trials of a cell, at a rising dilation, until neither the
//! cores nor the emulator limit it, and twice the dilation changes little.
//!
//! The dilation is how fast the emulated cores are, so cells that are compared share one. A cell whose cores
//! are nearly idle may have a lower one: faster cores would change less there than an interval shows.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use spindle_base::dilation::Dilation;

use super::data_set::DataSets;
use super::trial::Laboratory;
use crate::host::progress::Progress;
use crate::record::{PilotStep, Trial, Warning};
use crate::scenario::dilation::DilationRule;
use crate::scenario::plan::PlannedTrial;
use crate::scenario::{Scenario, Settle};

/// Cores that are busier limit the cell.
const BUSY: f64 = 0.70;
/// Cores this busy may need far more.
const SATURATED: f64 = 0.90;
/// Of a cell with less busy cores, their speed does not matter.
const IDLE: f64 = 0.15;
/// A figure that changes by a larger factor depends on the cores or on the way to the emulator, though the cores
/// may be half idle: a writer that waits for one answer after the other meets both each time
/// (docs/results/dilation.md, "An SSD that keeps the cores busy").
const CHANGED: f64 = 1.15;
/// The longest phases of a pilot.
const SETTLE: Duration = Duration::from_secs(1);
const MEASURE: Duration = Duration::from_secs(4);
/// A dilation this close to the largest is not worth a pilot.
const CLOSE: f64 = 1.5;

/// What the pilots found, by cell.
pub(super) type Pilots = BTreeMap<String, Vec<PilotStep>>;

/// The scenario of the pilots.
pub(super) fn scenario(scenario: &Scenario) -> Scenario {
    let mut short = scenario.clone();
    short.run.settle = Settle::For(short.run.settle.most().min(SETTLE));
    short.run.measure = short.run.measure.min(MEASURE);
    short.run.dilation = DilationRule::default();
    short.events.clear();
    short
}

/// Raises the dilation of one cell. `laboratory` is at the dilation to begin with, with the scenario of
/// pilots.
///
/// # Errors
/// The user asked to stop. A pilot that fails ends the search; the trials that follow tell the reason.
pub(super) fn steps(
    laboratory: Laboratory<'_>,
    at_most: Dilation,
    seed: u64,
    data_sets: &mut DataSets,
    progress: &mut Progress,
) -> Result<Vec<PilotStep>> {
    let mut steps = Vec::new();
    let mut dilation = Dilation::NONE;
    loop {
        let planned = PlannedTrial { cell_index: 0, trial: 0, block: 0, seed };
        let trial = Laboratory { dilation, ..laboratory }.run(&planned, data_sets, progress)?;
        let Some(step) = step(&trial, dilation, laboratory.scenario.run.cpu_count()) else {
            return Ok(steps);
        };
        let title = &laboratory.cell.name;
        let busy = step.cpu_busy * 100.0;
        steps.push(step);
        progress.say(&format!("pilot of {title}: the cores were {busy:.0} % busy at dilation {dilation}"));
        match next(&steps, at_most) {
            Some(next) if next < at_most => dilation = next,
            _ => return Ok(steps),
        }
    }
}

fn step(trial: &Trial, dilation: Dilation, cpu_count: u32) -> Option<PilotStep> {
    let measurement = trial.measurement.as_ref()?;
    Some(PilotStep {
        dilation,
        cpu_busy: measurement.cpu.busy,
        cpu_own: measurement.own_cpu_share(cpu_count).unwrap_or(measurement.cpu.busy),
        late: trial.warnings.iter().any(|warning| matches!(warning, Warning::Late { .. })),
        figure: measurement.metric.value,
    })
}

/// How much larger a dilation a cell wants that its cores or its emulator limit.
fn limit(step: &PilotStep) -> Option<f64> {
    // Other programs on the machine do not make a cell wait for the cores.
    let busy = if step.cpu_own < IDLE { 0.0 } else { step.cpu_busy };
    match busy {
        SATURATED.. => Some(4.0),
        BUSY.. => Some(2.0),
        _ => step.late.then_some(2.0),
    }
}

/// Whether the last dilation changed the figure. The first may, as long as there is no second.
fn changed(steps: &[PilotStep]) -> bool {
    let [.., before, last] = steps else { return true };
    let ratio = last.figure / before.figure;
    ratio.max(1.0 / ratio) > CHANGED
}

/// The dilation to try next; `None` if those tried suffice or the last is the largest.
fn next(steps: &[PilotStep], at_most: Dilation) -> Option<Dilation> {
    let last = steps.last()?;
    let asked = (last.cpu_own >= IDLE && changed(steps)).then_some(2.0);
    let raised = last.dilation.factor() * limit(last).or(asked)?;
    let at_the_bound = raised * CLOSE >= at_most.factor();
    // The bound has no pilot, and nothing has shown yet that this cell wants it.
    if at_the_bound && limit(last).is_none() && steps.len() == 1 {
        return None;
    }
    let raised = if at_the_bound { at_most } else { Dilation::new(raised).ok()? };
    (raised > last.dilation).then_some(raised)
}

/// What the pilots lead to. At the bound there is nothing left to find out.
fn needed(steps: &[PilotStep], at_most: Dilation) -> Dilation {
    let sufficed = match steps {
        [.., before, _] if limit(before).is_none() && !changed(steps) => Some(before),
        _ => steps.last(),
    };
    next(steps, at_most).or(sufficed.map(|step| step.dilation)).unwrap_or(Dilation::NONE)
}

/// The dilation of each cell.
pub(super) fn dilations(pilots: &Pilots, at_most: Dilation) -> BTreeMap<&str, Dilation> {
    let shared = pilots.values().map(|steps| needed(steps, at_most).factor()).fold(1.0, f64::max);
    let shared = Dilation::new(shared).unwrap_or_default();
    let of_cell = |steps: &[PilotStep]| match steps.first() {
        Some(first) if first.cpu_own < IDLE => needed(steps, at_most),
        _ => shared,
    };
    pilots.iter().map(|(cell, steps)| (cell.as_str(), of_cell(steps))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(dilation: f64, cpu_busy: f64, late: bool) -> PilotStep {
        PilotStep {
            dilation: Dilation::new(dilation).unwrap(),
            cpu_busy,
            cpu_own: 0.8 * cpu_busy,
            late,
            figure: 100.0,
        }
    }

    #[track_caller]
    fn check_next(steps: &[PilotStep], expect: Option<f64>) {
        let at_most = Dilation::new(16.0).unwrap();
        assert_eq!(next(steps, at_most).map(Dilation::factor), expect, "{steps:?}");
    }

    #[test]
    fn busy_cores_and_late_answers_raise_the_dilation_up_to_the_bound() {
        check_next(&[step(1.0, 0.8, false)], Some(2.0));
        check_next(&[step(1.0, 0.97, false)], Some(4.0));
        check_next(&[step(2.0, 0.3, true)], Some(4.0));
        // Idle, and busy with other programs.
        check_next(&[step(1.0, 0.1, false)], None);
        check_next(&[PilotStep { cpu_own: 0.02, ..step(1.0, 1.0, false) }], None);
        check_next(&[step(8.0, 0.97, false)], Some(16.0));
        // Hardly less than the bound.
        check_next(&[step(4.0, 0.97, false)], Some(16.0));
        check_next(&[step(4.0, 0.8, false)], Some(8.0));
        check_next(&[step(16.0, 0.97, false)], None);
    }

    #[test]
    fn the_dilation_rises_until_it_changes_the_figure_no_more() {
        let at_most = Dilation::new(16.0).unwrap();
        let with = |figures: &[f64]| {
            let steps = [1.0, 2.0, 4.0].iter().zip(figures);
            steps.map(|(&k, &figure)| PilotStep { figure, ..step(k, 0.5, false) }).collect::<Vec<_>>()
        };
        let check = |figures: &[f64], expect: Option<f64>, leads_to: f64| {
            check_next(&with(figures), expect);
            assert_eq!(needed(&with(figures), at_most).factor(), leads_to, "{figures:?}");
        };
        check(&[100.0], Some(2.0), 2.0);
        check(&[100.0, 130.0], Some(4.0), 4.0);
        // A workload's metric may be a time.
        check(&[100.0, 70.0], Some(4.0), 4.0);
        check(&[100.0, 110.0], None, 1.0);
        check(&[100.0, 130.0, 140.0], None, 2.0);
        let bound = Dilation::new(2.0).unwrap();
        assert_eq!(needed(&with(&[100.0]), bound), Dilation::NONE);
        // The last is what the cores asked for, though it gave no more.
        let asked_for = [step(1.0, 0.8, false), step(2.0, 0.5, false)];
        check_next(&asked_for, None);
        assert_eq!(needed(&asked_for, at_most).factor(), 2.0);
        // Nearly idle now, and no pilot says that less would do.
        let idle = [step(1.0, 0.3, false), PilotStep { figure: 130.0, ..step(2.0, 0.15, false) }];
        check_next(&idle, None);
        assert_eq!(needed(&idle, at_most).factor(), 2.0);
    }

    #[test]
    fn cells_share_the_dilation_of_the_busiest_unless_their_cores_are_idle() {
        let pilots = Pilots::from([
            ("card".to_owned(), vec![step(1.0, 0.97, true), step(4.0, 0.87, false), step(8.0, 0.6, false)]),
            ("ssd".to_owned(), vec![step(1.0, 0.31, false), step(2.0, 0.2, false)]),
            ("disk".to_owned(), vec![step(1.0, 0.03, false)]),
        ]);
        let found = dilations(&pilots, Dilation::new(16.0).unwrap())
            .into_iter()
            .map(|(cell, dilation)| (cell, dilation.factor()));
        assert_eq!(found.collect::<Vec<_>>(), [("card", 8.0), ("disk", 1.0), ("ssd", 8.0)]);
    }
}
