//! Samples once a second during a trial: the machine's cores, the processes, the emulated disk and the
//! server's counters. The code is independent of particular servers, layers and workloads. This file only
//! reads; [`crate::observe::measurement`] interprets the readings. All times of a sample are dilated ones,
//! those of the processor too: an emulated core is k times as fast.

pub mod bottleneck;
pub mod core_work;
pub mod machine;
pub mod measurement;
pub mod settling;
pub mod waits;
pub mod warmth;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use hdrhistogram::Histogram;
use spindle_base::dilation::{Clock, Dilation};
use spindle_base::histogram::decode;
use spindle_base::proc::{CpuTimes, Memory, Pressure, ThreadCpu, family_cpu_s, family_threads};

use self::machine::{Drives, Processes};
use self::waits::Waits;
use crate::server::Running;
use crate::server::replication::Position;
use crate::volume::mounts::Mounts;
use crate::volume::sample::MountSample;

/// One sample. All values are cumulative or levels.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Since the start of the trial.
    pub at: Duration,
    pub cpu: CpuTimes,
    pub machine: MachineSample,
    /// User and system CPU of the process and its children, because some servers have a process for each
    /// connection; zero where there is no process.
    pub server_cpu_s: f64,
    /// The server's threads, and those of its children. Only of the first and the last sample of a window,
    /// because reading them costs time; otherwise empty.
    pub server_threads: Vec<ThreadCpu>,
    /// Sum over all emulators.
    pub emulator_cpu_s: f64,
    /// In the order of the layout, with the data's first.
    pub mounts: Vec<MountSample>,
    pub counters: BTreeMap<String, f64>,
    /// Of [`machine::readings`] and [`waits`].
    pub readings: BTreeMap<String, f64>,
    /// Bytes of binary log written by the server; `None` for a server without replicas.
    pub binlog_bytes: Option<u64>,
    /// In the order of the scenario.
    pub replicas: Vec<ReplicaSample>,
}

/// What the machine has left for the trial, and whether processes wait for it.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineSample {
    /// `None` on a kernel that does not count it.
    pub pressure: Option<Pressure>,
    pub memory: Memory,
}

impl MachineSample {
    fn take(dilation: Dilation) -> MachineSample {
        MachineSample {
            pressure: Pressure::read().map(|pressure| pressure.divided_by(dilation.factor())),
            memory: Memory::read(),
        }
    }
}

/// One sample of a replica.
#[derive(Debug, Clone, Default)]
pub struct ReplicaSample {
    pub server_cpu_s: f64,
    /// Sum over its emulators.
    pub emulator_cpu_s: f64,
    /// In the order of its layout, with the data's first.
    pub mounts: Vec<MountSample>,
    /// `None` when it did not answer in time.
    pub position: Option<Position>,
}

impl ReplicaSample {
    pub fn take(
        mounts: &mut Mounts,
        process_id: u32,
        position: Option<Position>,
        dilation: Dilation,
    ) -> Result<ReplicaSample> {
        Ok(ReplicaSample {
            server_cpu_s: dilation.dilated_s(family_cpu_s(process_id)),
            emulator_cpu_s: dilation.dilated_s(mounts.emulator_cpu_s()),
            mounts: samples(mounts, dilation)?,
            position,
        })
    }
}

impl Sample {
    /// Takes a sample without replicas.
    pub fn take(mounts: &mut Mounts, server: &mut dyn Running, clock: &Clock) -> Result<Sample> {
        let dilation = clock.dilation;
        let cpu = CpuTimes::read().context("/proc/stat is not as proc(5) says")?;
        let server_cpu_s = dilation.dilated_s(family_cpu_s(server.process_id()));
        let emulator_cpu_s = dilation.dilated_s(mounts.emulator_cpu_s());
        let mounts = samples(mounts, dilation)?;
        let processes = Processes { server_s: server_cpu_s, emulator_s: emulator_cpu_s };
        let machine = MachineSample::take(dilation);
        Ok(Sample {
            cpu,
            machine,
            server_cpu_s,
            server_threads: Vec::new(),
            emulator_cpu_s,
            counters: server.counters().context("asking the server for its counters")?,
            readings: machine::readings(processes, machine.memory, Drives::of(&mounts), dilation),
            mounts,
            binlog_bytes: None,
            replicas: Vec::new(),
            at: clock.now(),
        })
    }

    /// Adds the processor time of the clients.
    pub fn with_client(mut self, client_id: u32, dilation: Dilation) -> Sample {
        let client_s = dilation.dilated_s(family_cpu_s(client_id));
        self.readings.insert(machine::CLIENT.to_owned(), client_s);
        self
    }

    /// Adds what the server's threads waited for, as far as somebody looked.
    pub fn with_waits(mut self, waits: Option<Waits>) -> Sample {
        self.readings.extend(waits.into_iter().flat_map(Waits::readings));
        self
    }
}

/// The threads of a server in dilated time; none without a process of ours.
pub fn server_threads(process_id: u32, dilation: Dilation) -> Vec<ThreadCpu> {
    if process_id == 0 {
        return Vec::new();
    }
    let dilated = |thread: ThreadCpu| ThreadCpu { cpu_s: dilation.dilated_s(thread.cpu_s), ..thread };
    family_threads(process_id).into_iter().map(dilated).collect()
}

/// Emulators tell dilated times, and the kernel real ones.
fn samples(mounts: &mut Mounts, dilation: Dilation) -> Result<Vec<MountSample>> {
    let mut samples = mounts.samples()?;
    samples.iter_mut().for_each(|sample| sample.dilate(dilation));
    Ok(samples)
}

/// The increase of a cumulative histogram between two readings. The encoding is HDR V2, base64, as in
/// [`spindle_mount::Statistics`].
pub fn histogram_difference(earlier: &str, later: &str) -> Result<Histogram<u64>> {
    let mut histogram = decode(later)?;
    if !earlier.is_empty() {
        histogram
            .subtract(decode(earlier)?)
            .map_err(|error| anyhow!("the emulator's histogram shrank: {error}"))?;
    }
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use spindle_base::histogram;

    use super::*;

    #[test]
    fn a_histogram_difference_has_only_the_added_values() {
        let encode = |values: &[u64]| {
            let mut recorded = histogram::new();
            values.iter().for_each(|value| recorded.record(*value).unwrap());
            histogram::encode(&recorded)
        };
        let difference =
            histogram_difference(&encode(&[10, 500_000]), &encode(&[10, 500_000, 700, 800])).unwrap();
        assert_eq!(difference.len(), 2);
        assert_eq!((difference.value_at_quantile(0.0), difference.max()), (700, 800));
        assert_eq!(histogram_difference("", &encode(&[7])).unwrap().len(), 1);
    }
}
