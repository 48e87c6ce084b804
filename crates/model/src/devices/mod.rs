//! The devices: one file or folder each, and a line in the list below. A profile file (`profiles/*.toml`)
//! gives the parameters, each with its source.
//!
//! Belongs here: a drive's parameters and its state machine. Must not know layers.

use std::ops::Deref;

use crate::device::Built;
use crate::parameter::{Declared, Described, Field, Invalid, Values, choices};
use crate::rates::Rates;
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
pub trait DeviceParameters: Described {
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
    fn capacity_bytes(&self) -> Option<u64> {
        None
    }

    /// Highest rates that the parameters state.
    fn rates(&self) -> Rates {
        Rates::default()
    }

    /// The write cache between acknowledgement and medium.
    fn write_cache(&self) -> WriteCache {
        WriteCache::Off
    }

    /// Size limit of acknowledged data in that cache.
    fn write_cache_bytes(&self) -> u64 {
        0
    }

    /// A running device; parameters and size are valid.
    ///
    /// # Errors
    /// Conditions that only the device itself can check.
    fn build(&self, size_bytes: u64, seed: u64) -> Built;
}

/// Makes the modules of the devices and the enum of their parameters. A line has the name in profile files,
/// the module, the variant, and the module's struct that implements [`DeviceParameters`].
macro_rules! devices {
    ($($name:literal => $module:ident::$kind:ident($parameters:ident),)*) => {
        $( pub mod $module; )*
        $( pub use $module::*; )*

        #[derive(Debug, Clone, PartialEq)]
        pub enum Parameters {
            $( $kind($parameters), )*
        }

        impl Parameters {
            pub const KINDS: &'static [&'static str] = &[$( $name, )*];

            /// `None` for an unknown kind.
            pub fn fields_of(kind: &str) -> Option<Vec<Field>> {
                match kind {
                    $( $name => Some($parameters::fields()), )*
                    _ => None,
                }
            }

            /// # Errors
            /// A value that is missing or out of bounds, or an unknown kind.
            pub fn from_values(kind: &str, values: Values) -> Result<Parameters, Invalid> {
                let parameters = match kind {
                    $( $name => Parameters::$kind($parameters::from_values(values)?), )*
                    _ => {
                        let known = Parameters::KINDS.join(", ");
                        return Err(Invalid::new("kind", format!("is `{kind}`, must be one of {known}")));
                    }
                };
                parameters.relations()?;
                Ok(parameters)
            }

            /// Name in profile files.
            pub fn kind(&self) -> &'static str {
                match self { $( Parameters::$kind(_) => $name, )* }
            }
        }

        impl Deref for Parameters {
            type Target = dyn DeviceParameters;

            fn deref(&self) -> &(dyn DeviceParameters + 'static) {
                match self { $( Parameters::$kind(parameters) => parameters, )* }
            }
        }
    };
}

devices! {
    "null" => null::Null(NullParameters),
    "disk" => disk::Disk(DiskParameters),
    "flash" => flash::Flash(FlashParameters),
    "volume" => volume::Volume(VolumeParameters),
}

impl Parameters {
    pub const NULL: Parameters = Parameters::Null(NullParameters {});
}

/// Transfer time of `bytes` in nanoseconds, rounded down.
pub(crate) fn transfer_ns(bytes: u64, bytes_per_s: u64) -> u64 {
    match bytes.checked_mul(SECOND) {
        // The common case, several times as fast.
        Some(product) => product / bytes_per_s,
        None => (u128::from(bytes) * u128::from(SECOND) / u128::from(bytes_per_s)) as u64,
    }
}
