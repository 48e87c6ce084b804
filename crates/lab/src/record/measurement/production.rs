//! What a record of a server in production has besides the figures of a trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::TraceView;

/// A window in which a server was used by clients of its own, and only its counters were read.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct ProductionView {
    /// Planned time from sample to sample. Each series has one value for it in place of one per second, and
    /// rates are per second nevertheless.
    pub every_s: f64,
    /// After the first one.
    pub sample_count: u32,
    /// What the transactions were counted by, in words.
    pub counted_by: String,
    /// Mean number of sessions that were at work when a sample was taken, without ours. `None` if the server
    /// does not show it to us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions_at_work: Option<f64>,
    /// Mean time that a transaction is at work, by Little's law: sessions at work over transactions per
    /// second. It follows from two means, and no transaction was timed. Time in which a client holds a
    /// transaction open without a statement is not in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_at_work_ms: Option<f64>,
    /// Whether a whole checkpoint was in the window. `None` if the server does not show its checkpoints to
    /// us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_whole_checkpoint: Option<bool>,
    /// `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<SampledTrace>,
}

/// The block trace of a device by the kernel's own events, in slices of time.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct SampledTrace {
    /// Kernel name.
    pub device: String,
    /// The file, which lies beside the record. In it the slices follow each other without the time between
    /// them, and its duration is theirs. The mount on this device has it too.
    pub trace: TraceView,
    pub slice_count: u32,
    /// Requests that the kernel's buffer had no room for.
    pub lost_count: u64,
}
