//! The charts of the machine, and readings for them at the end of each second: the processor time of each
//! process of a trial, the page cache, and the inside of the emulated drives. Times are dilated, as those of a
//! [`super::Sample`].

use std::collections::BTreeMap;

use rustix::time::{ClockId, clock_gettime};
use spindle_base::dilation::Dilation;
use spindle_base::proc::Memory;

use crate::server::telemetry::{Chart, Line};
use crate::volume::sample::MountSample;

/// Reading of the process that takes the samples.
pub const SAMPLING: &str = "sampling_s";
/// Reading of the load process.
pub const CLIENT: &str = "client_s";

/// The charts of the machine, whatever runs on it. Some of their lines come from
/// [`crate::record::MachineActivity`], which is also told for the whole window.
pub const CHARTS: [Chart; 8] = [
    Chart {
        title: "Processor time, share of all cores",
        lines: &[
            Line::elsewhere("cpu_user"),
            Line::elsewhere("cpu_system"),
            Line::elsewhere("cpu_iowait"),
            Line::elsewhere("cpu_steal"),
        ],
    },
    Chart {
        title: "Cores in use, by process",
        lines: &[
            Line::rate("server_cores", &["server_s"]),
            Line::rate("client_cores", &[CLIENT]),
            Line::rate("emulator_cores", &["emulator_s"]),
            Line::rate("sampling_cores", &[SAMPLING]),
        ],
    },
    Chart {
        title: "Time in which a task waited (PSI)",
        lines: &[
            Line::elsewhere("pressure_cpu_some"),
            Line::elsewhere("pressure_io_some"),
            Line::elsewhere("pressure_memory_some"),
        ],
    },
    Chart { title: "Memory available to programs", lines: &[Line::elsewhere("memory_available_bytes")] },
    Chart {
        title: "Page cache not yet written",
        lines: &[
            Line::level("dirty_bytes", &["dirty_bytes"]),
            Line::level("being_written_bytes", &["writeback_bytes"]),
        ],
    },
    Chart { title: "Seeks of the emulated disks", lines: &[Line::rate("seeks_per_s", &["seeks"])] },
    Chart {
        title: "Writes to the emulated flash drives, and inside them",
        lines: &[
            Line::rate("arriving_write_mb_per_s", &["arriving_write_mb"]),
            Line::rate("flash_write_mb_per_s", &["flash_write_mb"]),
        ],
    },
    Chart { title: "Erases of the emulated flash drives", lines: &[Line::rate("erases_per_s", &["erases"])] },
];

/// Dilated processor time of the processes of a trial.
#[derive(Debug, Clone, Copy, Default)]
pub struct Processes {
    pub server_s: f64,
    pub emulator_s: f64,
}

/// What the emulated drives did inside, all mounts together.
#[derive(Debug, Clone, Copy, Default)]
pub struct Drives {
    pub seeks: u64,
    /// To mounts with flash.
    pub flash_arriving_bytes: u64,
    /// Garbage collection included.
    pub flash_write_bytes: u64,
    pub erases: u64,
}

impl Drives {
    /// The statistics of a mount with several devices are the sum of theirs.
    pub fn of(mounts: &[MountSample]) -> Drives {
        let mut drives = Drives::default();
        for statistics in mounts.iter().filter_map(|mount| mount.statistics.as_ref()) {
            drives.seeks += statistics.seeks;
            drives.flash_write_bytes += statistics.nand_write_bytes;
            drives.erases += statistics.erases;
            let has_flash = statistics.nand_write_bytes > 0;
            drives.flash_arriving_bytes += if has_flash { statistics.write.bytes } else { 0 };
        }
        drives
    }
}

/// Readings for the lines of [`CHARTS`]. What the drives never did has none.
pub fn readings(
    processes: Processes,
    memory: Memory,
    drives: Drives,
    dilation: Dilation,
) -> BTreeMap<String, f64> {
    let Processes { server_s, emulator_s } = processes;
    let inside = |amount: u64, unit: f64| (amount > 0).then(|| amount as f64 / unit);
    let readings = [
        ("server_s", Some(server_s)),
        ("emulator_s", Some(emulator_s)),
        (SAMPLING, Some(dilation.dilated_s(own_cpu_s()))),
        ("dirty_bytes", Some(memory.dirty_bytes as f64)),
        ("writeback_bytes", Some(memory.writeback_bytes as f64)),
        ("seeks", inside(drives.seeks, 1.0)),
        ("arriving_write_mb", inside(drives.flash_arriving_bytes, 1e6)),
        ("flash_write_mb", inside(drives.flash_write_bytes, 1e6)),
        ("erases", inside(drives.erases, 1.0)),
    ];
    readings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Processor time of this process, which is finer than the clock ticks of `/proc`.
pub fn own_cpu_s() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use spindle_mount::{OperationStatistics, Statistics};

    use super::*;

    #[test]
    fn every_line_of_readings_has_its_reading() {
        let statistics = Statistics {
            seeks: 1,
            nand_write_bytes: 2_000_000,
            erases: 1,
            write: OperationStatistics { count: 1, bytes: 1_000_000, latency_ns: 0 },
            ..Statistics::default()
        };
        let mount = MountSample { statistics: Some(statistics), ..MountSample::default() };
        let drives = Drives::of(&[mount, MountSample::default()]);
        let readings = |processes| readings(processes, Memory::default(), drives, Dilation::NONE);
        let earlier = readings(Processes::default());
        let later = readings(Processes { server_s: 3.0, ..Processes::default() });
        assert_eq!((later["arriving_write_mb"], later["flash_write_mb"]), (1.0, 2.0));
        let values = CHARTS
            .iter()
            .flat_map(|chart| chart.lines)
            .map(|line| (line.name, line.value([&earlier, &later], 2.0)));
        let values: BTreeMap<&str, Option<f64>> = values.collect();
        assert_eq!((values["server_cores"], values["client_cores"]), (Some(1.5), None));
        let known: Vec<&str> =
            values.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| *name).collect();
        let expect = [
            "arriving_write_mb_per_s",
            "being_written_bytes",
            "dirty_bytes",
            "emulator_cores",
            "erases_per_s",
            "flash_write_mb_per_s",
            "sampling_cores",
            "seeks_per_s",
            "server_cores",
        ];
        assert_eq!(known, expect);
    }
}
