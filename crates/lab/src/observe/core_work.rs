//! How fast the machine's cores are within a window: the time that the same piece of arithmetic takes them, again and
//! again. On a shared machine others slow a core down, such as a neighbour on its other hardware thread, whom neither
//! steal time nor load tells of. Nothing else of what a trial counts tells that apart from what its own storage does to
//! it ([docs/results/core-work.md] measures it).
//!
//! [docs/results/core-work.md]: ../../../../docs/results/core-work.md

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use spindle_base::affinity;
use spindle_base::proc::thread_cpu;
use spindle_stats::mean;

/// Real time between two pieces on a core, of which each takes about 20 us: a five-hundredth of the core.
const PAUSE: Duration = Duration::from_millis(10);

/// The work of a window, on each core that this process may use.
#[derive(Debug)]
pub struct CoreWork {
    is_over: Arc<AtomicBool>,
    /// Each gives its times in microseconds.
    cores: Vec<JoinHandle<Vec<f64>>>,
}

impl CoreWork {
    pub fn begin() -> CoreWork {
        let is_over = Arc::new(AtomicBool::new(false));
        let cores = affinity::cores().unwrap_or_default().into_iter().map(|core| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || times_us(core, &is_over))
        });
        CoreWork { cores: cores.collect(), is_over }
    }

    /// The mean of a core's times, as the mean over the cores. A neighbour comes and goes, so that a median would tell of
    /// one that is there for half of the window as of one that is always there. `None` if no core could be asked.
    pub fn end(self) -> Option<f64> {
        self.is_over.store(true, Ordering::Relaxed);
        let means = self.cores.into_iter().filter_map(|core| mean(&core.join().ok()?));
        mean(&means.collect::<Vec<_>>())
    }
}

/// Of the work on this core until it is over, in the processor's time.
fn times_us(core: usize, is_over: &AtomicBool) -> Vec<f64> {
    let mut only = CpuSet::new();
    only.set(core);
    if sched_setaffinity(None, &only).is_err() {
        return Vec::new();
    }
    let mut times = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let before = thread_cpu();
        work();
        times.push((thread_cpu() - before).as_secs_f64() * 1e6);
        thread::sleep(PAUSE);
    }
    times
}

/// Rotations and exclusive ors in eight lanes that need nothing of each other, and no memory: as many at once as a core
/// can do. Work of which each step waits for the one before leaves most of a core idle, and would not feel a neighbour.
fn work() {
    let mut lanes = black_box([1_u64, 2, 3, 4, 5, 6, 7, 8]);
    for round in 0..14_000_u32 {
        for lane in &mut lanes {
            *lane = lane.rotate_left(round) ^ 0x9e37_79b9_7f4a_7c15;
        }
    }
    black_box(lanes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_core_tells_how_long_the_work_takes_it() {
        let work = CoreWork::begin();
        assert!(!work.cores.is_empty());
        thread::sleep(5 * PAUSE);
        let took_us = work.end().unwrap();
        assert!(took_us > 0.0, "{took_us}");
    }

    #[test]
    fn a_core_that_cannot_be_asked_has_no_times() {
        assert!(times_us(CpuSet::MAX_CPU - 1, &AtomicBool::new(false)).is_empty());
    }
}
