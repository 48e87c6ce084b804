//! A record from a server in production: its own counters and the kernel's, while its own clients use it.
//!
//! Belongs here: the samples, the process and the devices of a server that Spindle did not start, the rule for a
//! whole checkpoint, the kernel's block events. Must not know the names of a server's counters, and puts no load
//! on it: one connection asks once a sample.

mod block_trace;
mod checkpoint;
mod place;
mod row;
mod sampler;
#[cfg(test)]
mod tests;
mod tracefs;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use spindle_base::{Mistake, text};
use spindle_load::Endpoint;
use spindle_mount::trace;

use crate::host::interrupt::{Interrupt, Interrupted};
use crate::host::private_directory::write_beside;
use crate::host::provenance;
use crate::record::input::Records;
use crate::record::{SampledTrace, TraceView};
use crate::server::Observed;
use place::Host;
pub use place::{Given, device_name};
use row::Facts;
pub use sampler::Moment;
use sampler::{Rhythm, Sampler, Samples};
pub use tracefs::check as check_trace;
use tracefs::{KeptTrace, Tracing};

/// A shorter window tells nothing.
pub const SHORTEST: Duration = Duration::from_secs(10);
/// Samples of a window, so that its record stays below ten megabytes.
pub const SAMPLES_MOST: u32 = 21_600;
/// Samples of a window, so that its series say something.
pub const SAMPLES_LEAST: u32 = 10;

#[derive(Debug, Clone)]
pub struct Options {
    /// The database of [`crate::server::endpoint::parse_to_observe`].
    pub endpoint: Endpoint,
    pub duration: Duration,
    /// Time from sample to sample.
    pub every: Duration,
    pub given: Given,
    /// Kernel name of a device of which a block trace is kept; `None` for no trace.
    pub trace: Option<String>,
    /// File of the record. An existing one is replaced.
    pub output: PathBuf,
}

/// What was written.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// One trial.
    pub records: Records,
    /// The user ended it before its time.
    pub is_interrupted: bool,
}

/// The file of the block trace, beside the record.
pub fn trace_path(output: &Path) -> PathBuf {
    output.with_extension("trace")
}

/// Observes a server and writes the record.
///
/// # Errors
/// [`Mistake`]: the server was idle. [`Interrupted`]: the user ended it before there was anything to record. The
/// server does not answer, or was started again meanwhile.
pub fn observe(
    options: &Options,
    interrupt: &Interrupt,
    on_moment: &mut dyn FnMut(Moment),
) -> Result<Outcome> {
    let mut server = Observed::connect(options.endpoint.clone())?;
    let (production, telemetry) = (server.production(), server.telemetry());
    let identity = server.settings(production.identity)?;
    let settings = server.settings(production.settings)?;
    let durability = telemetry.durability(&server.settings(telemetry.commit_settings())?);
    let uptime_s = server.counters()?.get(production.uptime).copied();
    let (release, place) = ((production.release)(&identity), (production.place)(&identity));
    let host = Host::find(&options.endpoint, &place, production, uptime_s, &options.given);

    let tracing =
        options.trace.as_deref().map(|device| Tracing::begin(device, options.duration)).transpose()?;
    let started_at = provenance::now();
    let rhythm = Rhythm { duration: options.duration, every: options.every };
    let mut sampler = Sampler { server: &mut server, host: &host, interrupt, sessions: Default::default() };
    let samples = sampler.run(rhythm, on_moment)?;
    let kept = tracing.map(Tracing::end).transpose()?;
    check_length(&samples)?;
    let is_interrupted = samples.is_interrupted;

    let trace = kept.as_ref().map(|kept| sampled_trace(kept, &options.output));
    let facts = Facts {
        options,
        host: &host,
        release: &release,
        production,
        telemetry,
        settings,
        durability,
        trace,
        started_at,
    };
    let (header, trial) = row::record(facts, samples)?;
    if let Some(kept) = kept {
        trace::write(&trace_path(&options.output), &kept.trace)?;
    }
    let records = Records { header, trials: vec![trial], notes: Vec::new() };
    write_beside(&options.output, &records.text())
        .with_context(|| format!("writing the record to {}", options.output.display()))?;
    Ok(Outcome { records, is_interrupted })
}

/// # Errors
/// [`Interrupted`] before there was anything to record.
fn check_length(samples: &Samples) -> Result<()> {
    let length = samples.last.at - samples.first.at;
    if samples.is_interrupted && length < SHORTEST {
        let (seen, least) = (text::duration(Duration::from_secs(length.as_secs())), text::duration(SHORTEST));
        let words = format!("nothing was recorded: {seen} were observed, and a record needs {least}");
        return Err(anyhow::Error::from(Interrupted).context(words));
    }
    Ok(())
}

fn sampled_trace(kept: &KeptTrace, output: &Path) -> SampledTrace {
    let file = trace_path(output).file_name().unwrap_or_default().to_string_lossy().into_owned();
    SampledTrace {
        device: kept.device.clone(),
        trace: TraceView {
            file,
            requests: kept.trace.requests.len() as u64,
            duration_s: kept.trace.duration_ns as f64 / 1e9,
            is_complete: kept.trace.is_complete,
        },
        slice_count: kept.slice_count,
        lost_count: kept.lost_count,
    }
}

/// The options of a window that cannot be.
///
/// # Errors
/// [`Mistake`] that names the option and its bound.
pub fn check_window(duration: Duration, every: Duration) -> Result<(), Mistake> {
    let words = text::duration;
    if duration < SHORTEST {
        let message = format!("{} is too short; a window has {} at least", words(duration), words(SHORTEST));
        return Err(Mistake::of_flag("for", message));
    }
    let samples = duration.as_secs_f64() / every.as_secs_f64().max(1e-9);
    if every < Duration::from_secs(1) {
        let message = format!("{} is too often for a server in production; write 1 s or more", words(every));
        return Err(Mistake::of_flag("every", message));
    }
    if samples < f64::from(SAMPLES_LEAST) {
        let most = words(duration / SAMPLES_LEAST);
        let message =
            format!("{} leaves fewer than {SAMPLES_LEAST} samples; write {most} or less", words(every));
        return Err(Mistake::of_flag("every", message));
    }
    if samples > f64::from(SAMPLES_MOST) {
        let least = (duration.as_secs_f64() / f64::from(SAMPLES_MOST)).ceil();
        let message = format!(
            "{} makes more than {SAMPLES_MOST} samples of {}; write {least:.0} s or more",
            words(every),
            words(duration)
        );
        return Err(Mistake::of_flag("every", message));
    }
    Ok(())
}
