//! The storage of a cell by mount, and by device when a mount has several.

use itertools::Itertools as _;
use serde::{Deserialize, Serialize};

use super::average::average;
use crate::record::{
    Cell, DeviceView, EmulatorSummary, HostView, Measurement, MountHead, MountView, StackHead, StorageSeries,
};

/// One mount of a cell, or a device of it: its files, its stack and its activity, as means over the trials.
#[derive(Debug, Clone, Serialize)]
pub struct StorageView {
    /// The cell's name, or `split: redo, binlog on raid10` where the cell has several mounts.
    pub name: String,
    /// Files on the mount, in the server's terms; empty for the data.
    pub files: String,
    pub stack: StackHead,
    /// `None` without a measured trial or without figures.
    pub activity: Option<Activity>,
    /// `None` for a real disk.
    pub emulator: Option<EmulatorSummary>,
    /// Whether this is a device of the preceding mount. The stack of that mount describes it.
    pub is_part: bool,
    #[serde(skip)]
    pub(super) place: Place,
}

/// Position of a storage's figures in a measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Index of the replica; `None` for the primary or the only server.
    replica: Option<usize>,
    /// Index of the mount; the data's is 0.
    mount: usize,
    /// Index of the device; `None` for the mount as a whole.
    device: Option<usize>,
}

impl Place {
    fn views(self, measurement: &Measurement) -> (Option<&EmulatorSummary>, Option<&HostView>) {
        let Some(mount) = self.mount(measurement) else { return (None, None) };
        let Some(index) = self.device else { return (mount.emulator.as_ref(), mount.host.as_ref()) };
        let device = mount.devices.get(index);
        (device.and_then(|device| device.emulator.as_ref()), device.and_then(|device| device.host.as_ref()))
    }

    /// The series, one value per second.
    pub(super) fn series(self, measurement: &Measurement) -> Option<&StorageSeries> {
        let mount = self.mount(measurement)?;
        match self.device {
            None => Some(&mount.series),
            Some(index) => Some(&mount.devices.get(index)?.series),
        }
    }

    fn mount(self, measurement: &Measurement) -> Option<&MountView> {
        match self.replica {
            None => measurement.mounts.get(self.mount),
            Some(index) => measurement.replication.as_ref()?.replicas.get(index)?.mounts.get(self.mount),
        }
    }

    fn devices(self, measurement: &Measurement) -> &[DeviceView] {
        self.mount(measurement).map_or(&[], |mount| mount.devices.as_slice())
    }
}

/// From the emulator's figures, or the kernel's for a real disk.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Activity {
    pub reads_per_s: f64,
    pub writes_per_s: f64,
    pub flushes_per_s: f64,
    pub read_ms: f64,
    pub write_ms: f64,
    pub flush_ms: f64,
    pub queue_depth: f64,
}

/// The mounts of a cell, the data's first, each followed by its devices if it has several. The mounts of the
/// replicas follow.
pub(super) fn storages(cell: &Cell, measurements: &[&Measurement]) -> Vec<StorageView> {
    let mut storages = of_server(None, &cell.name, &cell.mounts, measurements);
    let replicas = cell.replication.iter().flat_map(|replication| &replication.replicas);
    for (index, replica) in replicas.enumerate() {
        let name = format!("{}, replica {}", cell.name, index + 1);
        storages.extend(of_server(Some(index), &name, &replica.mounts, measurements));
    }
    storages
}

fn of_server(
    replica: Option<usize>,
    server: &str,
    mounts: &[MountHead],
    measurements: &[&Measurement],
) -> Vec<StorageView> {
    let name = |(index, mount): (usize, &MountHead)| {
        let on = &mount.stack.name;
        match (index, mounts.len(), replica) {
            (0, 1, None) => server.to_owned(),
            (0, 1, Some(_)) => format!("{server}: on {on}"),
            (0, ..) => format!("{server}: data on {on}"),
            _ => {
                let classes = mount.classes.iter().map(|class| class.key()).join(", ");
                format!("{server}: {classes} on {on}")
            }
        }
    };
    let storages = mounts.iter().enumerate().flat_map(|(index, mount)| {
        let place = Place { replica, mount: index, device: None };
        with_devices(place, &name((index, mount)), &mount.files, &mount.stack, measurements)
    });
    storages.collect()
}

fn with_devices(
    place: Place,
    name: &str,
    files: &str,
    stack: &StackHead,
    measurements: &[&Measurement],
) -> Vec<StorageView> {
    let devices = measurements.first().map_or(&[][..], |measurement| place.devices(measurement));
    let names = devices.iter().map(|device| &device.name).collect_vec();
    let whole = if names.is_empty() { name.to_owned() } else { format!("{name}, all devices") };
    let mut storages = vec![view(place, whole, files, stack, measurements)];
    for (index, device) in names.iter().enumerate() {
        let place = Place { device: Some(index), ..place };
        storages.push(view(place, format!("{name}, {device} device"), "", stack, measurements));
    }
    storages
}

fn view(
    place: Place,
    name: String,
    files: &str,
    stack: &StackHead,
    measurements: &[&Measurement],
) -> StorageView {
    let activities = measurements.iter().filter_map(|measurement| {
        let (emulator, host) = place.views(measurement);
        activity(measurement.duration_s, emulator, host)
    });
    let emulators = measurements.iter().filter_map(|measurement| place.views(measurement).0);
    StorageView {
        name,
        files: files.to_owned(),
        stack: stack.clone(),
        activity: average(activities),
        emulator: average(emulators),
        is_part: place.device.is_some(),
        place,
    }
}

fn activity(
    duration_s: f64,
    emulator: Option<&EmulatorSummary>,
    host: Option<&HostView>,
) -> Option<Activity> {
    let per_s = |count: u64| if duration_s > 0.0 { count as f64 / duration_s } else { 0.0 };
    let emulated = emulator.map(|view| HostView {
        reads: view.reads,
        writes: view.writes,
        flushes: view.flushes,
        read_latency_mean_ms: view.read_latency_mean_ms,
        write_latency_mean_ms: view.write_latency_mean_ms,
        flush_latency_mean_ms: view.flush_latency_mean_ms,
        queue_depth_mean: view.queue_depth_mean,
        ..HostView::default()
    });
    let view = emulated.as_ref().or(host)?;
    Some(Activity {
        reads_per_s: per_s(view.reads),
        writes_per_s: per_s(view.writes),
        flushes_per_s: per_s(view.flushes),
        read_ms: view.read_latency_mean_ms,
        write_ms: view.write_latency_mean_ms,
        flush_ms: view.flush_latency_mean_ms,
        queue_depth: view.queue_depth_mean,
    })
}
