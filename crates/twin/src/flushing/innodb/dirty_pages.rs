//! Changed pages by their age: the list of dirty pages.

use std::collections::VecDeque;

/// Pages by the end of the log at their first change, the oldest first.
#[derive(Debug, Default)]
pub(super) struct DirtyPages {
    pages: VecDeque<(f64, u64)>,
    pub(super) count: u64,
}

impl DirtyPages {
    /// As many pages as given, spread evenly over the changes of the last `age` bytes of the log.
    pub(super) fn spread(count: u64, age: f64) -> DirtyPages {
        let steps = 100.min(count);
        let pages = (0..steps).map(|step| {
            let pages = count * (step + 1) / steps - count * step / steps;
            (age * (step as f64 / steps as f64 - 1.0), pages)
        });
        DirtyPages { pages: pages.collect(), count }
    }

    pub(super) fn push(&mut self, log_end: f64, pages: u64) {
        if pages > 0 {
            self.pages.push_back((log_end, pages));
            self.count += pages;
        }
    }

    pub(super) fn oldest(&self) -> Option<f64> {
        self.pages.front().map(|(first, _)| *first)
    }

    pub(super) fn before(&self, end: f64) -> u64 {
        self.pages.iter().take_while(|(first, _)| *first < end).map(|(_, pages)| pages).sum()
    }

    /// Takes at most that many of the oldest pages.
    pub(super) fn take(&mut self, most: u64) -> u64 {
        let taken = most.min(self.count);
        let mut left = taken;
        while let Some((_, pages)) = self.pages.front_mut()
            && left > 0
        {
            let part = left.min(*pages);
            *pages -= part;
            left -= part;
            if *pages == 0 {
                self.pages.pop_front();
            }
        }
        self.count -= taken;
        taken
    }
}

/// Takes at most that many pages whose first change is before the given one, the oldest of both first.
pub(super) fn take_of_list(hot: &mut DirtyPages, cold: &mut DirtyPages, most: u64, before: f64) -> u64 {
    let mut taken = 0;
    while taken < most {
        let of = |pages: &DirtyPages| pages.oldest().unwrap_or(f64::INFINITY);
        let older = if of(hot) <= of(cold) { &mut *hot } else { &mut *cold };
        let Some((_, pages)) = older.pages.front().copied().filter(|(first, _)| *first < before) else {
            break;
        };
        taken += older.take(pages.min(most - taken));
    }
    taken
}
