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
    /// As recorded, and from the start again. Never empty.
    Recorded(Arc<[Access]>),
}

/// The places of the data's reads and writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    pub reads: Stream,
    /// Of pages, without the doublewrite buffer.
    pub writes: Stream,
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
            Stream::Recorded(accesses) => accesses[(number % accesses.len() as u64) as usize],
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
    fn a_recorded_stream_starts_again() {
        let of = |offset_bytes| Access { offset_bytes, size_bytes: 4096 };
        let stream = Stream::Recorded([of(0), of(8192)].into());
        let offsets: Vec<u64> = (0..3).map(|number| stream.place(number, 7).offset_bytes).collect();
        assert_eq!(offsets, [0, 8192, 0]);
    }
}
