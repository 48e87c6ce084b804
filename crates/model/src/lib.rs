//! Models of storage devices: the effect and the time of each request. The crate has no clock, no I/O, no
//! threads, no randomness without a seed and no dependencies: see its `clippy.toml` and ARCHITECTURE.md.

mod ageing;
mod alignment;
mod cache;
mod children;
mod closed_loop;
mod device;
mod disk;
mod fault;
mod flash;
mod intent_log;
mod layer;
mod null;
pub mod parameter;
mod partition;
mod profile;
mod raid;
mod replicated;
mod request;
mod requests;
mod rng;
mod ssd_cache;
mod stack;
mod throttle;
mod time;
mod virtual_time;
mod volatile;
mod volume;

pub use alignment::{Alignment, Share};
pub use cache::{Cache, CacheParameters, CachePolicy};
pub use closed_loop::{ClosedLoop, Driver, Measured, Order, Sample};
pub use device::{Ageing, Counters, Device, Fate, PowerCut, WriteFate};
pub use disk::Disk;
pub use fault::{Dying, Fault, FaultParameters, ReadErrors, Spikes, Stalls, Stuck};
pub use flash::Flash;
pub use intent_log::{IntentLog, IntentLogParameters};
pub use layer::{Below, LayerKind, LayerParameters, Told};
pub use null::{Null, NullParameters};
pub use parameter::{
    Declared, Field, Invalid, Kind, Style, Value, Values, Written, format_duration_ns, format_size_bytes,
};
pub use partition::{Partition, PartitionParameters};
pub use profile::{
    DeviceParameters, DiskParameters, FlashParameters, Parameters, ReadRetries, SlcParameters, Stroke,
    VictimChoice, WriteCache,
};
pub use raid::{MemberState, Raid, RaidLevel, RaidParameters, Resync};
pub use replicated::{Congestion, Outage, Protocol, Replicated, ReplicatedParameters, Survivor};
pub use request::{Completion, Operation, Outcome, Request, RequestId, SECTOR_BYTES};
pub use rng::{Rng, split_mix};
pub use ssd_cache::{Promotion, SsdCache, SsdCacheParameters, WritePolicy};
pub use stack::{Branch, Layer, StackSpec};
pub use throttle::{Limit, Throttle, ThrottleParameters};
pub use time::{Instant, MICROSECOND, MILLISECOND, NANOSECOND, SECOND};
pub use virtual_time::VirtualTime;
pub use volume::{LatencyQuantiles, Volume, VolumeParameters};
