//! This machine and its user: signals, waits, other runs and what they say, progress, private directories,
//! provenance, a summary of the machine.
//!
//! The module is independent of disks, servers, workloads and records.

pub mod broadcast;
pub mod control_group;
pub mod interrupt;
pub mod other_runs;
pub mod patience;
pub mod private_directory;
pub mod progress;
pub mod provenance;
pub mod summary;
pub mod trial_time;
pub mod wall_clock;
