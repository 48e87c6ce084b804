//! The clients: one workload = one file (or one folder) in [`workloads`], and one line in `catalog.rs`.
//!
//! Rooms, each of which uses those before it: [`protocol`] (what passes between processes), [`sql`] (one
//! connection), [`foreign`] (another project's program), [`workload`] (what every workload is made of),
//! `runner` (time), [`workloads`], `catalog` (the list), [`process`] (the load process).

mod catalog;
pub mod foreign;
pub mod process;
pub mod protocol;
mod runner;
pub mod sql;
pub mod workload;
pub mod workloads;

pub use catalog::WorkloadSpec;
pub use process::RunSpec;
pub use protocol::{Command, Endpoint, Event, KindSummary, Metric, Second, Summary};
pub use workload::{Check, Client, Declared, Failure, Outcome, Progress, Target, Workload};
