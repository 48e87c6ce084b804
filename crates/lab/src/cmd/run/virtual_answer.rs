//! A scenario's question in virtual time: the performance of each stack alone, for machines that cannot mount
//! anything.
//!
//! Three figures that determine a database's speed: one read after the other, many reads at once, and one
//! commit after the other (a write and a FLUSH). Reads are spread over the part of the device that the
//! scenario's data would fill.

use spindle_model::{ClosedLoop, Measured, Operation, Order, VirtualTime};

use crate::scenario::Scenario;
use crate::stack::StackSpec;

/// Size of an InnoDB page.
const READ_BYTES: u64 = 16 << 10;
/// Size of a short log record.
const WRITE_BYTES: u64 = 4 << 10;
const QUEUE_DEPTH: u64 = 16;
const REQUESTS: u64 = 20_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figures {
    pub read_latency_ms: f64,
    pub reads_per_s: f64,
    pub commits_per_s: f64,
}

pub(super) fn figures(stack: &StackSpec, data_bytes: u64, seed: u64) -> Figures {
    let span_bytes = data_bytes.clamp(READ_BYTES, stack.size_bytes());
    let run = |workload: ClosedLoop| -> Measured {
        let workload = ClosedLoop { span_bytes, request_count: REQUESTS, seed, ..workload };
        workload.run(&mut VirtualTime::new(stack.build(seed)))
    };
    let alone = run(ClosedLoop { size_bytes: READ_BYTES, ..ClosedLoop::default() });
    let many = run(ClosedLoop { size_bytes: READ_BYTES, queue_depth: QUEUE_DEPTH, ..ClosedLoop::default() });
    let commits = run(ClosedLoop {
        read_percent: 0,
        size_bytes: WRITE_BYTES,
        order: Order::Sequential,
        flush_after_write: true,
        ..ClosedLoop::default()
    });
    Figures {
        read_latency_ms: alone.mean_ns(Operation::Read) / 1e6,
        reads_per_s: many.per_second(Operation::Read),
        commits_per_s: commits.per_second(Operation::Flush),
    }
}

pub(super) fn table(scenario: &Scenario) -> String {
    let seed = scenario.run.seed;
    let (stacks, real): (Vec<&str>, Vec<&str>) =
        scenario.stacks_in_use().into_iter().partition(|name| scenario.stacks[*name].real().is_none());
    let labels: Vec<&str> = stacks.iter().map(|name| scenario.stacks[*name].label()).collect();
    let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0).max("storage".len());
    let mut text = format!(
        "{}\n\n{:width$}  {:>14}  {:>22}  {:>9}\n",
        scenario.title, "storage", "16 KiB read", "reads/s, 16 at a time", "commits/s"
    );
    for (name, label) in stacks.into_iter().zip(labels) {
        let figures = figures(&scenario.stacks[name], scenario.data_bytes(), seed);
        text.push_str(&format!(
            "{label:width$}  {:>11.3} ms  {:>22.0}  {:>9.0}\n",
            figures.read_latency_ms, figures.reads_per_s, figures.commits_per_s
        ));
    }
    for name in real {
        text.push_str(&format!(
            "{}: a real disk, and virtual time covers emulated storage only\n",
            scenario.stacks[name].label()
        ));
    }
    let without = if scenario.events.is_empty() { "" } else { ", without the events" };
    text.push_str(&format!("\nvirtual time, raw storage only{without}, seed {seed}\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(profile: &str) -> Figures {
        figures(&StackSpec::of_name(profile, None, "xfs").unwrap(), 1 << 30, 1)
    }

    #[test]
    fn flash_beats_a_disk_in_everything() {
        let (disk, flash) = (of("hdd-7200"), of("iodrive-160"));
        assert!(disk.read_latency_ms > 5.0 * flash.read_latency_ms, "{disk:?} {flash:?}");
        assert!(flash.reads_per_s > 5.0 * disk.reads_per_s, "{disk:?} {flash:?}");
        assert!(flash.commits_per_s > 5.0 * disk.commits_per_s, "{disk:?} {flash:?}");
    }

    #[test]
    fn a_disk_with_durable_flushes_commits_at_most_once_a_revolution() {
        let disk = of("hdd-7200");
        assert!(disk.commits_per_s <= 121.0, "7200 turns a minute are 120 a second: {disk:?}");
    }

    #[test]
    fn one_seed_gives_one_answer() {
        assert_eq!(of("hdd-7200"), of("hdd-7200"));
    }
}
