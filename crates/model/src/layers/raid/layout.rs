//! Mapping of the array's bytes to its members: pure arithmetic.
//!
//! RAID 5 is left-symmetric and RAID 6 left-symmetric with Q after P, as in Linux md (`drivers/md/raid5.c`,
//! `raid5_compute_sector`); RAID 10 is md's near-2 layout (`man 4 md`).
//!
//! A row is one chunk on every member, at the same place. RAID 1 is one chunk as large as the array.

use super::RaidLevel;

/// Larger than any device, and the sum of two of them still fits.
const UNBOUNDED_CHUNK_BYTES: u64 = 1 << 62;

#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    level: RaidLevel,
    member_count: u64,
    pub(super) chunk_bytes: u64,
    /// Usable size of the array.
    pub(super) size_bytes: u64,
    /// Bytes in use on each member.
    pub(super) member_bytes: u64,
}

/// A part of the host's range within one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) chunk: u64,
    pub(super) start_bytes: u64,
    pub(super) end_bytes: u64,
}

/// A place on a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) member: usize,
    pub(super) offset_bytes: u64,
}

/// The role of a byte on a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A copy of the host's byte at this offset.
    Data {
        copy: u64,
        offset_bytes: u64,
    },
    Parity,
    /// Beyond the array's end.
    Unused,
}

impl Layout {
    pub(super) fn new(
        level: RaidLevel,
        member_count: usize,
        chunk_bytes: u64,
        smallest_member_bytes: u64,
    ) -> Layout {
        let member_count = member_count as u64;
        let rows = smallest_member_bytes / chunk_bytes;
        let chunks = match level {
            RaidLevel::Raid0 => rows * member_count,
            RaidLevel::Raid1 => 0,
            RaidLevel::Raid5 | RaidLevel::Raid6 => rows * (member_count - level.parity_count()),
            RaidLevel::Raid10 => rows * member_count / 2,
        };
        if level == RaidLevel::Raid1 {
            let size_bytes = smallest_member_bytes;
            let chunk_bytes = UNBOUNDED_CHUNK_BYTES;
            return Layout { level, member_count, chunk_bytes, size_bytes, member_bytes: size_bytes };
        }
        let size_bytes = chunks * chunk_bytes;
        Layout { level, member_count, chunk_bytes, size_bytes, member_bytes: rows * chunk_bytes }
    }

    pub(super) fn has_parity(&self) -> bool {
        self.parity_count() > 0
    }

    pub(super) fn parity_count(&self) -> u64 {
        self.level.parity_count()
    }

    /// Chunks of data in a row of an array with parity.
    pub(super) fn data_count(&self) -> u64 {
        self.member_count - self.parity_count()
    }

    /// Bytes of data in a row of an array with parity.
    pub(super) fn row_bytes(&self) -> u64 {
        self.data_count() * self.chunk_bytes
    }

    pub(super) fn copy_count(&self) -> u64 {
        match self.level {
            RaidLevel::Raid1 => self.member_count,
            RaidLevel::Raid10 => 2,
            RaidLevel::Raid0 | RaidLevel::Raid5 | RaidLevel::Raid6 => 1,
        }
    }

    /// Splits the host's range by chunk.
    pub(super) fn pieces(&self, start_bytes: u64, end_bytes: u64) -> impl Iterator<Item = Piece> + use<> {
        let chunk_bytes = self.chunk_bytes;
        let mut next_bytes = start_bytes;
        std::iter::from_fn(move || {
            if next_bytes >= end_bytes {
                return None;
            }
            let chunk = next_bytes / chunk_bytes;
            let start_bytes = next_bytes;
            next_bytes = end_bytes.min((chunk + 1) * chunk_bytes);
            Some(Piece { chunk, start_bytes, end_bytes: next_bytes })
        })
    }

    /// The place of a copy of the host's byte.
    pub(super) fn place(&self, offset_bytes: u64, copy: u64) -> Place {
        let (chunk, within) = (offset_bytes / self.chunk_bytes, offset_bytes % self.chunk_bytes);
        let (member, row) = match self.level {
            RaidLevel::Raid0 => (chunk % self.member_count, chunk / self.member_count),
            RaidLevel::Raid1 => (copy, 0),
            RaidLevel::Raid10 => {
                let position = 2 * chunk + copy;
                (position % self.member_count, position / self.member_count)
            }
            RaidLevel::Raid5 | RaidLevel::Raid6 => {
                let row = chunk / self.data_count();
                (self.data_member(row, chunk % self.data_count()) as u64, row)
            }
        };
        Place { member: member as usize, offset_bytes: row * self.chunk_bytes + within }
    }

