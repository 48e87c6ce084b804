//! This machine and its user: signals, waiting, progress, directories of our own, what the machine is.
//!
//! It knows no disk, server, workload or record.

pub mod control_group;
pub mod interrupt;
pub mod patience;
pub mod private_directory;
pub mod progress;
pub mod provenance;
