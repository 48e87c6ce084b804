//! How precisely the figures of a run with `until` are known, and which cells need further trials.
//!
//! A cell is compared with the first one of its family ([`crate::record::Header::families`]). A cell whose figure
//! counts something else has no ratio; then its own mean is to be known as precisely. See [`spindle_stats::precision`]
//! for the rule.

mod window;

use std::time::Duration;

use spindle_base::text::{self, plural};
use spindle_stats::{
    CLOSER, CellTrials, Comparison, Goal, Method, Outlook, Sample, Standing, State, Verdict, outlook,
    standing,
};

use super::format;
use super::view::{failure, metric, samples};
use crate::record::{Cell, Trial, Until};
use crate::report::Records;

/// A ratio that is surely beyond this factor, or its inverse, decides every purchase.
const DECISIVE_FACTOR: f64 = 2.0;
/// A cell without a figure after so many failures gets no further trial.
const FAILURES_MOST: usize = 3;

impl Until {
    fn goal(&self) -> Goal {
        Goal {
            half_width: self.half_width,
            decisive_factor: Some(DECISIVE_FACTOR),
            is_about_a_difference: true,
        }
    }
}

/// Cells that are compared with one baseline, by their indices in the header.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Group {
    /// `None` for a cell alone, whose own mean is to be known.
    pub baseline: Option<usize>,
    pub candidates: Vec<usize>,
    pub outlook: Outlook,
}

/// The groups of a run, as the trials of blocks up to `last_block` know them.
pub(crate) fn groups(records: &Records, until: &Until, last_block: u32) -> Vec<Group> {
    let cells = &records.header.cells;
    let in_time = |name: &str| -> Vec<Sample> {
        samples(records, name).into_iter().filter(|sample| sample.block <= last_block).collect()
    };
    let all: Vec<Vec<Sample>> = cells.iter().map(|cell| in_time(&cell.name)).collect();
    let is_given_up = |index: usize| all[index].is_empty() && has_given_up(records, &cells[index]);
    let name = |index: usize| metric(records, &cells[index].name).map(|metric| &metric.name);
    let is_like = |first: usize, other: usize| match (name(first), name(other)) {
        (Some(first), Some(other)) => first == other,
        _ => true,
    };
    let goal = until.goal();
    let trials = |index: usize| CellTrials {
        samples: &all[index],
        cost_s: records.mean_real_s(&cells[index].name).unwrap_or(1.0),
    };
    let (mut groups, mut alone) = (Vec::new(), Vec::new());
    for family in records.header.families() {
        let first = family[0];
        let measured = family.into_iter().filter(|index| !is_given_up(*index));
        let is_candidate = |index: &usize| *index != first && !is_given_up(first) && is_like(first, *index);
        let (candidates, others): (Vec<usize>, Vec<usize>) = measured.partition(is_candidate);
        let is_compared = !candidates.is_empty();
        alone.extend(others.into_iter().filter(|index| *index != first || !is_compared));
        if is_compared {
            let of_candidates: Vec<CellTrials> = candidates.iter().map(|index| trials(*index)).collect();
            let outlook = outlook(trials(first), &of_candidates, &goal);
            groups.push(Group { baseline: Some(first), candidates, outlook });
        }
    }
    for index in alone {
        // The ratio to one is the mean itself, and nothing makes it decisive.
        let ones: Vec<Sample> = all[index].iter().map(|sample| Sample { value: 1.0, ..*sample }).collect();
        let free = CellTrials { samples: &ones, cost_s: f64::MIN_POSITIVE };
        let outlook = outlook(
            free,
            &[trials(index)],
            &Goal { decisive_factor: None, is_about_a_difference: false, ..goal },
        );
        groups.push(Group { baseline: None, candidates: vec![index], outlook });
    }
    groups
}

impl Group {
    /// The cells of the next block, by their indices.
    pub(crate) fn next_block(&self) -> impl Iterator<Item = usize> {
        let baseline = self.baseline.filter(|_| !self.outlook.is_finished());
        baseline.into_iter().chain(self.outlook.next_block.iter().map(|index| self.candidates[*index]))
    }

    /// The candidate whose next pair helps most.
    pub(crate) fn helps_most(&self) -> Option<usize> {
        self.outlook.helps_most.map(|index| self.candidates[index])
    }

    /// Each candidate with its standing.
    pub(crate) fn standings(&self) -> impl Iterator<Item = (usize, &Standing)> {
        self.candidates.iter().copied().zip(&self.outlook.standings)
    }

    /// Further trials, predicted.
    pub(crate) fn trials_left(&self) -> Option<u32> {
        match self.baseline {
            Some(_) => self.outlook.trials_left,
            None => self.outlook.blocks_left,
        }
    }
}

