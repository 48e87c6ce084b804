//! Identities of the counters of a storage over a window. Counters that break one are not to be trusted, nor
//! are the figures made of them.
//!
//! Little, "A Proof for the Queuing Formula: L = λW", 1961; the second one compares two accounts of the same
//! requests, one above the FUSE file and one below it.

use super::{DeviceView, EmulatorSummary, HostSeries, HostView, MountView};
use crate::record::Warning;

const TOLERANCE: f64 = 0.05;
/// Each sum of times in a second is in whole milliseconds, and there are five.
const ROUNDING_MS: f64 = 5.0;
/// Requests under way when one of the two accounts was read.
const UNDER_WAY_BYTES: f64 = 1_048_576.0;

/// Whether two accounts of one amount differ.
fn differ(one: f64, other: f64, slack: f64) -> bool {
    (one - other).abs() > TOLERANCE * one.max(other) + slack
}

/// Throughput x response time of all operations is the number of requests in flight that the kernel counted
/// itself. `None` without series.
fn concurrency(series: &HostSeries) -> Option<(f64, f64)> {
    let operations = [&series.read, &series.write, &series.discard, &series.flush];
    let by_operations: f64 = operations.iter().flat_map(|operation| &operation.time_ms).sum();
    let by_kernel: f64 = series.queue_ms.iter().sum();
    let slack = ROUNDING_MS * series.elapsed_s.len() as f64;
    (!series.is_empty() && differ(by_operations, by_kernel, slack)).then_some((by_operations, by_kernel))
}

/// Requests x mean size, as the kernel counted them, are the bytes that the emulator served.
fn bytes(emulator: &EmulatorSummary, host: &HostView) -> Option<(f64, f64)> {
    let by_kernel = (host.read_bytes + host.write_bytes) as f64;
    let by_emulator = (emulator.read_bytes + emulator.write_bytes) as f64;
    // Early records have no bytes of the kernel.
    (by_kernel > 0.0 && differ(by_kernel, by_emulator, UNDER_WAY_BYTES)).then_some((by_kernel, by_emulator))
}

impl MountView {
    /// A warning for each identity that one of the devices breaks.
    pub(crate) fn broken_identities(&self) -> Vec<Warning> {
        let of = |emulator: Option<&EmulatorSummary>, host: Option<&HostView>, series: &HostSeries| {
            let share = |(one, other): (f64, f64)| (one - other).abs() / one.max(other);
            let concurrency =
                concurrency(series).map(|pair| Warning::ConcurrencyDisagrees { share: share(pair) });
            let bytes = emulator.zip(host).and_then(|(emulator, host)| bytes(emulator, host));
            let bytes = bytes.map(|pair| Warning::BytesDisagree { share: share(pair) });
            concurrency.into_iter().chain(bytes).collect::<Vec<_>>()
        };
        match self.devices.as_slice() {
            [] => of(self.emulator.as_ref(), self.host.as_ref(), &self.host_series),
            devices => {
                let of_device = |device: &DeviceView| {
                    of(device.emulator.as_ref(), device.host.as_ref(), &device.host_series)
                };
                devices.iter().flat_map(of_device).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::OperationSeries;

    const MIB: u64 = 1 << 20;

    /// Ten seconds with 500 ms of reads and 200 ms of writes each.
    fn mount(queue_ms: f64, emulator_bytes: u64) -> MountView {
        let times = |ms: f64| OperationSeries { time_ms: vec![ms; 10], ..OperationSeries::default() };
        MountView {
            emulator: Some(EmulatorSummary { read_bytes: emulator_bytes, ..EmulatorSummary::default() }),
            host: Some(HostView { read_bytes: 60 * MIB, write_bytes: 40 * MIB, ..HostView::default() }),
            host_series: HostSeries {
                elapsed_s: vec![1.0; 10],
                read: times(500.0),
                write: times(200.0),
                queue_ms: vec![queue_ms; 10],
                ..HostSeries::default()
            },
            ..MountView::default()
        }
    }

    #[test]
    fn counters_that_break_an_identity_by_more_than_5_percent_are_told() {
        let check = |mount: MountView, expect: &[&str]| {
            let names: Vec<&str> = mount.broken_identities().iter().map(Warning::name).collect();
            assert_eq!(names, expect);
        };
        check(mount(700.0, 100 * MIB), &[]);
        check(mount(730.0, 104 * MIB), &[]);
        check(mount(800.0, 100 * MIB), &["concurrency disagrees"]);
        check(mount(600.0, 100 * MIB), &["concurrency disagrees"]);
        check(mount(700.0, 80 * MIB), &["bytes disagree"]);
        check(mount(0.0, 200 * MIB), &["concurrency disagrees", "bytes disagree"]);
        let earlier = MountView {
            host: Some(HostView::default()),
            host_series: HostSeries::default(),
            ..mount(0.0, MIB)
        };
        check(earlier, &[]);
        let device = |queue_ms| {
            let MountView { emulator, host, host_series, .. } = mount(queue_ms, 100 * MIB);
            DeviceView { emulator, host, host_series, ..DeviceView::default() }
        };
        let pool = MountView { devices: vec![device(700.0), device(900.0)], ..mount(0.0, 900 * MIB) };
        check(pool, &["concurrency disagrees"]);
    }
}