    /// The member that holds the P (0) or Q (1) of a row.
    pub(super) fn parity_member(&self, row: u64, index: u64) -> usize {
        let p = self.member_count - 1 - row % self.member_count;
        ((p + index) % self.member_count) as usize
    }

    /// The member that holds a row's chunk of data.
    pub(super) fn data_member(&self, row: u64, index: u64) -> usize {
        ((self.parity_member(row, 0) as u64 + self.parity_count() + index) % self.member_count) as usize
    }

    /// The role of the byte at an offset of a member.
    pub(super) fn role(&self, member: usize, offset_bytes: u64) -> Role {
        let member = member as u64;
        let (row, within) = (offset_bytes / self.chunk_bytes, offset_bytes % self.chunk_bytes);
        let (chunk, copy) = match self.level {
            RaidLevel::Raid0 => (row * self.member_count + member, 0),
            RaidLevel::Raid1 => (0, member),
            RaidLevel::Raid10 => {
                let position = row * self.member_count + member;
                (position / 2, position % 2)
            }
            RaidLevel::Raid5 | RaidLevel::Raid6 => {
                let after_parity =
                    (member + self.member_count - self.parity_member(row, 0) as u64) % self.member_count;
                if after_parity < self.parity_count() {
                    return Role::Parity;
                }
                (row * self.data_count() + after_parity - self.parity_count(), 0)
            }
        };
        let offset_bytes = chunk * self.chunk_bytes + within;
        if offset_bytes < self.size_bytes { Role::Data { copy, offset_bytes } } else { Role::Unused }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: u64 = 4_096;

    fn layout(level: RaidLevel, member_count: usize) -> Layout {
        Layout::new(level, member_count, CHUNK, 12 * CHUNK)
    }

    /// The content of each member by row: the number of a chunk, P or Q.
    fn table(level: RaidLevel, member_count: usize, rows: u64) -> Vec<String> {
        let layout = layout(level, member_count);
        let cell = |row: u64, member: usize| match layout.role(member, row * CHUNK) {
            Role::Data { offset_bytes, .. } => (offset_bytes / CHUNK).to_string(),
            Role::Parity if layout.parity_member(row, 0) == member => "P".to_string(),
            Role::Parity => "Q".to_string(),
            Role::Unused => "-".to_string(),
        };
        (0..rows)
            .map(|row| (0..member_count).map(|member| cell(row, member)).collect::<Vec<_>>().join(" "))
            .collect()
    }

    #[test]
    fn raid_5_is_left_symmetric() {
        // The table of `man 4 md` and of the SNIA DDF: parity moves left, data starts after it.
        assert_eq!(
            table(RaidLevel::Raid5, 4, 5),
            ["0 1 2 P", "4 5 P 3", "8 P 6 7", "P 9 10 11", "12 13 14 P"]
        );
    }

    #[test]
    fn raid_6_is_left_symmetric_with_q_after_p() {
        assert_eq!(table(RaidLevel::Raid6, 4, 4), ["Q 0 1 P", "2 3 P Q", "5 P Q 4", "P Q 6 7"]);
    }

    #[test]
    fn raid_10_keeps_the_two_copies_next_to_each_other() {
        assert_eq!(table(RaidLevel::Raid10, 4, 2), ["0 0 1 1", "2 2 3 3"]);
        assert_eq!(table(RaidLevel::Raid10, 3, 2), ["0 0 1", "1 2 2"]);
    }

    #[test]
    fn the_usable_size_is_that_of_the_data() {
        let chunks = |level, members| layout(level, members).size_bytes / CHUNK;
        assert_eq!(chunks(RaidLevel::Raid0, 4), 48);
        assert_eq!(chunks(RaidLevel::Raid1, 4), 12);
        assert_eq!(chunks(RaidLevel::Raid5, 4), 36);
        assert_eq!(chunks(RaidLevel::Raid6, 4), 24);
        assert_eq!(chunks(RaidLevel::Raid10, 4), 24);
        assert_eq!(chunks(RaidLevel::Raid10, 3), 18);
    }

    #[test]
    fn role_is_the_inverse_of_place() {
        for (level, member_count) in [
            (RaidLevel::Raid0, 3),
            (RaidLevel::Raid1, 3),
            (RaidLevel::Raid5, 5),
            (RaidLevel::Raid6, 6),
            (RaidLevel::Raid10, 3),
            (RaidLevel::Raid10, 6),
        ] {
            let layout = layout(level, member_count);
            for offset_bytes in (0..layout.size_bytes).step_by(512) {
                for copy in 0..layout.copy_count() {
                    let place = layout.place(offset_bytes, copy);
                    assert_eq!(
                        layout.role(place.member, place.offset_bytes),
                        Role::Data { copy, offset_bytes }
                    );
                    assert!(place.offset_bytes < layout.member_bytes);
                }
            }
        }
    }
}