/// The ratio of two cells, with the interval that holds although the run stopped by looking at it.
pub(super) fn comparison(baseline: &[Sample], candidate: &[Sample], until: &Until) -> Option<Comparison> {
    let standing = standing(baseline, candidate, &until.goal());
    let verdict = match standing.interval {
        Some(interval) if interval.low > 1.0 => Verdict::Faster,
        Some(interval) if interval.high < 1.0 => Verdict::Slower,
        Some(_) => Verdict::NoDifferenceShown,
        None => Verdict::NotTested,
    };
    let method = standing.interval.map_or(Method::RatioOnly, |_| Method::Paired);
    let Standing { interval, sameness_factor, .. } = standing;
    Some(Comparison { ratio: standing.ratio?, interval, sameness_factor, verdict, method })
}

/// The rule by which the run ended, as a sentence.
pub(super) fn how_many_trials(records: &Records, subject: &str) -> String {
    let scenario = &records.header.scenario;
    match &scenario.until {
        Some(until) => format!(
            "Each {subject} had at least {}, and further ones {}, or to within {} where that left open whether it \
             differs from 1; a ratio that is surely above {DECISIVE_FACTOR} or below its inverse is known, too.",
            plural(scenario.trials_per_cell as usize, "trial"),
            until.words(),
            format::percent(CLOSER * until.half_width)
        ),
        None => {
            let most = records.header.cells.iter().filter_map(|cell| cell.trials).max();
            let more = most.map_or_else(String::new, |most| format!(", and up to {most} for some cells"));
            format!(
                "The scenario sets {} for each {subject}{more}.",
                plural(scenario.trials_per_cell as usize, "trial")
            )
        }
    }
}

pub(super) fn which_interval(records: &Records) -> &'static str {
    match records.header.scenario.until {
        Some(_) => {
            "an interval that still holds with 95 % when the run ends as soon as it is narrow enough (only blocks \
             with a trial of both count)"
        }
        None => "Student's 95 % interval (Welch's, unpaired, if a trial is missing)",
    }
}

/// What the run did not reach, and what it would take, as sentences.
pub(crate) fn notes(records: &Records) -> Vec<String> {
    let Some(until) = &records.header.scenario.until else { return Vec::new() };
    let groups = groups(records, until, u32::MAX);
    let open = groups.iter().flat_map(|group| {
        let is_open = |(_, standing): &(usize, &Standing)| !standing.state.is_finished();
        group
            .standings()
            .filter(is_open)
            .map(|(index, standing)| note(records, until, group, index, standing))
    });
    open.collect()
}

fn note(records: &Records, until: &Until, group: &Group, index: usize, standing: &Standing) -> String {
    let title = |index: usize| format::the(&records.header.title(&records.header.cells[index].name));
    let what = match group.baseline {
        Some(baseline) => format!("The ratio of {} to {}", title(index), title(baseline)),
        None => format!("The figure of {}", title(index)),
    };
    let asked = format::percent(until.half_width);
    let known = match standing.half_width.filter(|_| standing.state != State::TooFew) {
        Some(width) if width <= until.half_width => {
            format!("is known to within {}, which leaves open whether they differ", format::percent(width))
        }
        Some(width) => format!("is known to within {}, and {asked} are asked for", format::percent(width)),
        None => format!("is not known yet to within {asked}"),
    };
    let pair_s = |index: usize| records.mean_real_s(&records.header.cells[index].name).unwrap_or_default();
    let each_s = pair_s(index) + group.baseline.map_or(0.0, pair_s);
    let further = match standing.more_pairs {
        Some(more) => {
            let time = text::duration(Duration::from_secs_f64((f64::from(more) * each_s).round()));
            format!("about {} of each would do, which take {time}", plural(more as usize, "further trial"))
        }
        None => "so many trials would be needed that another question is better".to_owned(),
    };
    let cell = |index: usize| records.header.cells[index].name.as_str();
    let cells: Vec<&str> = group.baseline.into_iter().chain([index]).map(cell).collect();
    let further_s = standing.more_pairs.map(|more| f64::from(more) * each_s);
    let other = window::cheaper(records, &cells, until.half_width, further_s);
    let other = other.map_or_else(String::new, |other| format!("; {other}"));
    format!("{what} {known}: {further}{other}.")
}

