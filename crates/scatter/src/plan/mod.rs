//! A query as data: fragments for servers, and one SELECT that makes the answer of what they return. It knows no
//! connection; what it must know of tables it asks through [`Facts`](crate::facts::Facts).

mod aggregate;
mod block;
mod check;
mod conditions;
mod eager;
mod placement;
mod query;
mod rewrite;
mod scope;
mod semi_join;
mod writes;

pub use block::{Block, Part};
pub use conditions::ColumnOf;
pub use eager::DIMENSION_ROWS_MOST;
pub use placement::{only_server, reads_sharded};
pub use query::{Plan, inlined, plan};
pub use writes::{Write, is_definition, is_write, plan_write};

/// Why a query is not split: a clause that continues "it is answered by one server, because".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);
