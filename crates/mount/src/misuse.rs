//! What a caller asks for and cannot have: a name that is taken or not there, a place that is in use. A mistake in an argument, where every other error is
//! the machine's.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// One sentence with the name or place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misuse(pub String);

impl Display for Misuse {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Error for Misuse {}
