//! The clients: one workload = one file.

pub mod mock;
pub mod protocol;
pub mod tpcc;

pub use protocol::{Command, Endpoint, Event, KindSummary, RunSpec, Second, Summary, WorkloadSpec};
