//! The plan of a run: cells, and trials in shuffled blocks.
//!
//! A block has each cell once, so a drift of the machine affects all cells alike. The scenario's seed
//! shuffles the order within a block (randomized complete blocks: Montgomery, Design and Analysis of
//! Experiments, ch. 4). All trials of a block draw the same random numbers, so cells are compared under the
//! same load.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use itertools::Itertools as _;
use serde::Serialize;
use spindle_stats::random::Random;

use crate::record::{
    Cell, FileClass, MountHead, ReplicaHead, ReplicationHead, StartState, SweptValue, ZfsHead,
};
use crate::scenario::{Scenario, content_hash};
use crate::stack::layout::{Layout, LayoutMount};

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub cells: Vec<Cell>,
    /// In the order of execution.
    pub trials: Vec<PlannedTrial>,
    pub estimate: Estimate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlannedTrial {
    /// Index into [`Plan::cells`].
    pub cell_index: usize,
    /// From 1.
    pub trial: u32,
    /// From 1.
    pub block: u32,
    pub seed: u64,
}

/// Phases that the scenario sets are exact; the rest is an estimate from one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Time for loading databases.
    pub load: Duration,
    pub per_trial: Duration,
    pub total: Duration,
}

pub fn plan(scenario: &Scenario) -> Plan {
    let cells = cells(scenario);
    let counts: Vec<u32> = cells.iter().map(|cell| cell.trials.unwrap_or(scenario.run.trials)).collect();
    let trials = trials(&counts, scenario.run.seed);
    let estimate = estimate(scenario, trials.len());
    Plan { cells, trials, estimate }
}

/// Storage varies fastest, so that the compared cells are adjacent.
pub(super) fn cells(scenario: &Scenario) -> Vec<Cell> {
    let mut cells = matrix_cells(scenario);
    if scenario.run.a_a {
        cells.truncate(1);
        let again = cells.iter().map(|cell| Cell {
            name: format!("{}/again", cell.name),
            label: format!("{}, again", cell.label),
            ..cell.clone()
        });
        cells.extend(again.collect::<Vec<_>>());
    }
    cells
}

fn matrix_cells(scenario: &Scenario) -> Vec<Cell> {
    let matrix = &scenario.matrix;
    let mut cells = Vec::new();
    for workload in &matrix.workload {
        for server in &matrix.server {
            for layout in &scenario.layouts {
                let (axes, sweep) = further_axes(scenario, server, workload);
                let name = std::iter::once(&layout.name).chain(&axes).join("/");
                cells.push(Cell {
                    trials: scenario.more_trials.get(&name).copied(),
                    name,
                    label: std::iter::once(&layout.label).chain(&axes).join(", "),
                    layout: (!matrix.layout.is_empty()).then(|| layout.name.clone()),
                    mounts: mounts(scenario, layout, server, &scenario.servers[server].settings),
                    server: server.clone(),
                    workload: workload.clone(),
                    replication: replication(scenario, server),
                    sweep,
                });
            }
        }
    }
    cells
}

/// What tells a cell from those with the same storage: its server and its workload where several are named,
/// and its swept values.
fn further_axes(scenario: &Scenario, server: &str, workload: &str) -> (Vec<String>, Vec<SweptValue>) {
    let base = |name: &str| scenario.table_of(name).to_owned();
    let values =
        |name: &str| scenario.variants.get(name).map_or_else(Vec::new, |variant| variant.values.clone());
    let is_axis = |names: &[String]| names.iter().map(|name| base(name)).unique().count() > 1;
    let named = [(&scenario.matrix.server, server), (&scenario.matrix.workload, workload)];
    let named = named.into_iter().filter(|(names, _)| is_axis(names)).map(|(_, name)| base(name));
    let sweep = [values(workload), values(server)].concat();
    (named.chain(sweep.iter().map(SweptValue::assignment)).collect(), sweep)
}

