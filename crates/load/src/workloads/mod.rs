//! The workloads, one file or folder each. The smallest is [`mock`], a template for new ones
//! (docs/extending.md).
//!
//! Belongs here: the data, requests and checks of one workload. Must not know how often it is called, the
//! names of other workloads, or the storage under the server.

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
