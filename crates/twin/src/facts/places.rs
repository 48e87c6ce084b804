//! Where a database reads and writes on its disks.

use std::sync::Arc;

use crate::draw::Draws;

/// A part of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    pub offset_bytes: u64,
    /// A multiple of 4096, and not zero.
    pub size_bytes: u64,
}

/// The place of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    pub offset_bytes: u64,
    pub size_bytes: u64,
}

/// Places in the order of a trace, or drawn from a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stream {
    /// Any page of the region, each as likely as the others.
    Uniform { region: Region, size_bytes: u64 },
    /// As recorded, and from the start again, then elsewhere in the region: otherwise the caches of a drive or a
    /// controller would have all of it. Never empty.
    Recorded { accesses: Arc<[Access]>, region: Region },
}

/// The places of the data's reads and writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    pub reads: Stream,
    /// Of pages, without the doublewrite buffer.
    pub writes: Stream,
}

impl Places {
    /// A page of those that are written, in no order.
    pub(crate) fn any_written_page(&self, page_bytes: u64, draws: &mut Draws) -> Access {
        let access = match &self.writes {
            Stream::Uniform { .. } => self.writes.place(0, draws.any()),
            Stream::Recorded { accesses, .. } => {
                accesses[usize::try_from(draws.below(accesses.len() as u64)).expect("an index")]
            }
        };
        Access { size_bytes: page_bytes, ..access }
    }
}

impl Region {
    /// The smallest that has all of these; `None` without any.
    pub fn around<'a>(accesses: impl IntoIterator<Item = &'a Access>) -> Option<Region> {
        accesses.into_iter().fold(None, |region: Option<Region>, access| {
            let Access { offset_bytes, size_bytes } = *access;
            let Some(region) = region else { return Some(Region { offset_bytes, size_bytes }) };
            let begin = region.offset_bytes.min(offset_bytes);
            let end = (region.offset_bytes + region.size_bytes).max(offset_bytes + size_bytes);
            Some(Region { offset_bytes: begin, size_bytes: end - begin })
        })
    }

    /// A place of the region, moved on so many times and back into it at its end. Neighbours stay neighbours, and
    /// places are aligned as they were.
    fn moved(&self, access: Access, times: u64) -> Access {
        /// Of the region, for each time; by the golden section no place comes again soon.
        const STEP: f64 = 0.381_966;
        const ALIGNED_BYTES: u64 = 1 << 20;
        let begin = self.offset_bytes / ALIGNED_BYTES * ALIGNED_BYTES;
        let size =
            (self.offset_bytes + self.size_bytes - begin).next_multiple_of(ALIGNED_BYTES).max(ALIGNED_BYTES);
        let step = (size as f64 * STEP) as u64 / ALIGNED_BYTES * ALIGNED_BYTES;
        let offset = (access.offset_bytes.saturating_sub(begin) + times * step) % size;
        let last = size.saturating_sub(access.size_bytes);
        Access { offset_bytes: begin + offset.min(last), ..access }
    }
}

impl Stream {
    /// The place of request number `number` of a simulation. `random` is uniform over all of `u64`.
    pub(crate) fn place(&self, number: u64, random: u64) -> Access {
        match self {
            Stream::Uniform { region, size_bytes } => {
                let count = (region.size_bytes / size_bytes).max(1);
                let index = ((u128::from(random) * u128::from(count)) >> 64) as u64;
                Access { offset_bytes: region.offset_bytes + index * size_bytes, size_bytes: *size_bytes }
            }
            Stream::Recorded { accesses, .. } => self.again(number, accesses[self.index(number)]),
        }
    }

    /// Its pages, of a recording one by one.
    pub(crate) fn in_no_order(&self, page_bytes: u64, draws: &mut Draws) -> Stream {
        let Stream::Recorded { accesses, region } = self else { return self.clone() };
        let pages_of = |access: &Access| {
            let Access { offset_bytes, size_bytes } = *access;
            let of = move |begin| Access {
                offset_bytes: offset_bytes + begin,
                size_bytes: page_bytes.min(size_bytes - begin),
            };
            (0..size_bytes).step_by(page_bytes as usize).map(of)
        };
        let mut pages: Vec<Access> = accesses.iter().flat_map(pages_of).collect();
        for last in (1..pages.len()).rev() {
            let other = usize::try_from(draws.below(last as u64 + 1)).expect("an index");
            pages.swap(last, other);
        }
        Stream::Recorded { accesses: pages.into(), region: *region }
    }

    /// The index of request number `number` in a recording.
    pub(crate) fn index(&self, number: u64) -> usize {
        match self {
            Stream::Uniform { .. } => 0,
            Stream::Recorded { accesses, .. } => (number % accesses.len() as u64) as usize,
        }
    }

    /// A place of a recording as it is by the time of request number `number`.
    pub(crate) fn again(&self, number: u64, access: Access) -> Access {
        match self {
            Stream::Recorded { accesses, region } if number >= accesses.len() as u64 => {
                region.moved(access, number / accesses.len() as u64)
            }
            _ => access,
        }
    }

    /// The number of a request after that share of a recording, from 0 to 1.
    pub(crate) fn at(&self, share: f64) -> u64 {
        match self {
            Stream::Uniform { .. } => 0,
            Stream::Recorded { accesses, .. } => (share * accesses.len() as f64) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uniform_stream_stays_in_its_region() {
        let region = Region { offset_bytes: 1 << 20, size_bytes: 10 << 14 };
        let stream = Stream::Uniform { region, size_bytes: 1 << 14 };
        assert_eq!(stream.place(0, 0).offset_bytes, 1 << 20);
        assert_eq!(stream.place(0, u64::MAX).offset_bytes, (1 << 20) + (9 << 14));
    }

    #[test]
    fn a_recorded_stream_starts_again_elsewhere() {
        const MIB: u64 = 1 << 20;
        let of = |mib: u64| Access { offset_bytes: mib * MIB, size_bytes: 4_096 };
        let region = Region { offset_bytes: 10 * MIB, size_bytes: 100 * MIB };
        let stream = Stream::Recorded { accesses: [of(10), of(90)].into(), region };
        let places: Vec<u64> = (0..6).map(|number| stream.place(number, 7).offset_bytes / MIB).collect();
        assert_eq!(places, [10, 90, 48, 28, 86, 66]);
        assert_eq!([stream.at(0.0), stream.at(0.5)], [0, 1]);
    }

    #[test]
    fn a_place_of_a_recording_stays_aligned() {
        // A region that begins and ends with pages of 4 KiB, and pages of 16 KiB in it.
        let region = Region { offset_bytes: (10 << 20) + 4_096, size_bytes: (7 << 20) + 8_192 };
        let of = |page: u64| Access { offset_bytes: (11 << 20) + (page << 14), size_bytes: 16_384 };
        let stream = Stream::Recorded { accesses: (0..300).map(of).collect(), region };
        let places: Vec<Access> = (0..3_000).map(|number| stream.place(number, 7)).collect();
        assert!(places.iter().all(|access| access.offset_bytes.is_multiple_of(16_384)));
        assert!(places.iter().all(|access| (10 << 20..18 << 20).contains(&access.offset_bytes)));
    }

    #[test]
    fn a_region_is_around_all_its_places() {
        let of = |offset_bytes| Access { offset_bytes, size_bytes: 4_096 };
        let region = Region::around(&[of(8_192), of(4_096), of(16_384)]);
        assert_eq!(region, Some(Region { offset_bytes: 4_096, size_bytes: 16_384 }));
        assert_eq!(Region::around(&[]), None);
    }
}
