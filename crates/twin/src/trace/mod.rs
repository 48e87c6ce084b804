//! What a block trace tells: the places of reads and of page writes (`classify.rs`), and how many reads
//! (`reuse.rs`) and page writes (`rewrites.rs`) another buffer pool would save.

mod classify;
mod reuse;
mod rewrites;

pub use classify::{Classified, PageUse, classify, page_uses};
pub use reuse::{Followed, MissCurve};
pub use rewrites::Rewrites;
