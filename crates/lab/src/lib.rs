//! The laboratory: scenarios, servers, runs, records and reports; the library behind the binary `spindle`.

pub mod record;
pub mod server;
pub mod storage;
