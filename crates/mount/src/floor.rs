//! The floor: what a request costs on its way through the block layer, the loop device, FUSE and the timer, beside what the
//! model says. It is measured on every disk that comes up, against a constant delay, and subtracted from every service time.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};

/// The page of InnoDB, which is what most requests of a database are.
const READ_BYTES: usize = 16 * 1024;
const WARM_UP_READS: u64 = 200;
const MEASURED_READS: u64 = 1000;
/// Long enough that the timer thread sleeps, as it does under a real profile; short enough for a thousand reads.
pub(crate) const DELAY_NS: u64 = 200_000;
/// Alignment that direct I/O wants.
const PAGE_BYTES: usize = 4096;

/// Median latency of single 16 KiB reads beyond the constant delay, which must be in place.
///
/// # Errors
/// The device cannot be opened or read.
pub(crate) fn measure_ns(device: &Path) -> Result<u64> {
    let reading = || format!("reading {}", device.display());
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(device)
        .with_context(reading)?;
    let size_bytes = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0)).with_context(reading)?;
    let places = (size_bytes / READ_BYTES as u64).max(1);
    let mut memory = vec![0; READ_BYTES + PAGE_BYTES];
    let start = memory.as_ptr().align_offset(PAGE_BYTES);
    let buffer = &mut memory[start..start + READ_BYTES];
    let mut latencies_ns = Vec::with_capacity(MEASURED_READS as usize);
    for index in 0..WARM_UP_READS + MEASURED_READS {
        // A step that is coprime with most sizes spreads the reads without a generator.
        let offset = index * 7919 % places * READ_BYTES as u64;
        let before = Instant::now();
        rustix::io::pread(&file, &mut *buffer, offset).with_context(reading)?;
        if index >= WARM_UP_READS {
            latencies_ns.push(before.elapsed().as_nanos() as u64);
        }
    }
    latencies_ns.sort_unstable();
    Ok(latencies_ns[latencies_ns.len() / 2].saturating_sub(DELAY_NS))
}
