//! One sub-command = one file.

pub mod compare;
pub mod load;
pub mod report;
