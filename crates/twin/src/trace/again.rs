//! How often a page that is written and stays in the buffer pool changes again.

use std::collections::{BTreeMap, BTreeSet};

use super::classify::PageUse;

/// Of the writes of a page since its last read or write in the trace, the share that follows a write: the page was in the
/// pool all the time between. Zero without any. Pages that are never read are left out, because the pool may keep them for
/// ever.
pub fn written_again(uses: &[PageUse]) -> f64 {
    let read: BTreeSet<u64> =
        uses.iter().filter(|page_use| !page_use.is_write).map(|page_use| page_use.page).collect();
    let mut was_write: BTreeMap<u64, bool> = BTreeMap::new();
    let (mut all, mut again) = (0_u64, 0_u64);
    for PageUse { page, is_write, .. } in uses.iter().filter(|page_use| read.contains(&page_use.page)) {
        if let Some(was_write) = was_write.insert(*page, *is_write)
            && *is_write
        {
            all += 1;
            again += u64::from(was_write);
        }
    }
    if all == 0 { 0.0 } else { again as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use spindle_model::Instant;

    use super::*;

    #[test]
    fn a_write_after_a_write_is_again() {
        let of = |uses: &[(u64, bool)]| {
            let page_use = |&(page, is_write): &(u64, bool)| PageUse { page, at: Instant(0), is_write };
            written_again(&uses.iter().map(page_use).collect::<Vec<_>>())
        };
        const READ: bool = false;
        const WRITE: bool = true;
        assert_eq!(of(&[]), 0.0);
        assert_eq!(
            of(&[(1, READ), (1, WRITE), (2, READ), (1, WRITE), (2, WRITE), (1, READ), (1, WRITE)]),
            0.25
        );
        // The first write of page 3 follows nothing that is known, and page 4 is never read.
        assert_eq!(of(&[(3, WRITE), (3, READ), (3, WRITE), (4, WRITE), (4, WRITE)]), 0.0);
    }
}
