//! The tree of layers and devices behind one block device, as data; and the running device made of it.

use crate::device::Device;
use crate::disk::Disk;
use crate::flash::Flash;
use crate::null::Null;
use crate::partition::Partition;
use crate::profile::{Invalid, Parameters};
use crate::request::SECTOR_BYTES;

#[derive(Debug, Clone, PartialEq)]
pub enum StackSpec {
    Device(Parameters),
    Partition {
        offset_bytes: u64,
        /// Size of the device that the partition is on.
        below_size_bytes: u64,
        below: Box<StackSpec>,
    },
}

impl StackSpec {
    /// Whether a stack of this size can be built; the error names the key and the bound.
    pub fn validate(&self, size_bytes: u64) -> Result<(), Invalid> {
        if size_bytes == 0 || !size_bytes.is_multiple_of(SECTOR_BYTES) {
            let problem = format!("is {size_bytes} bytes, must be a multiple of {SECTOR_BYTES} above zero");
            return Err(Invalid { key: "size", problem });
        }
        match self {
            StackSpec::Device(parameters) => {
                parameters.validate()?;
                match parameters.capacity_bytes() {
                    Some(capacity) if size_bytes > capacity => {
                        let problem = format!(
                            "is {size_bytes} bytes, must be at most the drive's capacity, {capacity} bytes"
                        );
                        Err(Invalid { key: "size", problem })
                    }
                    _ => Ok(()),
                }
            }
            StackSpec::Partition { offset_bytes, below_size_bytes, below } => {
                if !offset_bytes.is_multiple_of(SECTOR_BYTES) {
                    let problem = format!("is {offset_bytes} bytes, must be a multiple of {SECTOR_BYTES}");
                    return Err(Invalid { key: "offset", problem });
                }
                if offset_bytes.saturating_add(size_bytes) > *below_size_bytes {
                    let problem = format!(
                        "plus `offset` is {} bytes, must be at most the size of the device below, \
                         {below_size_bytes} bytes",
                        offset_bytes.saturating_add(size_bytes)
                    );
                    return Err(Invalid { key: "size", problem });
                }
                below.validate(*below_size_bytes)
            }
        }
    }

    /// A running device of `size_bytes`; the same seed gives the same history.
    pub fn build(&self, size_bytes: u64, seed: u64) -> Result<Box<dyn Device>, Invalid> {
        self.validate(size_bytes)?;
        Ok(match self {
            StackSpec::Device(Parameters::Null) => Box::new(Null::new(size_bytes)),
            StackSpec::Device(Parameters::Disk(disk)) => Box::new(Disk::new(disk.clone(), size_bytes, seed)),
            StackSpec::Device(Parameters::Flash(flash)) => {
                Box::new(Flash::new(flash.clone(), size_bytes, seed))
            }
            StackSpec::Partition { offset_bytes, below_size_bytes, below } => {
                let below = below.build(*below_size_bytes, seed)?;
                Box::new(Partition::new(*offset_bytes, size_bytes, below))
            }
        })
    }
}
