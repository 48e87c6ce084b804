//! The share of a database's pages that cross a chunk boundary of an array: exact arithmetic, for an
//! alignment checker.
//!
//! A page that crosses a boundary costs the time of two drives instead of one; on RAID 5 it costs two
//! read-modify-writes. Pages are contiguous in a file, and the file system places files. The result therefore
//! depends on the possible starts of extents. An extent starts at the start of the partition, plus the space
//! reserved by a volume manager or the file system, plus any multiple of the file system's alignment. Over
//! all these starts and all pages of a long extent, crossings repeat with the chunk. The share is therefore a
//! fraction of small integers.

use std::fmt;

use crate::parameter::{Invalid, format_size_bytes};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    /// Distance from the start of the array to the first byte that the file system manages: partition plus
    /// volume manager.
    pub offset_bytes: u64,
    /// Chunk of the array.
    pub chunk_bytes: u64,
    /// Page of the database.
    pub page_bytes: u64,
    /// Alignment of extents, counted from the start of the file system: `sunit` (XFS) or `stride` (ext4) if
    /// set, otherwise the block size.
    pub extent_alignment_bytes: u64,
}

/// A fraction in lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    pub numerator: u64,
    pub denominator: u64,
}

impl Share {
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl fmt::Display for Share {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.numerator, self.denominator)
    }
}

impl Alignment {
    pub fn validate(&self) -> Result<(), Invalid> {
        for (key, value) in [
            ("chunk", self.chunk_bytes),
            ("page", self.page_bytes),
            ("extent_alignment", self.extent_alignment_bytes),
        ] {
            if value == 0 || value > 1 << 40 {
                let problem = format!("is {}, must be 1 B to 1 TiB", format_size_bytes(value));
                return Err(Invalid::new(key, problem));
            }
        }
        Ok(())
    }

    /// Share of pages that lie in more than one chunk, over all possible starts of an extent.
    ///
    /// A page begins at `offset + i * extent alignment + j * page`. Let `g` be the greatest common divisor of
    /// extent alignment, page and chunk. Modulo the chunk, the page starts are all places that are congruent
    /// to the offset modulo `g`, each equally often. A page crosses if less than a page is left in the chunk.
    pub fn crossing_share(&self) -> Share {
        let step = greatest_common_divisor(
            greatest_common_divisor(self.chunk_bytes, self.page_bytes),
            self.extent_alignment_bytes,
        );
        let places = self.chunk_bytes / step;
        let remainder = self.offset_bytes % step;
        // The places are `remainder + k * step`, `k < places`. Places up to `chunk - page` do not cross.
        let whole = match self.chunk_bytes.checked_sub(self.page_bytes) {
            Some(last) if remainder <= last => (last - remainder) / step + 1,
            _ => 0,
        };
        let divisor = greatest_common_divisor(places - whole, places);
        Share { numerator: (places - whole) / divisor, denominator: places / divisor }
    }

    /// Whether every page lies in as few chunks as its size allows.
    pub fn is_aligned(&self) -> bool {
        self.page_bytes <= self.chunk_bytes && self.crossing_share().numerator == 0
    }
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTOR_63: u64 = 63 * 512;
    const KIB: u64 = 1 << 10;

    fn alignment(offset_bytes: u64, page_bytes: u64, extent_alignment_bytes: u64) -> Alignment {
        Alignment { offset_bytes, chunk_bytes: 64 * KIB, page_bytes, extent_alignment_bytes }
    }

    fn check(offset_bytes: u64, page_bytes: u64, extent_alignment_bytes: u64, expect: &str) {
        let alignment = alignment(offset_bytes, page_bytes, extent_alignment_bytes);
        alignment.validate().unwrap();
        assert_eq!(alignment.crossing_share().to_string(), expect, "{alignment:?}");
    }

    #[test]
    fn an_aligned_page_crosses_nothing() {
        check(1 << 20, 16 * KIB, 16 * KIB, "0/1");
        check(1 << 20, 16 * KIB, 64 * KIB, "0/1");
    }

    #[test]
    fn one_page_in_four_crosses_from_sector_63() {
        check(SECTOR_63, 16 * KIB, 16 * KIB, "1/4");
        check(SECTOR_63, 16 * KIB, 64 * KIB, "1/4");
    }

    #[test]
    fn a_file_system_that_aligns_to_blocks_only_lets_pages_cross() {
        // Pages begin at any multiple of 4 KiB: 3 of 16 places are too near the end.
        check(1 << 20, 16 * KIB, 4 * KIB, "3/16");
        check(SECTOR_63, 16 * KIB, 4 * KIB, "1/4");
    }

    #[test]
    fn a_smaller_page_crosses_less_often() {
        check(SECTOR_63, 4 * KIB, 4 * KIB, "1/16");
        check(SECTOR_63, 8 * KIB, 8 * KIB, "1/8");
        check(0, 4 * KIB, 4 * KIB, "0/1");
    }

    #[test]
    fn a_page_larger_than_the_chunk_always_crosses() {
        check(0, 128 * KIB, 128 * KIB, "1/1");
        assert!(!alignment(0, 128 * KIB, 128 * KIB).is_aligned());
    }

    /// The same by laying out pages one by one.
    fn counted(alignment: &Alignment) -> f64 {
        let (mut crossing, mut pages) = (0_u64, 0_u64);
        for extent in 0..alignment.chunk_bytes / KIB {
            for page in 0..alignment.chunk_bytes / KIB {
                let start = alignment.offset_bytes
                    + extent * alignment.extent_alignment_bytes
                    + page * alignment.page_bytes;
                let last = start + alignment.page_bytes - 1;
                crossing += u64::from(start / alignment.chunk_bytes != last / alignment.chunk_bytes);
                pages += 1;
            }
        }
        crossing as f64 / pages as f64
    }

    #[test]
    fn the_fraction_is_what_laying_out_pages_counts() {
        for offset_bytes in [0, 512, SECTOR_63, 1 << 20, 192 * KIB, 7 * KIB] {
            for page_bytes in [4 * KIB, 8 * KIB, 16 * KIB, 12 * KIB, 64 * KIB] {
                for extent_alignment_bytes in [KIB, 4 * KIB, 16 * KIB, 64 * KIB, 1 << 20] {
                    let alignment = alignment(offset_bytes, page_bytes, extent_alignment_bytes);
                    let (share, counted) = (alignment.crossing_share().as_f64(), counted(&alignment));
                    assert!((share - counted).abs() < 1e-9, "{alignment:?}: {share} against {counted}");
                }
            }
        }
    }
}
