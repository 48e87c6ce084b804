//! The storage of a cell, mount by mount, and device by device where a mount has several.

use serde::Serialize;
use spindle_stats::mean;

use crate::record::{Cell, DeviceView, EmulatorSummary, HostView, Measurement, Series, StackHead};

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
    /// Index of the mount; the data's is 0.
    mount: usize,
    /// Index of the device; `None` for the mount as a whole.
    device: Option<usize>,
}

impl Place {
    fn views(self, measurement: &Measurement) -> (Option<&EmulatorSummary>, Option<&HostView>) {
        if let Some(index) = self.device {
            let device = devices(measurement, self.mount).get(index);
            return device.map_or((None, None), |device| (device.emulator.as_ref(), device.host.as_ref()));
        }
        match self.mount.checked_sub(1) {
            None => (measurement.emulator.as_ref(), measurement.host.as_ref()),
            Some(other) => measurement
                .other_mounts
                .get(other)
                .map_or((None, None), |mount| (mount.emulator.as_ref(), mount.host.as_ref())),
        }
    }

    /// Second by second; without the storage's own values where there are none.
    pub(super) fn series(self, measurement: &Measurement) -> Option<Series> {
        if let Some(index) = self.device {
            return Some(Series::from(devices(measurement, self.mount).get(index)?.series.clone()));
        }
        match self.mount.checked_sub(1) {
            None => Some(measurement.series.clone()),
            Some(other) => Some(Series::from(measurement.other_mounts.get(other)?.series.clone())),
        }
    }
}

fn devices(measurement: &Measurement, mount: usize) -> &[DeviceView] {
    match mount.checked_sub(1) {
        None => &measurement.devices,
        Some(other) => measurement.other_mounts.get(other).map_or(&[], |mount| mount.devices.as_slice()),
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

/// The mounts of a cell, the data's first, each followed by its devices where it has several.
pub(super) fn storages(cell: &Cell, measurements: &[&Measurement]) -> Vec<StorageView> {
    let data_name = match cell.other_mounts.as_slice() {
        [] => cell.name.clone(),
        _ => format!("{}: data on {}", cell.name, cell.stack.name),
    };
    let mut storages = with_devices(0, &data_name, "", &cell.stack, measurements);
    for (index, mount) in cell.other_mounts.iter().enumerate() {
        let classes: Vec<&str> = mount.classes.iter().map(|class| class.key()).collect();
        let name = format!("{}: {} on {}", cell.name, classes.join(", "), mount.stack.name);
        storages.extend(with_devices(index + 1, &name, &mount.files, &mount.stack, measurements));
    }
    storages
}

fn with_devices(
    mount: usize,
    name: &str,
    files: &str,
    stack: &StackHead,
    measurements: &[&Measurement],
) -> Vec<StorageView> {
    let names: Vec<&str> = measurements
        .first()
        .map(|measurement| devices(measurement, mount).iter().map(|device| device.name.as_str()).collect())
        .unwrap_or_default();
    let whole = if names.is_empty() { name.to_owned() } else { format!("{name}, all devices") };
    let mut storages = vec![view(Place { mount, device: None }, whole, files, stack, measurements)];
    for (index, device) in names.iter().enumerate() {
        let place = Place { mount, device: Some(index) };
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
