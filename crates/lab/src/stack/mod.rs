//! Stacks: the storage behind a name. Profiles and stack tables are read here, resolved to a tree of the
//! model, explained, hashed and passed to the process that serves them. The model's declarations define the
//! keys; nothing here names a layer or a device. This module knows no scenario, no run and no running disk.

mod built_in;
mod canonical;
mod data_starts;
mod explained;
pub mod layout;
mod profile;
pub mod reference;
mod resolve;
mod spec;
mod table;
mod values;

pub use built_in::{PROFILES, built_in_names, built_in_stack, ready_made_names, suggestion};
pub use canonical::served_device;
pub use data_starts::{LVM_DATA_STARTS_BYTES, PARTITION_STARTS_BYTES};
pub use explained::{DeviceFacts, Explained, Explanation};
pub use profile::deviations::KnownDeviation;
pub use profile::endurance::Endurance;
pub use profile::{Profile, known_deviations_of};
pub use spec::drives::Drives;
pub use spec::{PoolSpec, StackSpec};
pub use table::{On, StackFile, StackTable};
pub use values::{Origin, toml_text};

#[cfg(test)]
mod tests;