fn replication(scenario: &Scenario, server: &str) -> Option<ReplicationHead> {
    let spec = scenario.servers[server].replication.as_ref()?;
    let replica = |layout: &Layout| ReplicaHead {
        layout: layout.name.clone(),
        mounts: mounts(scenario, layout, server, &spec.settings),
    };
    Some(ReplicationHead {
        mode: spec.mode,
        wait_point: spec.wait_point,
        timeout_s: spec.timeout.map(|timeout| timeout.as_secs_f64()),
        replicas: spec.replicas.iter().map(replica).collect(),
    })
}

/// The data's mount first; it needs no words for its files.
fn mounts(
    scenario: &Scenario,
    layout: &Layout,
    server: &str,
    settings: &BTreeMap<String, String>,
) -> Vec<MountHead> {
    let server = scenario.servers[server].server();
    let files = |class: FileClass| server.files_of(class, settings).ok();
    let words = |classes: &[FileClass]| {
        classes.iter().filter_map(|class| files(*class)).collect::<Vec<_>>().join("; ")
    };
    let mount = |(index, mount): (usize, &LayoutMount)| MountHead {
        classes: mount.classes.clone(),
        files: if index == 0 { String::new() } else { words(&mount.classes) },
        stack: scenario.stacks[&mount.stack].head().clone(),
    };
    layout.mounts.iter().enumerate().map(mount).collect()
}

/// `counts` are the trials of each cell. The last blocks have only the cells with the most.
fn trials(counts: &[u32], seed: u64) -> Vec<PlannedTrial> {
    let most = counts.iter().copied().max().unwrap_or(0);
    let blocks = (1..=most).flat_map(|number| block(counts.len(), number, seed));
    blocks.filter(|planned| planned.trial <= counts[planned.cell_index]).collect()
}

