//! Models of storage devices: the effect and the time of each request. The crate has no clock, no I/O, no
//! threads, no randomness without a seed and no dependencies: see its `clippy.toml` and ARCHITECTURE.md.

mod alignment;
mod change;
mod children;
mod closed_loop;
mod device;
pub mod devices;
mod layered;
pub mod layers;
mod outline;
pub mod parameter;
mod rates;
mod request;
mod requests;
mod rng;
mod stack;
mod time;
mod token_bucket;
mod traced;
mod virtual_time;
mod volatile;

pub use alignment::{Alignment, Share};
pub use change::{Change, Changed};
pub use closed_loop::{ClosedLoop, Driver, Measured, Order, Sample};
pub use device::{Built, Counters, Device, Fate, PowerCut, WriteFate};
pub use devices::*;
pub use layers::*;
pub use outline::{Place, counters_of_all};
pub use parameter::{
    Declared, Described, Field, Invalid, Kind, Style, Value, Values, Written, format_duration_ns,
    format_size_bytes,
};
pub use rates::{Rate, Rates};
pub use request::{Completion, Operation, Outcome, Request, RequestId, SECTOR_BYTES};
pub use rng::{Rng, split_mix};
pub use stack::{Branch, StackSpec};
pub use time::{Instant, MICROSECOND, MILLISECOND, NANOSECOND, SECOND};
pub use traced::Traced;
pub use virtual_time::VirtualTime;
