//! The kinds of device, each with its parameters from a profile file (`profiles/*.toml`). The profile file
//! states the source of each value.

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
/// Above this rate, a transfer takes no time. The limit keeps products of bytes and nanoseconds within
/// 128 bits.
pub(crate) const RATE_LIMIT: u64 = 1_000_000_000_000_000;

choices! {
    /// The handling of a write between its arrival at the device and the medium.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum WriteCache {
        /// Write-through: a write completes when it is on the medium.
        Off = "off",
        /// A write completes from volatile memory. FLUSH drains the memory. A power cut loses unflushed
        /// writes.
        Volatile = "volatile",
        /// A write completes from memory with power-loss protection by capacitors: no acknowledged write is
        /// lost.
        Protected = "protected",
    }
}

/// A kind of device: its parameters and its construction.
pub trait DeviceParameters: Declared {
    /// Name in profile files.
    const KIND: &'static str;

    /// # Errors
    /// A violated bound that relates several parameters.
    fn relations(&self) -> Result<(), Invalid> {
        Ok(())
    }

    /// # Errors
    /// Names the key, as a profile file spells it, and the bound.
    fn validate(&self) -> Result<(), Invalid> {
        self.check_bounds()?;
        self.relations()
    }

    /// Size of the real drive; `None` if the device can have any size.
    fn capacity_bytes(&self) -> Option<u64>;

    /// The write cache between acknowledgement and medium.
    fn write_cache(&self) -> WriteCache {
        WriteCache::Off
    }

    /// A running device; parameters and size are valid.
    ///
    /// # Errors
    /// Conditions that only the device itself can check.
    fn build(&self, size_bytes: u64, seed: u64) -> Result<Box<dyn Device>, Invalid>;
}

/// The list of devices: one line here per kind, and a struct that implements [`DeviceParameters`].
macro_rules! devices {
    ($($kind:ident($parameters:ty),)*) => {
        #[derive(Debug, Clone, PartialEq)]
        pub enum Parameters {
            $( $kind($parameters), )*
        }

        impl Parameters {
            pub const KINDS: &'static [&'static str] = &[$( <$parameters>::KIND, )*];

            /// `None` for an unknown kind.
            pub fn fields_of(kind: &str) -> Option<Vec<Field>> {
                $( if kind == <$parameters>::KIND { return Some(<$parameters>::fields()); } )*
                None
            }

            /// # Errors
            /// A value that is missing or out of bounds, or an unknown kind.
            pub fn from_values(kind: &str, values: Values) -> Result<Parameters, Invalid> {
                $( if kind == <$parameters>::KIND {
                    let parameters = <$parameters>::from_values(values)?;
                    parameters.relations()?;
                    return Ok(Parameters::$kind(parameters));
                } )*
                Err(Invalid::new("kind", format!("is `{kind}`, must be one of {}", Parameters::KINDS.join(", "))))
            }

            /// Name in profile files.
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

            /// Size of the real drive; `None` if the device can have any size.
            pub fn capacity_bytes(&self) -> Option<u64> {
                match self { $( Parameters::$kind(parameters) => parameters.capacity_bytes(), )* }
            }

            /// The write cache between acknowledgement and medium.
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

/// Transfer time of `bytes` in nanoseconds, rounded down.
pub(crate) fn transfer_ns(bytes: u64, bytes_per_s: u64) -> u64 {
    match bytes.checked_mul(SECOND) {
        // The common case, several times as fast.
        Some(product) => product / bytes_per_s,
        None => (u128::from(bytes) * u128::from(SECOND) / u128::from(bytes_per_s)) as u64,
    }
}
