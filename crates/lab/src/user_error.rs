//! A mistake of the user: one sentence that names the flag or key and the bound. Exit code 2, before any work.

/// The whole sentence, without `spindle: ` in front of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UserError(pub String);
