//! Shares of the terminals' time, each from 0 to 1.

use std::collections::BTreeMap;

use crate::record::{Evidence, RateOf};

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Shares {
    pub(super) read: f64,
    pub(super) commit: f64,
    pub(super) locks: f64,
    pub(super) file_locks: f64,
    pub(super) work: f64,
    /// Part of `work` that is the load generator's.
    pub(super) client_work: f64,
    pub(super) queue: f64,
    /// The rest of the time, as far as a device was busy with reads, or with writes and FLUSHes.
    pub(super) storage_reads: f64,
    pub(super) storage_writes: f64,
    pub(super) other: f64,
}

impl Shares {
    pub(super) fn of(evidence: &Evidence) -> Shares {
        let (base_s, locks) = base(evidence);
        let share = |seconds: f64| if base_s > 0.0 { (seconds / base_s).clamp(0.0, 1.0) } else { 0.0 };
        let threads_s = evidence.threads.as_ref().map(|threads| threads.busiest_s);
        let client_work = share(evidence.client_s());
        // Without the server's part, the client's says nothing about the cores.
        let work = threads_s.map_or(0.0, |server_s| share(server_s + evidence.client_s()));
        let commit = share(evidence.commit_s().unwrap_or(0.0));
        let mut shares = Shares {
            read: share(evidence.read_s()),
            // A stopwatch counts the work of a commit as well. An estimate is of waits alone, and they cannot
            // be longer than the time without work.
            commit: if evidence.commit_wait_s.is_some() { commit } else { commit.min(1.0 - work) },
            locks,
            file_locks: share(evidence.file_lock_wait_s.unwrap_or(0.0)),
            work,
            client_work,
            ..Shares::default()
        };
        let explained = shares.read + shares.commit + shares.locks + shares.file_locks + shares.work;
        let rest = (1.0 - explained).max(0.0);
        let waits = waits_per_service(evidence.cpu_own, evidence.cpu_count);
        shares.queue = if evidence.terminals > 1 { (shares.work * waits).min(rest) } else { 0.0 };
        let rest = rest - shares.queue;
        if let Some(storage) = &evidence.storage {
            // A terminal waits for a device at most while the device is busy.
            let behind = (storage.busy - shares.read - shares.commit - shares.file_locks).clamp(0.0, rest);
            let all_s = storage.read_s + storage.write_s + storage.flush_s;
            let is_reading = storage.read_s > all_s / 2.0;
            (shares.storage_reads, shares.storage_writes) =
                if is_reading { (behind, 0.0) } else { (0.0, behind) };
        }
        shares.other = (rest - shares.storage_reads - shares.storage_writes).max(0.0);
        shares
    }

    pub(super) fn reads(&self) -> f64 {
        self.read + self.storage_reads
    }

    pub(super) fn writes(&self) -> f64 {
        self.commit + self.storage_writes
    }

    pub(super) fn cores(&self) -> f64 {
        self.work + self.queue
    }

    /// As records name them. A share is missing where its source is.
    pub(super) fn by_name(&self, evidence: &Evidence) -> BTreeMap<String, f64> {
        let always =
            [("read", self.read), ("locks", self.locks), ("other", self.other), ("cpu", evidence.cpu_busy)];
        let commit = evidence.commit_s().map(|_| ("commit", self.commit));
        let file_locks = (self.file_locks > 0.0).then_some(("file-locks", self.file_locks));
        let work = evidence.threads.as_ref().map(|_| [("work", self.work), ("queue", self.queue)]);
        let storage = self.storage_reads + self.storage_writes;
        let storage = evidence.storage.as_ref().map(|_| ("storage", storage));
        let rate = evidence.rate.as_ref().map(|rate| match rate.of {
            RateOf::Bytes => ("bandwidth", rate.share),
            RateOf::Requests => ("requests", rate.share),
        });
        let sometimes = commit.into_iter().chain(file_locks).chain(work.into_iter().flatten());
        let sometimes = sometimes.chain(storage).chain(rate);
        always.into_iter().chain(sometimes).map(|(name, share)| (name.to_owned(), share)).collect()
    }
}

/// The time of which the shares are taken, and the share of locks in it.
fn base(evidence: &Evidence) -> (f64, f64) {
    let all_s = evidence.terminal_time_s;
    let ratio = |part: f64, whole: f64| if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 };
    match evidence.writer_wait_s {
        None => (all_s, ratio(evidence.lock_wait_s, all_s)),
        Some(wait_s) => {
            // A commit has the lock.
            let committed_s = evidence.commit_s().unwrap_or(0.0).min(all_s);
            let worked_s = (all_s - wait_s).max(committed_s);
            // Without pauses, somebody could work at any time. With pauses, nobody knows.
            let has_pauses = all_s < evidence.duration_s * f64::from(evidence.terminals) * 0.99;
            let base_s = if has_pauses { worked_s } else { worked_s.max(evidence.duration_s) };
            (base_s, ratio(base_s - worked_s, base_s))
        }
    }
}

/// Mean wait for one of so many cores, as a multiple of the time on it (Sakasegawa, An approximation formula
/// L_q = a rho^b / (1 - rho), 1977, for M/M/c). It overestimates the wait of a few closed-loop terminals, so
/// callers bound it by the time that nothing else explains.
fn waits_per_service(busy: f64, cores: u32) -> f64 {
    let (busy, cores) = (busy.clamp(0.0, 0.99), f64::from(cores.max(1)));
    busy.powf((2.0 * (cores + 1.0)).sqrt() - 1.0) / (cores * (1.0 - busy))
}
