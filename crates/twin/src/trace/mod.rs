//! What a block trace tells: the places of reads and of page writes (`classify.rs`), how often a page that was written and
//! stayed in the buffer pool is written again (`again.rs`), and how many reads (`reuse.rs`) and page writes (`rewrites.rs`)
//! another buffer pool would save, by the server's list of pages (`lists.rs`).

mod again;
mod classify;
mod lists;
mod reuse;
mod rewrites;

pub use again::written_again;
pub use classify::{Classified, PageUse, classify, page_uses};
pub use lists::{Answered, List, Midpoint, MidpointList};
pub use reuse::{Followed, MissCurve};
