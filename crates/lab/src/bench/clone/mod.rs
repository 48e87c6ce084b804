//! A profile of a device at hand: fio measures it for a minute, then the parameters are fitted until the
//! model matches.
//!
//! Parameters that the measurements do not determine keep the value of the built-in profile of the same kind,
//! and are marked as assumptions. For example, reads alone say nothing about the write cache.

mod disk;
mod draft;
mod fit;
mod flash;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use crate::bench::fio::{self, Figures, Job};
use crate::bench::reference::Reference;
use crate::bench::table::optional;
use crate::bench::{Access, Place, Question};
use crate::host::interrupt::Interrupt;
use crate::stack::Origin;
use draft::Draft;
use fit::Observation;
use spindle_base::dilation::Dilation;

const SEED: u64 = 1;
const RAMP: Duration = Duration::from_millis(500);
const MEBIBYTE: u64 = 1 << 20;
/// In the median, every disk with an arm needs at least this for a random read, and every flash drive less.
const DISK_LATENCY_US: f64 = 1_000.0;
/// Size of the device divided by the range of short seeks.
const NEAR_SHARE: u64 = 50;
/// Size of the device divided by the range of the stream at either end.
const END_SHARE: u64 = 20;
const NOT_WRITTEN: &str =
    "no write was measured, so the write parameters are assumptions; --destructive measures them";
const CHANNELS: [u64; 14] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 64];
/// Usual rotational speeds of disks.
const ROTATIONS: [u64; 5] = [5_400, 5_900, 7_200, 10_000, 15_000];
/// The speed of rotation counts as unknown above this share of the observed mean.
const DISTANCE_HIGH: f64 = 0.25;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Disk,
    Flash,
}

/// The device to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// A block device or a file.
    pub path: PathBuf,
    pub size_bytes: u64,
    /// Whether it may be written.
    pub writes: bool,
    /// The kernel's flag of a block device.
    pub rotational: Option<bool>,
    /// Name of the device in the profile.
    pub description: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options<'a> {
    /// Seconds per measurement.
    pub seconds: u64,
    /// Date in UTC, for example `2026-01-31`.
    pub date: &'a str,
    /// Runs fio under SCHED_FIFO, as the emulator behind the device runs.
    pub real_time: bool,
    /// Dilation of the disk, if it is emulated.
    pub dilation: Dilation,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Clone {
    pub kind: Kind,
    /// The profile as TOML.
    #[serde(skip)]
    pub profile: String,
    /// Distribution of random reads of 4 KiB, one at a time.
    #[serde(skip)]
    pub reference: Option<Reference>,
    pub rows: Vec<CheckedRow>,
    /// Sentences about uncertain parameters.
    pub notes: Vec<String>,
}

/// A measurement beside the answer of the clone in virtual time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckedRow {
    #[serde(flatten)]
    pub question: Question,
    /// Length of the range, from the start of the device.
    pub span_bytes: u64,
    pub measured_per_second: f64,
    pub clone_per_second: f64,
    pub measured_us_p50: Option<f64>,
    pub clone_us_p50: Option<f64>,
    /// Speed of the clone divided by that of the device: by median latency with one thread, by rate with
    /// more.
    pub ratio: f64,
}

/// Decides by latency as well, because virtual machines report every device as rotational.
fn decide(rotational: Option<bool>, latency_us_p50: f64) -> Kind {
    match rotational {
        Some(false) => Kind::Flash,
        _ if latency_us_p50 >= DISK_LATENCY_US => Kind::Disk,
        _ => Kind::Flash,
    }
}

/// # Errors
/// fio fails, the user asks to stop, or no parameters make the model match the measurements.
pub fn clone(source: &Source, options: Options<'_>, interrupt: &Interrupt) -> Result<Clone> {
    let mut ask = |access, block_bytes, iodepth, offset_bytes, span_bytes| -> Result<Observation> {
        let question = Question { place: Place::Raw, access, block_bytes, iodepth };
        eprintln!("measuring {question}");
        let job = Job {
            path: &source.path,
            question,
            offset_bytes,
            span_bytes: span_bytes / block_bytes * block_bytes,
            dilation: options.dilation,
            seconds: options.seconds,
            ramp: if access == Access::RandomWrite { Duration::from_secs(options.seconds) } else { RAMP },
            direct: true,
            seed: SEED,
            real_time: options.real_time,
        };
        Ok(Observation { question, span_bytes, figures: fio::run(&job, interrupt)? })
    };
    clone_asking(source, options, &mut ask)
}

