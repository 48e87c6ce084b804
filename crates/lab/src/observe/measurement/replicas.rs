//! The replicas of a server, during a measured window and after it.

use std::collections::BTreeMap;

use anyhow::Result;

use super::{Window, ratio, storage};
use crate::observe::Sample;
use crate::record::{ReplicaSeries, ReplicaView, ReplicationView, SemiSyncView, Warning};
use crate::server::telemetry::SemiSync;
use crate::stack::layout::Layout;

/// A replica does not keep up when it needs longer than this part of the window to apply the window's writes.
const BEHIND_SHARE: f64 = 0.1;
/// A shorter catch-up is the delay of the last transaction and the resolution of the timing.
const BEHIND_S: f64 = 0.5;
/// A replica may miss this share of queries while all cores are busy.
const SILENT_SHARE: f64 = 0.1;

/// Facts about a replica besides its samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplicaFacts {
    /// Name in sentences.
    pub name: String,
    pub layout: Layout,
    /// See [`ReplicaView::catch_up_s`].
    pub catch_up_s: Option<f64>,
    pub catch_up_limit_s: f64,
    pub settings: BTreeMap<String, String>,
}

/// `None` for a server without replicas.
pub(super) fn view(window: &Window, semi_sync: Option<SemiSync>) -> Result<Option<ReplicationView>> {
    if window.replicas.is_empty() {
        return Ok(None);
    }
    let binlog_bytes = |sample: &Sample| sample.binlog_bytes.unwrap_or(0);
    let replicas = (0..window.replicas.len()).map(|index| replica(window, index));
    Ok(Some(ReplicationView {
        binlog_bytes: binlog_bytes(&window.last).saturating_sub(binlog_bytes(&window.first)),
        semi_sync: semi_sync.and_then(semi_sync_view),
        replicas: replicas.collect::<Result<_>>()?,
    }))
}

/// `None` when both counts of commits are zero.
fn semi_sync_view(counted: SemiSync) -> Option<SemiSyncView> {
    let SemiSync { acknowledged, unacknowledged, waits, wait_s } = counted;
    (acknowledged + unacknowledged > 0.0).then(|| SemiSyncView {
        acknowledged: acknowledged as u64,
        unacknowledged: unacknowledged as u64,
        wait_mean_ms: ratio(wait_s * 1e3, waits),
    })
}

fn behind_bytes(sample: &Sample, replica: usize) -> Option<u64> {
    let position = sample.replicas.get(replica)?.position?;
    Some(sample.binlog_bytes?.saturating_sub(position.applied_bytes))
}

fn replica(window: &Window, index: usize) -> Result<ReplicaView> {
    let ReplicaFacts { name, layout, catch_up_s, catch_up_limit_s, settings } = &window.replicas[index];
    let cpu_s = |sample: &Sample| sample.replicas.get(index).map_or(0.0, |replica| replica.server_cpu_s);
    let samples = || window.seconds.iter().map(|(_, sample)| sample);
    let behind_s = |sample: &Sample| sample.replicas.get(index)?.position?.behind_s;
    Ok(ReplicaView {
        name: name.clone(),
        behind_bytes_first: behind_bytes(&window.first, index),
        behind_bytes_last: behind_bytes(&window.last, index),
        catch_up_s: *catch_up_s,
        catch_up_limit_s: *catch_up_limit_s,
        server_cpu_s: cpu_s(&window.last) - cpu_s(&window.first),
        settings: settings.clone(),
        mounts: storage::mounts(window, layout, |sample| Some(&sample.replicas.get(index)?.mounts))?,
        series: ReplicaSeries {
            behind_bytes: samples().map(|sample| behind_bytes(sample, index)).collect(),
            behind_s: samples().map(behind_s).collect(),
        },
    })
}

/// CPU time of all replicas, servers and emulators.
pub(super) fn cpu_s(window: &Window) -> f64 {
    let all = |sample: &Sample| -> f64 {
        sample.replicas.iter().map(|replica| replica.server_cpu_s + replica.emulator_cpu_s).sum()
    };
    all(&window.last) - all(&window.first)
}

pub(super) fn warnings(replication: &ReplicationView, duration_s: f64) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let Some(semi_sync) = replication.semi_sync.filter(|semi_sync| semi_sync.unacknowledged > 0) {
        let transactions = semi_sync.unacknowledged;
        let all = transactions + semi_sync.acknowledged;
        warnings
            .push(Warning::SemiSyncFellBack { transactions, share: ratio(transactions as f64, all as f64) });
    }
    for replica in &replication.replicas {
        let bound_s = BEHIND_S.max(BEHIND_SHARE * duration_s);
        if replica.catch_up_s.is_none_or(|seconds| seconds > bound_s) {
            warnings.push(Warning::ReplicaBehind {
                replica: replica.name.clone(),
                catch_up_s: replica.catch_up_s,
                waited_s: replica.catch_up_limit_s,
            });
        }
        let seconds = &replica.series.behind_bytes;
        let silent = seconds.iter().filter(|behind| behind.is_none()).count();
        let share = ratio(silent as f64, seconds.len() as f64);
        if share > SILENT_SHARE {
            warnings.push(Warning::ReplicaSilent { replica: replica.name.clone(), share });
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replication(catch_up_s: Option<f64>, behind_bytes: Vec<Option<u64>>) -> ReplicationView {
        let counted = SemiSync { acknowledged: 75.0, unacknowledged: 25.0, waits: 30.0, wait_s: 0.06 };
        ReplicationView {
            binlog_bytes: 1000,
            semi_sync: semi_sync_view(counted),
            replicas: vec![ReplicaView {
                name: "replica 1 (hdd)".to_owned(),
                behind_bytes_first: None,
                behind_bytes_last: None,
                catch_up_s,
                catch_up_limit_s: 60.0,
                server_cpu_s: 0.0,
                settings: BTreeMap::new(),
                mounts: Vec::new(),
                series: ReplicaSeries { behind_s: Vec::new(), behind_bytes },
            }],
        }
    }

    fn names(replication: &ReplicationView) -> Vec<String> {
        let warnings = warnings(replication, 20.0);
        warnings.iter().map(|warning| warning.sentence()).collect()
    }

    #[test]
    fn commits_without_an_acknowledgement_cause_a_warning() {
        let quick = replication(Some(0.1), vec![Some(0); 10]);
        let semi_sync = quick.semi_sync.unwrap();
        assert_eq!((semi_sync.acknowledged, semi_sync.wait_mean_ms), (75, 2.0));
        let sentences = names(&quick);
        assert_eq!(sentences.len(), 1);
        assert!(sentences[0].starts_with("25 commits (25.0 %) continued without"), "{sentences:?}");
        assert_eq!(semi_sync_view(SemiSync::default()), None);
    }

    #[test]
    fn a_replica_that_does_not_keep_up_causes_a_warning() {
        let check = |catch_up_s, expect: &str| {
            let sentences = names(&replication(catch_up_s, vec![Some(0); 10]));
            assert!(sentences[1].starts_with(expect), "{sentences:?}");
        };
        check(Some(2.1), "replica 1 (hdd) needed 2.1 s after the window");
        check(None, "replica 1 (hdd) had not applied the window's writes 60 s after the window");
        let silent = names(&replication(Some(1.9), vec![Some(0), None, None, Some(7)]));
        assert!(silent[1].starts_with("replica 1 (hdd) did not answer in 50 % of the seconds"), "{silent:?}");
    }
}
