//! The initial database. Must not know the work of the terminals.

mod loader;
mod population;
mod schema;

pub(super) use loader::load;
