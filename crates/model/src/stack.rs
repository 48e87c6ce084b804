//! The tree of layers and devices behind one block device, as data; and the running device made of it.

use crate::cache::{Cache, CacheParameters};
use crate::device::{Ageing, Device};
use crate::disk::Disk;
use crate::fault::{Fault, FaultParameters};
use crate::flash::Flash;
use crate::intent_log::{IntentLog, IntentLogParameters};
use crate::null::Null;
use crate::partition::Partition;
use crate::profile::{Invalid, Parameters, WriteCache};
use crate::raid::{Raid, RaidParameters};
use crate::replicated::{Replicated, ReplicatedParameters};
use crate::request::SECTOR_BYTES;
use crate::ssd_cache::{SsdCache, SsdCacheParameters};
use crate::throttle::{Throttle, ThrottleParameters};
use crate::volume::Volume;

#[derive(Debug, Clone, PartialEq)]
pub enum StackSpec {
    Device(Parameters),
    Partition {
        offset_bytes: u64,
        below: Box<Branch>,
    },
    Raid {
        parameters: RaidParameters,
        members: Vec<Branch>,
    },
    Cache {
        parameters: CacheParameters,
        below: Box<Branch>,
    },
    Throttle {
        parameters: ThrottleParameters,
        below: Box<Branch>,
    },
    Fault {
        parameters: FaultParameters,
        below: Box<Branch>,
    },
    Replicated {
        parameters: ReplicatedParameters,
        local: Box<Branch>,
        peer: Box<Branch>,
    },
    SsdCache {
        parameters: SsdCacheParameters,
        fast: Box<Branch>,
        slow: Box<Branch>,
    },
    /// Used before: not a layer, but what becomes of the stack below before the first request.
    Aged {
        ageing: Ageing,
        below: Box<Branch>,
    },
    IntentLog {
        parameters: IntentLogParameters,
        fast: Box<Branch>,
        slow: Box<Branch>,
    },
}

/// A stack that a layer is on, and how large it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    pub size_bytes: u64,
    pub stack: StackSpec,
}

fn invalid<T>(key: &'static str, problem: String) -> Result<T, Invalid> {
    Err(Invalid { key, problem })
}

impl StackSpec {
    /// Whether a stack of this size can be built; the error names the key and the bound.
    pub fn validate(&self, size_bytes: u64) -> Result<(), Invalid> {
        if size_bytes == 0 || !size_bytes.is_multiple_of(SECTOR_BYTES) {
            let problem = format!("is {size_bytes} bytes, must be a multiple of {SECTOR_BYTES} above zero");
            return invalid("size", problem);
        }
        match self {
            StackSpec::Device(parameters) => parameters.validate()?,
            StackSpec::Partition { offset_bytes, .. } => {
                if !offset_bytes.is_multiple_of(SECTOR_BYTES) {
                    let problem = format!("is {offset_bytes} bytes, must be a multiple of {SECTOR_BYTES}");
                    return invalid("offset", problem);
                }
            }
            StackSpec::Raid { parameters, members } => parameters.validate(members.len())?,
            StackSpec::Cache { parameters, .. } => parameters.validate()?,
            StackSpec::Throttle { parameters, .. } => parameters.validate()?,
            StackSpec::Fault { parameters, .. } => parameters.validate()?,
            StackSpec::Replicated { parameters, .. } => parameters.validate()?,
            StackSpec::SsdCache { parameters, .. } => parameters.validate()?,
            StackSpec::IntentLog { parameters, .. } => parameters.validate()?,
            StackSpec::Aged { ageing, .. } => ageing.validate()?,
        }
        if let Some(most) = self.most_bytes()
            && size_bytes > most
        {
            let what = match self {
                StackSpec::Device(_) => "the drive's capacity",
                _ => "what the stack below has room for",
            };
            return invalid("size", format!("is {size_bytes} bytes, must be at most {what}, {most} bytes"));
        }
        self.branches().try_for_each(|branch| branch.stack.validate(branch.size_bytes))
    }

