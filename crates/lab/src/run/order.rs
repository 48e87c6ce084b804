//! Which trials come next. With `trials` they are those of the plan. With `until` the trials so far decide,
//! block by block, so that a run that goes on after an interruption takes the same way.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::record::{Trial, Until};
use crate::report::{Group, Records, disturbance, failure, groups};
use crate::scenario::plan::{Plan, PlannedTrial, block};

/// Of so many trials, one may be repeated for slower cores. On a shared host half of them can have slower ones than another,
/// and a run shall not take much longer for it.
const ONE_REPEATED_OF: usize = 10;

pub(super) struct Order<'a> {
    plan: &'a Plan,
    until: Option<Until>,
    /// Disturbed trials are repeated.
    repeats: bool,
    seed: u64,
    began: Instant,
    /// Time of the trials of earlier runs.
    kept_s: f64,
    /// The block that is under way.
    block: u32,
    /// Time of this run alone.
    at_most_s: Option<f64>,
}

impl<'a> Order<'a> {
    /// Begins the time of `until`.
    pub(super) fn new(plan: &'a Plan, until: Option<Until>, repeats: bool, kept: &Records) -> Order<'a> {
        let kept_s = kept.trials.iter().map(Trial::real_s).sum();
        let seed = kept.header.scenario.seed;
        Order { plan, until, repeats, seed, began: Instant::now(), kept_s, block: 1, at_most_s: None }
    }

    /// This run begins no block that would not end within so long, but the first.
    pub(super) fn end_after(&mut self, at_most: Option<Duration>) {
        self.at_most_s = at_most.map(|at_most| at_most.as_secs_f64());
    }

    /// The trials to run before the next look at the records; none at the end. A block is looked at when it is
    /// done, because trials that the host disturbed are repeated beside the others of their block.
    pub(super) fn next(&mut self, records: &Records) -> Vec<PlannedTrial> {
        let left = self.of_rule(records);
        let repeats = self.repeats(records, left.first());
        if !repeats.is_empty() {
            return repeats;
        }
        let block = left.first().map(|planned| planned.block);
        let left: Vec<_> = left.into_iter().take_while(|planned| Some(planned.block) == block).collect();
        if self.ends_in_time(&left, records) { left } else { Vec::new() }
    }

    /// Whether a block ends before the time of this run does. Of a run without a trial that is not known.
    fn ends_in_time(&self, block: &[PlannedTrial], records: &Records) -> bool {
        let Some(at_most_s) = self.at_most_s.filter(|_| block.iter().any(|planned| planned.block > 1)) else {
            return true;
        };
        let cells = block.iter().map(|planned| &self.plan.cells[planned.cell_index].name);
        let block_s: f64 = cells.map(|cell| records.mean_real_s(cell).unwrap_or_default()).sum();
        self.began.elapsed().as_secs_f64() + block_s <= at_most_s
    }

    /// All trials that are known to be left.
    pub(super) fn still_left(&mut self, records: &Records) -> Vec<PlannedTrial> {
        let left = self.of_rule(records);
        let repeats = self.repeats(records, left.first());
        repeats.into_iter().chain(left).collect()
    }

    /// Disturbed trials that were not repeated, of blocks that are done.
    fn repeats(&self, records: &Records, next: Option<&PlannedTrial>) -> Vec<PlannedTrial> {
        let cell_index = |name: &str| self.plan.cells.iter().position(|cell| cell.name == name);
        let mut attempts: BTreeMap<(u32, usize), Vec<&Trial>> = BTreeMap::new();
        for trial in &records.trials {
            let Some(index) = cell_index(&trial.cell) else { continue };
            attempts.entry((trial.trial, index)).or_default().push(trial);
        }
        let is_done = |number: u32| self.repeats && next.is_none_or(|next| number < next.block);
        let disturbed = attempts.iter().filter(|((number, _), trials)| {
            is_done(*number)
                && trials.len() == 1
                && failure(trials[0]).is_none()
                && disturbance(records, trials[0]).is_some()
        });
        let is_for_cores = |trials: &[&Trial]| trials[0].disturbance().is_none();
        let repeated = attempts.values().filter(|trials| trials.len() > 1 && is_for_cores(trials)).count();
        let mut left_for_cores = attempts.len().div_ceil(ONE_REPEATED_OF).saturating_sub(repeated);
        let mut cost_s = 0.0;
        let planned = disturbed.filter_map(|((number, index), trials)| {
            let with_this_s = cost_s + trials[0].real_s();
            let is_in_time =
                self.until.is_none_or(|until| self.spent_s(records) + with_this_s <= until.at_most_s)
                    && self.at_most_s.is_none_or(|at_most_s| {
                        self.began.elapsed().as_secs_f64() + with_this_s <= at_most_s
                    });
            if !is_in_time || (is_for_cores(trials) && left_for_cores == 0) {
                return None;
            }
            cost_s = with_this_s;
            left_for_cores -= usize::from(is_for_cores(trials));
            block(self.plan.cells.len(), *number, self.seed)
                .into_iter()
                .find(|planned| planned.cell_index == *index)
        });
        planned.collect()
    }

    fn of_rule(&mut self, records: &Records) -> Vec<PlannedTrial> {
        let done: BTreeSet<(&str, u32)> =
            records.trials.iter().map(|trial| (trial.cell.as_str(), trial.trial)).collect();
        let is_left = |planned: &PlannedTrial| {
            !done.contains(&(self.plan.cells[planned.cell_index].name.as_str(), planned.trial))
        };
        let Some(until) = self.until else {
            return self.plan.trials.iter().copied().filter(is_left).collect();
        };
        loop {
            let groups = groups(records, &until, self.block - 1);
            let active: BTreeSet<usize> = groups.iter().flat_map(Group::next_block).collect();
            if active.is_empty() {
                return Vec::new();
            }
            let of_block = block(self.plan.cells.len(), self.block, self.seed);
            let left: Vec<PlannedTrial> = of_block
                .into_iter()
                .filter(|planned| active.contains(&planned.cell_index) && is_left(planned))
                .collect();
            if !left.is_empty() {
                return self.in_time(&left, &groups, records, &until);
            }
            self.block += 1;
        }
    }

    /// What of a block ends in time: all of it, or else the pair that helps most.
    fn in_time(
        &self,
        block: &[PlannedTrial],
        groups: &[Group],
        records: &Records,
        until: &Until,
    ) -> Vec<PlannedTrial> {
        let left_s = until.at_most_s - self.spent_s(records);
        let fits = |planned: &[PlannedTrial]| {
            let cells = planned.iter().map(|planned| &self.plan.cells[planned.cell_index].name);
            cells.map(|cell| records.mean_real_s(cell).unwrap_or_default()).sum::<f64>() <= left_s
        };
        // A run that has measured nothing has no answer at all.
        if self.block == 1 || fits(block) {
            return block.to_vec();
        }
        let pairs = groups.iter().filter_map(|group| Some((group.baseline?, group.helps_most()?)));
        let is_of = |planned: &&PlannedTrial, (baseline, candidate): (usize, usize)| {
            [baseline, candidate].contains(&planned.cell_index)
        };
        let mut pairs = pairs
            .map(|pair| block.iter().filter(|planned| is_of(planned, pair)).copied().collect::<Vec<_>>());
        pairs.find(|pair| !pair.is_empty() && fits(pair)).unwrap_or_default()
    }

    /// Of all runs so far. That of this one includes its loads and pilots.
    fn spent_s(&self, records: &Records) -> f64 {
        let trials_s: f64 = records.trials.iter().map(Trial::real_s).sum();
        trials_s.max(self.kept_s + self.began.elapsed().as_secs_f64())
    }

    /// Trials that are still to come, predicted after a look at the records. `None` if that cannot be said.
    pub(super) fn trials_left(&self, records: &Records) -> Option<u32> {
        let groups = groups(records, &self.until?, u32::MAX);
        groups.iter().map(Group::trials_left).sum()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::record::Warning;
    use crate::report::precision_tests::{UNTIL, add, records};
    use crate::scenario::plan::Estimate;

    /// Noise of trials, as factors that repeat.
    const QUIET: &[f64] = &[1.0, 1.01, 0.99];
    const LOUD: &[f64] = &[1.0, 1.3, 0.8, 1.2, 0.75];

    pub(super) fn plan(records: &Records) -> Plan {
        let estimate = Estimate { load: Duration::ZERO, per_trial: Duration::ZERO, total: Duration::ZERO };
        Plan { cells: records.header.cells.clone(), trials: Vec::new(), estimate }
    }

    /// Runs until the end or so many looks; returns the cell and block of each trial.
    fn go(records: &mut Records, until: Until, noise: &[&[f64]], looks: usize) -> Vec<(usize, u32)> {
        let plan = plan(records);
        let mut order = Order::new(&plan, Some(until), true, records);
        let mut run = Vec::new();
        for _ in 0..looks {
            let left = order.next(records);
            if left.is_empty() {
                break;
            }
            for planned in left {
                let factors = noise[planned.cell_index];
                let value = 100.0 * factors[planned.block as usize % factors.len()];
                add(records, planned.cell_index, planned.block, Some(value));
                run.push((planned.cell_index, planned.block));
            }
        }
        run
    }

    fn count(run: &[(usize, u32)], cell: usize) -> usize {
        run.iter().filter(|(index, _)| *index == cell).count()
    }

    #[test]
    fn a_quiet_cell_gets_few_trials_and_a_loud_one_as_many_as_it_needs() {
        let run = go(&mut records(3), UNTIL, &[QUIET, QUIET, LOUD], 200);
        assert_eq!(count(&run, 1), 5);
        assert!(count(&run, 2) > 20, "{}", count(&run, 2));
        assert_eq!(count(&run, 0), count(&run, 2), "the first cell belongs to every block");
    }

    #[test]
    fn a_run_that_goes_on_takes_the_way_of_one_that_was_not_interrupted() {
        let (mut whole, mut parts) = (records(3), records(3));
        let noise = [QUIET, QUIET, LOUD];
        let expect = go(&mut whole, UNTIL, &noise, 12);
        let mut run = go(&mut parts, UNTIL, &noise, 7);
        // Killed in the middle of a block.
        parts.trials.pop();
        let lost = run.pop().unwrap();
        let rest = go(&mut parts, UNTIL, &noise, 6);
        assert_eq!(rest[0], lost);
        run.extend(rest);
        assert_eq!(run, expect);
    }

    #[test]
    fn a_disturbed_trial_is_repeated_once_and_beside_its_block() {
        for until in [None, Some(UNTIL)] {
            let mut parts = records(2);
            parts.header.scenario.until = until;
            let trials = (1..=3).flat_map(|number| block(2, number, parts.header.scenario.seed)).collect();
            let plan = Plan { trials, ..plan(&parts) };
            let mut order = Order::new(&plan, until, true, &parts);
            let mut run = Vec::new();
            while run.len() < 9 {
                let Some(planned) = order.next(&parts).first().copied() else { break };
                add(&mut parts, planned.cell_index, planned.block, Some(100.0));
                // The host disturbs every trial of the second block.
                let disturbed = (planned.block == 2).then_some(Warning::Stolen { share: 0.2 });
                parts.trials.last_mut().unwrap().warnings = disturbed.into_iter().collect();
                run.push(planned.block);
            }
            assert_eq!(run[..8], [1, 1, 2, 2, 2, 2, 3, 3], "{until:?}");
        }
    }

    #[test]
    fn a_trial_on_slower_cores_is_repeated_as_soon_as_another_had_faster_ones() {
        let mut parts = records(1);
        let trials = (1..=3).flat_map(|number| block(1, number, parts.header.scenario.seed)).collect();
        let plan = Plan { trials, ..plan(&parts) };
        let mut order = Order::new(&plan, None, true, &parts);
        let mut run = Vec::new();
        while let Some(planned) = order.next(&parts).first().copied() {
            add(&mut parts, planned.cell_index, planned.block, Some(100.0));
            let measurement = parts.trials.last_mut().unwrap().measurement.as_mut().unwrap();
            measurement.cpu.busy = 0.9;
            // The cores of the first trial are slow, and so are those of its repetition.
            let work_us = if planned.block == 1 { 28.0 } else { 20.0 };
            measurement.machine.get_or_insert_default().core_work_us = Some(work_us);
            run.push(planned.block);
        }
        assert_eq!(run, [1, 2, 1, 3]);
    }

    #[test]
    fn few_trials_are_repeated_for_slower_cores_and_none_beyond_the_time_of_the_run() {
        let repeated = |at_most: Option<Duration>| {
            let mut parts = records(1);
            let trials = (1..=20).flat_map(|number| block(1, number, parts.header.scenario.seed)).collect();
            let plan = Plan { trials, ..plan(&parts) };
            for number in 1..=20 {
                add(&mut parts, 0, number, Some(100.0));
                let measurement = parts.trials.last_mut().unwrap().measurement.as_mut().unwrap();
                measurement.cpu.busy = 0.9;
                // Every second trial has slow cores.
                let work_us = if number % 2 == 0 { 28.0 } else { 20.0 };
                measurement.machine.get_or_insert_default().core_work_us = Some(work_us);
            }
            let mut order = Order::new(&plan, None, true, &parts);
            order.end_after(at_most);
            order.next(&parts).iter().map(|planned| planned.block).collect::<Vec<_>>()
        };
        assert_eq!(repeated(None), [2, 4]);
        // A trial takes ten seconds.
        assert_eq!(repeated(Some(Duration::from_secs(15))), [2]);
        assert_eq!(repeated(Some(Duration::from_secs(5))), [0; 0]);
    }

    #[test]
    fn a_run_ends_in_time_and_its_last_pair_is_the_one_that_helps_most() {
        // A trial takes ten seconds. Five blocks of three cells take 150 s; another block would take 30 s.
        let run = |at_most_s| go(&mut records(3), Until { at_most_s, ..UNTIL }, &[QUIET, LOUD, LOUD], 200);
        let five = run(155.0);
        assert_eq!(five.len(), 15);
        let and_a_pair = run(175.0);
        assert_eq!(and_a_pair[..15], five);
        assert_eq!(and_a_pair.len(), 17);
        assert_eq!(count(&and_a_pair, 0), 6);
        // The first block is run in any case.
        assert_eq!(run(1.0).len(), 3);
    }
}

#[cfg(test)]
#[path = "order_promises_tests.rs"]
mod promises_tests;
