//! A simulation: terminals, cores, rows, a file, the log and the drives, and the loop over their events.
//!
//! `terminals.rs` leads a transaction through its work, `events.rs` is the loop; the other files are parts that
//! know nothing of each other.

mod agenda;
mod background;
mod cores;
mod drive;
mod events;
mod file;
mod generator;
mod log;
mod outcome;
mod rows;
#[cfg(test)]
mod steady;
mod terminals;
#[cfg(test)]
mod tests;

pub use events::simulate;
pub use outcome::{Outcome, Ran, Waits};
