//! A profile of a device that is at hand: measured by fio for a minute, then fitted until the model does the same.
//!
//! What the measurements cannot tell stays as it is in the built-in profile of the same kind, and says so: from reads alone nobody
//! learns what a write cache does.

mod draft;
mod fit;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::bench::fio::{self, Figures, Job};
use crate::bench::reference::Reference;
use crate::bench::{Access, Place, Question};
use crate::host::interrupt::Interrupt;
use crate::stack::Origin;
use draft::Draft;
use fit::{Knob, Observation};

const SEED: u64 = 1;
const RAMP: Duration = Duration::from_millis(500);
const MEBIBYTE: u64 = 1 << 20;
/// No disk with an arm answers random reads faster than this in the median, and no flash slower.
const DISK_LATENCY_US: f64 = 1_000.0;
/// Share of the device in which seeks are short.
const NEAR_SHARE: u64 = 50;
/// Share of the device that a stream at its end reads.
const END_SHARE: u64 = 20;
const CHANNELS: [u64; 14] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 64];
/// What spindles turn at.
const ROTATIONS: [u64; 5] = [5_400, 5_900, 7_200, 10_000, 15_000];
/// Above this share of the observed mean, the spindle's speed was not recognised.
const DISTANCE_HIGH: f64 = 0.25;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Disk,
    Flash,
}

/// What is to be cloned.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// A block device or a file.
    pub path: PathBuf,
    pub size_bytes: u64,
    /// Whether it may be written.
    pub writes: bool,
    /// What the kernel says of a block device.
    pub rotational: Option<bool>,
    /// What it is called in the profile.
    pub description: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options<'a> {
    /// Of each measurement.
    pub seconds: u64,
    /// UTC, for example `2026-01-31`.
    pub date: &'a str,
    /// Against SCHED_FIFO's emulator, fio runs under SCHED_FIFO too.
    pub real_time: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Clone {
    pub kind: Kind,
    /// The profile, TOML.
    #[serde(skip)]
    pub profile: String,
    /// Of random reads of 4 KiB, one at a time.
    #[serde(skip)]
    pub reference: Option<Reference>,
    pub rows: Vec<CheckedRow>,
    /// Sentences about what is not sure.
    pub notes: Vec<String>,
}

/// A measurement beside what the clone does in virtual time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckedRow {
    #[serde(flatten)]
    pub question: Question,
    /// Of the device, from its start.
    pub span_bytes: u64,
    pub measured_per_second: f64,
    pub clone_per_second: f64,
    pub measured_us_p50: Option<f64>,
    pub clone_us_p50: Option<f64>,
    /// Speed of the clone over that of the device: by median latency with one thread, by rate with more.
    pub ratio: f64,
}

/// The kernel's word is not enough: virtual machines call everything rotational.
fn decide(rotational: Option<bool>, latency_us_p50: f64) -> Kind {
    match rotational {
        Some(false) => Kind::Flash,
        _ if latency_us_p50 >= DISK_LATENCY_US => Kind::Disk,
        _ => Kind::Flash,
    }
}

