//! Samples of a server in production, and of its machine.
//!
//! The first and the last sample keep every counter. Those between keep the readings that somebody needs, so
//! that a day of samples takes a few megabytes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use spindle_base::dilation::Dilation;
use spindle_base::proc::{CpuTimes, Memory, Pressure, family_cpu_s};
use spindle_base::text;

use super::place::{Device, Host};
use crate::host::interrupt::Interrupt;
use crate::observe::machine::{self, Drives, Processes};
use crate::observe::waits::{Waits, Watched};
use crate::observe::{MachineSample, Sample, server_threads};
use crate::server::Observed;
use crate::server::telemetry::production::{Checkpoint, Production};
use crate::server::telemetry::{Readings, Telemetry};
use crate::volume::sample::MountSample;

/// A server that does not answer so many times in a row is given up.
const SILENCES_MOST: u32 = 10;

/// The samples of a window.
#[derive(Debug)]
pub(super) struct Samples {
    pub first: Sample,
    /// After the first one. The last of them is [`Samples::last`], with fewer counters.
    pub later: Vec<Sample>,
    pub last: Sample,
    /// Where the checkpoint was in each sample, as far as the server tells.
    pub checkpoints: Vec<Checkpoint>,
    /// Sessions at work in each sample, without ours, as far as the server tells.
    pub sessions: Vec<f64>,
    /// The user ended it before its time.
    pub is_interrupted: bool,
}

/// A moment of a window that goes on.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub elapsed: Duration,
    pub duration: Duration,
    /// Mean of the window so far.
    pub transactions_per_s: f64,
}

/// When samples are taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rhythm {
    pub duration: Duration,
    pub every: Duration,
}

impl Rhythm {
    /// Number of samples after the first one. The last is at the end.
    fn count(self) -> u32 {
        (self.duration.as_secs_f64() / self.every.as_secs_f64()).ceil() as u32
    }

    fn at(self, index: u32) -> Duration {
        (self.every * index).min(self.duration)
    }
}

/// A server under observation.
#[derive(Debug)]
pub(super) struct Sampler<'a> {
    pub server: &'a mut Observed,
    pub host: &'a Host,
    pub interrupt: &'a Interrupt,
    /// Of the server's processes, whether they serve a client ([`Waits::look`]).
    pub sessions: BTreeMap<u32, bool>,
}

impl Sampler<'_> {
    /// Samples until the time is over or the user ends it.
    ///
    /// # Errors
    /// The server does not answer any more, was started again, or its counters were reset.
    pub(super) fn run(&mut self, rhythm: Rhythm, on_moment: &mut dyn FnMut(Moment)) -> Result<Samples> {
        let production = self.server.production();
        let needed = needed(self.server.telemetry(), production);
        let begun = Instant::now();
        let first = self.with_threads(begun)?;
        let mut samples = Samples {
            later: Vec::new(),
            last: first.clone(),
            first,
            checkpoints: Vec::new(),
            sessions: Vec::new(),
            is_interrupted: false,
        };
        samples.note(production);
        let mut silences = 0;
        for index in 1..=rhythm.count() {
            let left = rhythm.at(index).saturating_sub(begun.elapsed());
            samples.is_interrupted = self.interrupt.sleep(left).is_err();
            let is_last = samples.is_interrupted || index == rhythm.count();
            let sample = if is_last { self.with_threads(begun) } else { self.sample(begun) };
            match sample {
                Ok(sample) => {
                    silences = 0;
                    check_growing(production, &samples.last, &sample)?;
                    samples.last = sample;
                }
                Err(error) if is_last || silences == SILENCES_MOST => return Err(error),
                Err(_) => {
                    silences += 1;
                    continue;
                }
            }
            samples.note(production);
            let mut kept = samples.last.clone();
            kept.counters.retain(|name, _| needed.contains(name.as_str()));
            samples.later.push(kept);
            on_moment(samples.moment(production, rhythm.duration));
            if samples.is_interrupted {
                break;
            }
        }
        Ok(samples)
    }

    fn with_threads(&mut self, begun: Instant) -> Result<Sample> {
        let mut sample = self.sample(begun)?;
        sample.server_threads = server_threads(self.host.process_id.unwrap_or(0), Dilation::NONE);
        Ok(sample)
    }

    /// Without the server's threads. Of a server elsewhere, only what it counts itself.
    fn sample(&mut self, begun: Instant) -> Result<Sample> {
        let counters = self.server.counters().context("asking the server for its counters")?;
        let at = begun.elapsed();
        let Host { is_local, process_id, devices, layout } = self.host;
        let of_device = |device: &Device| -> Result<MountSample> {
            Ok(MountSample { block_device: Some(device.counters()?), ..MountSample::default() })
        };
        let mut mounts = devices.iter().map(of_device).collect::<Result<Vec<MountSample>>>()?;
        mounts.resize_with(layout.mounts.len(), MountSample::default);
        let server_cpu_s = process_id.map_or(0.0, family_cpu_s);
        let (cpu, machine) = match is_local {
            true => {
                let cpu = CpuTimes::read().context("/proc/stat is not as proc(5) says")?;
                (cpu, MachineSample { pressure: Pressure::read(), memory: Memory::read() })
            }
            false => (CpuTimes::default(), MachineSample::default()),
        };
        let processes = Processes { server_s: server_cpu_s, emulator_s: 0.0 };
        let mut readings = machine::readings(processes, machine.memory, Drives::default(), Dilation::NONE);
        // Nothing is emulated.
        readings.remove("emulator_s");
        if process_id.is_none() {
            readings.remove("server_s");
        }
        let watched =
            Watched { server_id: process_id.unwrap_or(0), is_session: self.server.telemetry().is_session() };
        let sample = Sample {
            at,
            cpu,
            machine,
            server_cpu_s,
            server_threads: Vec::new(),
            emulator_cpu_s: 0.0,
            mounts,
            counters,
            readings,
            binlog_bytes: None,
            replicas: Vec::new(),
        };
        Ok(sample.with_waits(Waits::look(watched, &mut self.sessions)))
    }
}

