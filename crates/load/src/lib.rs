//! The clients of a trial. One workload is one file (or one folder) in [`workloads`] and one line in
//! `catalog.rs`.
//!
//! Modules, each of which uses those before it: [`protocol`] (messages between processes), [`sql`] (one
//! connection), [`foreign`] (another project's program), [`workload`] (traits and tools of all workloads),
//! `runner` (time), [`workloads`], `catalog` (the list), [`process`] (the load process).

#[macro_use]
mod catalog;
pub mod foreign;
pub mod process;
pub mod protocol;
mod runner;
pub mod sql;
pub mod workload;
pub mod workloads;

pub use catalog::{WorkloadSpec, Written, WrittenKey};
pub use process::RunSpec;
pub use protocol::{Command, Endpoint, Event, KindSummary, Metric, Part, Second, Summary};
pub use workload::{Check, Client, Declared, Failure, Outcome, Progress, Target, Workload};
