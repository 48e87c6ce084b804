//! The laboratory: scenarios, servers, runs, records and reports; the library behind the binary `spindle`.

pub mod child;
pub mod cli;
pub mod client;
pub mod cmd;
pub mod compare;
pub mod doctor;
pub mod emulated;
pub mod interrupt;
pub mod limiter;
pub mod measurement;
pub mod observe;
pub mod plain_directory;
pub mod plan;
pub mod profile_file;
pub mod progress;
pub mod provenance;
pub mod record;
pub mod records_file;
pub mod report;
pub mod run;
pub mod scenario;
pub mod server;
pub mod storage;
pub mod text;
pub mod units;
pub mod user_error;