/// The block of this number, from 1. Every block has its own sequence, so a longer run begins with the blocks of
/// the shorter one.
pub(crate) fn block(cell_count: usize, number: u32, seed: u64) -> Vec<PlannedTrial> {
    let mut random = Random::new(seed ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // 53 bits, so that a reader with numbers in double precision (JavaScript, jq) sees the same seed.
    let seed = random.next_u64() >> 11;
    let mut order: Vec<usize> = (0..cell_count).collect();
    for last in (1..order.len()).rev() {
        let other = (random.next_u64() % (last as u64 + 1)) as usize;
        order.swap(last, other);
    }
    let planned = |cell_index| PlannedTrial { cell_index, trial: number, block: number, seed };
    order.into_iter().map(planned).collect()
}

fn estimate(scenario: &Scenario, trial_count: usize) -> Estimate {
    let (replicas, further_disks) = further(scenario);
    let mut data_sets = BTreeSet::new();
    let mut load = Duration::ZERO;
    let mut overhead = Duration::ZERO;
    for workload in &scenario.matrix.workload {
        let (loading, around, mounting) = match scenario.workloads[workload].data() {
            // First the time to prepare an empty database and load it, then the time for restore, start,
            // checks and stop, and that for a further disk. With ten warehouses (1,000 MiB) the quickstart
            // took 26 s and 5 s on two cores; the estimate is slightly higher.
            Some(data) => {
                let warehouses = data.bytes as f64 / f64::from(100 << 20);
                [10.0 + 2.0 * warehouses, 3.0 + 0.3 * warehouses, 1.0].map(Duration::from_secs_f64).into()
            }
            None => (Duration::ZERO, Duration::from_millis(20), Duration::ZERO),
        };
        overhead = overhead.max(around * (1 + replicas) + mounting * further_disks);
        for server in &scenario.matrix.server {
            let spec = &scenario.servers[server];
            // Databases that are loaded with equal settings are interchangeable.
            let loaded_by = (&spec.kind, &spec.source, spec.server().load_settings(&spec.settings));
            let replicas = spec.replication.iter().flat_map(|spec| &spec.replicas);
            for layout in scenario.layouts.iter().chain(replicas) {
                let recipes = layout.recipes(&scenario.stacks);
                let key = content_hash(&(recipes, &loaded_by, scenario.workloads[workload].data_set()));
                if data_sets.insert(key) {
                    load += loading;
                }
            }
        }
    }
    let run = &scenario.run;
    // A warm start of fixed work is a pass before the measured one.
    let passes = if run.once && run.start == StartState::Warm { 2 } else { 1 };
    let of_trial = run.idle + run.warm_up.most() + run.settle.most() + run.measure * passes;
    // Each server has as many trials as the others.
    let servers = &scenario.matrix.server;
    let real =
        servers.iter().map(|server| scenario.dilation_at_most_of(server).real(of_trial)).sum::<Duration>();
    let per_trial = real / servers.len().max(1) as u32 + overhead;
    Estimate { load, per_trial, total: load + per_trial * trial_count as u32 }
}

/// Most replicas of a cell, and most disks besides the first. Each replica adds a server that starts, is
/// verified and stops; each disk comes up and goes down again.
fn further(scenario: &Scenario) -> (u32, u32) {
    let of_pool = |mount: &LayoutMount| {
        scenario.stacks[&mount.stack].head().zfs.as_ref().map_or(0, ZfsHead::device_count)
    };
    let disks = |layout: &Layout| layout.mounts.iter().map(|mount| 1 + of_pool(mount)).sum::<u32>();
    let of_replicas = |server: &String| {
        let replicas = scenario.servers[server].replication.iter().flat_map(|spec| &spec.replicas);
        replicas.fold((0, 0), |(count, sum), layout| (count + 1, sum + disks(layout)))
    };
    let (replicas, their_disks) = scenario.matrix.server.iter().map(of_replicas).max().unwrap_or_default();
    (replicas, scenario.layouts.iter().map(disks).max().unwrap_or(1) - 1 + their_disks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_blocks(cell_count: usize, trials_per_cell: u32, seed: u64) {
        let planned = trials(&vec![trials_per_cell; cell_count], seed);
        for (index, block) in planned.chunks(cell_count).enumerate() {
            let cells: BTreeSet<usize> = block.iter().map(|trial| trial.cell_index).collect();
            assert_eq!(cells.len(), cell_count, "seed {seed}: a cell is missing in block {}", index + 1);
            assert!(block.iter().all(|trial| trial.block == index as u32 + 1 && trial.seed == block[0].seed));
        }
    }

    #[test]
    fn each_block_has_each_cell_once() {
        for seed in 0..50 {
            check_blocks(1 + seed as usize % 7, 5, seed);
        }
    }

    #[test]
    fn the_order_changes_from_block_to_block() {
        let planned = trials(&[20; 4], 1);
        let orders: BTreeSet<Vec<usize>> =
            planned.chunks(4).map(|block| block.iter().map(|trial| trial.cell_index).collect()).collect();
        assert!(orders.len() > 8, "20 blocks of 4 cells had only {} orders", orders.len());
    }

    #[test]
    fn every_cell_is_first_equally_often_in_the_long_run() {
        let planned = trials(&[3000; 3], 7);
        let first = planned.chunks(3).filter(|block| block[0].cell_index == 0).count();
        // Five standard deviations of a binomial with p = 1/3.
        assert!((870..=1130).contains(&first), "{first} of 3000");
    }

    #[test]
    fn a_longer_run_begins_with_the_shorter_one() {
        assert_eq!(trials(&[5; 3], 9)[..9], trials(&[3; 3], 9)[..]);
    }

    #[test]
    fn blocks_have_different_seeds() {
        let seeds: BTreeSet<u64> = trials(&[100; 2], 3).iter().map(|trial| trial.seed).collect();
        assert_eq!(seeds.len(), 100);
    }
}