/// # Errors
/// fio fails, the user asks to stop, or no parameters make the model do what was measured.
pub fn clone(source: &Source, options: Options<'_>, interrupt: &Interrupt) -> Result<Clone> {
    let mut ask = |access, unit_bytes, threads, offset_bytes, span_bytes| -> Result<Observation> {
        let question = Question { place: Place::Raw, access, unit_bytes, threads };
        eprintln!("measuring {question}");
        let job = Job {
            path: &source.path,
            question,
            offset_bytes,
            span_bytes: span_bytes / unit_bytes * unit_bytes,
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

/// Access, unit, threads, offset and span, the last three sizes in bytes.
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
        Kind::Disk => disk(&mut draft, source, &by, first, ask)?,
        Kind::Flash => flash(&mut draft, source, &by, first, ask)?,
    };
    // What the fit was not allowed to break: the text that is written must be a profile.
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
    // Spare flash keeps its share, whatever the drive's size.
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

fn flash(
    draft: &mut Draft,
    source: &Source,
    by: &str,
    first: Observation,
    ask: &mut Ask<'_>,
) -> Result<(Vec<Observation>, Vec<String>)> {
    let size = source.size_bytes;
    let mut seen = vec![first];
    for (unit_bytes, threads) in [(16 << 10, 1), (4 << 10, 4), (16 << 10, 4), (4 << 10, 32), (16 << 10, 32)] {
        seen.push(ask(Access::RandomRead, unit_bytes, threads, 0, size)?);
    }
    let stream = ask(Access::SequentialRead, MEBIBYTE, 4, 0, size)?;
    let origin = Origin::Source(format!(
        "{by}: fitted to random reads of 4 and 16 KiB by 1, 4 and 32 threads and to a stream of 1 MiB"
    ));
    seen.push(stream);
    draft.set(
        "dies_per_channel",
        1,
        &Origin::Assumption("One, so that channels and dies are the same.".to_owned()),
    );
    let knobs = [
        Knob::OneOf("channels", &CHANNELS),
        Knob::Scaled("page_read"),
        Knob::Scaled("read_overhead"),
        Knob::Scaled("link_rate"),
        Knob::Scaled("channel_rate"),
        Knob::Scaled("command_interval"),
    ];
    let mut starts = [draft.clone(), draft.clone(), draft.clone()];
    start_at_the_front(&mut starts[0], 4 << 10, &seen, &origin);
    start_at_the_front(&mut starts[1], 8 << 10, &seen, &origin);
    start_at_the_dies(&mut starts[2], &seen, &origin);
    for start in &mut starts {
        fit::fit(start, size, &knobs, &seen, &origin);
    }
    let error = |start: &Draft| fit::error(start, size, &seen);
    let best = starts.into_iter().min_by(|left, right| error(left).total_cmp(&error(right)));
    *draft = best
        .filter(|best| error(best).is_finite())
        .ok_or_else(|| anyhow::anyhow!("no flash drive of the model does what was measured"))?;
    let mut notes = Vec::new();
    if source.writes {
        let mut written = vec![ask(Access::RandomWrite, 16 << 10, 1, 0, size)?];
        written.push(ask(Access::RandomWrite, 16 << 10, 16, 0, size)?);
        written.push(ask(Access::Fsync, 16 << 10, 1, 0, size)?);
        let origin = Origin::Source(format!(
            "{by}: fitted to random writes of 16 KiB by 1 and 16 threads and to writes with fsync"
        ));
        let knobs =
            [Knob::Scaled("page_program"), Knob::Scaled("write_overhead"), Knob::Scaled("flush_commit")];
        fit::fit(draft, size, &knobs, &written, &origin);
        seen.append(&mut written);
    } else {
        notes.push(
            "nothing was written, so everything about writes is an assumption; --destructive measures them"
                .to_owned(),
        );
    }
    Ok((seen, notes))
}

/// Of one small read, the first of the observations.
fn alone_ns(seen: &[Observation]) -> f64 {
    let row = seen[0].figures.row;
    row.latency_us_p50.unwrap_or(row.latency_us_mean) * 1e3
}

/// As if commands and the link were the limit: where most drives are.
fn start_at_the_front(draft: &mut Draft, page_bytes: u64, seen: &[Observation], origin: &Origin) {
    let fastest = seen.iter().map(|seen| seen.figures.row.bytes_per_s).fold(0.0, f64::max);
    let commands_per_s = seen.iter().map(|seen| seen.figures.row.per_second).fold(1.0, f64::max);
    let latency_ns = alone_ns(seen);
    draft.set("link_rate", fastest.round() as u64, origin);
    draft.set("command_interval", (1e9 / commands_per_s).round() as u64, origin);
    // Which decides over how many dies a request is spread.
    let tried = Origin::Assumption("Fits best among 4, 8 and 16 KiB.".to_owned());
    draft.set("page", page_bytes, &tried);
    draft.set(
        "mapping_unit",
        4 << 10,
        &Origin::Assumption("No larger than any page that was tried.".to_owned()),
    );
    draft.set("page_read", (latency_ns * 0.5).round() as u64, origin);
    draft.set("read_overhead", (latency_ns * 0.2).round() as u64, origin);
}

/// As if the dies were the limit: with so many of them as the highest rate needs.
fn start_at_the_dies(draft: &mut Draft, seen: &[Observation], origin: &Origin) {
    let fastest = seen.iter().map(|seen| seen.figures.row.bytes_per_s).fold(0.0, f64::max);
    let commands_per_s = seen.iter().map(|seen| seen.figures.row.per_second).fold(1.0, f64::max);
    let page_read_ns = alone_ns(seen) * 0.9;
    let wanted = commands_per_s * page_read_ns / 1e9;
    let far = |count: &u64| (*count as f64 / wanted.max(1.0)).ln().abs();
    let channels = CHANNELS.into_iter().min_by(|left, right| far(left).total_cmp(&far(right)));
    draft.set("channels", channels.unwrap_or(1), origin);
    // A request of 16 KiB then waits for one die, not for four.
    draft.set("page", 16 << 10, &Origin::Assumption("Fits best among 4, 8 and 16 KiB.".to_owned()));
    draft.set("page_read", page_read_ns.round() as u64, origin);
    draft.set("read_overhead", 1_000, origin);
    draft.set("command_interval", 1_000, origin);
    draft.set("link_rate", (3.0 * fastest).round() as u64, origin);
    draft.set("channel_rate", fastest.round() as u64, origin);
}

fn disk(
    draft: &mut Draft,
    source: &Source,
    by: &str,
    first: Observation,
    ask: &mut Ask<'_>,
) -> Result<(Vec<Observation>, Vec<String>)> {
    let size = source.size_bytes;
    let near = ask(Access::RandomRead, 4 << 10, 1, 0, size / NEAR_SHARE)?;
    let many = ask(Access::RandomRead, 4 << 10, 32, 0, size)?;
    let end_bytes = size / END_SHARE / MEBIBYTE * MEBIBYTE;
    let outer = ask(Access::SequentialRead, MEBIBYTE, 4, 0, end_bytes)?;
    let inner =
        ask(Access::SequentialRead, MEBIBYTE, 4, (size - end_bytes) / MEBIBYTE * MEBIBYTE, end_bytes)?;
    let mut notes = Vec::new();
    let from = |what: &str| Origin::Source(format!("{by}: {what}"));
    draft.set("outer_rate", rate(&outer.figures), &from("a stream of 1 MiB at the start of the device"));
    let inner_is_slower = inner.figures.row.bytes_per_s < outer.figures.row.bytes_per_s;
    let slower = if inner_is_slower { &inner } else { &outer };
    draft.set("inner_rate", rate(&slower.figures), &from("a stream of 1 MiB at the end of the device"));
    let is_mechanical = near.figures.row.latency_us_mean >= DISK_LATENCY_US;
    let mut seen = vec![first];
    let mut knobs = vec![Knob::Scaled("seek_average")];
    if is_mechanical {
        seen.push(near);
        knobs.push(Knob::Scaled("seek_track_to_track"));
    } else {
        notes.push(format!(
            "reads within 1/{NEAR_SHARE} of the device came from a cache, so short seeks are an assumption"
        ));
    }
    if draft.has("seek_minimum") && is_mechanical {
        knobs.push(Knob::Scaled("seek_minimum"));
    }
    let origin = from("fitted to random reads of 4 KiB on the whole device and near its start");
    let mut best: Option<(f64, Draft)> = None;
    for rotation in ROTATIONS {
        let mut tried = draft.clone();
        tried.set("rotation", rotation, &from("the speed whose distribution of read times fits best"));
        fit::fit(&mut tried, size, &knobs, &seen, &origin);
        let distance = |observation| fit::distance(&tried, size, observation).unwrap_or(f64::INFINITY);
        let error = seen.iter().map(distance).sum::<f64>() / seen.len() as f64;
        if best.as_ref().is_none_or(|(lowest, _)| error < *lowest) {
            best = Some((error, tried));
        }
    }
    let Some((error, fitted)) = best.filter(|(error, _)| error.is_finite()) else {
        bail!("no speed of rotation makes the model do what was measured");
    };
    *draft = fitted;
    notes.push(format!(
        "the distribution of read times is met with a demerit of {:.1} % of the mean",
        error * 100.0
    ));
    if error > DISTANCE_HIGH {
        notes.push("that is far: this may not be a disk with one arm".to_owned());
    }
    seen.push(many);
    let depth = [Knob::OneOf("queue_depth", &[1, 2, 4, 8, 16, 32, 64])];
    fit::fit(draft, size, &depth, &seen, &from("fitted to random reads of 4 KiB by 32 threads"));
    if source.writes {
        let fsync = ask(Access::Fsync, 4 << 10, 1, 0, size)?;
        set_cache(draft, &fsync, &mut notes, by);
        seen.push(fsync);
    } else {
        notes.push(
            "nothing was written, so everything about writes is an assumption; --destructive measures them"
                .to_owned(),
        );
    }
    Ok((seen, notes))
}

/// A disk that commits faster than it turns does not put the data on the platter first.
fn set_cache(draft: &mut Draft, fsync: &Observation, notes: &mut Vec<String>, by: &str) {
    let turns_per_s = draft.number("rotation").map_or(0.0, |per_minute| per_minute as f64 / 60.0);
    let commits_per_s = fsync.figures.row.per_second;
    if commits_per_s > 1.5 * turns_per_s {
        let origin = Origin::Source(format!(
            "{by}: {commits_per_s:.0} writes with fsync a second, more than turns of the platter"
        ));
        draft.set_word("write_cache", "protected", &origin);
        notes.push(
            "it commits faster than it turns: its cache is protected, or it lies about FLUSH".to_owned(),
        );
    }
}

pub fn table(clone: &Clone) -> String {
    let kind = if clone.kind == Kind::Disk { "a disk" } else { "flash" };
    let mut text = format!(
        "{kind}\n\n{:<42} {:>11} {:>11} {:>11} {:>11} {:>6}\n",
        "", "measured/s", "clone/s", "p50 us", "clone's", "ratio"
    );
    for row in &clone.rows {
        let optional = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
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

/// Of a block device; `None` for anything else.
pub fn rotational(path: &Path) -> Option<bool> {
    let name = std::fs::canonicalize(path).ok()?.file_name()?.to_string_lossy().into_owned();
    let directory = std::fs::canonicalize(Path::new("/sys/class/block").join(name)).ok()?;
    // A partition has its queue one directory up.
    let queue = [directory.join("queue/rotational"), directory.parent()?.join("queue/rotational")];
    let text = queue.iter().find_map(|path| std::fs::read_to_string(path).ok())?;
    Some(text.trim() == "1")
}

#[cfg(test)]
mod tests;
