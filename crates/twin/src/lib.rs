//! The twin of a database: what it does to storage, and when, as a discrete-event model over the devices of
//! `spindle-model`. It predicts the throughput and the latencies of one measured database on other storage.
//!
//! The crate has no clock and no I/O. Its facts ([`Facts`]) come from one measured cell and from the sources
//! of the servers; nothing in it is fitted to a prediction's target.
//!
//! * [`facts`]: what is known of the database.
//! * [`flushing`]: how changed pages reach the storage, by the servers' own rules.
//! * `engine`: terminals, cores, locks, the log, the drives, and the loop over their events.
//! * [`trace`]: places and reuse of pages from a block trace.
//!
//! # Divergence
//! * A burst of a terminal keeps its core until it ends; the kernel would share the core among several.
//! * Statements have no identity: the reads of a transaction are spread evenly over its work.
//! * A page that is changed again before it is written counts once, at its first change. How often that
//!   happens is taken from the measured cell; another storage moves it only through the age of the log.

mod draw;
mod engine;
pub mod facts;
pub mod flushing;
pub mod trace;

pub use engine::{Outcome, Ran, Waits, simulate};
pub use facts::{
    Access, Ahead, Arrivals, Commit, Drives, Facts, HotFile, Kind, Locks, Mount, Places, Reading, Region,
    Stage, Stream, Window,
};
pub use flushing::{BackgroundWriting, Flushing, Innodb, InnodbRules, Neighbors, Part, Recording, Writeback};
