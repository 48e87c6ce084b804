//! The real-time driver: a stack behind a FUSE file behind a loop device.

mod statistics;

pub use statistics::{OperationStatistics, Statistics};
