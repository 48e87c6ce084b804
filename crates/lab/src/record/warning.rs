//! Reservations about a result.

mod disturbance;
mod production;

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spindle_base::text;
use spindle_stats::error_of_count;

use super::{Measurement, MountView};
pub use steadiness::NeverSettled;
use steadiness::not_steady;

mod steadiness;

/// A figure of fewer events is marked: chance alone can move it by more than a quarter ([`error_of_count`]).
const FEWEST_EVENTS: u64 = 50;
/// From this share on, writes that a window puts off are told. Windows that hold checkpoints put off less; one that ends
/// before a new log is full, with all data in memory, half.
const PUT_OFF: f64 = 0.25;
/// Busy share of all cores from which they limit a trial, if [`CPU_OWN`] of all cores is the trial's own.
pub(crate) const CPU_BUSY: f64 = 0.85;
/// Lower than [`CPU_BUSY`], because kernel work for a process is often not accounted to it.
pub(crate) const CPU_OWN: f64 = 0.50;
/// Share of all cores that other programs may use. Unaccounted kernel work stays below it.
pub(crate) const CPU_OTHERS: f64 = 0.30;
/// Events of the window that the warning recommends: chance moves their rate by a fifth.
const ENOUGH_EVENTS: u64 = 100;

/// A reservation about a result.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Warning {
    /// The emulator answered later than the model prescribed. `share` is of all request time.
    Late { p99_us: f64, share: f64 },
    /// The machine's cores, not the storage, are the bottleneck. Shares of all cores: `own` of server, load
    /// generator and emulator (`None` in earlier records), `client` of the load generator.
    CpuSaturated {
        busy: f64,
        #[serde(default)]
        client: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        own: Option<f64>,
    },
    /// Programs outside the trial kept the cores busy. Shares of all cores; `own` is the trial's.
    OtherPrograms { share: f64, own: f64 },
    /// The hypervisor gave so much of all cores to others.
    Stolen { share: f64 },
    /// Timed answers between two threads were late before the trial's own processes began: the 99th
    /// percentile over the mean.
    HostLate { tail_us: f64 },
    /// The load generator used all the cores available to it.
    ClientSaturated { share: f64 },
    /// The timer thread could not get real-time priority.
    NoRealTime,
    /// The kernel refused PR_SET_IO_FLUSHER for the emulator.
    NoIoFlusher,
    /// The load was not steady: throughput had a trend in the measured window (zero for one within the
    /// bound), or the settling before it ended without success.
    NotSteady {
        drift: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        never_settled: Option<NeverSettled>,
    },
    /// The load reads, and had not yet read as much as fills the server's cache [`Warning::TURNOVERS_ENOUGH`] times.
    CacheNotWarm { turnovers: f64 },
    /// A server in production: it had not yet read so much since its start.
    ServerNotWarm { turnovers: f64 },
    /// The server failed some transactions.
    TransactionsFailed { share: f64 },
    /// Open loop: the server fell behind the requested rate. At the end, transactions waited this long for
    /// their turn.
    BehindSchedule { behind_s: f64 },
    /// The database fills so little of the disk that it looks faster than a full one.
    NearlyEmptyDisk { stack: String, size_bytes: u64, share: f64 },
    /// The host's own disk was read while the emulated one was measured.
    HostDiskReads { major_faults: u64 },
    /// Semi-synchronous commits went on without a replica's acknowledgement; `share` is of all commits.
    SemiSyncFellBack { transactions: u64, share: f64 },
    /// Time after the window until a replica had applied everything that the primary wrote in it; `None` if
    /// not done after `waited_s`.
    ReplicaBehind { replica: String, catch_up_s: Option<f64>, waited_s: f64 },
    /// A replica did not answer the question for its progress, asked once a second.
    ReplicaSilent { replica: String, share: f64 },
    /// In dilated time, the server wrote its data files to the page cache, which the kernel empties in real
    /// time.
    WritebackInRealTime,
    /// Another run of Spindle went on during the measured window.
    OtherRun { title: String },
    /// Somebody set the clock of the machine during the trial, or it slept. Negative for a clock set back.
    ClockJumped { by_s: f64 },
    /// The metric counts too few events. Derived when records are read, never stored.
    FewEvents { events: u64, duration_s: f64 },
    /// Of the pages that the server had to write for the window's changes, it left this share for later. Derived.
    WritesPutOff { share: f64 },
    /// Two of the kernel's accounts of requests in flight differ by this share. Derived, as the next.
    ConcurrencyDisagrees { share: f64 },
    /// The kernel and the emulator counted different numbers of bytes.
    BytesDisagree { share: f64 },
    /// A server in production: no whole checkpoint was in the window, or the server does not show its
    /// checkpoints. `needed_s` is the length of a window that would have one at this rate, `None` if unknown.
    NoWholeCheckpoint {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        needed_s: Option<f64>,
    },
    /// A server in production: its counters leave open which statements were transactions of their own.
    TransactionsUncertain { least_per_s: f64, most_per_s: f64 },
    /// A server in production runs on another machine, so nothing is known of its cores and its storage.
    ServerElsewhere,
    /// A server in production: its process was not found.
    ServerProcessUnknown,
    /// A server in production: the block device of its data was not found.
    StorageUnknown,
}

