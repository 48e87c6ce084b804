//! The layers: one file or folder each, and a line in the list below.
//!
//! Belongs here: a layer's parameters and its state machine, and the description of the stacks below it. Must
//! not know the devices.

use std::ops::Deref;

use crate::device::{Built, Device};
use crate::parameter::{Declared, Described, Field, Invalid, Kind, Values};
use crate::rates::Rates;

/// Highest rate of a limit or of a link, in operations or bytes per second.
const RATE_LIMIT: u64 = 1_000_000_000_000;

/// A stack below a layer, with the key that names it in stack tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Below {
    pub key: &'static str,
    /// The key of its size, if the size does not follow from the layer's.
    pub size_key: Option<&'static str>,
    /// Message for a missing key. `None`: the key is optional, and the default is another copy of the first
    /// stack.
    pub hint: Option<&'static str>,
}

impl Below {
    pub const ON: Below = Below { key: "on", size_key: None, hint: Some("which stack is the layer on?") };

    /// The keys of stack tables for its name and its size.
    fn fields(&self) -> Vec<Field> {
        let doc = match self.hint {
            Some(_) => "The name of a stack.",
            None => "The name of a stack. The default is another copy of the first one.",
        };
        let size = self.size_key.map(|key| {
            let doc = format!("Size of the stack that `{}` names, if its own table gives none.", self.key);
            Field { may_be_absent: true, ..Field::new("", key, Kind::Size, &doc) }
        });
        let may_be_absent = self.hint.is_none();
        let name = Field { may_be_absent, ..Field::new("", self.key, Kind::Name, doc) };
        std::iter::once(name).chain(size).collect()
    }
}

/// The keys of stack tables for a kind of layer.
#[derive(Debug, Clone)]
pub struct LayerKind {
    /// The usual name comes first.
    pub names: &'static [&'static str],
    pub fields: Vec<Field>,
    pub below: &'static [Below],
    pub is_array: bool,
}

impl LayerKind {
    /// The key for the number of copies of one stack below an array.
    pub const MEMBERS: &'static str = "members";

    /// The keys for the stacks below, besides `on`.
    pub fn fields_below(&self) -> Vec<Field> {
        let members = Field {
            may_be_absent: true,
            ..Field::new("", LayerKind::MEMBERS, Kind::Count, "Number of copies, if `on` names one stack.")
        };
        let others = self.below.iter().skip(1).flat_map(Below::fields);
        self.is_array.then_some(members).into_iter().chain(others).collect()
    }
}

/// The properties of a stack below that a layer's summary uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told<'a> {
    pub size_bytes: u64,
    /// One sentence: the emulated device.
    pub summary: &'a str,
}

/// A kind of layer: its parameters and its construction on the stacks below. Stacks below are in the order of
/// [`LayerParameters::below`].
pub trait LayerParameters: Described {
    fn below() -> &'static [Below]
    where
        Self: Sized,
    {
        &[Below::ON]
    }

    /// Whether the layer accepts several stacks, or copies of one, in place of a single stack.
    fn is_array() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// # Errors
    /// A violated bound that relates several parameters.
    fn relations(&self) -> Result<(), Invalid> {
        Ok(())
    }

    /// # Errors
    /// Names the key, as a stack table spells it, and the bound.
    fn validate(&self) -> Result<(), Invalid> {
        self.check_bounds()?;
        self.relations()
    }

