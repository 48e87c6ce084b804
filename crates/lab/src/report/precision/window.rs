//! How long a window and how many trials would reach the asked precision at least cost, from what the trials so
//! far vary by: within their windows, and between each other.

use std::time::Duration;

use spindle_base::text::{self, plural};
use spindle_stats::{Components, Costs, Window, WindowPlan, components};

use crate::record::{Measurement, Trial};
use crate::report::Records;
use crate::report::view::measured;

/// Shorter windows have too few seconds to see their variation.
const SHORTEST_S: u32 = 10;
const LONGEST_S: u32 = 3600;
/// The phase of the measured window.
const MEASURE: &str = "measure";

/// What another window would take, as a sentence, if that is less than `further_s` of further trials with this
/// one. Trials of another window do not join those that are there. `None` without a metric by the second.
pub(super) fn cheaper(
    records: &Records,
    cells: &[&str],
    half_width: f64,
    further_s: Option<f64>,
) -> Option<String> {
    let WindowPlan { window_s, pair_count, cost_s } = plan(records, cells, half_width)?;
    if further_s.is_some_and(|further_s| cost_s >= further_s) {
        return None;
    }
    let time = text::duration(Duration::from_secs_f64(cost_s.round()));
    let trials = plural(pair_count as usize, "trial");
    Some(format!("windows of `measure = \"{window_s} s\"` would need {trials} of each, {time} in all"))
}

fn plan(records: &Records, cells: &[&str], half_width: f64) -> Option<WindowPlan> {
    let of_cells: Vec<Vec<_>> = cells.iter().map(|cell| measured(records, cell)).collect();
    let each: Vec<Components> = of_cells.iter().map(|trials| of_cell(trials)).collect::<Option<_>>()?;
    let most = |part: fn(&Components) -> f64| each.iter().map(part).fold(0.0, f64::max);
    let components = Components {
        within: most(|components| components.within),
        between: most(|components| components.between),
    };
    let trials = || of_cells.iter().flatten();
    let set_up: Vec<f64> = trials().map(|(trial, _)| set_up_s(trial)).collect();
    let second: Vec<f64> = trials().map(|(_, measurement)| measurement.dilation.factor()).collect();
    let costs = Costs { set_up_s: spindle_stats::mean(&set_up)?, second_s: spindle_stats::mean(&second)? };
    if costs.set_up_s <= 0.0 {
        return None;
    }
    components.plan(half_width, costs, SHORTEST_S, LONGEST_S)
}

fn of_cell(trials: &[(&Trial, &Measurement)]) -> Option<Components> {
    let windows: Vec<Window> = trials
        .iter()
        .map(|(_, measurement)| Window {
            figure: measurement.metric.value,
            seconds: &measurement.series.transactions_per_s,
        })
        .collect();
    components(&windows)
}

/// Of everything but the window.
fn set_up_s(trial: &Trial) -> f64 {
    trial.real_s() - trial.phases_s.get(MEASURE).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::precision::tests::{add, records};

    /// Trials of 10 s whose seconds vary and whose set-up takes so long.
    fn spiky(set_up_s: f64) -> Records {
        let mut records = records(2);
        for block in 1..=4 {
            for cell in 0..2 {
                add(&mut records, cell, block, Some(100.0 + f64::from(block % 2)));
                let trial = records.trials.last_mut().unwrap();
                trial.phases_s.insert("restore".to_owned(), set_up_s);
                let second = |index: u32| if (index * 7 + block).is_multiple_of(3) { 250.0 } else { 25.0 };
                trial.measurement.as_mut().unwrap().series.transactions_per_s = (0..30).map(second).collect();
            }
        }
        records
    }

    #[test]
    fn a_long_set_up_asks_for_long_windows_and_few_trials() {
        let short = plan(&spiky(5.0), &["cell-0", "cell-1"], 0.1).unwrap();
        let long = plan(&spiky(500.0), &["cell-0", "cell-1"], 0.1).unwrap();
        assert!(long.window_s > short.window_s && long.pair_count < short.pair_count, "{short:?} {long:?}");
    }

    #[test]
    fn another_window_is_told_only_if_it_takes_less() {
        let told = |further_s| cheaper(&spiky(60.0), &["cell-0", "cell-1"], 0.1, further_s);
        assert_eq!(told(Some(1.0)), None);
        insta::assert_snapshot!(told(None).unwrap(), @r#"windows of `measure = "78 s"` would need 21 trials of each, 4 h 20 min in all"#);
    }
}
