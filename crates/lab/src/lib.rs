//! The laboratory: scenarios, servers, runs, records and reports; the library behind the binary `spindle`.

pub mod profile_file;
pub mod raw;
pub mod record;
pub mod server;
pub mod storage;
pub mod units;
pub mod user_error;
