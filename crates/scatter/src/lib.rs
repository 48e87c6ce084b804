//! One query over many fragments, which existing servers answer side by side.
//!
//! A query is parsed (`sql/`), its SELECT is written as fragments and a merge (`plan/`). Files are loaded into the tables
//! of several servers (`load/`). It knows no storage and no laboratory.
//!
//! Words: DeWitt and Gray, "Parallel Database Systems", 1992; partial, combine and finalize as in Gray et al., "Data
//! Cube", 1997.

pub mod execute;
pub mod facts;
pub mod load;
pub mod mapping;
pub mod plan;
pub mod proxy;
pub mod servers;
pub mod shards;
pub mod spark;
pub mod split;
pub mod sql;
