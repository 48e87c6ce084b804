//! The storage of a cell by mount, and by device when a mount has several.

mod layers;

use itertools::Itertools as _;
use serde::{Deserialize, Serialize};

use super::average::average;
use super::latency::is_shown;
use crate::record::{
    self, Cell, DeviceView, Difference, EmulatorSummary, Header, HostSeries, HostView, LayerView,
    Measurement, MountHead, MountView, StackHead, StorageSeries,
};
use crate::report::format;
pub(in crate::report) use layers::HEADS as LAYER_HEADS;
use layers::LayerActivity;

/// One mount of a cell, or a device of it: its files, its stack and its activity, as means over the trials.
#[derive(Debug, Clone, Serialize)]
pub struct StorageView {
    /// The cell's title, or `split: redo, binlog on raid10` where the cell has several mounts.
    pub name: String,
    /// The same where it stands alone: the label of a cell's only stack.
    pub label: String,
    /// Files on the mount, in the server's terms; empty for the data.
    pub files: String,
    pub stack: StackHead,
    /// Its size and file system, and the files, for a sentence.
    pub facts: String,
    /// `None` without a measured trial or without figures.
    pub activity: Option<Activity>,
    /// `None` for a real disk.
    pub emulator: Option<EmulatorSummary>,
    /// `None` also with too few requests for it.
    pub lateness_p99_us: Option<f64>,
    /// The inside of the emulated stack; empty for a bare drive.
    pub layers: Vec<LayerActivity>,
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

    fn layers(self, measurement: &Measurement) -> &[LayerView] {
        match (self.mount(measurement), self.device) {
            (None, _) => &[],
            (Some(mount), None) => &mount.layers,
            (Some(mount), Some(index)) => mount.devices.get(index).map_or(&[], |device| &device.layers),
        }
    }

    /// The series, one value per second.
    pub(super) fn series(self, measurement: &Measurement) -> Option<&StorageSeries> {
        let mount = self.mount(measurement)?;
        match self.device {
            None => Some(&mount.series),
            Some(index) => Some(&mount.devices.get(index)?.series),
        }
    }

    /// The kernel's counters of a block device; `None` for a mount of several devices, which have their own.
    pub(super) fn host_series(self, measurement: &Measurement) -> Option<&HostSeries> {
        let mount = self.mount(measurement)?;
        match self.device {
            None => mount.devices.is_empty().then_some(&mount.host_series),
            Some(index) => Some(&mount.devices.get(index)?.host_series),
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
    /// `None` without a request of the kind, as the other latencies.
    pub read_ms: Option<f64>,
    pub write_ms: Option<f64>,
    pub flush_ms: Option<f64>,
    pub queue_depth: f64,
}

/// The mounts of a cell, the data's first, each followed by its devices if it has several. The mounts of the
/// replicas follow.
pub(super) fn storages(header: &Header, cell: &Cell, measurements: &[&Measurement]) -> Vec<StorageView> {
    let title = header.title(&cell.name);
    let mut storages = of_server(header, None, &title, &cell.mounts, measurements);
    let replicas = cell.replication.iter().flat_map(|replication| &replication.replicas);
    for (index, replica) in replicas.enumerate() {
        let name = format!("{title}, replica {}", index + 1);
        storages.extend(of_server(header, Some(index), &name, &replica.mounts, measurements));
    }
    storages
}

/// Each mount in a sentence, and once if several cells have it: its summary, its size, its file system with
/// options, and its files.
pub(super) fn sentences<'a>(storages: impl Iterator<Item = &'a StorageView>) -> Vec<String> {
    let sentence =
        |storage: &StorageView| format!("{}: {} ({})", storage.label, storage.stack.summary, storage.facts);
    storages.filter(|storage| !storage.is_part).map(sentence).unique().collect()
}

/// Size and file system with options, and the files on it.
fn facts(stack: &StackHead, files: &str) -> String {
    let mkfs = stack.mkfs_options.iter().map(|option| format!(" {option}")).join("");
    let mut facts = vec![format::bytes(stack.size_bytes), format!("{}{mkfs}", stack.file_system)];
    if !stack.mount_options.is_empty() {
        facts.push(format!("mounted with {}", stack.mount_options.join(",")));
    }
    let files = if files.is_empty() { String::new() } else { format!("; {files}") };
    facts.join(", ") + &files
}

/// The parameters in which the storage of a cell differs from another's, mount by mount. Empty when the
/// mounts hold other files, or storage of another kind.
pub(super) fn differences(header: &Header, cell: &str, other: &str) -> Vec<Difference> {
    let mounts = |name: &str| header.cells.iter().find(|cell| cell.name == name).map(|cell| &cell.mounts);
    let (Some(own), Some(others)) = (mounts(cell), mounts(other)) else { return Vec::new() };
    let classes = |mounts: &[MountHead]| mounts.iter().map(|mount| mount.classes.clone()).collect_vec();
    if classes(own) != classes(others) {
        return Vec::new();
    }
    let of_mount = |(own, other): (&MountHead, &MountHead)| {
        let found = record::differences(own.stack.part.as_ref()?, other.stack.part.as_ref()?)?;
        Some([found, outside(&own.stack, &other.stack)].concat())
    };
    own.iter().zip(others).map(of_mount).collect::<Option<Vec<_>>>().unwrap_or_default().concat()
}

/// Differences of size and file system.
fn outside(own: &StackHead, other: &StackHead) -> Vec<Difference> {
    let facts = |stack: &StackHead| {
        [
            ("size", format::bytes(stack.size_bytes)),
            ("file system", stack.file_system.clone()),
            ("mkfs options", stack.mkfs_options.join(" ")),
            ("mount options", stack.mount_options.join(",")),
        ]
    };
    let pairs = facts(own).into_iter().zip(facts(other)).filter(|((_, own), (_, other))| own != other);
    let value = |text: String| (!text.is_empty()).then_some(text);
    let difference = |((name, own), (_, other)): ((&str, String), (&str, String))| Difference {
        name: name.to_owned(),
        value: value(own),
        other: value(other),
    };
    pairs.map(difference).collect()
}

fn of_server(
    header: &Header,
    replica: Option<usize>,
    server: &str,
    mounts: &[MountHead],
    measurements: &[&Measurement],
) -> Vec<StorageView> {
    let name = |(index, mount): (usize, &MountHead)| {
        let on = header.stack_title(&mount.stack);
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
        let mut storages =
            with_devices(place, &name((index, mount)), &mount.files, &mount.stack, measurements);
        if mounts.len() == 1 {
            header.stack_title(&mount.stack).clone_into(&mut storages[0].label);
        }
        storages
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
    let emulator: Option<EmulatorSummary> = average(emulators);
    let enough = emulator.as_ref().filter(|emulator| is_shown(emulator.requests, 0.99));
    StorageView {
        label: name.clone(),
        name,
        files: files.to_owned(),
        facts: facts(stack, files),
        stack: stack.clone(),
        activity: average(activities),
        lateness_p99_us: enough.map(|emulator| emulator.lateness_p99_us),
        emulator,
        layers: layers::layers(
            measurements.iter().map(|measurement| (*measurement, place.layers(measurement))),
        ),
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
        read_ms: (view.reads > 0).then_some(view.read_latency_mean_ms),
        write_ms: (view.writes > 0).then_some(view.write_latency_mean_ms),
        flush_ms: (view.flushes > 0).then_some(view.flush_latency_mean_ms),
        queue_depth: view.queue_depth_mean,
    })
}