/// A measured window in which `events` give a rate with a bearable error; `None` without an event.
fn window_needed_s(events: u64, duration_s: f64) -> Option<f64> {
    (events > 0).then(|| duration_s * ENOUGH_EVENTS as f64 / events as f64)
}

/// A window for a scenario: at least so many seconds, rounded up.
fn rounded_up(seconds: f64) -> String {
    match seconds {
        ..=120.0 => format!("{:.0} s", (seconds / 10.0).ceil() * 10.0),
        _ => format!("{:.0} min", (seconds / 60.0).ceil()),
    }
}

/// The share of the pages that became dirty within the window and were not written in it, from the second-by-second
/// figures of InnoDB. `None` for a server that does not count its dirty pages.
fn put_off(server: &BTreeMap<String, Vec<f64>>) -> Option<f64> {
    let (dirty, written) = (server.get("dirty_pages")?, server.get("pages_written_per_s")?);
    // The level at the end of the first second is that from which the others are counted.
    let more = (dirty.last()? - dirty.first()?).max(0.0);
    let written: f64 = written.iter().skip(1).sum();
    Some(more / (more + written)).filter(|share| share.is_finite())
}

fn few_events(events: u64, duration_s: f64) -> String {
    let window = text::duration(Duration::from_secs_f64(duration_s));
    let Some(needed_s) = window_needed_s(events, duration_s) else {
        let longer = rounded_up(duration_s * 10.0);
        return format!(
            "None of the transactions that the figure counts ended in the measured window of {window}: the figure says \
             nothing. Set `measure = \"{longer}\"` or more."
        );
    };
    let percent = |events: u64| format!("{:.0} %", error_of_count(events) * 100.0);
    format!(
        "Only {events} of the transactions that the figure counts ended in the measured window of {window}: chance \
         alone can move it by {}. Set `measure = \"{}\"`: at this rate about {ENOUGH_EVENTS} end in it ({}).",
        percent(events),
        rounded_up(needed_s),
        percent(ENOUGH_EVENTS)
    )
}

fn cpu_saturated(busy: f64, client: f64, own: Option<f64>) -> String {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let own = own.map_or_else(String::new, |own| format!("{} with the trial itself and ", percent(own)));
    format!(
        "The cores were {} busy, {own}{} with the load generator: the figure shows the limit of the machine, not of the \
         storage. The true difference may be larger; with `dilation = \"as needed\"` the cores look faster.",
        percent(busy),
        percent(client)
    )
}

impl Warning {
    /// What the load must have read before the window, in sizes of the server's cache.
    pub(crate) const TURNOVERS_ENOUGH: f64 = 2.5;
    /// Reads of a transaction below which it does not matter what the cache holds.
    pub(crate) const READS_RARE: f64 = 0.05;