/// Arguments: access, block size, iodepth, offset and span. Block size, offset and span are in bytes.
type Ask<'a> = dyn FnMut(Access, u64, u64, u64, u64) -> Result<Observation> + 'a;

fn clone_asking(source: &Source, options: Options<'_>, ask: &mut Ask<'_>) -> Result<Clone> {
    let first = ask(Access::RandomRead, 4 << 10, 1, 0, source.size_bytes)?;
    let latency_us = first.figures.row.latency_us_p50.unwrap_or(first.figures.row.latency_us_mean);
    let kind = decide(source.rotational, latency_us);
    let by = format!("measured by spindle disk clone on {}", options.date);
    let summary = format!("A clone of {}, {by}.", source.description);
    let (question, latencies_ns) = (first.question, first.figures.latencies_ns.clone());
    let reference = Reference::of_latencies(&question, &latencies_ns, &source.description, &by);
    let mut draft = Draft::from_template(&summary, if kind == Kind::Disk { "hdd-7200" } else { "x25m-80" });
    set_size(&mut draft, source.size_bytes, &by);
    let (seen, notes) = match kind {
        Kind::Disk => disk::disk(&mut draft, source, &by, first, ask)?,
        Kind::Flash => flash::flash(&mut draft, source, &by, first, ask)?,
    };
    // The written text must be a valid profile after the fit.
    draft.parameters()?;
    let check = |observation: &Observation| {
        let measured = observation.figures.row;
        let clone = fit::answer(&draft, source.size_bytes, observation)?;
        Some(CheckedRow {
            question: observation.question,
            span_bytes: observation.span_bytes,
            measured_per_second: measured.per_second,
            clone_per_second: clone.per_second,
            measured_us_p50: measured.latency_us_p50,
            clone_us_p50: clone.latency_us_p50,
            ratio: fit::ratio(&clone, &measured),
        })
    };
    let rows = seen.iter().filter_map(check).collect();
    Ok(Clone { kind, profile: draft.text(), reference, rows, notes })
}

fn set_size(draft: &mut Draft, size_bytes: u64, by: &str) {
    // The share of spare flash stays the same for a drive of any size.
    if let (Some(raw), Some(capacity)) = (draft.number("raw_capacity"), draft.number("capacity")) {
        let scaled = (u128::from(raw) * u128::from(size_bytes) / u128::from(capacity)) as u64;
        let origin = Origin::Assumption("Spare flash in the proportion of the built-in profile.".to_owned());
        draft.set("raw_capacity", scaled, &origin);
    }
    draft.set("capacity", size_bytes, &Origin::Source(format!("{by}: the size of the device")));
}

fn rate(figures: &Figures) -> u64 {
    figures.row.bytes_per_s.round() as u64
}

pub fn table(clone: &Clone) -> String {
    let kind = if clone.kind == Kind::Disk { "a disk" } else { "flash" };
    let mut text = format!(
        "{kind}\n\n{:<42} {:>11} {:>11} {:>11} {:>11} {:>6}\n",
        "", "measured/s", "clone/s", "p50 us", "clone's", "ratio"
    );
    for row in &clone.rows {
        text.push_str(&format!(
            "{:<42} {:>11.1} {:>11.1} {:>11} {:>11} {:>6.2}\n",
            row.question.to_string(),
            row.measured_per_second,
            row.clone_per_second,
            optional(row.measured_us_p50),
            optional(row.clone_us_p50),
            row.ratio
        ));
    }
    for note in &clone.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}

/// The kernel's rotational flag of a block device; `None` for anything else.
pub fn rotational(path: &Path) -> Option<bool> {
    let name = std::fs::canonicalize(path).ok()?.file_name()?.to_string_lossy().into_owned();
    let directory = std::fs::canonicalize(Path::new("/sys/class/block").join(name)).ok()?;
    // The queue of a partition is one directory up.
    let queue = [directory.join("queue/rotational"), directory.parent()?.join("queue/rotational")];
    let text = queue.iter().find_map(|path| std::fs::read_to_string(path).ok())?;
    Some(text.trim() == "1")
}

#[cfg(test)]
mod tests;
