//! What a storage device does, and when. No clock, no I/O, no threads, no randomness without a seed, no
//! dependencies: see the crate's `clippy.toml` and ARCHITECTURE.md.

mod closed_loop;
mod commands;
mod device;
mod disk;
mod flash;
mod null;
mod partition;
mod profile;
mod request;
mod rng;
mod stack;
mod time;
mod virtual_time;
mod volatile;

pub use closed_loop::{ClosedLoop, Driver, Measured, Order, Sample};
pub use device::{Ageing, Counters, Device, Fate, PowerCut, WriteFate};
pub use disk::Disk;
pub use flash::Flash;
pub use null::Null;
pub use partition::Partition;
pub use profile::{DiskParameters, FlashParameters, Invalid, Parameters, Stroke, VictimChoice, WriteCache};
pub use request::{Completion, Operation, Outcome, Request, RequestId, SECTOR_BYTES};
pub use rng::{Rng, split_mix};
pub use stack::StackSpec;
pub use time::{Instant, MICROSECOND, MILLISECOND, NANOSECOND, SECOND};
pub use virtual_time::VirtualTime;
