//! The reason of a verdict: its figures in one sentence.

use super::shares::Shares;
use super::{CORE_BUSY, percent};
use crate::record::{
    BottleneckKind, BusyThread, CPU_OTHERS, CommitEstimate, Evidence, RateOf, RedoEvidence, StorageEvidence,
};

pub(super) fn reason(kind: BottleneckKind, evidence: &Evidence, shares: &Shares) -> String {
    let cores = evidence.cores_words();
    let of_time = |share: f64| format!("{} of {}", percent(share), evidence.whose_time());
    match kind {
        BottleneckKind::Client => evidence.client_words(shares),
        BottleneckKind::Cpu if shares.queue > shares.work => format!(
            "{} went into work on a core and about {} into waits for one; {cores}",
            of_time(shares.work),
            percent(shares.queue)
        ),
        BottleneckKind::Cpu => cores.replacen('t', "T", 1),
        BottleneckKind::OneCore => match evidence.busy_thread() {
            Some(BusyThread { name, share }) => {
                format!("The thread `{name}` of the server kept one core {} busy; {cores}", percent(*share))
            }
            None => format!("{} went into work on a core; {cores}", of_time(shares.work)),
        },
        BottleneckKind::Bandwidth | BottleneckKind::RequestRate => evidence.rate_words(),
        BottleneckKind::Locks if evidence.writer_wait_s.is_some() => {
            format!("In {} of the time each writer waited for another one; {cores}", percent(shares.locks))
        }
        BottleneckKind::Locks => format!("{} went into row locks; {cores}", of_time(shares.locks)),
        BottleneckKind::FileLocks => format!(
            "{} passed in waits for the lock of a file, which on XFS a buffered write has to itself; {cores}",
            of_time(shares.file_locks)
        ),
        BottleneckKind::ReadLatency => format!("{}; {cores}", evidence.read_words(shares)),
        BottleneckKind::CommitLatency | BottleneckKind::Replica => {
            format!("{}; {cores}", evidence.commit_words(shares.commit))
        }
        BottleneckKind::WriteLatency => format!("{}; {cores}", evidence.write_words(shares)),
        BottleneckKind::Unknown => evidence.unknown_words(shares),
    }
}

impl RedoEvidence {
    /// A phrase that continues a sentence ending with COMMIT.
    fn words(&self) -> String {
        let flushes = match self.flush_latency_mean_ms {
            Some(ms) => format!(" and flushes of {ms:.2} ms"),
            None => String::new(),
        };
        format!(", with writes of {:.2} ms{flushes} on {}", self.write_latency_mean_ms, self.place)
    }
}

impl StorageEvidence {
    /// The device in a sentence, with its requests in flight.
    fn words(&self) -> String {
        let device = self.place.as_ref().map_or_else(|| "the device".to_owned(), String::clone);
        let flushes = self.flush_s / (self.write_s + self.flush_s).max(f64::MIN_POSITIVE);
        let flushes = if flushes >= 0.01 {
            format!(", {} of it with FLUSHes", percent(flushes))
        } else {
            String::new()
        };
        format!("{device} wrote (busy for {}{flushes})", percent(self.busy))
    }
}

impl Evidence {
    /// CPU time of the load generator.
    pub(super) fn client_s(&self) -> f64 {
        self.client_cpu * f64::from(self.cpu_count) * self.duration_s
    }

    /// As counted, or else all foreground reads.
    pub(super) fn read_s(&self) -> f64 {
        self.read_wait_s.unwrap_or(self.foreground_reads * self.read_latency_mean_ms / 1e3)
    }

    /// From the stopwatch, or else from the estimate.
    pub(super) fn commit_s(&self) -> Option<f64> {
        let estimate =
            |commits: CommitEstimate| commits.count * commits.wait_ms / 1e3 + self.acknowledgement_wait_s;
        self.commit_wait_s.or(self.commits.map(estimate))
    }

    /// The part of the commits' time that is a replica's.
    pub(super) fn acknowledged_share(&self) -> f64 {
        match self.commit_s() {
            Some(commit_s) if commit_s > 0.0 => (self.acknowledgement_wait_s / commit_s).min(1.0),
            _ => 0.0,
        }
    }

    /// A thread of the server that has a core for itself and needs more.
    pub(super) fn busy_thread(&self) -> Option<&BusyThread> {
        let busiest = self.threads.as_ref()?.busiest.as_ref()?;
        (busiest.share >= CORE_BUSY).then_some(busiest)
    }

