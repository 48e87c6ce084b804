//! What a block trace tells: the places of reads and of page writes (`classify.rs`), and how many reads another
//! buffer pool would save (`reuse.rs`).

mod classify;
mod reuse;

pub use classify::{Classified, classify};
pub use reuse::MissCurve;
