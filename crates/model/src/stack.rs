//! The tree of layers and devices behind one block device, as data, and the construction of the running
//! device.

use crate::device::Device;
use crate::layer::{LayerKind, LayerParameters, Told};
use crate::parameter::{Declared, Field, Invalid, Values};
use crate::profile::{Parameters, WriteCache};
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

/// The list of layers: one line here per kind, and a struct that implements [`LayerParameters`].
macro_rules! layers {
    ($($kind:ident($parameters:ty),)*) => {
        #[derive(Debug, Clone, PartialEq)]
        pub enum Layer {
            $( $kind($parameters), )*
        }

        impl Layer {
            /// All kinds, in the order of the list.
            pub fn kinds() -> Vec<LayerKind> {
                vec![$( LayerKind {
                    names: <$parameters>::NAMES,
                    fields: <$parameters>::fields(),
                    below: <$parameters>::BELOW,
                    is_array: <$parameters>::IS_ARRAY,
                }, )*]
            }

            /// # Errors
            /// A value that is missing or out of bounds, or an unknown name.
            pub fn from_values(name: &str, values: Values) -> Result<Layer, Invalid> {
                $( if <$parameters>::NAMES.contains(&name) {
                    let parameters = <$parameters>::from_values(values)?;
                    parameters.relations()?;
                    return Ok(Layer::$kind(parameters));
                } )*
                Err(Invalid::new("layer", format!("`{name}` is unknown")))
            }

            /// The usual name.
            pub fn name(&self) -> &'static str {
                match self { $( Layer::$kind(_) => <$parameters>::NAMES[0], )* }
            }

            pub fn fields(&self) -> Vec<Field> {
                match self { $( Layer::$kind(_) => <$parameters>::fields(), )* }
            }

            pub fn values(&self) -> Values {
                match self { $( Layer::$kind(parameters) => parameters.values(), )* }
            }

            /// Message for a table with which the layer has no effect.
            pub fn idle_hint(&self) -> Option<&'static str> {
                match self { $( Layer::$kind(parameters) => parameters.idle_hint(), )* }
            }

            /// # Errors
            /// The layer does not support this number of stacks.
            pub fn check_count(&self, below_count: usize) -> Result<(), Invalid> {
                match self { $( Layer::$kind(parameters) => parameters.check_count(below_count), )* }
            }

            /// # Errors
            /// A parameter that does not fit the stacks below.
            pub fn check_sizes(&self, below_bytes: &[u64]) -> Result<(), Invalid> {
                match self { $( Layer::$kind(parameters) => parameters.check_sizes(below_bytes), )* }
            }

            /// The size that follows from the sizes below.
            pub fn size_bytes(&self, below_bytes: &[u64]) -> u64 {
                match self { $( Layer::$kind(parameters) => parameters.size_bytes(below_bytes), )* }
            }

            pub fn may_be_smaller(&self) -> bool {
                match self { $( Layer::$kind(parameters) => parameters.may_be_smaller(), )* }
            }

            /// Size needed of each stack below for a layer of this size.
            pub fn size_below_bytes(&self, size_bytes: u64, below_count: usize) -> u64 {
                match self { $( Layer::$kind(parameters) => parameters.size_below_bytes(size_bytes, below_count), )* }
            }

            /// Largest excess over the requested size.
            pub fn slack_bytes(&self, below_count: usize) -> u64 {
                match self { $( Layer::$kind(parameters) => parameters.slack_bytes(below_count), )* }
            }

            fn has_volatile_cache(&self, below_has: bool) -> bool {
                match self { $( Layer::$kind(parameters) => parameters.has_volatile_cache(below_has), )* }
            }

            /// Whether the value of a parameter has an effect, given the other values.
            pub fn uses(&self, key: &str) -> bool {
                match self { $( Layer::$kind(parameters) => parameters.uses(key), )* }
            }

            /// Assumptions of the model besides parameters, as sentences.
            pub fn assumptions(&self) -> &'static [&'static str] {
                match self { $( Layer::$kind(parameters) => parameters.assumptions(), )* }
            }

            /// One sentence: the emulated device.
            pub fn summary(&self, below: &[Told<'_>]) -> String {
                match self { $( Layer::$kind(parameters) => parameters.summary(below), )* }
            }

            fn validate(&self) -> Result<(), Invalid> {
                match self { $( Layer::$kind(parameters) => LayerParameters::validate(parameters), )* }
            }

            fn build(&self, below: Vec<Box<dyn Device>>, size_bytes: u64, seed: u64) -> Result<Box<dyn Device>, Invalid> {
                match self { $( Layer::$kind(parameters) => parameters.build(below, size_bytes, seed), )* }
            }
        }

        $( impl From<$parameters> for Layer {
            fn from(parameters: $parameters) -> Layer {
                Layer::$kind(parameters)
            }
        } )*
    };
}

layers! {
    Partition(crate::partition::PartitionParameters),
    Raid(crate::raid::RaidParameters),
    Cache(crate::cache::CacheParameters),
    SsdCache(crate::ssd_cache::SsdCacheParameters),
    IntentLog(crate::intent_log::IntentLogParameters),
    Replicated(crate::replicated::ReplicatedParameters),
    Throttle(crate::throttle::ThrottleParameters),
    Fault(crate::fault::FaultParameters),
    Aged(crate::ageing::Ageing),
}

impl StackSpec {
    /// A layer on these stacks, in the order of its [`Below`](crate::Below).
    pub fn layer(layer: impl Into<Layer>, below: impl IntoIterator<Item = Branch>) -> StackSpec {
        StackSpec::Layer(layer.into(), below.into_iter().collect())
    }

    /// Whether a stack of this size can be built; the error names the key and the bound.
    pub fn validate(&self, size_bytes: u64) -> Result<(), Invalid> {
        if size_bytes == 0 || !size_bytes.is_multiple_of(SECTOR_BYTES) {
            let problem = format!("is {size_bytes} bytes, must be a multiple of {SECTOR_BYTES} above zero");
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
            let problem = format!("is {size_bytes} bytes, must be at most {what}, {most} bytes");
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

    /// Whether FLUSH has an effect: acknowledged writes may be in volatile memory.
    pub fn has_volatile_cache(&self) -> bool {
        match self {
            StackSpec::Device(parameters) => parameters.write_cache() == WriteCache::Volatile,
            StackSpec::Layer(layer, below) => {
                layer.has_volatile_cache(below.iter().any(|branch| branch.stack.has_volatile_cache()))
            }
        }
    }

    /// A running device of `size_bytes`; the same seed gives the same history.
    pub fn build(&self, size_bytes: u64, seed: u64) -> Result<Box<dyn Device>, Invalid> {
        self.validate(size_bytes)?;
        match self {
            StackSpec::Device(parameters) => parameters.build(size_bytes, seed),
            StackSpec::Layer(layer, below) => {
                // Each drive gets its own seed, because platters of different drives stand at different
                // angles.
                let built = (0..).zip(below).map(|(index, branch)| branch.build(seed ^ (index << 32)));
                layer.build(built.collect::<Result<_, _>>()?, size_bytes, seed)
            }
        }
    }
}

fn sizes(below: &[Branch]) -> Vec<u64> {
    below.iter().map(|branch| branch.size_bytes).collect()
}

impl Branch {
    fn build(&self, seed: u64) -> Result<Box<dyn Device>, Invalid> {
        self.stack.build(self.size_bytes, seed)
    }
}
