//! The real-time driver: a stack behind a FUSE file behind a loop device.

mod arm;
mod bare;
mod clock;
mod constant;
pub mod control;
pub mod disk;
mod driver;
mod file;
mod file_system;
mod floor;
mod format_options;
mod mapping;
mod misuse;
pub mod real;
mod realtime;
mod ring;
mod ring_file;
mod serve;
mod statistics;
mod store;
mod system;
mod watchdog;
mod workers;
pub mod zfs;

pub use arm::RealTime;
pub use bare::bare_tail;
pub use disk::{Disk, DiskOptions};
pub use driver::{Driver, OnComplete};
pub use file_system::{FILE_SYSTEMS, FileSystem, Formatting};
pub use floor::while_cores_are_busy;
pub use misuse::Misuse;
pub use ring_file::has_ring;
pub use serve::{ServeOptions, serve};
pub use statistics::{Floor, FloorCost, OperationStatistics, Statistics};
pub use store::{SnapshotHead, Store};
pub use system::{device_under, file_system_under};
