//! The laboratory: scenarios, servers, runs, records and reports; the library behind the binary `spindle`.
//!
//! Each module is a room. A room uses the rooms above it in this list and none below (`structure.rs`).

pub mod host;

pub mod record;

pub mod report;

pub mod claims;

pub mod stack;

pub mod server;

pub mod dataset;

pub mod volume;

pub mod scenario;

pub mod observe;

pub mod watch;

pub mod run;

pub mod advise;

pub mod study;

pub mod bench;

pub mod published;

pub mod cmd;

#[cfg(test)]
mod structure;
