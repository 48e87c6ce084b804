//! The replicas of a cell: their lag, and the waits of commits.

use serde::Serialize;
use spindle_stats::mean;

use super::CellView;
use crate::record::{
    Cell, Header, Measurement, ReplicaView, ReplicationMode, ReplicationView, SemiSyncView, spelling,
};
use crate::report::format;
use spindle_base::text::plural;

/// Means over the trials.
#[derive(Debug, Clone, Serialize)]
pub struct ReplicationSummary {
    /// `async` or `semi-sync`.
    pub mode: String,
    pub binlog_mb_per_s: f64,
    /// For semi-synchronous replication: mean wait of a commit for its acknowledgement.
    pub wait_ms: Option<f64>,
    /// Commits of all trials that continued without an acknowledgement.
    pub unacknowledged: u64,
    pub replicas: Vec<ReplicaSummary>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ReplicaSummary {
    /// `replica 1 (hdd)`.
    pub name: String,
    /// Mean and maximum of `Seconds_Behind_Master` over the window. The maximum is over all trials. `None`
    /// when it was never known.
    pub behind_s: Option<f64>,
    pub behind_s_max: Option<f64>,
    /// Binary log not yet applied at the end of the window; `None` when it was unknown in all trials.
    pub behind_mb: Option<f64>,
    /// Time from the end of the window until everything was applied. Only trials that caught up in time
    /// count.
    pub catch_up_s: Option<f64>,
    /// A phrase that includes the other trials.
    pub catch_up: String,
    pub server_cpu_s: f64,
}

pub(super) fn summary(
    header: &Header,
    cell: &Cell,
    measurements: &[&Measurement],
) -> Option<ReplicationSummary> {
    let head = cell.replication.as_ref()?;
    let views: Vec<(f64, &ReplicationView)> = measurements
        .iter()
        .filter_map(|measurement| Some((measurement.duration_s, measurement.replication.as_ref()?)))
        .collect();
    let rates: Vec<f64> = views
        .iter()
        .map(|(duration_s, view)| view.binlog_bytes as f64 / 1e6 / duration_s.max(f64::MIN_POSITIVE))
        .collect();
    let semi_sync: Vec<SemiSyncView> = views.iter().filter_map(|(_, view)| view.semi_sync).collect();
    let waits: Vec<f64> = semi_sync.iter().map(|view| view.wait_mean_ms).collect();
    let is_semi_sync = head.mode == ReplicationMode::SemiSync;
    let replica = |index: usize| {
        let views: Vec<&ReplicaView> =
            views.iter().filter_map(|(_, view)| view.replicas.get(index)).collect();
        let found = replica(&views)?;
        Some(ReplicaSummary { name: header.with_titles(cell, &found.name, format::the), ..found })
    };
    Some(ReplicationSummary {
        mode: spelling(&head.mode),
        binlog_mb_per_s: mean(&rates)?,
        wait_ms: mean(&waits).filter(|_| is_semi_sync),
        unacknowledged: semi_sync.iter().map(|view| view.unacknowledged).sum(),
        replicas: (0..head.replicas.len()).filter_map(replica).collect(),
    })
}

fn replica(views: &[&ReplicaView]) -> Option<ReplicaSummary> {
    let first = views.first()?;
    let mean_of = |pick: &dyn Fn(&ReplicaView) -> Option<f64>| {
        mean(&views.iter().filter_map(|view| pick(view)).collect::<Vec<_>>())
    };
    let catch_up_s = mean_of(&|view| view.catch_up_s);
    let never_count = views.iter().filter(|view| view.catch_up_s.is_none()).count();
    let lags = views.iter().filter_map(|view| view.series.behind_s_mean_and_max());
    Some(ReplicaSummary {
        name: first.name.clone(),
        behind_s: mean_of(&|view| Some(view.series.behind_s_mean_and_max()?.0)),
        behind_s_max: lags.map(|(_, max)| max).reduce(f64::max),
        behind_mb: mean_of(&|view| Some(view.behind_bytes_last? as f64 / 1e6)),
        catch_up_s,
        catch_up: catch_up(catch_up_s, never_count, first.catch_up_limit_s),
        server_cpu_s: mean_of(&|view| Some(view.server_cpu_s))?,
    })
}

/// `caught up in 2.1 s`, and the number of trials that did not catch up.
fn catch_up(caught_up_s: Option<f64>, never_count: usize, limit_s: f64) -> String {
    let never = format!("had not caught up after {} s", format::number(limit_s));
    match caught_up_s.map(format::number) {
        None => never,
        Some(seconds) if never_count == 0 => format!("caught up in {seconds} s"),
        Some(seconds) => {
            format!("caught up in {seconds} s, but in {} {never}", plural(never_count, "trial"))
        }
    }
}

/// One sentence per replica of each cell, and one per cell with commits that waited.
pub(super) fn sentences(cells: &[CellView]) -> Vec<String> {
    let mut sentences = Vec::new();
    for cell in cells {
        let Some(replication) = &cell.replication else { continue };
        if let Some(wait_ms) = replication.wait_ms {
            let unacknowledged = match replication.unacknowledged {
                0 => String::new(),
                count => format!("; {} continued without it", plural(count as usize, "commit")),
            };
            let wait_ms = format::number(wait_ms);
            sentences
                .push(format!("{}: a commit waited {wait_ms} ms for a replica{unacknowledged}.", cell.title));
        }
        for replica in &replication.replicas {
            let known =
                |value: Option<f64>| value.map_or_else(|| "an unknown number of".to_owned(), format::number);
            sentences.push(format!(
                "{}: {} was {} s behind (at most {} s), and {} MB of binary log at the end of the window; it {}.",
                cell.title,
                replica.name,
                known(replica.behind_s),
                known(replica.behind_s_max),
                known(replica.behind_mb),
                replica.catch_up
            ));
        }
    }
    sentences
}
