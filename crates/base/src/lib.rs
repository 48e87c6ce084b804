//! Small things that every other crate needs and none of them owns: sizes and durations as people write them,
//! the user's mistake, text for terminals, child processes, what `/proc` says, histograms as text, random
//! numbers.
//!
//! What belongs here is needed by two crates and speaks of no disk, server or workload.

pub mod child;
pub mod explain;
pub mod hash;
pub mod histogram;
pub mod mistake;
pub mod near;
pub mod passwords;
pub mod proc;
pub mod random;
pub mod text;
pub mod units;

pub use mistake::Mistake;
