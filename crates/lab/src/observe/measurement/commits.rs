//! Commit times where clients keep no stopwatch around COMMIT. The estimate combines the server's count of
//! commits with the kernel's times of a write and a FLUSH on the logs' storage.

use spindle_load::Summary;

use super::storage::log_host;
use super::{Window, ratio};
use crate::record::{CommitEstimate, HostView, MountView, WaitPoint};
use crate::server::telemetry::Counters;

/// `None` when the server's settings or counters leave open which logs a commit waits for, or when the
/// kernel's times of their storage are missing.
pub(super) fn estimate(window: &Window, counters: &Counters, mounts: &[MountView]) -> Option<CommitEstimate> {
    let flushed_logs = window.durability.flushed_logs.as_ref()?;
    let logs: Vec<&HostView> = flushed_logs
        .iter()
        .map(|class| log_host(&window.layout, mounts, *class).map(|(host, _)| host))
        .collect::<Option<_>>()?;
    // A write of a log serves at most one commit of each terminal.
    let most = logs.iter().map(|host| syncs(host)).fold(f64::INFINITY, f64::min)
        * f64::from(window.summary.worker_threads);
    let count = counters.commits?.min(most);
    Some(CommitEstimate {
        count,
        wait_ms: logs.iter().map(|host| wait_ms(host, count, &window.summary)).sum(),
    })
}

/// Number of syncs of a device: its FLUSHes. For a device that needs none, every write counts.
fn syncs(host: &HostView) -> f64 {
    (if host.flushes > 0 { host.flushes } else { host.writes }) as f64
}

/// Wait of a commit on one log: its own write and FLUSH, plus the preceding write and FLUSH in proportion to
/// the share of the time in which the other terminals keep the log busy. Clients that are answered together
/// return together, just after the next FLUSH has begun, so they wait for nearly all of it.
fn wait_ms(host: &HostView, count: f64, summary: &Summary) -> f64 {
    let own_ms = host.write_latency_mean_ms + host.flush_latency_mean_ms;
    let busy = ratio(syncs(host).min(count) * own_ms / 1e3, summary.duration_s).min(1.0);
    let others = 1.0 - 1.0 / f64::from(summary.worker_threads.max(1));
    own_ms * (1.0 + busy * others)
}

/// Time that terminals waited for a replica's acknowledgement. At the wait point AFTER_COMMIT, the server
/// sums it over commits. At AFTER_SYNC, one commit waits for its group, and the other commits in flight wait
/// behind it.
pub(super) fn acknowledgement_wait_s(window: &Window, counters: &Counters) -> f64 {
    let Some(semi_sync) = counters.semi_sync else { return 0.0 };
    let waiting = match window.durability.wait_point {
        Some(WaitPoint::AfterSync) => {
            let under_way = ratio(window.summary.commit_wait_s.unwrap_or(0.0), window.summary.duration_s);
            under_way.max(counters.commits_per_group.unwrap_or(1.0)).max(1.0)
        }
        Some(WaitPoint::AfterCommit) | None => 1.0,
    };
    semi_sync.wait_s * waiting
}
