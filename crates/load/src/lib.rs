//! The clients: one workload = one file (or one directory).
//!
//! A [`Workload`] knows its data, its terminals, its verification and its figure of merit. The [`runner`] knows time:
//! it starts one thread per terminal, measures, and talks to its parent in the lines of [`protocol`]. A new workload
//! starts as a copy of [`mock`].

pub mod bulk;
pub mod custom;
pub mod foreign;
pub mod fsync_loop;
pub mod insert_growth;
mod loading;
pub mod mock;
pub mod mysqlslap;
pub mod oltp;
pub mod protocol;
mod retrying;
pub mod runner;
pub mod scan;
pub mod slap;
pub mod sql;
pub mod sql_bench;
pub mod sysbench;
pub mod tpcc;
mod violations;
pub mod wide_tables;
mod workload;

pub use protocol::{Command, Endpoint, Event, KindSummary, RunSpec, Second, Summary, WorkloadSpec};
pub use workload::{Check, Client, Count, Data, Failure, Headline, OnProgress, Outcome, Progress, Workload};
