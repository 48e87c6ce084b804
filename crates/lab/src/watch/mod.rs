//! A run as it goes on: the state that it publishes, and the view of it in another terminal.
//!
//! `state.rs` is the format, `publisher.rs` fills it in the process of the run. `follow.rs` finds a run and
//! reads its states. `view/` and `line.rs` are pure functions of a state; `screen.rs` puts a view on a
//! terminal.

pub mod follow;
pub mod line;
mod publisher;
pub mod screen;
mod state;
#[cfg(test)]
mod tests;
pub mod view;

pub use publisher::{LoadFacts, Publisher, WindowFeed};
pub use state::{CpuShares, EventState, Phase, Standing, State, StorageState, TrialState, VERSION};