    /// Of a window before which the load had turned over the server's cache so many times.
    pub(crate) fn of_cache(turnovers: Option<f64>, reads: f64, transactions: u64) -> Option<Warning> {
        let is_read = reads >= transactions as f64 * Warning::READS_RARE && reads > 0.0;
        let turnovers = turnovers.filter(|turnovers| is_read && *turnovers < Warning::TURNOVERS_ENOUGH)?;
        Some(Warning::CacheNotWarm { turnovers })
    }

    /// The same of a server in production, which no scenario warms up.
    pub(crate) fn in_production(self) -> Warning {
        match self {
            Warning::CacheNotWarm { turnovers } => Warning::ServerNotWarm { turnovers },
            other => other,
        }
    }

    /// Which programs kept the cores busy: a warning for the trial's own, and one for others. `own` is `None`
    /// where the server's part is unknown.
    pub(crate) fn of_cores(busy: f64, own: Option<f64>, client: f64) -> impl Iterator<Item = Warning> {
        let is_full = busy >= CPU_BUSY && own.is_none_or(|own| own >= CPU_OWN);
        let saturated = is_full.then_some(Warning::CpuSaturated { busy, client, own });
        let others = own.map(|own| Warning::OtherPrograms { share: busy - own, own });
        saturated.into_iter().chain(others.filter(|others| others.severity() >= CPU_OTHERS))
    }

    /// The warnings that follow from a measurement alone, so that earlier records have them too.
    pub fn derived(measurement: &Measurement) -> Vec<Warning> {
        let metric_events = measurement.metric_events();
        let few = metric_events.filter(|events| *events < FEWEST_EVENTS);
        let duration_s = measurement.duration_s;
        let few = few.map(|events| Warning::FewEvents { events, duration_s });
        // Fixed work ends where it ends, and a server in production has its own warning of checkpoints.
        let is_window = metric_events.is_some() && measurement.production.is_none();
        let put_off = is_window.then(|| put_off(&measurement.series.server)).flatten();
        let put_off = put_off.filter(|share| *share >= PUT_OFF).map(|share| Warning::WritesPutOff { share });
        let of_replicas = measurement.replication.iter().flat_map(|replication| &replication.replicas);
        let mounts = measurement.mounts.iter().chain(of_replicas.flat_map(|replica| &replica.mounts));
        few.into_iter().chain(put_off).chain(mounts.flat_map(MountView::broken_identities)).collect()
    }

    /// Earlier records call the cores saturated whoever used them; the measurement says whether it was the
    /// trial.
    pub(super) fn with_own_share(self, measurement: &Measurement, cpu_count: u32) -> Vec<Warning> {
        match self {
            Warning::CpuSaturated { busy, client, own: None }
                if cpu_count > 0 && measurement.duration_s > 0.0 =>
            {
                Warning::of_cores(busy, measurement.own_cpu_share(cpu_count), client).collect()
            }
            other => vec![other],
        }
    }

    pub fn is_of_few_events(&self) -> bool {
        matches!(self, Warning::FewEvents { .. })
    }

    pub fn is_of_steadiness(&self) -> bool {
        matches!(self, Warning::NotSteady { .. })
    }

    /// Whether it is the same in every trial on a machine, so that it is printed once.
    pub fn is_of_machine(&self) -> bool {
        matches!(self, Warning::NoIoFlusher)
    }

