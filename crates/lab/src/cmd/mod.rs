//! One sub-command = one file.

pub mod load;
