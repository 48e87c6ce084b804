//! `kill -9` at random moments of a run of twelve trials on emulated disks, from its first millisecond to its
//! last. The same command goes on: each finished trial stays as it was written and is counted once, and the
//! end leaves nothing behind.

use std::collections::BTreeSet;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use spindle_base::random::Random;

use rustix::process::Signal;

use crate::emulated_support::{Bench, Part, kill, measured, next_part};
use crate::{in_check_all, wait_until};

const SEED: u64 = 20_261_123;
const CELLS: usize = 2;
/// Of each cell. A run of so many takes several times as long as the longest wait for a kill, so that the kills of a round are in all of
/// its parts.
const TRIALS: usize = 6;
const LONGEST: Duration = Duration::from_secs(4);

/// SQLite, because each trial mounts a disk and nothing else is slow to start.
const SCENARIO: &str = r#"
title = "A run that is killed"
question = "Is a trial lost, or counted twice?"
[stacks.ssd]
profile = "x25m-80"
size = "1 GiB"
[stacks.card]
profile = "iodrive-160"
size = "1 GiB"
file_system = "ext4"
[servers.sqlite]
kind = "sqlite"
settings = { journal_mode = "WAL", synchronous = "FULL" }
[workloads.commits]
kind = "fsync-loop"
[matrix]
stack = ["ssd", "card"]
server = ["sqlite"]
workload = ["commits"]
[run]
trials = 6
start = "cold"
measure = "300 ms"
seed = 1
"#;

/// The whole lines of the records, without the header.
fn finished(bench: &Bench) -> Vec<String> {
    let text = fs::read_to_string(bench.records()).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().skip(1).map(str::to_owned).collect()
}

/// Kills and resumes until all trials are done or so many kills are reached. Returns the kills of the round.
fn round(bench: &Bench, random: &mut Random, trials: usize, kills_most: u32) -> u32 {
    let mut kills = 0;
    let mut before = Vec::new();
    while kills < kills_most && before.len() < trials {
        let mut run = bench.start_scenario();
        sleep(LONGEST.mul_f64(random.unit()));
        // Dead in any case; one that had ended was not killed.
        kills += u32::from(run.try_wait().unwrap().is_none());
        run.kill().unwrap();
        run.wait().unwrap();
        let now = finished(bench);
        assert_eq!(now[..before.len().min(now.len())], before[..], "a finished trial was lost or changed");
        before = now;
    }
    kills
}

#[track_caller]
fn check(kills_wanted: u32, trials_per_cell: usize) {
    let Some(bench) = Bench::new() else { return };
    println!("seed {SEED}");
    bench.write("test.toml", &SCENARIO.replace("trials = 6", &format!("trials = {trials_per_cell}")));
    let expect = CELLS * trials_per_cell;
    let mut random = Random::seeded(&[SEED]);
    let mut kills = 0;
    while kills < kills_wanted {
        // The database is loaded once; a round begins without trials.
        let _ = fs::remove_file(bench.records());
        kills += round(&bench, &mut random, expect, kills_wanted - kills);
        let before = finished(&bench);
        let talk = bench.run_scenario(&[], &[], 0);
        let after = finished(&bench);
        assert_eq!(after[..before.len()], before[..], "{talk}");
        let trials = bench.trials();
        let numbers: BTreeSet<(&str, u32)> =
            trials.iter().map(|trial| (trial.cell.as_str(), trial.trial)).collect();
        assert_eq!((trials.len(), numbers.len()), (expect, expect), "{numbers:?}\n{talk}");
        trials.iter().for_each(|trial| _ = measured(trial));
        bench.assert_clean();
    }
}

#[test]
fn no_trial_is_lost_or_counted_twice_in_a_kill() {
    check(1, 2);
}

#[test]
fn no_trial_is_lost_or_counted_twice_in_fifty_kills() {
    let Some(()) = in_check_all(|| Some(())) else { return };
    check(50, TRIALS);
}

#[test]
fn an_emulator_that_outlives_its_killed_run_is_ended_by_the_next_run() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    bench.write("test.toml", &SCENARIO.replace("trials = 6", "trials = 1"));
    let mut run = bench.start_scenario();
    let emulator = next_part(&run, Part::Emulator, &mut Vec::new());
    let identity = bench.path("run").join(format!("run-{}", run.id())).join("pid");
    wait_until("the emulator to say who it is", || identity.exists());
    // It does not notice the end of the run, as one that frees its memory on a busy machine.
    kill(emulator, Signal::STOP);
    run.kill().unwrap();
    run.wait().unwrap();
    bench.run_scenario(&[], &[], 0);
    bench.assert_clean();
}
