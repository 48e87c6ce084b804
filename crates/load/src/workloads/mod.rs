//! The workloads, one file or folder each. The smallest is [`mock`], where a new one begins
//! (docs/extending.md).
//!
//! Belongs here: what one workload loads, sends and checks. Must not know how often it is called, what the
//! others are called, or what lies under the server.

pub mod bulk;
pub mod custom;
pub mod fsync_loop;
pub mod insert_growth;
pub mod mock;
pub mod mysqlslap;
pub mod oltp;
pub mod scan;
pub mod slap;
pub mod sql_bench;
pub mod sysbench;
pub mod tpcc;
pub mod wide_tables;
