//! The kinds of device, each with the parameters that a profile file (`profiles/*.toml`) gives it. Where a
//! value came from is that file's business.

mod disk;
mod flash;

pub(crate) use disk::sectors_per_track;
pub use disk::{DiskParameters, ReadRetries, Stroke};
pub use flash::{FlashParameters, SlcParameters, VictimChoice};

use crate::device::Device;
use crate::parameter::{Declared, Field, Values, choices};
pub(crate) use crate::parameter::{Invalid, within};
use crate::time::SECOND;

pub(crate) const MEBIBYTE: u64 = 1 << 20;
pub(crate) const PEBIBYTE: u64 = 1 << 50;
/// Above this a transfer takes no time at all; it keeps products of bytes and nanoseconds within 128 bits.
pub(crate) const RATE_LIMIT: u64 = 1_000_000_000_000_000;

choices! {
    /// What happens to a write that the device has taken and not yet put on the medium.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum WriteCache {
        /// Write-through: a write completes when it is on the medium.
        Off = "off",
        /// Completes from volatile memory; FLUSH drains it; a power cut loses what was not flushed.
        Volatile = "volatile",
        /// Completes from memory that capacitors can save (power-loss protection): nothing acknowledged is
        /// lost.
        Protected = "protected",
    }
}

/// A kind of device: its parameters, and what is made of them.
pub trait DeviceParameters: Declared {
    /// In profile files.
    const KIND: &'static str;

    /// # Errors
    /// A bound that relates several parameters.
    fn relations(&self) -> Result<(), Invalid> {
        Ok(())
    }

    /// # Errors
    /// Names the key, as a profile file spells it, and the bound.
    fn validate(&self) -> Result<(), Invalid> {
        self.check_bounds()?;
        self.relations()
    }

    /// Size of the real drive; `None` when the device has any size.
    fn capacity_bytes(&self) -> Option<u64>;

    /// What is between an acknowledged write and the medium.
    fn write_cache(&self) -> WriteCache {
        WriteCache::Off
    }

    /// A running device; parameters and size are valid.
    ///
    /// # Errors
    /// What only the device itself can refuse.
    fn build(&self, size_bytes: u64, seed: u64) -> Result<Box<dyn Device>, Invalid>;
}

/// The one list of devices: a kind is a line here, and a struct that is [`DeviceParameters`].
macro_rules! devices {
    ($($kind:ident($parameters:ty),)*) => {
        #[derive(Debug, Clone, PartialEq)]
        pub enum Parameters {
            $( $kind($parameters), )*
        }

        impl Parameters {
            pub const KINDS: &'static [&'static str] = &[$( <$parameters>::KIND, )*];

            /// `None` for a kind that is unknown.
            pub fn fields_of(kind: &str) -> Option<Vec<Field>> {
                $( if kind == <$parameters>::KIND { return Some(<$parameters>::fields()); } )*
                None
            }

            /// # Errors
            /// A value that is missing or beyond its bounds; the kind is unknown.
            pub fn from_values(kind: &str, values: Values) -> Result<Parameters, Invalid> {
                $( if kind == <$parameters>::KIND {
                    let parameters = <$parameters>::from_values(values)?;
                    parameters.relations()?;
                    return Ok(Parameters::$kind(parameters));
                } )*
                Err(Invalid::new("kind", format!("is `{kind}`, must be one of {}", Parameters::KINDS.join(", "))))
            }

            /// As profile files call it.
            pub fn kind(&self) -> &'static str {
                match self { $( Parameters::$kind(_) => <$parameters>::KIND, )* }
            }

            pub fn values(&self) -> Values {
                match self { $( Parameters::$kind(parameters) => parameters.values(), )* }
            }

            /// # Errors
            /// Names the key, as a profile file spells it, and the bound.
            pub fn validate(&self) -> Result<(), Invalid> {
                match self { $( Parameters::$kind(parameters) => parameters.validate(), )* }
            }

            /// Size of the real drive; `None` when the device has any size.
            pub fn capacity_bytes(&self) -> Option<u64> {
                match self { $( Parameters::$kind(parameters) => parameters.capacity_bytes(), )* }
            }

            /// What is between an acknowledged write and the medium.
            pub fn write_cache(&self) -> WriteCache {
                match self { $( Parameters::$kind(parameters) => parameters.write_cache(), )* }
            }

            pub(crate) fn build(&self, size_bytes: u64, seed: u64) -> Result<Box<dyn Device>, Invalid> {
                match self { $( Parameters::$kind(parameters) => parameters.build(size_bytes, seed), )* }
            }
        }
    };
}

devices! {
    Null(crate::null::NullParameters),
    Disk(DiskParameters),
    Flash(FlashParameters),
    Volume(crate::volume::VolumeParameters),
}

impl Parameters {
    pub const NULL: Parameters = Parameters::Null(crate::null::NullParameters {});
}

/// Nanoseconds that `bytes` take at a rate, rounded down.
pub(crate) fn transfer_ns(bytes: u64, bytes_per_s: u64) -> u64 {
    match bytes.checked_mul(SECOND) {
        // Nearly always, and several times as fast.
        Some(product) => product / bytes_per_s,
        None => (u128::from(bytes) * u128::from(SECOND) / u128::from(bytes_per_s)) as u64,
    }
}
