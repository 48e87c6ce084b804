//! The measured cell from which a prediction starts.

use std::path::Path;

use anyhow::Result;
use spindle_base::Mistake;
use spindle_mount::trace::{self, Trace};

use crate::record::input::Records;
use crate::record::{Cell, FileClass, Measurement, Trial};
use crate::scenario::{Bounds, Scenario};
use crate::server::telemetry::Paging;
use crate::server::{Trust, paging_of};

/// One trial of a cell, with what its scenario says of it.
#[derive(Debug)]
pub struct Source<'a> {
    pub cell: &'a Cell,
    pub trial: &'a Trial,
    pub measurement: &'a Measurement,
    pub paging: Paging,
    pub cpu_count: u64,
    /// For the server and the page cache of its files.
    pub memory_bytes: u64,
    /// Of each mount, if the run kept them.
    pub traces: Vec<Option<Trace>>,
    /// Approximate size of the data; `None` for a server in production.
    pub data_bytes: Option<u64>,
    /// Transaction types that change nothing.
    pub read_only_types: &'static [&'static str],
    /// The clients wait for no schedule: each sends its next transaction when the last is answered.
    pub is_closed_loop: bool,
}

/// The scenario of a record, as its header has it. Nothing of it is run.
///
/// # Errors
/// This version of Spindle does not read it.
pub fn scenario_of(records: &Records) -> Result<Scenario, Mistake> {
    let head = &records.header.scenario;
    let bounds = Bounds { memory_bytes: records.header.machine.memory_bytes, trust: Trust::ReadOnly };
    Scenario::parse(&head.name, &head.text, &bounds).map_err(|mistake| {
        Mistake::new(format!("this version does not read the record's scenario: {mistake}"))
    })
}

impl<'a> Source<'a> {
    /// The trial of that cell with the median of the metric. `directory` has the traces; a record of a server in
    /// production has no scenario.
    ///
    /// # Errors
    /// The cell has no measured trial, or lacks what a prediction needs.
    pub fn of_cell(
        records: &'a Records,
        scenario: Option<&Scenario>,
        cell: &'a Cell,
        directory: &Path,
    ) -> Result<Source<'a>> {
        let (trial, measurement) = median_trial(records, cell)?;
        let trace_of = |index: usize| -> Result<Option<Trace>> {
            let view = measurement.mounts.get(index).and_then(|mount| mount.trace.as_ref());
            view.map(|view| trace::read(&directory.join(&view.file))).transpose()
        };
        let traces = (0..cell.mounts.len()).map(trace_of).collect::<Result<_>>()?;
        let provenance = &trial.provenance;
        let paging =
            paging_of(&measurement.server_counters, &provenance.settings, &provenance.server_version);
        let paging = paging.ok_or_else(|| {
            let words =
                "a prediction needs the counters of InnoDB, or of PostgreSQL from 14 on behind the page cache, which it lacks";
            Mistake::new(format!("cell `{}`: {words}", cell.name))
        })?;
        let workload = scenario.and_then(|scenario| scenario.workloads.get(&cell.workload));
        let source = Source {
            cell,
            trial,
            measurement,
            paging,
            cpu_count: u64::from(records.header.cpu_count()),
            memory_bytes: provenance.memory_bytes.unwrap_or(records.header.machine.memory_bytes),
            traces,
            data_bytes: workload.and_then(|workload| workload.data()).map(|data| data.bytes),
            read_only_types: workload.map_or(&[], |workload| workload.read_only_types()),
            is_closed_loop: measurement.production.is_none(),
        };
        source.check()?;
        Ok(source)
    }

    fn check(&self) -> Result<(), Mistake> {
        let refused = |words: &str| Err(Mistake::new(format!("cell `{}`: {words}", self.cell.name)));
        if self.measurement.ended() == 0 {
            return refused("no transaction ended in its window");
        }
        if self.measurement.metric_events().is_none() {
            return refused("its workload is fixed work, which is done once; a prediction needs a rate");
        }
        if self.cell.mounts.iter().any(|mount| mount.stack.zfs.is_some()) {
            return refused("its storage is a ZFS pool, of which there is no model");
        }
        if self.cell.replication.is_some() {
            return refused("it has replicas, of which there is no model");
        }
        Ok(())
    }

    /// Transactions that ended in the window.
    pub fn transactions(&self) -> f64 {
        self.measurement.ended() as f64
    }

    /// Reads of the window for which a transaction waited: as the server counts them, or as many as the counted waits of
    /// its sessions can be. `None` where nobody counted either.
    pub fn waited_reads(&self) -> Option<f64> {
        let from_waits = || {
            let evidence = self.measurement.bottleneck.evidence.as_ref()?;
            let latency_s = evidence.read_latency_mean_ms / 1e3;
            Some(evidence.read_wait_s? / latency_s).filter(|reads| reads.is_finite())
        };
        self.paging.foreground_reads.or_else(from_waits)
    }

    /// All reads of the data's device, and their bytes.
    pub fn device_reads(&self) -> (f64, f64) {
        let mount = &self.measurement.mounts[self.mount_of(FileClass::Data)];
        let emulated =
            mount.emulator.as_ref().map(|emulator| (emulator.reads as f64, emulator.read_bytes as f64));
        let of_host = || mount.host.as_ref().map(|host| (host.reads as f64, host.read_bytes as f64));
        emulated.or_else(of_host).unwrap_or_default()
    }

    /// Bytes that the data's device was sent to write; `None` where it was not watched.
    pub fn device_writes(&self) -> Option<f64> {
        let mount = &self.measurement.mounts[self.mount_of(FileClass::Data)];
        let emulated = mount.emulator.as_ref().map(|emulator| emulator.write_bytes as f64);
        emulated.or_else(|| mount.host.as_ref().map(|host| host.write_bytes as f64))
    }

    /// Index of a class's mount.
    pub fn mount_of(&self, class: FileClass) -> usize {
        self.cell.mounts.iter().position(|mount| mount.classes.contains(&class)).unwrap_or(0)
    }

    /// The metric for each transaction that ended: new orders for each transaction of TPC-C.
    pub fn metric_of_transaction(&self) -> f64 {
        self.measurement.metric.value / self.per_second()
    }

    /// First and last value of a level of the server, sampled every second.
    pub fn series(&self, name: &str) -> Option<(f64, f64)> {
        let values = self.measurement.series.server.get(name)?;
        Some((*values.first()?, *values.last()?))
    }

    /// The same of a level of the machine.
    pub fn machine_series(&self, name: &str) -> Option<(f64, f64)> {
        let values = self.measurement.series.machine.get(name)?;
        Some((*values.first()?, *values.last()?))
    }

    pub fn per_second(&self) -> f64 {
        self.transactions() / self.measurement.duration_s
    }
}

fn median_trial<'a>(records: &'a Records, cell: &Cell) -> Result<(&'a Trial, &'a Measurement), Mistake> {
    let measured = records.trials.iter().filter(|trial| trial.cell == cell.name);
    let mut trials: Vec<(&Trial, &Measurement)> =
        measured.filter_map(|trial| Some((trial, trial.measurement.as_ref()?))).collect();
    trials.sort_by(|(_, a), (_, b)| a.metric.value.total_cmp(&b.metric.value));
    trials
        .get(trials.len() / 2)
        .copied()
        .ok_or_else(|| Mistake::new(format!("cell `{}` has no measured trial", cell.name)))
}
