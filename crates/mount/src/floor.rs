//! The floor: the cost of a request on its way through the block layer, the loop device, FUSE and the timer,
//! outside the model. It is measured at bring-up, against a constant delay, and subtracted from every service time.
//! It is a property of this machine: all times here are real, whatever the dilation.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use spindle_base::dilation::Dilation;

use crate::statistics::{Floor, FloorCost};

/// The page size of InnoDB, the most common request size of a database.
const READ_BYTES: usize = 16 * 1024;
const WARM_UP_READS: u64 = 10;
/// In undilated time. An error of the floor counts for less of a device's time the more that is dilated, so fewer
/// reads measure it as well.
const MEASURED_READS: u64 = 120;
const MEASURED_READS_LEAST: u64 = 30;
/// Number of concurrent readers, for the cost of requests in parallel.
const DEPTH: u64 = 4;
/// The delay, in the device's time. Long enough that the timer thread sleeps, as under a real profile; short
/// enough for a thousand reads.
const DELAY: Duration = Duration::from_micros(200);
/// A thread that sleeps longer wakes later, so the delay grows with the dilation, but not beyond this.
const DELAY_REAL_MAX: Duration = Duration::from_micros(600);
/// Alignment required by direct I/O.
const PAGE_BYTES: usize = 4096;

/// Number of batches. Their median excludes another program's burst as well as a lucky moment in which all
/// threads share a core.
const BATCHES: usize = 5;
/// Bound of the median, as a multiple of the fastest batch. A larger median was measured on a host that stood
/// still and is no property of the path.
const DISTURBED: u64 = 2;

/// The constant delay for [`measure`], in real time.
pub(crate) fn delay_real_ns(dilation: Dilation) -> u64 {
    dilation.real(DELAY).min(DELAY_REAL_MAX).as_nanos() as u64
}

fn reads(dilation: Dilation) -> u64 {
    let reads = MEASURED_READS as f64 / dilation.factor();
    (reads as u64).max(MEASURED_READS_LEAST)
}

/// The device, and how it is measured.
struct Measured {
    file: File,
    delay_real_ns: u64,
    reads: u64,
}

/// Mean latencies of 16 KiB reads beyond the constant delay, which must be in place. Calls `hurry` once the
/// kernel's workers are visible.
///
/// # Errors
/// The device cannot be opened or read.
pub(crate) fn measure(device: &Path, dilation: Dilation, hurry: impl FnOnce()) -> Result<Floor> {
    let reading = || format!("reading {}", device.display());
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(device).with_context(reading)?;
    let device = Measured { file, delay_real_ns: delay_real_ns(dilation), reads: reads(dilation) };
    device.mean_ns(DEPTH).with_context(reading)?;
    hurry();
    let cost = || device.cost().with_context(reading);
    let idle = cost()?;
    let busy = while_cores_are_busy(cost)?;
    Ok(Floor { idle, busy })
}

/// Runs `work` beside one computing thread per core, at normal priority, as under a busy database.
pub fn while_cores_are_busy<T>(work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        // A panic of the work ends the threads as well, because the scope waits for them.
        let _stop = StopAtEnd(&stop);
        work()
    })
}

struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Measured {
    fn cost(&self) -> Result<FloorCost> {
        let alone_ns = self.typical_mean_ns(1)?;
        let together_ns = self.typical_mean_ns(DEPTH)?;
        Ok(FloorCost { alone_ns, each_other_ns: together_ns.saturating_sub(alone_ns) / (DEPTH - 1) })
    }

    /// The median of the batches, at most [`DISTURBED`] times the fastest. The bound applies when the host
    /// disturbed most batches.
    fn typical_mean_ns(&self, readers: u64) -> Result<u64> {
        let mut batches = (0..BATCHES).map(|_| self.mean_ns(readers)).collect::<Result<Vec<u64>>>()?;
        batches.sort_unstable();
        Ok(batches[batches.len() / 2].min(DISTURBED * batches[0]))
    }

    /// Beyond the delay.
    fn mean_ns(&self, readers: u64) -> Result<u64> {
        let latencies_ns = thread::scope(|scope| -> Result<Vec<u64>> {
            let started: Vec<_> =
                (0..readers).map(|reader| scope.spawn(move || self.read_repeatedly(reader))).collect();
            let mut all = Vec::new();
            for reader in started {
                all.extend(reader.join().expect("a reader does not panic")?);
            }
            Ok(all)
        })?;
        Ok(ordinary_mean_ns(latencies_ns).saturating_sub(self.delay_real_ns))
    }

    fn read_repeatedly(&self, reader: u64) -> Result<Vec<u64>> {
        let size_bytes = rustix::fs::seek(&self.file, rustix::fs::SeekFrom::End(0))?;
        let places = (size_bytes / READ_BYTES as u64).max(1);
        let mut memory = vec![0; READ_BYTES + PAGE_BYTES];
        let start = memory.as_ptr().align_offset(PAGE_BYTES);
        let buffer = &mut memory[start..start + READ_BYTES];
        let mut latencies_ns = Vec::with_capacity(self.reads as usize);
        for index in 0..WARM_UP_READS + self.reads {
            // A step that is coprime with most sizes spreads the reads without a generator.
            let offset = (index * 7919 + reader * 104_729) % places * READ_BYTES as u64;
            let before = Instant::now();
            rustix::io::pread(&self.file, &mut *buffer, offset)?;
            if index >= WARM_UP_READS {
                latencies_ns.push(before.elapsed().as_nanos() as u64);
            }
        }
        Ok(latencies_ns)
    }
}

/// The mean without the slowest twentieth, which measures disturbances by the host rather than the path.
fn ordinary_mean_ns(mut latencies_ns: Vec<u64>) -> u64 {
    latencies_ns.sort_unstable();
    let ordinary = &latencies_ns[..latencies_ns.len() - latencies_ns.len() / 20];
    ordinary.iter().sum::<u64>() / ordinary.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measurement_sleeps_as_long_as_a_dilated_device_within_bounds() {
        let check = |k: f64, real_us: u64| {
            let dilation = Dilation::new(k).expect("within bounds");
            assert_eq!(delay_real_ns(dilation), real_us * 1_000, "k = {k}");
        };
        check(1.0, 200);
        check(2.0, 400);
        check(64.0, 600);
    }
}
