//! Evidence of the devices: how busy they were, and how much of their stated rates was used.

use spindle_model::{Rate, Rates};

use super::{Window, ratio};
use crate::record::{
    HostSeries, HostView, MountView, OperationSeries, RateEvidence, RateOf, StorageEvidence,
};

/// The device with the most requests in flight.
pub(super) fn storage(window: &Window, mounts: &[MountView]) -> Option<StorageEvidence> {
    let devices = mounts.iter().zip(&window.layout.mounts).flat_map(|(mount, of_layout)| {
        let is_only = mounts.len() == 1;
        let place = (!is_only).then(|| format!("`{}`", of_layout.stack));
        let whole = mount.host.iter().filter(|_| mount.devices.is_empty());
        let whole = whole.map(move |host| (place.clone(), host, &mount.host_series));
        let parts = mount.devices.iter().filter_map(|device| {
            let place = format!("the {} device of `{}`", device.name, of_layout.stack);
            Some((Some(place), device.host.as_ref()?, &device.host_series))
        });
        whole.chain(parts)
    });
    let busiest = devices
        .max_by(|(_, left, _), (_, right, _)| left.queue_depth_mean.total_cmp(&right.queue_depth_mean));
    busiest.map(|(place, host, series)| of_device(place, host, series))
}

fn of_device(place: Option<String>, host: &HostView, series: &HostSeries) -> StorageEvidence {
    let seconds = |count: u64, mean_ms: f64| count as f64 * mean_ms / 1e3;
    StorageEvidence {
        place,
        busy: busy(series).unwrap_or(1.0).min(host.queue_depth_mean),
        queue_depth: host.queue_depth_mean,
        read_s: seconds(host.reads, host.read_latency_mean_ms),
        write_s: seconds(host.writes, host.write_latency_mean_ms),
        flush_s: seconds(host.flushes, host.flush_latency_mean_ms),
    }
}

/// Share of the time with a request in flight: in each second at most the sum of the requests' times, and at
/// most what the kernel counted. The sum counts requests beside each other twice; the kernel counts short ones
/// as whole clock ticks. `None` without a whole second.
fn busy(series: &HostSeries) -> Option<f64> {
    let all_s: f64 = series.elapsed_s.iter().sum();
    let at = |values: &[f64], second: usize| values.get(second).copied().unwrap_or(0.0);
    let busy_ms = series.elapsed_s.iter().enumerate().map(|(second, elapsed_s)| {
        let operations: [&OperationSeries; 3] = [&series.read, &series.write, &series.flush];
        let requests_ms: f64 = operations.iter().map(|operation| at(&operation.time_ms, second)).sum();
        requests_ms.min(at(&series.busy_ms, second)).min(elapsed_s * 1e3)
    });
    (all_s > 0.0).then(|| ratio(busy_ms.sum::<f64>() / 1e3, all_s))
}

/// The stated rate that was used most.
pub(super) fn rate(window: &Window, mounts: &[MountView]) -> Option<RateEvidence> {
    let duration_s = window.summary.duration_s;
    let used = mounts.iter().zip(&window.rates).zip(&window.layout.mounts).flat_map(
        |((mount, rates), of_layout)| {
            let place = (mounts.len() > 1).then(|| format!("`{}`", of_layout.stack));
            let uses = mount.emulator.as_ref().map(|emulator| {
                let Rates { read, write, total } = *rates;
                let per_s = |amount: u64| ratio(amount as f64, duration_s);
                [
                    (read, per_s(emulator.read_bytes), per_s(emulator.reads)),
                    (write, per_s(emulator.write_bytes), per_s(emulator.writes)),
                    (
                        total,
                        per_s(emulator.read_bytes + emulator.write_bytes),
                        per_s(emulator.reads + emulator.writes),
                    ),
                ]
            });
            uses.into_iter().flatten().flat_map(move |(rate, bytes_per_s, requests_per_s)| {
                let Rate { bytes_per_s: bytes_limit, iops } = rate;
                let limits =
                    [(RateOf::Bytes, bytes_limit, bytes_per_s), (RateOf::Requests, iops, requests_per_s)];
                let place = place.clone();
                limits.into_iter().filter_map(move |(of, limit, used)| {
                    let limit = limit? as f64;
                    Some(RateEvidence { place: place.clone(), of, limit, share: ratio(used, limit).min(1.0) })
                })
            })
        },
    );
    used.max_by(|left, right| left.share.total_cmp(&right.share))
}
