//! Fits a disk with an arm: the speed of rotation by the distribution of read times, seeks and queue depth by
//! their means.

use anyhow::{Result, bail};

use super::draft::Draft;
use super::fit::{self, Knob, Observation};
use super::{
    Ask, DISK_LATENCY_US, DISTANCE_HIGH, END_SHARE, MEBIBYTE, NEAR_SHARE, NOT_WRITTEN, ROTATIONS, Source,
    rate,
};
use spindle_model::Value;

use crate::bench::Access;
use crate::stack::Origin;

pub(super) fn disk(
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
        bail!("no speed of rotation makes the model match the measurements");
    };
    *draft = fitted;
    notes.push(format!("the distribution of read times has a demerit of {:.1} % of the mean", error * 100.0));
    if error > DISTANCE_HIGH {
        notes.push("this demerit is large: the device may not be a disk with one arm".to_owned());
    }
    seen.push(many);
    let depth = [Knob::OneOf("queue_depth", &[1, 2, 4, 8, 16, 32, 64])];
    fit::fit(draft, size, &depth, &seen, &from("fitted to random reads of 4 KiB by 32 threads"));
    if source.writes {
        let fsync = ask(Access::Fsync, 4 << 10, 1, 0, size)?;
        set_cache(draft, &fsync, &mut notes, by);
        seen.push(fsync);
    } else {
        notes.push(NOT_WRITTEN.to_owned());
    }
    Ok((seen, notes))
}

/// Marks the write cache as protected when the disk commits faster than it turns. Such commits are
/// acknowledged before the data is on the platter.
fn set_cache(draft: &mut Draft, fsync: &Observation, notes: &mut Vec<String>, by: &str) {
    let turns_per_s = draft.number("rotation").map_or(0.0, |per_minute| per_minute as f64 / 60.0);
    let commits_per_s = fsync.figures.row.per_second;
    if commits_per_s > 1.5 * turns_per_s {
        let origin = Origin::Source(format!(
            "{by}: {commits_per_s:.0} writes with fsync a second, more than turns of the platter"
        ));
        draft.set_value("write_cache", Value::Word("protected"), &origin);
        notes.push(
            "the disk commits more often than it rotates: its cache is protected, or it ignores FLUSH"
                .to_owned(),
        );
    }
}
