//! Helpers shared by the other crates: sizes and durations in text, the user's mistakes, text for terminals,
//! child processes, `/proc`, histograms as text, random numbers.
//!
//! A module belongs here if two crates need it and it knows nothing of disks, servers or workloads.

pub mod affinity;
pub mod child;
pub mod dilation;
pub mod explain;
pub mod form;
pub mod hash;
pub mod histogram;
pub mod mistake;
pub mod near;
pub mod parallel;
pub mod passwords;
pub mod proc;
pub mod random;
pub mod text;
pub mod units;

pub use mistake::Mistake;
