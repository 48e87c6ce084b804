//! The storage of a cell, mount by mount, and device by device where a mount has several.

use serde::Serialize;
use spindle_stats::mean;

use crate::record::{
    Cell, DeviceView, EmulatorSummary, HostView, Measurement, MountHead, MountView, ReplicaHead, Series,
    StackHead,
};

/// One mount of a cell, or a device of it: what lies there, on what, and what it did; means over the trials.
#[derive(Debug, Clone, Serialize)]
pub struct StorageView {
    /// The cell's name, or `split: redo, binlog on raid10` where the cell has several mounts.
    pub name: String,
    /// What lies there, in the server's own words; empty for the data.
    pub files: String,
    pub stack: StackHead,
    /// `None` when no trial was measured, or when there is nothing to look at.
    pub activity: Option<Activity>,
    /// `None` for a real disk.
    pub emulator: Option<EmulatorSummary>,
    /// Whether it is a device of the mount before it, whose stack says what it is.
    pub is_part: bool,
    #[serde(skip)]
    pub(super) place: Place,
}

/// Where in a measurement the figures of a storage are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Index of the replica; `None` for the primary, or the only server.
    replica: Option<usize>,
    /// Index of the mount; the data's is 0.
    mount: usize,
    /// Index of the device; `None` for the mount as a whole.
    device: Option<usize>,
}

impl Place {
    fn views(self, measurement: &Measurement) -> (Option<&EmulatorSummary>, Option<&HostView>) {
        if let Some(index) = self.device {
            let device = self.devices(measurement).get(index);
            return device.map_or((None, None), |device| (device.emulator.as_ref(), device.host.as_ref()));
        }
        match self.is_data() {
            true => (measurement.emulator.as_ref(), measurement.host.as_ref()),
            false => self
                .mount(measurement)
                .map_or((None, None), |mount| (mount.emulator.as_ref(), mount.host.as_ref())),
        }
    }

    /// Second by second; without the storage's own values where there are none.
    pub(super) fn series(self, measurement: &Measurement) -> Option<Series> {
        if let Some(index) = self.device {
            return Some(Series::from(self.devices(measurement).get(index)?.series.clone()));
        }
        match self.is_data() {
            true => Some(measurement.series.clone()),
            false => Some(Series::from(self.mount(measurement)?.series.clone())),
        }
    }

    /// What the measurement has in its own fields.
    fn is_data(self) -> bool {
        self.replica.is_none() && self.mount == 0
    }

    fn mount(self, measurement: &Measurement) -> Option<&MountView> {
        match self.replica {
            None => measurement.other_mounts.get(self.mount.checked_sub(1)?),
            Some(index) => measurement.replication.as_ref()?.replicas.get(index)?.mounts.get(self.mount),
        }
    }

    fn devices(self, measurement: &Measurement) -> &[DeviceView] {
        match self.is_data() {
            true => &measurement.devices,
            false => self.mount(measurement).map_or(&[], |mount| mount.devices.as_slice()),
        }
    }
}

/// As the emulator saw it, or the kernel where the disk is real.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Activity {
    pub reads_per_s: f64,
    pub writes_per_s: f64,
    pub flushes_per_s: f64,
    pub read_ms: f64,
    pub write_ms: f64,
    pub flush_ms: f64,
    pub queue_depth: f64,
}

/// The mounts of a cell, the data's first, each followed by its devices where it has several; then those of its replicas.
pub(super) fn storages(cell: &Cell, measurements: &[&Measurement]) -> Vec<StorageView> {
    let mut storages = of_server(None, &cell.name, &cell.stack, &cell.other_mounts, measurements);
    let replicas = cell.replication.iter().flat_map(|replication| &replication.replicas);
    for (index, replica) in replicas.enumerate() {
        let name = format!("{}, replica {}", cell.name, index + 1);
        let ReplicaHead { stack, other_mounts, .. } = replica;
        storages.extend(of_server(Some(index), &name, stack, other_mounts, measurements));
    }
    storages
}

fn of_server(
    replica: Option<usize>,
    server: &str,
    stack: &StackHead,
    other_mounts: &[MountHead],
    measurements: &[&Measurement],
) -> Vec<StorageView> {
    let data_name = match (other_mounts, replica) {
        ([], None) => server.to_owned(),
        ([], Some(_)) => format!("{server}: on {}", stack.name),
        _ => format!("{server}: data on {}", stack.name),
    };
    let place = |mount: usize| Place { replica, mount, device: None };
    let mut storages = with_devices(place(0), &data_name, "", stack, measurements);
    for (index, mount) in other_mounts.iter().enumerate() {
        let classes: Vec<&str> = mount.classes.iter().map(|class| class.key()).collect();
        let name = format!("{server}: {} on {}", classes.join(", "), mount.stack.name);
        storages.extend(with_devices(place(index + 1), &name, &mount.files, &mount.stack, measurements));
    }
    storages
}

fn with_devices(
    place: Place,
    name: &str,
    files: &str,
    stack: &StackHead,
    measurements: &[&Measurement],
) -> Vec<StorageView> {
    let names: Vec<&str> = measurements
        .first()
        .map(|measurement| place.devices(measurement).iter().map(|device| device.name.as_str()).collect())
        .unwrap_or_default();
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
    let activities: Vec<Activity> = measurements
        .iter()
        .filter_map(|measurement| {
            let (emulator, host) = place.views(measurement);
            activity(measurement.duration_s, emulator, host)
        })
        .collect();
    StorageView {
        name,
        files: files.to_owned(),
        stack: stack.clone(),
        activity: average(&activities),
        emulator: super::cell::average(measurements, |measurement| place.views(measurement).0),
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
    match (emulator, host) {
        (Some(view), _) => Some(Activity {
            reads_per_s: per_s(view.reads),
            writes_per_s: per_s(view.writes),
            flushes_per_s: per_s(view.flushes),
            read_ms: view.read_latency_mean_ms,
            write_ms: view.write_latency_mean_ms,
            flush_ms: view.flush_latency_mean_ms,
            queue_depth: view.queue_depth_mean,
        }),
        (None, Some(view)) => Some(Activity {
            reads_per_s: per_s(view.reads),
            writes_per_s: per_s(view.writes),
            flushes_per_s: per_s(view.flushes),
            read_ms: view.read_latency_mean_ms,
            write_ms: view.write_latency_mean_ms,
            flush_ms: view.flush_latency_mean_ms,
            queue_depth: view.queue_depth_mean,
        }),
        (None, None) => None,
    }
}

fn average(activities: &[Activity]) -> Option<Activity> {
    let of = |pick: fn(&Activity) -> f64| mean(&activities.iter().map(pick).collect::<Vec<_>>());
    Some(Activity {
        reads_per_s: of(|a| a.reads_per_s)?,
        writes_per_s: of(|a| a.writes_per_s)?,
        flushes_per_s: of(|a| a.flushes_per_s)?,
        read_ms: of(|a| a.read_ms)?,
        write_ms: of(|a| a.write_ms)?,
        flush_ms: of(|a| a.flush_ms)?,
        queue_depth: of(|a| a.queue_depth)?,
    })
}
