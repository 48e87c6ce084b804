//! Sub-commands: one file each, arguments and a `run` function.

pub mod compare;
pub mod report;
