//! The tree of layers and devices behind one block device, as data, and the construction of the running
//! device.

use crate::device::Built;
use crate::devices::{Parameters, WriteCache};
use crate::layers::Layer;
use crate::parameter::{Invalid, format_size_bytes};
use crate::rates::Rates;
use crate::request::SECTOR_BYTES;

#[derive(Debug, Clone, PartialEq)]
pub enum StackSpec {
    Device(Parameters),
    Layer(Layer, Vec<Branch>),
}

/// A stack below a layer, with its size.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    pub size_bytes: u64,
    pub stack: StackSpec,
}

impl StackSpec {
    /// A layer on these stacks, in the order of its [`Below`](crate::Below).
    pub fn layer(layer: impl Into<Layer>, below: impl IntoIterator<Item = Branch>) -> StackSpec {
        StackSpec::Layer(layer.into(), below.into_iter().collect())
    }

    /// Whether a stack of this size can be built; the error names the key and the bound.
    pub fn validate(&self, size_bytes: u64) -> Result<(), Invalid> {
        if size_bytes == 0 || !size_bytes.is_multiple_of(SECTOR_BYTES) {
            let problem = format!("is {size_bytes} B, must be a multiple of {SECTOR_BYTES} B above zero");
            return Err(Invalid::new("size", problem));
        }
        match self {
            StackSpec::Device(parameters) => parameters.validate()?,
            StackSpec::Layer(layer, below) => {
                layer.validate()?;
                layer.check_count(below.len())?;
                layer.check_sizes(&sizes(below))?;
            }
        }
        if let Some(most) = self.most_bytes()
            && size_bytes > most
        {
            let what = match self {
                StackSpec::Device(_) => "the drive's capacity",
                StackSpec::Layer(..) => "what the stack below has room for",
            };
            let problem = format!(
                "is {}, must be at most {what}, {}",
                format_size_bytes(size_bytes),
                format_size_bytes(most)
            );
            return Err(Invalid::new("size", problem));
        }
        self.branches().iter().try_for_each(|branch| branch.stack.validate(branch.size_bytes))
    }

    /// The largest size of this stack; `None` if it is unbounded. For a layer, its natural size.
    pub fn most_bytes(&self) -> Option<u64> {
        match self {
            StackSpec::Device(parameters) => parameters.capacity_bytes(),
            StackSpec::Layer(layer, below) => Some(layer.size_bytes(&sizes(below))),
        }
    }

    /// The stacks below this layer; empty for a device.
    pub fn branches(&self) -> &[Branch] {
        match self {
            StackSpec::Device(_) => &[],
            StackSpec::Layer(_, below) => below,
        }
    }

    /// Whether any device of the stack satisfies `is_such`.
    pub fn any_device(&self, is_such: &dyn Fn(&Parameters) -> bool) -> bool {
        match self {
            StackSpec::Device(parameters) => is_such(parameters),
            StackSpec::Layer(_, below) => below.iter().any(|branch| branch.stack.any_device(is_such)),
        }
    }

    /// Whether the kernel is to take it for a drive that rotates.
    pub fn rotates(&self) -> bool {
        self.any_device(&|device| matches!(device, Parameters::Disk(_)))
    }

    /// Whether FLUSH has an effect: acknowledged writes may be in volatile memory.
    pub fn has_volatile_cache(&self) -> bool {
        match self {
            StackSpec::Device(parameters) => parameters.write_cache() == WriteCache::Volatile,
            StackSpec::Layer(layer, below) => {
                layer.has_volatile_cache(below.iter().any(|branch| branch.stack.has_volatile_cache()))
            }
        }
    }

    /// Highest rates that every request obeys, as far as parameters state them.
    pub fn rates(&self) -> Rates {
        match self {
            StackSpec::Device(parameters) => parameters.rates(),
            StackSpec::Layer(layer, below) => match (layer.rates(), &below[..]) {
                (Some(own), [below]) => own.and(below.stack.rates()),
                (own, _) => own.unwrap_or_default(),
            },
        }
    }

    /// Upper bound of acknowledged data that a power cut loses unless a FLUSH has covered it.
    pub fn volatile_bytes(&self) -> u64 {
        match self {
            _ if !self.has_volatile_cache() => 0,
            StackSpec::Device(parameters) => parameters.write_cache_bytes(),
            StackSpec::Layer(_, below) => below.iter().map(|branch| branch.stack.volatile_bytes()).sum(),
        }
    }

    /// A running device of `size_bytes`; the same seed gives the same history.
    pub fn build(&self, size_bytes: u64, seed: u64) -> Built {
        self.validate(size_bytes)?;
        match self {
            StackSpec::Device(parameters) => parameters.build(size_bytes, seed),
            StackSpec::Layer(layer, below) => {
                // Each drive gets its own seed, because platters of different drives stand at different
                // angles.
                let built = (0..).zip(below).map(|(index, Branch { size_bytes, stack }): (u64, _)| {
                    stack.build(*size_bytes, seed ^ (index << 32))
                });
                layer.build(built.collect::<Result<_, _>>()?, size_bytes, seed)
            }
        }
    }
}

fn sizes(below: &[Branch]) -> Vec<u64> {
    below.iter().map(|branch| branch.size_bytes).collect()
}
