//! Cached lines of read data, evicted in LRU order.

use std::collections::BTreeMap;

pub(super) const LINE_BYTES: u64 = 4_096;

#[derive(Debug, Default)]
pub(super) struct ReadCache {
    capacity_lines: u64,
    /// Line to its last use, counted in uses.
    lines: BTreeMap<u64, u64>,
    /// The inverse map: the least recently used line is first.
    uses: BTreeMap<u64, u64>,
    next_use: u64,
}

impl ReadCache {
    pub(super) fn new(capacity_bytes: u64) -> ReadCache {
        ReadCache { capacity_lines: capacity_bytes / LINE_BYTES, ..ReadCache::default() }
    }

    fn lines_of(start_bytes: u64, end_bytes: u64) -> std::ops::Range<u64> {
        start_bytes / LINE_BYTES..end_bytes.div_ceil(LINE_BYTES)
    }

    /// Whether the whole range is cached; if so, it becomes the most recently used.
    pub(super) fn hit(&mut self, start_bytes: u64, end_bytes: u64) -> bool {
        let is_hit = self.capacity_lines > 0
            && ReadCache::lines_of(start_bytes, end_bytes).all(|line| self.lines.contains_key(&line));
        if is_hit {
            self.insert(start_bytes, end_bytes);
        }
        is_hit
    }

    pub(super) fn insert(&mut self, start_bytes: u64, end_bytes: u64) {
        let lines = ReadCache::lines_of(start_bytes, end_bytes);
        if lines.end - lines.start > self.capacity_lines {
            return;
        }
        for line in lines {
            if let Some(earlier_use) = self.lines.insert(line, self.next_use) {
                self.uses.remove(&earlier_use);
            }
            self.uses.insert(self.next_use, line);
            self.next_use += 1;
        }
        while self.lines.len() as u64 > self.capacity_lines
            && let Some((_, line)) = self.uses.pop_first()
        {
            self.lines.remove(&line);
        }
    }

    /// Removes a range that was discarded.
    pub(super) fn remove(&mut self, start_bytes: u64, end_bytes: u64) {
        let mut held = self.lines.split_off(&(start_bytes / LINE_BYTES));
        self.lines.append(&mut held.split_off(&end_bytes.div_ceil(LINE_BYTES)));
        for used in held.values() {
            self.uses.remove(used);
        }
    }

    pub(super) fn reset(&mut self) {
        *self = ReadCache { capacity_lines: self.capacity_lines, ..ReadCache::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_line_goes_first() {
        let mut cache = ReadCache::new(2 * LINE_BYTES);
        cache.insert(0, LINE_BYTES);
        cache.insert(LINE_BYTES, 2 * LINE_BYTES);
        assert!(cache.hit(0, 512));
        cache.insert(4 * LINE_BYTES, 5 * LINE_BYTES);
        assert!(cache.hit(0, LINE_BYTES));
        assert!(!cache.hit(LINE_BYTES, 2 * LINE_BYTES));
    }

    #[test]
    fn what_is_removed_is_no_hit() {
        let mut cache = ReadCache::new(8 * LINE_BYTES);
        cache.insert(0, 4 * LINE_BYTES);
        cache.remove(LINE_BYTES, LINE_BYTES + 512);
        assert!(!cache.hit(0, 2 * LINE_BYTES));
        assert!(cache.hit(2 * LINE_BYTES, 4 * LINE_BYTES));
        assert_eq!(cache.lines.len(), cache.uses.len());
    }

    #[test]
    fn more_than_fits_is_not_kept() {
        let mut cache = ReadCache::new(2 * LINE_BYTES);
        cache.insert(0, 3 * LINE_BYTES);
        assert!(!cache.hit(0, 512));
    }
}
