//! Which trials the host disturbed, which of two trials of one number counts, and how much the speed of its cores changed.

use itertools::Itertools as _;

use super::format;
use super::view::{failure, measured, set_aside};
use crate::record::{Cell, Measurement, Trial};
use crate::report::Records;

/// Arithmetic that takes so much longer in one trial of a cell than in another is told, of the trials that count.
const CORES_DIFFER: f64 = 0.05;

/// What disturbed a trial: its own warnings, or that another trial of its cell had faster cores. `None` for one that nothing
/// disturbed.
pub(crate) fn disturbance(records: &Records, trial: &Trial) -> Option<String> {
    let is_slower = |other: &Trial| {
        other.cell == trial.cell && failure(other).is_none() && trial.had_slower_cores_than(other)
    };
    let slower_cores = || records.trials.iter().any(is_slower).then(|| "slower cores".to_owned());
    trial.disturbance().or_else(slower_cores)
}

/// A sentence for each repeated trial, and one about the cores.
pub(super) fn notes(records: &Records) -> Vec<String> {
    let of_cell = |cell: &Cell| {
        let aside = set_aside(records, &cell.name);
        aside.into_iter().map(|aside| note(records, cell, aside)).collect::<Vec<_>>()
    };
    records.header.cells.iter().flat_map(of_cell).chain(of_cores(records)).collect()
}

/// Trials of one cell have the same work, so the cell with the largest difference says how much the cores changed.
fn of_cores(records: &Records) -> Option<String> {
    let difference = |cell: &Cell| {
        let trials = measured(records, &cell.name);
        let work = trials.iter().filter_map(|(_, measurement)| measurement.machine.as_ref()?.core_work_us);
        work.minmax().into_option().map(|(least, most)| most / least - 1.0)
    };
    let most = records.header.cells.iter().filter_map(difference).max_by(f64::total_cmp)?;
    (most >= CORES_DIFFER).then(|| {
        format!(
            "The cores were up to {:.0} % slower in one trial of a cell than in another, by arithmetic that needs no storage \
             (`machine_core_work_us` of the CSV): figures that the cores limit differ with them, and intervals are wide. Measure \
             again at a quieter time.",
            most * 100.0
        )
    })
}