    /// The time of which the shares are.
    fn whose_time(&self) -> &'static str {
        match self.writer_wait_s {
            Some(wait_s) if wait_s > 0.0 => "the working terminals' time",
            _ => "the terminals' time",
        }
    }

    /// A clause that ends a sentence. Other programs are named where they use much, because a busy core is
    /// then no sign of the trial.
    pub(super) fn cores_words(&self) -> String {
        // A server that was observed from another machine.
        if self.cpu_count == 0 {
            return "the cores are unknown.".to_owned();
        }
        let cores = match self.cpu_count {
            1 => "the core was".to_owned(),
            count => format!("the {count} cores were"),
        };
        let (busy, others) = (percent(self.cpu_busy), self.cpu_busy - self.cpu_own);
        if self.is_server_cpu_unknown || others < CPU_OTHERS {
            return format!("{cores} {busy} busy.");
        }
        let (own, others) = (percent(self.cpu_own), percent(others));
        format!("{cores} {busy} busy, {own} with the trial and {others} with other programs.")
    }

    fn client_words(&self, shares: &Shares) -> String {
        if self.client_share < super::CLIENT_BUSY {
            let (client, cores) = (percent(shares.client_work), self.cores_words());
            return format!(
                "{client} of the terminals' time went into the load generator's own work; {cores}"
            );
        }
        let share = percent(self.client_share);
        format!("The load generator used {share} of the cores that its threads can use.")
    }

    fn rate_words(&self) -> String {
        let Some(rate) = &self.rate else { return String::new() };
        let device = rate.place.as_ref().map_or_else(|| "the device".to_owned(), String::clone);
        let limit = match rate.of {
            RateOf::Bytes => format!("bandwidth of {:.0} MB/s", rate.limit / 1e6),
            RateOf::Requests => format!("{:.0} requests per second", rate.limit),
        };
        format!("{} of the {limit} of {device} was used.", percent(rate.share))
    }

    fn read_words(&self, shares: &Shares) -> String {
        if shares.read < shares.storage_reads {
            let storage = self.storage.clone().unwrap_or_default();
            let device = storage.place.unwrap_or_else(|| "the device".to_owned());
            let (share, busy) = (percent(shares.reads()), percent(storage.busy));
            return format!(
                "Up to {share} of {} passed while {device} read (busy for {busy})",
                self.whose_time()
            );
        }
        let from = self.read_place.as_ref().map(|place| format!(" from {place}")).unwrap_or_default();
        let (share, whose) = (percent(shares.read), self.whose_time());
        let latency_ms = self.read_latency_mean_ms;
        if self.read_wait_s.is_some() {
            return format!(
                "{share} of {whose} passed in waits for reads{from}, which took {latency_ms:.2} ms each"
            );
        }
        format!(
            "{share} of {whose} went into {:.0} reads of {latency_ms:.2} ms each{from}",
            self.foreground_reads
        )
    }

    fn write_words(&self, shares: &Shares) -> String {
        let storage = self.storage.as_ref().map_or_else(String::new, StorageEvidence::words);
        let commits = match shares.commit {
            commit if commit >= 0.01 => format!(", and {} went into COMMIT", percent(commit)),
            _ => String::new(),
        };
        let share = percent(shares.storage_writes);
        format!("Up to {share} of {} passed outside of COMMIT while {storage}{commits}", self.whose_time())
    }

    fn commit_words(&self, share: f64) -> String {
        let (share, commit_s, whose) = (percent(share), self.commit_s().unwrap_or(0.0), self.whose_time());
        let into = match (self.commit_wait_s, self.commits) {
            (None, Some(CommitEstimate { count, .. })) => format!(
                "About {share} of {whose} went into {count:.0} commits of {:.2} ms each (estimated from the server's counters)",
                commit_s * 1e3 / count
            ),
            _ => format!("{share} of {whose} went into COMMIT"),
        };
        let redo = self.redo.as_ref().map(RedoEvidence::words).unwrap_or_default();
        let acknowledged = match self.acknowledgement_wait_s {
            0.0 => String::new(),
            _ => {
                let share = percent(self.acknowledged_share());
                format!(", {share} of it into waiting for a replica's acknowledgement")
            }
        };
        format!("{into}{redo}{acknowledged}")
    }

    fn unknown_words(&self, shares: &Shares) -> String {
        let commits = match (self.commit_wait_s, self.commit_s()) {
            (Some(_), _) => percent(shares.commit),
            (None, Some(_)) => format!("about {}", percent(shares.commit)),
            (None, None) => "an unknown part".to_owned(),
        };
        let work = self.threads.as_ref().map(|_| format!(", work on a core {}", percent(shares.work)));
        format!(
            "No single cause: reads took {} of {}, commits {commits}, row locks {}{}; {}",
            percent(shares.read),
            self.whose_time(),
            percent(shares.locks),
            work.unwrap_or_default(),
            self.cores_words()
        )
    }
}
