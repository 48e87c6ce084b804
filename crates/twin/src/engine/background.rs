//! A server's process that writes changed pages ahead of the sessions, by time: PostgreSQL's background writer
//! (`BgBufferSync` in src/backend/storage/buffer/bufmgr.c).

use crate::facts::Access;
use crate::flushing::BackgroundWriting;

/// Its rounds.
#[derive(Debug)]
pub(super) struct Background {
    pub(super) rules: BackgroundWriting,
    /// Of the pages that the rules allow.
    share: f64,
    /// Part of a page that is left from the last round.
    rest: f64,
    /// Pages that became dirty since the last round.
    changed: u64,
    left_of_round: u64,
    /// Pages in the page cache that the kernel is not asked for yet.
    gathered: Vec<Access>,
}

impl Background {
    pub(super) fn new(rules: BackgroundWriting, share: f64) -> Background {
        Background { rules, share, rest: 0.0, changed: 0, left_of_round: 0, gathered: Vec::new() }
    }

    pub(super) fn changed(&mut self, pages: u64) {
        self.changed += pages;
    }

    /// It makes room for as many pages as were taken since the last round, or its share of them.
    pub(super) fn begin_round(&mut self) {
        let allowed = std::mem::take(&mut self.changed).min(self.rules.most_pages);
        let pages = allowed as f64 * self.share + self.rest;
        self.left_of_round = pages as u64;
        self.rest = pages.fract();
    }

    pub(super) fn has_work(&self) -> bool {
        self.left_of_round > 0
    }

    /// It wrote a page to the page cache. Those that the drive is sent now, sorted (`IssuePendingWritebacks`).
    pub(super) fn wrote(&mut self, page: Access) -> Vec<Access> {
        self.left_of_round -= 1;
        if self.rules.flush_after_pages == 0 {
            return Vec::new();
        }
        self.gathered.push(page);
        if (self.gathered.len() as u64) < self.rules.flush_after_pages {
            return Vec::new();
        }
        self.gathered.sort_by_key(|page| page.offset_bytes);
        std::mem::take(&mut self.gathered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_the_pages_taken_since_the_last_and_the_drive_gets_them_sorted() {
        let rules = BackgroundWriting { delay_ns: 1, most_pages: 3, flush_after_pages: 4 };
        let mut background = Background::new(rules, 1.0);
        let page = |number: u64| Access { offset_bytes: number * 8_192, size_bytes: 8_192 };
        let mut round = |taken: u64, first: u64| -> Vec<Vec<u64>> {
            background.changed(taken);
            background.begin_round();
            let mut sent = Vec::new();
            let mut number = first;
            while background.has_work() {
                let pages = background.wrote(page(number));
                sent.push(pages.iter().map(|page| page.offset_bytes / 8_192).collect());
                number -= 1;
            }
            sent
        };
        assert_eq!(round(0, 100), Vec::<Vec<u64>>::new());
        assert_eq!(round(5, 9), vec![vec![], vec![], Vec::new()], "no more than a round may have");
        assert_eq!(round(2, 6), vec![vec![6, 7, 8, 9], vec![]]);
    }
}