fn note(records: &Records, cell: &Cell, (trial, measurement): (&Trial, &Measurement)) -> String {
    let title = format::the(&records.header.title(&cell.name));
    let figure = |measurement: &Measurement| format::number(measurement.metric.value);
    let counts = measured(records, &cell.name);
    let Some((counts, with)) = counts.into_iter().find(|(other, _)| other.trial == trial.trial) else {
        return String::new();
    };
    let (number, aside, figure) = (trial.trial, figure(measurement), figure(with));
    let is_first = |one: &Trial| {
        let same =
            |other: &&Trial| (&other.cell, other.trial) == (&one.cell, one.trial) && failure(other).is_none();
        records.trials.iter().find(same).is_some_and(|first| std::ptr::eq(first, one))
    };
    match disturbance(records, trial) {
        Some(reason) if is_first(trial) => format!(
            "Trial {number} of {title} was disturbed by the host ({reason}) and repeated: the repetition counts ({figure}), \
             the disturbed one ({aside}) does not."
        ),
        Some(reason) if is_first(counts) => format!(
            "Trial {number} of {title} was disturbed by the host and repeated, and so was the repetition ({reason}): the first \
             one counts ({figure}), the repetition ({aside}) does not."
        ),
        _ => format!(
            "Trial {number} of {title} is in the records twice: the last one counts ({figure}), the earlier one ({aside}) does \
             not."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Warning;
    use crate::report::precision::tests::{add, records};
    use crate::report::view::samples;

    const OTHERS: Warning = Warning::OtherPrograms { share: 0.5, own: 0.3 };
    const LATE: Warning = Warning::Late { p99_us: 900.0, share: 0.3 };

    /// One cell, whose first trial has these figures and warnings in its attempts.
    fn attempts(attempts: &[(f64, Option<Warning>)]) -> Records {
        let mut records = records(1);
        for (value, warning) in attempts {
            add(&mut records, 0, 1, Some(*value));
            records.trials.last_mut().unwrap().warnings = warning.iter().cloned().collect();
        }
        records
    }

    fn check(rows: &[(f64, Option<Warning>)], counts: f64, note: &str) {
        let records = attempts(rows);
        let values: Vec<f64> = samples(&records, "cell-0").iter().map(|sample| sample.value).collect();
        assert_eq!((values, notes(&records).join(" ")), (vec![counts], note.to_owned()));
    }

    #[test]
    fn the_repetition_of_a_disturbed_trial_counts() {
        check(
            &[(10.0, Some(OTHERS)), (20.0, None)],
            20.0,
            "Trial 1 of “disk 0” was disturbed by the host (other programs) and repeated: the repetition counts (20.0), the \
             disturbed one (10.0) does not.",
        );
    }

    #[test]
    fn a_repetition_that_was_disturbed_as_well_does_not_count() {
        check(
            &[(10.0, Some(OTHERS)), (20.0, Some(OTHERS))],
            10.0,
            "Trial 1 of “disk 0” was disturbed by the host and repeated, and so was the repetition (other programs): the first \
             one counts (10.0), the repetition (20.0) does not.",
        );
    }

    /// One cell whose trials have these numbers, figures, and times of the arithmetic, and keep so much of the cores busy.
    fn with_cores(rows: &[(u32, f64, Option<f64>)], busy: f64) -> Records {
        let mut records = attempts(&[]);
        for (number, value, work_us) in rows {
            add(&mut records, 0, *number, Some(*value));
            let measurement = records.trials.last_mut().unwrap().measurement.as_mut().unwrap();
            measurement.machine.get_or_insert_default().core_work_us = *work_us;
            measurement.cpu.busy = busy;
        }
        records
    }

    #[test]
    fn slower_cores_than_in_another_trial_are_a_disturbance_where_cores_are_busy() {
        let reasons = |rows: &[(u32, f64, Option<f64>)], busy: f64| {
            let records = with_cores(rows, busy);
            // The first one belongs to no cell.
            let of_cell = records.trials.iter().skip(1);
            of_cell.map(|trial| disturbance(&records, trial).unwrap_or_default()).collect::<Vec<String>>()
        };
        let rows = [(1, 10.0, Some(28.0)), (2, 14.0, Some(20.0)), (3, 13.9, Some(21.5)), (4, 12.0, None)];
        assert_eq!(reasons(&rows, 0.9), ["slower cores", "", "", ""]);
        assert_eq!(reasons(&rows, 0.3), [""; 4]);
    }

    #[test]
    fn of_two_trials_of_one_number_the_one_with_faster_cores_counts() {
        let check = |repetition_us: f64, counts: f64, told: &str| {
            let rows = [(1, 10.0, Some(28.0)), (2, 14.0, Some(20.0)), (1, 13.0, Some(repetition_us))];
            let records = with_cores(&rows, 0.9);
            let values: Vec<f64> = samples(&records, "cell-0").iter().map(|sample| sample.value).collect();
            assert_eq!(values, [counts, 14.0]);
            let notes = notes(&records).join(" ");
            assert!(notes.starts_with(told), "{notes}");
        };
        check(
            20.4,
            13.0,
            "Trial 1 of “disk 0” was disturbed by the host (slower cores) and repeated: the repetition counts (13.0)",
        );
        check(
            27.0,
            13.0,
            "Trial 1 of “disk 0” was disturbed by the host (slower cores) and repeated: the repetition counts (13.0)",
        );
        check(
            28.5,
            10.0,
            "Trial 1 of “disk 0” was disturbed by the host and repeated, and so was the repetition (slower cores)",
        );
    }

    #[test]
    fn cores_that_changed_their_speed_are_told() {
        let told = |[first, second]: [Option<f64>; 2]| {
            notes(&with_cores(&[(1, 10.0, first), (2, 10.0, second)], 0.9)).join(" ")
        };
        insta::assert_snapshot!(told([Some(20.0), Some(22.4)]), @"The cores were up to 12 % slower in one trial of a cell than in another, by arithmetic that needs no storage (`machine_core_work_us` of the CSV): figures that the cores limit differ with them, and intervals are wide. Measure again at a quieter time.");
        assert_eq!(told([Some(20.0), Some(20.8)]), "");
        assert_eq!(told([Some(20.0), None]), "");
    }

    #[test]
    fn an_emulator_that_is_late_by_its_own_load_is_no_disturbance() {
        check(&[(10.0, Some(LATE))], 10.0, "");
    }
}
