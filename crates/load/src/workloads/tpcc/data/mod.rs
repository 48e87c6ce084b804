//! The initial database. Must not know what terminals do with it.

mod loader;
mod population;
mod schema;

pub(super) use loader::load;