impl Samples {
    /// What the last sample tells of the checkpoint and of the sessions.
    fn note(&mut self, production: &Production) {
        let counters = &self.last.counters;
        self.checkpoints.extend((production.checkpoint)(counters));
        let sessions = counters.get(production.sessions);
        self.sessions.extend(sessions.map(|sessions| (sessions - production.own_sessions).max(0.0)));
    }

    fn moment(&self, production: &Production, duration: Duration) -> Moment {
        let moved = moved(&self.first.counters, &self.last.counters);
        let elapsed = self.last.at - self.first.at;
        let duration_s = elapsed.as_secs_f64();
        let counting =
            (production.counting)(&Readings { moved: &moved, looks: vec![&self.last.counters], duration_s });
        let own = production.own_transactions * self.later.len() as f64;
        let transactions = counting.committed(&moved) + counting.rolled_back(&moved) - own;
        Moment { elapsed, duration, transactions_per_s: transactions.max(0.0) / duration_s.max(1e-9) }
    }
}

/// Differences of the counters between two samples.
pub(super) fn moved(earlier: &BTreeMap<String, f64>, later: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let before = |name: &str| earlier.get(name).copied().unwrap_or(0.0);
    later.iter().map(|(name, value)| (name.clone(), value - before(name))).collect()
}

/// The readings of samples in the middle of a window: for charts, and for everything about production.
fn needed(telemetry: &dyn Telemetry, production: &Production) -> BTreeSet<&'static str> {
    let charted = telemetry.charts().iter().flat_map(|chart| chart.lines).flat_map(|line| line.readings());
    let of_production = production.readings.iter().flat_map(|names| names.iter().copied());
    charted.chain(of_production).chain(production.growing.iter().copied()).collect()
}

/// # Errors
/// A reading fell that only grows while a server lives and nobody resets its counters.
fn check_growing(production: &Production, earlier: &Sample, later: &Sample) -> Result<()> {
    let at = |sample: &Sample, name: &str| sample.counters.get(name).copied();
    let has_fallen = |name: &&&str| at(later, name) < at(earlier, name);
    let fallen = production.growing.iter().find(has_fallen);
    ensure!(
        fallen.is_none(),
        "the server was started again or its counters were reset {} after the begin, so nothing of this window \
         counts: observe it again",
        text::duration(Duration::from_secs(later.at.as_secs()))
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{endpoint, telemetry_of};

    fn counters(pairs: &[(&str, f64)]) -> BTreeMap<String, f64> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn the_last_sample_is_at_the_end() {
        let check = |duration_s: u64, every_s: u64, expect: &[u64]| {
            let rhythm =
                Rhythm { duration: Duration::from_secs(duration_s), every: Duration::from_secs(every_s) };
            let at: Vec<u64> = (1..=rhythm.count()).map(|index| rhythm.at(index).as_secs()).collect();
            assert_eq!(at, expect);
        };
        check(3, 1, &[1, 2, 3]);
        check(10, 4, &[4, 8, 10]);
    }

    #[test]
    fn differences_are_of_every_counter_that_is_there_at_the_end() {
        let found = moved(&counters(&[("a", 2.0), ("gone", 1.0)]), &counters(&[("a", 5.0), ("new", 3.0)]));
        assert_eq!(found, counters(&[("a", 3.0), ("new", 3.0)]));
    }

    #[test]
    fn samples_between_keep_what_charts_and_transactions_need() {
        let telemetry = telemetry_of(&endpoint::parse("mysql://root@localhost").unwrap()).unwrap();
        let production = crate::server::production_of(&endpoint::parse("mysql://root@localhost").unwrap());
        let needed = needed(telemetry, production.unwrap());
        for name in ["Com_commit", "Innodb_buffer_pool_pages_dirty", "Uptime", "Innodb_lsn_current"] {
            assert!(needed.contains(name), "{name}");
        }
        assert!(!needed.contains("Com_show_status"));
    }
}
