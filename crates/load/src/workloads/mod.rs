//! The workloads, one file or folder each. The smallest is [`mock`], a template for new ones
//! (docs/extending.md).
//!
//! Belongs here: the data, requests and checks of one workload. Must not know how often it is called, the
//! names of other workloads, or the storage under the server.

macro_rules! modules {
    ($($(#[$attribute:meta])* $name:literal => $variant:ident($module:ident),)+) => { $(pub mod $module;)+ };
}

for_each_workload!(modules);
