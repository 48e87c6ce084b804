//! The state of a run, as other programs of this machine may read it: one JSON line per state, over the
//! socket of [`crate::host::other_runs::RunHead::socket`].

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use spindle_base::dilation::Dilation;

pub use crate::host::progress::Standing;
use crate::record::{Bottleneck, Series, StorageSeries};

/// Raised with a change that earlier readers would misunderstand. New fields are none: readers skip them.
pub const VERSION: u32 = 1;

/// Everything that a run tells of itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct State {
    pub version: u32,
    /// When anything below changed last: milliseconds of the Unix epoch.
    pub changed_at_ms: u64,
    pub title: String,
    /// Absolute path. The report will be written when all trials are done.
    pub report: PathBuf,
    pub standing: Standing,
    /// `None` while a database is loaded, and between trials.
    pub trial: Option<TrialState>,
    /// The run has ended by itself.
    pub is_over: bool,
}

impl State {
    /// Of a run that will write this page.
    pub(super) fn of_run(report: &Path) -> io::Result<State> {
        let report = std::path::absolute(report)?;
        Ok(State { version: VERSION, changed_at_ms: now_ms(), report, ..State::default() })
    }

    /// The time left becomes less also while nothing changes.
    pub(super) fn standing_at(&self, now_ms: u64) -> Standing {
        let since_s = now_ms.saturating_sub(self.changed_at_ms) as f64 / 1e3;
        Standing { left_s: (self.standing.left_s - since_s).max(0.0), ..self.standing.clone() }
    }
}

/// The trial that goes on. All its figures are in dilated time, as those of a record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TrialState {
    /// Names the cell and the trial.
    pub title: String,
    pub dilation: Dilation,
    pub cpu_count: u32,
    pub phase: Phase,
    /// The last seconds ([`Series`]); during a warm-up only the figures of the clients.
    pub series: Series,
    /// In the order of the layout, with the data's first; those of replicas follow.
    pub storage: Vec<StorageState>,
    /// Of the last second of the window.
    pub cpu: Option<CpuShares>,
    /// Of the window so far.
    pub bottleneck: Option<Bottleneck>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Phase {
    pub name: String,
    /// Milliseconds of the Unix epoch.
    pub begun_at_ms: u64,
    /// In dilated time. `None` where nobody knows; the longest, where the work ends it earlier.
    pub planned_s: Option<f64>,
    /// The phase is expected to end earlier, as a settling that waits for a steady load.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_bound: bool,
}

impl Phase {
    pub(super) fn begin(name: &str) -> Phase {
        Phase { name: name.to_owned(), begun_at_ms: now_ms(), ..Phase::default() }
    }
}

/// One mount.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StorageState {
    /// The classes of files on it.
    pub files: String,
    /// Name of its stack in the scenario.
    pub stack: String,
    pub series: StorageSeries,
}

/// Users of the cores, as shares of all cores.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CpuShares {
    /// Everything on this machine.
    pub busy: f64,
    /// With its replicas. Zero for a server that ran before the trial.
    pub server: f64,
    pub client: f64,
    pub emulator: f64,
}

impl CpuShares {
    /// Programs that are not the trial's.
    pub fn others(&self) -> f64 {
        (self.busy - self.server - self.client - self.emulator).max(0.0)
    }
}

/// Milliseconds of the Unix epoch.
pub(super) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
