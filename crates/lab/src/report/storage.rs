//! The storage of a cell, mount by mount.

use serde::Serialize;
use spindle_stats::mean;

use crate::record::{Cell, EmulatorSummary, HostView, Measurement, StackHead};

/// One mount of a cell: what lies there, on what, and what it did; means over the trials.
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

/// The mounts of a cell, the data's first.
pub(super) fn storages(cell: &Cell, measurements: &[&Measurement]) -> Vec<StorageView> {
    let data_name = match cell.other_mounts.as_slice() {
        [] => cell.name.clone(),
        _ => format!("{}: data on {}", cell.name, cell.stack.name),
    };
    let data = view(data_name, "", &cell.stack, measurements, |m| (m.emulator.as_ref(), m.host.as_ref()));
    let others = cell.other_mounts.iter().enumerate().map(|(index, mount)| {
        let classes: Vec<&str> = mount.classes.iter().map(|class| class.key()).collect();
        let name = format!("{}: {} on {}", cell.name, classes.join(", "), mount.stack.name);
        view(name, &mount.files, &mount.stack, measurements, |m| match m.other_mounts.get(index) {
            Some(mount) => (mount.emulator.as_ref(), mount.host.as_ref()),
            None => (None, None),
        })
    });
    std::iter::once(data).chain(others).collect()
}

fn view<'a>(
    name: String,
    files: &str,
    stack: &StackHead,
    measurements: &[&'a Measurement],
    pick: impl Fn(&'a Measurement) -> (Option<&'a EmulatorSummary>, Option<&'a HostView>),
) -> StorageView {
    let picked = measurements.iter().map(|m| (m.duration_s, pick(m)));
    let activities: Vec<Activity> =
        picked.filter_map(|(duration_s, (emulator, host))| activity(duration_s, emulator, host)).collect();
    StorageView {
        name,
        files: files.to_owned(),
        stack: stack.clone(),
        activity: average(&activities),
        emulator: super::cell::average(measurements, |m| pick_ref(m, &pick)),
    }
}

/// For [`super::cell::average`], which lends its measurements for longer than a closure could say.
fn pick_ref<'a>(
    measurement: &'a Measurement,
    pick: &impl Fn(&'a Measurement) -> (Option<&'a EmulatorSummary>, Option<&'a HostView>),
) -> Option<&'a EmulatorSummary> {
    pick(measurement).0
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