    /// Message for a table with which the layer has no effect.
    fn idle_hint(&self) -> Option<&'static str> {
        None
    }

    /// # Errors
    /// The layer does not support this number of stacks.
    fn check_count(&self, _below_count: usize) -> Result<(), Invalid> {
        Ok(())
    }

    /// # Errors
    /// A parameter that does not fit the stacks below, given by their sizes.
    fn check_sizes(&self, _below_bytes: &[u64]) -> Result<(), Invalid> {
        Ok(())
    }

    /// Largest size of the layer, from the sizes below.
    fn size_bytes(&self, below_bytes: &[u64]) -> u64 {
        below_bytes[0]
    }

    /// Whether the layer may be smaller than its largest size.
    fn may_be_smaller(&self) -> bool {
        false
    }

    /// Size needed of each stack below for a layer of this size.
    fn size_below_bytes(&self, size_bytes: u64, _below_count: usize) -> u64 {
        size_bytes
    }

    /// Largest excess over the requested size, because stacks below come in whole pieces.
    fn slack_bytes(&self, _below_count: usize) -> u64 {
        u64::MAX
    }

    /// Whether FLUSH has an effect on the layer; the argument says whether it has one on a stack below.
    fn has_volatile_cache(&self, below_has: bool) -> bool {
        below_has
    }

    /// Rates that the layer itself sets for all requests that pass it; `None` if it may answer some without
    /// the stack below.
    fn rates(&self) -> Option<Rates> {
        None
    }

    /// Whether the value of a parameter has an effect, given the other values.
    fn uses(&self, _key: &str) -> bool {
        true
    }

    /// Whether it only sets the state of the stack below, and is no device itself.
    fn only_prepares(&self) -> bool {
        false
    }

    /// Assumptions of the model besides parameters, as sentences.
    fn assumptions(&self) -> &'static [&'static str] {
        &[]
    }

    /// One sentence: the emulated device.
    fn summary(&self, below: &[Told<'_>]) -> String;

    /// A running device; parameters and sizes are valid.
    ///
    /// # Errors
    /// Conditions that only the device itself can check.
    fn build(&self, below: Vec<Box<dyn Device>>, size_bytes: u64, seed: u64) -> Built;
}

/// Makes the modules of the layers and the enum of their parameters. A line has the name in stack tables with
/// its synonyms, the module, the variant, and the module's struct that implements [`LayerParameters`].
macro_rules! layers {
    ($($name:literal $(| $synonym:literal)* => $module:ident::$kind:ident($parameters:ident),)*) => {
        $( pub mod $module; )*
        $( pub use $module::*; )*

        #[derive(Debug, Clone, PartialEq)]
        pub enum Layer {
            $( $kind($parameters), )*
        }

        impl Layer {
            /// All kinds, in the order of the list.
            pub fn kinds() -> Vec<LayerKind> {
                vec![$( LayerKind {
                    names: &[$name $(, $synonym)*],
                    fields: $parameters::fields(),
                    below: $parameters::below(),
                    is_array: $parameters::is_array(),
                }, )*]
            }

            /// # Errors
            /// A value that is missing or out of bounds, or an unknown name.
            pub fn from_values(name: &str, values: Values) -> Result<Layer, Invalid> {
                let layer = match name {
                    $( $name $(| $synonym)* => Layer::$kind($parameters::from_values(values)?), )*
                    _ => return Err(Invalid::new("layer", format!("`{name}` is unknown"))),
                };
                layer.relations()?;
                Ok(layer)
            }

            /// The usual name.
            pub fn name(&self) -> &'static str {
                match self { $( Layer::$kind(_) => $name, )* }
            }
        }

        impl Deref for Layer {
            type Target = dyn LayerParameters;

            fn deref(&self) -> &(dyn LayerParameters + 'static) {
                match self { $( Layer::$kind(parameters) => parameters, )* }
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
    "partition" => partition::Partition(PartitionParameters),
    "raid" => raid::Raid(RaidParameters),
    "cache" => cache::Cache(CacheParameters),
    "ssd-cache" | "tier" => ssd_cache::SsdCache(SsdCacheParameters),
    "intent-log" => intent_log::IntentLog(IntentLogParameters),
    "replicated" | "mirror" => replicated::Replicated(ReplicatedParameters),
    "throttle" => throttle::Throttle(ThrottleParameters),
    "fault" => fault::Fault(FaultParameters),
    "aged" => ageing::Aged(Ageing),
}

/// The devices below a layer that requires exactly `COUNT` of them.
pub(crate) fn take<const COUNT: usize>(below: Vec<Box<dyn Device>>) -> [Box<dyn Device>; COUNT] {
    below.try_into().unwrap_or_else(|below: Vec<_>| panic!("{} devices below, must be {COUNT}", below.len()))
}
