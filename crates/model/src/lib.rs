//! What a storage device does, and when. No clock, no I/O, no threads, no randomness without a seed, no
//! dependencies: see the crate's `clippy.toml` and ARCHITECTURE.md.

mod device;
mod request;
mod time;

pub use device::{Counters, Device, Fate, PowerCut, WriteFate};
pub use request::{Completion, Operation, Outcome, Request, RequestId, SECTOR_BYTES};
pub use time::{Instant, MICROSECOND, MILLISECOND, NANOSECOND, SECOND};
