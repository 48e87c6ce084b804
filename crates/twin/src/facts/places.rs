//! Where a database reads and writes on its disks.

use std::sync::Arc;

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

    /// A place of the region, moved on so many times and back into it at its end. Neighbours stay neighbours.
    fn moved(&self, access: Access, times: u64) -> Access {
        /// Of the region, for each time; by the golden section no place comes again soon.
        const STEP: f64 = 0.381_966;
        /// Keeps places aligned as they are.
        const ALIGNED_BYTES: u64 = 1 << 20;
        let step = (self.size_bytes as f64 * STEP) as u64 / ALIGNED_BYTES * ALIGNED_BYTES;
        let size = self.size_bytes.max(1);
        let offset = (access.offset_bytes.saturating_sub(self.offset_bytes) + times * step) % size;
        let last = self.size_bytes.saturating_sub(access.size_bytes);
        Access { offset_bytes: self.offset_bytes + offset.min(last), ..access }
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
    fn a_region_is_around_all_its_places() {
        let of = |offset_bytes| Access { offset_bytes, size_bytes: 4_096 };
        let region = Region::around(&[of(8_192), of(4_096), of(16_384)]);
        assert_eq!(region, Some(Region { offset_bytes: 4_096, size_bytes: 16_384 }));
        assert_eq!(Region::around(&[]), None);
    }
}
