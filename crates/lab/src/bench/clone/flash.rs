//! Fits a flash drive from two kinds of starting point. The bottleneck of most drives is the front end, of
//! some the dies.

use anyhow::Result;

use super::draft::Draft;
use super::fit::{self, Knob, Observation};
use super::{Ask, CHANNELS, MEBIBYTE, NOT_WRITTEN, Source};
use crate::bench::Access;
use crate::stack::Origin;

pub(super) fn flash(
    draft: &mut Draft,
    source: &Source,
    by: &str,
    first: Observation,
    ask: &mut Ask<'_>,
) -> Result<(Vec<Observation>, Vec<String>)> {
    let size = source.size_bytes;
    let mut seen = vec![first];
    for (block_bytes, threads) in [(16 << 10, 1), (4 << 10, 4), (16 << 10, 4), (4 << 10, 32), (16 << 10, 32)]
    {
        seen.push(ask(Access::RandomRead, block_bytes, threads, 0, size)?);
    }
    let stream = ask(Access::SequentialRead, MEBIBYTE, 4, 0, size)?;
    let origin = Origin::Source(format!(
        "{by}: fitted to random reads of 4 and 16 KiB by 1, 4 and 32 threads and to a stream of 1 MiB"
    ));
    seen.push(stream);
    draft.set("dies_per_channel", 1, &assumption("One, so that channels and dies are the same."));
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
        .ok_or_else(|| anyhow::anyhow!("no flash drive of the model matches the measurements"))?;
    let mut notes = Vec::new();
    if source.writes {
        let mut written = Vec::new();
        for (access, threads) in [(Access::RandomWrite, 1), (Access::RandomWrite, 16), (Access::Fsync, 1)] {
            written.push(ask(access, 16 << 10, threads, 0, size)?);
        }
        let origin = Origin::Source(format!(
            "{by}: fitted to random writes of 16 KiB by 1 and 16 threads and to writes with fsync"
        ));
        let knobs =
            [Knob::Scaled("page_program"), Knob::Scaled("write_overhead"), Knob::Scaled("flush_commit")];
        fit::fit(draft, size, &knobs, &written, &origin);
        seen.append(&mut written);
    } else {
        notes.push(NOT_WRITTEN.to_owned());
    }
    Ok((seen, notes))
}

fn assumption(sentence: &str) -> Origin {
    Origin::Assumption(sentence.to_owned())
}

/// Latency of one small read, the first of the observations.
fn alone_ns(seen: &[Observation]) -> f64 {
    let row = seen[0].figures.row;
    row.latency_us_p50.unwrap_or(row.latency_us_mean) * 1e3
}

/// Starting point of most drives: commands and the link are the bottleneck.
fn start_at_the_front(draft: &mut Draft, page_bytes: u64, seen: &[Observation], origin: &Origin) {
    let fastest = seen.iter().map(|seen| seen.figures.row.bytes_per_s).fold(0.0, f64::max);
    let commands_per_s = seen.iter().map(|seen| seen.figures.row.per_second).fold(1.0, f64::max);
    let latency_ns = alone_ns(seen);
    draft.set("link_rate", fastest.round() as u64, origin);
    draft.set("command_interval", (1e9 / commands_per_s).round() as u64, origin);
    // The page size determines the number of dies over which a request is spread.
    draft.set("page", page_bytes, &assumption("Fits best among 4, 8 and 16 KiB."));
    draft.set("mapping_unit", 4 << 10, &assumption("No larger than any page that was tried."));
    draft.set("page_read", (latency_ns * 0.5).round() as u64, origin);
    draft.set("read_overhead", (latency_ns * 0.2).round() as u64, origin);
}

/// Starting point with the dies as the bottleneck. It has the number of dies that the highest rate needs.
fn start_at_the_dies(draft: &mut Draft, seen: &[Observation], origin: &Origin) {
    let fastest = seen.iter().map(|seen| seen.figures.row.bytes_per_s).fold(0.0, f64::max);
    let commands_per_s = seen.iter().map(|seen| seen.figures.row.per_second).fold(1.0, f64::max);
    let page_read_ns = alone_ns(seen) * 0.9;
    let wanted = commands_per_s * page_read_ns / 1e9;
    let far = |count: &u64| (*count as f64 / wanted.max(1.0)).ln().abs();
    let channels = CHANNELS.into_iter().min_by(|left, right| far(left).total_cmp(&far(right)));
    draft.set("channels", channels.unwrap_or(1), origin);
    // A request of 16 KiB then waits for one die instead of four.
    draft.set("page", 16 << 10, &assumption("Fits best among 4, 8 and 16 KiB."));
    draft.set("page_read", page_read_ns.round() as u64, origin);
    draft.set("read_overhead", 1_000, origin);
    draft.set("command_interval", 1_000, origin);
    draft.set("link_rate", (3.0 * fastest).round() as u64, origin);
    draft.set("channel_rate", fastest.round() as u64, origin);
}
