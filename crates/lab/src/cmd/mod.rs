//! Sub-commands: one file each, arguments and a `run` function.

pub mod advise;
pub mod clean;
pub mod cli;
pub mod compare;
pub mod dataset;
pub mod disk;
pub mod docs;
pub mod doctor;
pub mod load;
pub mod new;
pub mod observe;
mod output;
pub mod plan;
pub mod published;
pub mod query;
pub mod report;
pub mod run;
pub mod server;
pub mod study;
pub mod watch;
