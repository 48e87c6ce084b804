//! The floor: what a request costs on its way through the block layer, the loop device, FUSE and the timer, beside what the
//! model says. It is measured on every disk that comes up, against a constant delay, and subtracted from every service time.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::statistics::Floor;

/// The page of InnoDB, which is what most requests of a database are.
const READ_BYTES: usize = 16 * 1024;
const WARM_UP_READS: u64 = 20;
const MEASURED_READS: u64 = 150;
/// Readers at once, for the cost of not being alone.
const DEPTH: u64 = 4;
/// Long enough that the timer thread sleeps, as it does under a real profile; short enough for a thousand reads.
pub(crate) const DELAY_NS: u64 = 200_000;
/// Alignment that direct I/O wants.
const PAGE_BYTES: usize = 4096;

/// Batches, of which the quickest counts: another program's burst must not be subtracted.
const BATCHES: usize = 5;

/// Median latencies of 16 KiB reads beyond the constant delay, which must be in place.
///
/// # Errors
/// The device cannot be opened or read.
pub(crate) fn measure(device: &Path) -> Result<Floor> {
    let reading = || format!("reading {}", device.display());
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(device).with_context(reading)?;
    let quickest = |readers| -> Result<u64> {
        let mut medians = (0..BATCHES).map(|_| median_ns(&file, readers)).collect::<Result<Vec<u64>>>()?;
        medians.sort_unstable();
        Ok(medians[0])
    };
    let alone_ns = quickest(1).with_context(reading)?;
    let together_ns = quickest(DEPTH).with_context(reading)?;
    Ok(Floor { alone_ns, each_other_ns: together_ns.saturating_sub(alone_ns) / (DEPTH - 1) })
}

fn median_ns(file: &File, readers: u64) -> Result<u64> {
    let mut latencies_ns = thread::scope(|scope| -> Result<Vec<u64>> {
        let started: Vec<_> =
            (0..readers).map(|reader| scope.spawn(move || read_repeatedly(file, reader))).collect();
        let mut all = Vec::new();
        for reader in started {
            all.extend(reader.join().expect("a reader does not panic")?);
        }
        Ok(all)
    })?;
    latencies_ns.sort_unstable();
    Ok(latencies_ns[latencies_ns.len() / 2].saturating_sub(DELAY_NS))
}

fn read_repeatedly(file: &File, reader: u64) -> Result<Vec<u64>> {
    let size_bytes = rustix::fs::seek(file, rustix::fs::SeekFrom::End(0))?;
    let places = (size_bytes / READ_BYTES as u64).max(1);
    let mut memory = vec![0; READ_BYTES + PAGE_BYTES];
    let start = memory.as_ptr().align_offset(PAGE_BYTES);
    let buffer = &mut memory[start..start + READ_BYTES];
    let mut latencies_ns = Vec::with_capacity(MEASURED_READS as usize);
    for index in 0..WARM_UP_READS + MEASURED_READS {
        // A step that is coprime with most sizes spreads the reads without a generator.
        let offset = (index * 7919 + reader * 104_729) % places * READ_BYTES as u64;
        let before = Instant::now();
        rustix::io::pread(file, &mut *buffer, offset)?;
        if index >= WARM_UP_READS {
            latencies_ns.push(before.elapsed().as_nanos() as u64);
        }
    }
    Ok(latencies_ns)
}
