//! Reservations about a result.

use serde::{Deserialize, Serialize};
use spindle_base::text;

/// A reservation about a result.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Warning {
    /// The emulator answered later than the model prescribed. `share` is of all request time.
    Late { p99_us: f64, share: f64 },
    /// The machine's cores, not the storage, are the bottleneck. `client`: the load generator's share of all
    /// cores.
    CpuSaturated {
        busy: f64,
        #[serde(default)]
        client: f64,
    },
    /// The load generator used all the cores available to it.
    ClientSaturated { share: f64 },
    /// The timer thread could not get real-time priority.
    NoRealTime,
    /// The kernel refused PR_SET_IO_FLUSHER for the emulator.
    NoIoFlusher,
    /// Throughput still had a trend in the measured window.
    NotSteady { drift: f64 },
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
    /// Another run of Spindle went on during the measured window.
    OtherRun { title: String },
}

impl Warning {
    /// Whether it is the same in every trial on a machine, so that it is printed once.
    pub fn is_of_machine(&self) -> bool {
        matches!(self, Warning::NoIoFlusher)
    }

    /// The fact and the remedy.
    pub fn sentence(&self) -> String {
        match self {
            Warning::Late { p99_us, share } => format!(
                "The emulator answered late (p99 {p99_us:.0} us, {:.1} % of all request time): latencies are upper bounds. \
                 Use fewer terminals, or a machine with idle cores.",
                share * 100.0
            ),
            Warning::CpuSaturated { busy, client } => format!(
                "The cores were {:.0} % busy, {:.0} % with the load generator: this cell shows the limit of the machine, \
                 not of the storage. The true difference may be larger.",
                busy * 100.0,
                client * 100.0
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
            Warning::NotSteady { drift } => format!(
                "Throughput drifted by {:.0} % within the measured window: lengthen the warm-up.",
                drift * 100.0
            ),
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
            Warning::OtherRun { title } => format!(
                "Another run of Spindle, `{title}`, used this machine during the measured window, and each disturbed the other: \
                 measure again alone, with `spindle run --fresh --wait`.",
            ),
            Warning::HostDiskReads { major_faults } => format!(
                "The emulated data did not fit in this machine's memory ({major_faults} reads of the real disk), so latencies \
                 include the real disk: use a smaller data set."
            ),
        }
    }
}
