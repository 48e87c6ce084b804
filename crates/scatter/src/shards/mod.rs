//! Several servers as one: which they are, what they say of tables together, and whether each has what it should.

pub mod catalog;
pub(crate) mod check;

use crate::mapping::Mapping;
use crate::servers::Server;

/// One server with all rows, or several with a part of them each.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// At least one.
    pub servers: Vec<Server>,
    /// `None` for one server.
    pub mapping: Option<Mapping>,
}

impl Cluster {
    pub fn of(server: Server) -> Cluster {
        Cluster { servers: vec![server], mapping: None }
    }
}