fn has_given_up(records: &Records, cell: &Cell) -> bool {
    let is_failed = |trial: &&Trial| trial.cell == cell.name && failure(trial).is_some();
    records.trials.iter().filter(is_failed).count() >= FAILURES_MOST
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::record::Measurement;

    pub(crate) const UNTIL: Until = Until { half_width: 0.1, at_most_s: 3600.0 };

    /// A run of so many cells, without trials.
    pub(crate) fn records(cell_count: usize) -> Records {
        let text = include_str!("../../../../records/quickstart/records.jsonl");
        let mut records = crate::record::input::parse(text, "quickstart").unwrap();
        records.trials.truncate(1);
        records.trials[0].phases_s.clear();
        let cell = records.header.cells[0].clone();
        let numbered =
            |number| Cell { name: format!("cell-{number}"), label: format!("disk {number}"), ..cell.clone() };
        records.header.cells = (0..cell_count).map(numbered).collect();
        records.header.scenario.until = Some(UNTIL);
        records
    }

    /// Makes a trial of the first one, which stays first and belongs to no cell.
    pub(crate) fn add(records: &mut Records, cell: usize, block: u32, value: Option<f64>) {
        let mut trial = records.trials[0].clone();
        trial.cell.clone_from(&records.header.cells[cell].name);
        (trial.trial, trial.block) = (block, block);
        trial.phases_s = [("measure".to_owned(), 10.0)].into();
        match value {
            Some(value) => {
                let measurement = trial.measurement.as_mut().unwrap();
                measurement.metric.value = value;
                measurement.verification.clear();
            }
            None => (trial.measurement, trial.error) = (None, Some("killed".to_owned())),
        }
        records.trials.push(trial);
    }

    /// Cells with these values in their blocks.
    fn measured(cells: &[&[f64]]) -> Records {
        let mut records = records(cells.len());
        for (cell, values) in cells.iter().enumerate() {
            for (block, value) in (1..).zip(*values) {
                add(&mut records, cell, block, Some(*value));
            }
        }
        records
    }

    fn next(records: &Records) -> Vec<usize> {
        groups(records, &UNTIL, u32::MAX).iter().flat_map(Group::next_block).collect()
    }

    const STEADY: &[f64] = &[100.0, 101.0, 99.0, 100.0, 100.0];
    const LOUD: &[f64] = &[100.0, 150.0, 90.0, 160.0, 80.0];

    #[test]
    fn known_cells_get_no_further_trial_and_the_first_one_stays_as_long_as_another_needs_it() {
        assert_eq!(next(&measured(&[STEADY, STEADY, LOUD])), [0, 2]);
        assert_eq!(next(&measured(&[STEADY, STEADY])), [0; 0]);
        assert_eq!(next(&measured(&[&STEADY[..4], &STEADY[..4]])), [0, 1]);
    }

    #[test]
    fn a_cell_without_another_to_compare_it_with_is_known_by_its_own_mean() {
        assert_eq!(next(&measured(&[STEADY])), [0; 0]);
        assert_eq!(next(&measured(&[LOUD])), [0]);
        let mut records = measured(&[STEADY, STEADY]);
        let of_second =
            |measurement: &mut Measurement| "rows per second".clone_into(&mut measurement.metric.name);
        let second = records.header.cells[1].name.clone();
        let trials = records.trials.iter_mut().filter(|trial| trial.cell == second);
        trials.filter_map(|trial| trial.measurement.as_mut()).for_each(of_second);
        let groups = groups(&records, &UNTIL, u32::MAX);
        assert_eq!(groups.iter().map(|group| group.baseline).collect::<Vec<_>>(), [None, None]);
        assert_eq!(next(&records), [0; 0]);
    }

    #[test]
    fn each_workload_has_a_baseline_of_its_own() {
        let mut records = measured(&[STEADY, LOUD, STEADY, STEADY]);
        for (cell, workload) in records.header.cells.iter_mut().zip(["oltp", "tpcc", "oltp", "tpcc"]) {
            workload.clone_into(&mut cell.workload);
        }
        let groups = groups(&records, &UNTIL, u32::MAX);
        let found: Vec<_> =
            groups.iter().map(|group| (group.baseline, group.candidates.as_slice())).collect();
        assert_eq!(found, [(Some(0), [2].as_slice()), (Some(1), [3].as_slice())]);
        assert_eq!(next(&records), [1, 3]);
    }

    #[test]
    fn a_cell_that_always_fails_is_given_up() {
        let mut records = measured(&[STEADY, &[]]);
        for block in 1..=2 {
            add(&mut records, 1, block, None);
        }
        assert_eq!(next(&records), [0, 1]);
        add(&mut records, 1, 3, None);
        assert_eq!(next(&records), [0; 0]);
    }

    #[test]
    fn a_ratio_is_that_of_the_blocks_that_both_cells_have() {
        // The last two trials of the first cell would say that it got twice as fast.
        let first = [STEADY, &[200.0, 200.0]].concat();
        let records = measured(&[&first, STEADY]);
        let of = |cell: &str| samples(&records, cell);
        let ratio = comparison(&of("cell-0"), &of("cell-1"), &UNTIL).unwrap();
        assert!((ratio.ratio - 1.0).abs() < 1e-9 && ratio.method == Method::Paired, "{ratio:?}");
    }

    #[test]
    fn what_is_not_known_says_what_it_would_take() {
        assert_eq!(notes(&measured(&[STEADY, STEADY])), [""; 0]);
        insta::assert_snapshot!(notes(&measured(&[STEADY, STEADY, LOUD])).join("\n"), @r"The ratio of “disk 2” to “disk 0” is known to within 67 %, and 10 % are asked for: about 119 further trials of each would do, which take 39 min 40 s.");
        insta::assert_snapshot!(notes(&measured(&[&STEADY[..3], &STEADY[..3]])).join("\n"), @"The ratio of “disk 1” to “disk 0” is not known yet to within 10 %: about 2 further trials of each would do, which take 40 s.");
    }
}
