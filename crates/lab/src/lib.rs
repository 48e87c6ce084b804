//! The laboratory: scenarios, servers, runs, records and reports; the library behind the binary `spindle`.

pub mod child;
pub mod client;
pub mod cmd;
pub mod compare;
pub mod record;
pub mod report;
pub mod server;
pub mod storage;