    /// The kind, for a table.
    pub fn name(&self) -> &'static str {
        self.name_and_severity().0
    }

    /// Comparable within one kind.
    pub fn severity(&self) -> f64 {
        self.name_and_severity().1
    }

    fn name_and_severity(&self) -> (&'static str, f64) {
        match self {
            Warning::Late { p99_us, .. } => ("late", *p99_us),
            Warning::CpuSaturated { busy, .. } => ("CPU saturated", *busy),
            Warning::OtherPrograms { share, .. } => ("other programs", *share),
            Warning::Stolen { share } => ("stolen cores", *share),
            Warning::HostLate { tail_us } => ("late host", *tail_us),
            Warning::ClientSaturated { share } => ("client saturated", *share),
            Warning::NoRealTime => ("no real time", 0.0),
            Warning::NoIoFlusher => ("no I/O flusher", 0.0),
            // A settling without success is worse than any drift, and its drift tells which is worst.
            Warning::NotSteady { drift, never_settled } => {
                ("not steady", drift.abs() + if never_settled.is_some() { 100.0 } else { 0.0 })
            }
            Warning::CacheNotWarm { turnovers } | Warning::ServerNotWarm { turnovers } => {
                ("cold cache", -turnovers)
            }
            Warning::TransactionsFailed { share } => ("failures", *share),
            Warning::BehindSchedule { behind_s } => ("behind schedule", *behind_s),
            Warning::HostDiskReads { major_faults } => ("host disk reads", *major_faults as f64),
            Warning::SemiSyncFellBack { share, .. } => ("fell back to async", *share),
            Warning::ReplicaBehind { catch_up_s, .. } => {
                ("replica behind", catch_up_s.unwrap_or(f64::INFINITY))
            }
            Warning::ReplicaSilent { share, .. } => ("replica silent", *share),
            Warning::NearlyEmptyDisk { share, .. } => ("nearly empty disk", 1.0 - share),
            Warning::WritebackInRealTime => ("writeback in real time", 0.0),
            Warning::OtherRun { .. } => ("another run", 0.0),
            Warning::ClockJumped { by_s } => ("clock jumped", by_s.abs()),
            Warning::FewEvents { events, .. } => ("few transactions", -(*events as f64)),
            Warning::WritesPutOff { share } => ("writes put off", *share),
            Warning::ConcurrencyDisagrees { share } => ("concurrency disagrees", *share),
            Warning::BytesDisagree { share } => ("bytes disagree", *share),
            Warning::NoWholeCheckpoint { needed_s } => {
                ("no whole checkpoint", needed_s.unwrap_or(f64::INFINITY))
            }
            Warning::TransactionsUncertain { least_per_s, most_per_s } => {
                ("transactions uncertain", most_per_s / least_per_s.max(f64::MIN_POSITIVE))
            }
            Warning::ServerElsewhere => ("server elsewhere", 0.0),
            Warning::ServerProcessUnknown => ("server process unknown", 0.0),
            Warning::StorageUnknown => ("storage unknown", 0.0),
        }
    }

    /// The fact and the remedy.
    pub fn sentence(&self) -> String {
        match self {
            Warning::Late { p99_us, share } => format!(
                "The emulator answered late (p99 {p99_us:.0} us, {:.1} % of all request time): latencies are upper bounds. \
                 Use fewer terminals, a machine with idle cores, or `dilation = \"as needed\"`.",
                share * 100.0
            ),
            Warning::CpuSaturated { busy, client, own } => cpu_saturated(*busy, *client, *own),
            Warning::OtherPrograms { share, own } => format!(
                "{:.0} % of the cores were used by other programs, {:.0} % by the trial itself: the figure may be lower than \
                 on an idle machine. Stop them and measure again.",
                share * 100.0,
                own * 100.0
            ),
            Warning::Stolen { share } => format!(
                "The hypervisor gave {:.0} % of the cores' time to other machines: the figure may be lower than on a host of \
                 its own. Measure again at a quieter time.",
                share * 100.0
            ),
            Warning::HostLate { tail_us } => format!(
                "Timers of this machine were {tail_us:.0} us late before the trial began (p99 of answers between two threads \
                 over their mean): latencies may be upper bounds. Measure again at a quieter time.",
            ),
            Warning::ClientSaturated { share } => format!(
                "The load generator used {:.0} % of the cores available to its threads, so it may be the bottleneck: add threads or cores.",
                share * 100.0
            ),
            Warning::NoRealTime => {
                "The emulator's timer runs without SCHED_FIFO, so its answers can be late under load: \
                 run as root, or grant CAP_SYS_NICE."
                    .to_owned()
            }
            Warning::NoIoFlusher => {
                "The kernel refused PR_SET_IO_FLUSHER to the emulator: under a memory limit, the emulator can wait for its \
                 own disk, and is then killed. Grant CAP_SYS_RESOURCE, or leave memory free."
                    .to_owned()
            }
            Warning::NotSteady { drift, never_settled } => not_steady(*drift, never_settled.as_ref()),
            Warning::CacheNotWarm { turnovers } => format!(
                "Before the window, the load had read {turnovers:.1} times what fills the server's cache: until {} times, it reads \
                 more than it will later, so the storage counts for more than it will. Set `warm_up = \"until warm\"` with \
                 `start = \"warm-fast\"`, or lengthen the warm-up.",
                Warning::TURNOVERS_ENOUGH
            ),
            Warning::ServerNotWarm { turnovers } => production::not_warm(*turnovers),
            Warning::TransactionsFailed { share } => {
                format!("{:.2} % of the transactions failed and were not counted.", share * 100.0)
            }
            Warning::BehindSchedule { behind_s } => format!(
                "The server was slower than the requested rate: at the end of the window, transactions started {behind_s:.1} s \
                 late, and latencies grow with the length of the window. Ask for a lower rate.",
            ),
            Warning::SemiSyncFellBack { transactions, share } => format!(
                "{transactions} commits ({:.1} %) continued without a replica's acknowledgement, because none came in time: \
                 the figure is partly that of asynchronous replication. Raise `timeout`, or give the replica faster storage.",
                share * 100.0
            ),
            Warning::ReplicaBehind { replica, catch_up_s: Some(seconds), .. } => format!(
                "{replica} needed {seconds:.1} s after the window to apply the window's writes: it does not keep up with this \
                 load, and the figure is the primary's alone."
            ),
            Warning::ReplicaBehind { replica, catch_up_s: None, waited_s } => format!(
                "{replica} had not applied the window's writes {waited_s:.0} s after the window: it does not keep up with this \
                 load, and the figure is the primary's alone.",
            ),
            Warning::ReplicaSilent { replica, share } => format!(
                "{replica} did not answer in {:.0} % of the seconds, so its lag is unknown then: it stood still, or waited for its storage.",
                share * 100.0
            ),
            Warning::NearlyEmptyDisk { stack, size_bytes, share } => format!(
                "The data fill {:.0} % of the {} of `{stack}`: a short-stroked disk and an empty SSD look faster than a full one. \
                 Leave `size` out to fill half.",
                share * 100.0,
                text::size(*size_bytes)
            ),
            Warning::WritebackInRealTime => {
                "The server wrote its data files to the page cache, and the kernel's timers that empty it are not dilated: \
                 its writes did not come when they would in real time. Where the server can, let it write directly (`innodb_flush_method = \
                 \"O_DIRECT\"`)."
                    .to_owned()
            }
            Warning::OtherRun { title } => format!(
                "Another run of Spindle, `{title}`, used this machine during the measured window, and each disturbed the other: \
                 measure again alone, with `spindle run SCENARIO --fresh --wait`.",
            ),
            Warning::ClockJumped { by_s } => format!(
                "The clock of the machine jumped by {by_s:+.0} s during a trial, or the machine slept: times of day are off. The \
                 figures are not, because they come from a clock that cannot be set."
            ),
            Warning::FewEvents { events, duration_s } => few_events(*events, *duration_s),
            Warning::WritesPutOff { share } => format!(
                "Of the pages that the server had to write for the changes in the window, it left {:.0} % for later: the storage \
                 had less to do than it will once the log or the cache is full of changes. Lengthen the warm-up, with \
                 `start = \"warm-fast\"`, and the window, until checkpoints are in it.",
                share * 100.0
            ),
            Warning::ConcurrencyDisagrees { share } => format!(
                "Throughput times response time, as the kernel counted them on a device, differs by {:.0} % from the requests \
                 in flight that it counted (Little's law): latencies of the storage and the bottleneck are uncertain.",
                share * 100.0
            ),
            Warning::BytesDisagree { share } => format!(
                "The kernel's requests times their size differ by {:.0} % from the bytes that the emulator served: something \
                 else moved data on the way, so figures per transaction are uncertain.",
                share * 100.0
            ),
            Warning::NoWholeCheckpoint { needed_s } => production::no_whole_checkpoint(*needed_s),
            Warning::TransactionsUncertain { least_per_s, most_per_s } => {
                production::transactions_uncertain(*least_per_s, *most_per_s)
            }
            Warning::ServerElsewhere => production::SERVER_ELSEWHERE.to_owned(),
            Warning::ServerProcessUnknown => production::SERVER_PROCESS_UNKNOWN.to_owned(),
            Warning::StorageUnknown => production::STORAGE_UNKNOWN.to_owned(),
            Warning::HostDiskReads { major_faults } => format!(
                "The emulated data did not fit in this machine's memory ({major_faults} reads of the real disk), so latencies \
                 include the real disk: use a smaller data set."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cold_cache_matters_to_a_load_that_reads() {
        let warning = |turnovers: Option<f64>, reads: f64| Warning::of_cache(turnovers, reads, 1_000);
        insta::assert_snapshot!(warning(Some(0.93), 3_000.0).unwrap().sentence(), @r#"Before the window, the load had read 0.9 times what fills the server's cache: until 2.5 times, it reads more than it will later, so the storage counts for more than it will. Set `warm_up = "until warm"` with `start = "warm-fast"`, or lengthen the warm-up."#);
        assert_eq!(warning(Some(2.6), 3_000.0), None);
        assert_eq!(warning(Some(0.93), 40.0), None);
        assert_eq!(warning(None, 3_000.0), None);
        assert_eq!(Warning::of_cache(Some(0.93), 0.0, 0), None);
    }

    #[test]
    fn writes_are_put_off_while_dirty_pages_become_more() {
        let share = |dirty: &[f64], written: &[f64]| {
            let series = [("dirty_pages", dirty), ("pages_written_per_s", written)];
            put_off(&series.map(|(name, values)| (name.to_owned(), values.to_vec())).into())
        };
        assert_eq!(share(&[100.0, 200.0, 400.0], &[50.0, 60.0, 40.0]), Some(0.75));
        assert_eq!(share(&[400.0, 100.0, 350.0], &[50.0, 600.0, 40.0]), Some(0.0));
        assert_eq!(share(&[0.0, 0.0], &[0.0, 0.0]), None, "a load that writes nothing");
        assert_eq!(share(&[], &[]), None);
        assert_eq!(put_off(&BTreeMap::new()), None);
        insta::assert_snapshot!(Warning::WritesPutOff { share: 0.553 }.sentence(), @r#"Of the pages that the server had to write for the changes in the window, it left 55 % for later: the storage had less to do than it will once the log or the cache is full of changes. Lengthen the warm-up, with `start = "warm-fast"`, and the window, until checkpoints are in it."#);
    }

    #[test]
    fn the_window_that_is_needed_follows_from_the_rate() {
        insta::assert_snapshot!(few_events(1, 3.0), @r#"Only 1 of the transactions that the figure counts ended in the measured window of 3 s: chance alone can move it by 196 %. Set `measure = "5 min"`: at this rate about 100 end in it (20 %)."#);
        insta::assert_snapshot!(few_events(39, 30.0), @r#"Only 39 of the transactions that the figure counts ended in the measured window of 30 s: chance alone can move it by 31 %. Set `measure = "80 s"`: at this rate about 100 end in it (20 %)."#);
        insta::assert_snapshot!(few_events(0, 3.0), @r#"None of the transactions that the figure counts ended in the measured window of 3 s: the figure says nothing. Set `measure = "30 s"` or more."#);
    }
}