    /// The largest size that this stack can have; `None` when it has no bound. For a layer it is its natural size.
    pub fn most_bytes(&self) -> Option<u64> {
        match self {
            StackSpec::Device(parameters) => parameters.capacity_bytes(),
            StackSpec::Partition { offset_bytes, below } => {
                Some(below.size_bytes.saturating_sub(*offset_bytes))
            }
            StackSpec::Raid { parameters, members } => {
                let smallest_bytes = members.iter().map(|member| member.size_bytes).min().unwrap_or(0);
                Some(parameters.usable_bytes(members.len(), smallest_bytes))
            }
            StackSpec::Cache { below, .. }
            | StackSpec::Aged { below, .. }
            | StackSpec::Throttle { below, .. }
            | StackSpec::Fault { below, .. } => Some(below.size_bytes),
            StackSpec::Replicated { local, peer, .. } => Some(local.size_bytes.min(peer.size_bytes)),
            StackSpec::SsdCache { slow, .. } | StackSpec::IntentLog { slow, .. } => Some(slow.size_bytes),
        }
    }

    /// What this layer is on; nothing for a device.
    pub fn branches(&self) -> impl Iterator<Item = &Branch> {
        let (one, two, many): (Option<&Branch>, Option<&Branch>, &[Branch]) = match self {
            StackSpec::Device(_) => (None, None, &[]),
            StackSpec::Partition { below, .. }
            | StackSpec::Cache { below, .. }
            | StackSpec::Aged { below, .. }
            | StackSpec::Throttle { below, .. }
            | StackSpec::Fault { below, .. } => (Some(below), None, &[]),
            StackSpec::Raid { members, .. } => (None, None, members),
            StackSpec::Replicated { local, peer, .. } => (Some(local), Some(peer), &[]),
            StackSpec::SsdCache { fast, slow, .. } | StackSpec::IntentLog { fast, slow, .. } => {
                (Some(fast), Some(slow), &[])
            }
        };
        one.into_iter().chain(two).chain(many)
    }

    /// Whether any device of the stack is such a one.
    pub fn any_device(&self, is_such: &dyn Fn(&Parameters) -> bool) -> bool {
        match self {
            StackSpec::Device(parameters) => is_such(parameters),
            _ => self.branches().any(|branch| branch.stack.any_device(is_such)),
        }
    }

    /// Whether FLUSH means something to it: some acknowledged writes may be in volatile memory.
    pub fn has_volatile_cache(&self) -> bool {
        match self {
            StackSpec::Device(parameters) => parameters.write_cache() == WriteCache::Volatile,
            // A controller tells the host that it is write-through, whatever it does.
            StackSpec::Cache { .. } => false,
            // Its memory is volatile, whatever the devices are.
            StackSpec::IntentLog { .. } => true,
            // It must get the FLUSH that it lies about.
            StackSpec::Fault { parameters, .. } if parameters.lying_flush_ns.is_some() => true,
            _ => self.branches().any(|branch| branch.stack.has_volatile_cache()),
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
            StackSpec::Device(Parameters::Volume(volume)) => {
                Box::new(Volume::new(volume.clone(), size_bytes, seed)?)
            }
            StackSpec::Partition { offset_bytes, below } => {
                Box::new(Partition::new(*offset_bytes, size_bytes, below.build(seed)?))
            }
            StackSpec::Raid { parameters, members } => {
                // Platters of different drives stand at different angles.
                let built = (0..).zip(members).map(|(index, member)| member.build(seed ^ (index << 32)));
                Box::new(Raid::new(parameters.clone(), built.collect::<Result<_, _>>()?)?)
            }
            StackSpec::Cache { parameters, below } => {
                Box::new(Cache::new(parameters.clone(), below.build(seed)?, seed)?)
            }
            StackSpec::Throttle { parameters, below } => {
                Box::new(Throttle::new(*parameters, below.build(seed)?)?)
            }
            StackSpec::Fault { parameters, below } => {
                Box::new(Fault::new(parameters.clone(), seed, below.build(seed)?)?)
            }
            StackSpec::Replicated { parameters, local, peer } => {
                let peer = peer.build(seed ^ (1 << 32))?;
                Box::new(Replicated::new(parameters.clone(), seed, local.build(seed)?, peer)?)
            }
            StackSpec::Aged { ageing, below } => {
                let mut device = below.build(seed)?;
                device.age(ageing);
                device
            }
            StackSpec::SsdCache { parameters, fast, slow } => {
                Box::new(SsdCache::new(*parameters, fast.build(seed ^ (1 << 32))?, slow.build(seed)?)?)
            }
            StackSpec::IntentLog { parameters, fast, slow } => {
                Box::new(IntentLog::new(*parameters, fast.build(seed ^ (1 << 32))?, slow.build(seed)?)?)
            }
        })
    }
}

impl Branch {
    fn build(&self, seed: u64) -> Result<Box<dyn Device>, Invalid> {
        self.stack.build(self.size_bytes, seed)
    }
}
