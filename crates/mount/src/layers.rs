//! The layer of each cluster of a store: one byte per cluster, in parts. A part takes memory only once it
//! holds something, so the cost of a large disk grows with the data written to it.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

pub(crate) const CLUSTER_BYTES: u64 = 4096;

pub(crate) const NOWHERE: u8 = 0;
pub(crate) const BASE: u8 = 1;
pub(crate) const MEMORY: u8 = 2;
pub(crate) const SPILL: u8 = 3;

/// 256 MiB of a disk.
const PART: usize = 1 << 16;

#[derive(Debug)]
pub(crate) struct LayerMap {
    /// Absent if nothing in the part was ever held.
    parts: Box<[OnceLock<Box<[AtomicU8]>>]>,
    clusters: usize,
}

impl LayerMap {
    /// A map in which nothing is held.
    pub(crate) fn new(clusters: usize) -> LayerMap {
        LayerMap { parts: (0..clusters.div_ceil(PART)).map(|_| OnceLock::new()).collect(), clusters }
    }

    pub(crate) fn len(&self) -> usize {
        self.clusters
    }

    pub(crate) fn at(&self, cluster: usize) -> u8 {
        self.parts[cluster / PART].get().map_or(NOWHERE, |part| part[cluster % PART].load(Ordering::Acquire))
    }

    pub(crate) fn set(&self, clusters: Range<usize>, layer: u8) {
        let mut cluster = clusters.start;
        while cluster < clusters.end {
            let end = clusters.end.min((cluster / PART + 1) * PART);
            let part = match self.parts[cluster / PART].get() {
                None if layer == NOWHERE => None,
                None => Some(self.parts[cluster / PART].get_or_init(new_part)),
                there => there,
            };
            for held in part.into_iter().flat_map(|part| &part[cluster % PART..][..end - cluster]) {
                held.store(layer, Ordering::Release);
            }
            cluster = end;
        }
    }

    /// First cluster after `start` (at most `limit`) that another layer holds.
    pub(crate) fn run_end(&self, start: usize, limit: usize, layer: u8) -> usize {
        let mut cluster = start + 1;
        while cluster < limit {
            let end = limit.min((cluster / PART + 1) * PART);
            let other = match self.parts[cluster / PART].get() {
                None if layer == NOWHERE => None,
                None => return cluster,
                Some(part) => part[cluster % PART..][..end - cluster]
                    .iter()
                    .position(|held| held.load(Ordering::Acquire) != layer),
            };
            if let Some(distance) = other {
                return cluster + distance;
            }
            cluster = end;
        }
        limit
    }

    /// The runs of clusters in one layer, in order, each no longer than `longest`.
    pub(crate) fn runs(&self, longest: usize) -> impl Iterator<Item = (Range<usize>, u8)> + '_ {
        let mut first = 0;
        std::iter::from_fn(move || {
            if first == self.clusters {
                return None;
            }
            let layer = self.at(first);
            let longest = if layer == NOWHERE { self.clusters } else { longest };
            let end = self.run_end(first, self.clusters.min(first.saturating_add(longest)), layer);
            let run = first..end;
            first = end;
            Some((run, layer))
        })
    }
}

fn new_part() -> Box<[AtomicU8]> {
    (0..PART).map(|_| AtomicU8::new(NOWHERE)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_end_where_another_layer_begins_also_across_parts() {
        let map = LayerMap::new(5 * PART);
        map.set(PART - 2..PART + 3, BASE);
        map.set(3 * PART..3 * PART + 1, SPILL);
        map.set(4 * PART..5 * PART, NOWHERE);
        let runs: Vec<(Range<usize>, u8)> = map.runs(4).collect();
        let expect = [
            (0..PART - 2, NOWHERE),
            (PART - 2..PART + 2, BASE),
            (PART + 2..PART + 3, BASE),
            (PART + 3..3 * PART, NOWHERE),
            (3 * PART..3 * PART + 1, SPILL),
            (3 * PART + 1..5 * PART, NOWHERE),
        ];
        assert_eq!(runs, expect);
        assert_eq!((map.at(PART), map.at(3 * PART), map.at(4 * PART)), (BASE, SPILL, NOWHERE));
    }

    #[test]
    fn a_part_of_the_map_without_data_takes_no_memory() {
        let map = LayerMap::new((16 << 40) / 4096);
        map.set(PART..2 * PART, MEMORY);
        map.set(0..map.len(), NOWHERE);
        assert_eq!(map.parts.iter().filter(|part| part.get().is_some()).count(), 1);
    }
}
