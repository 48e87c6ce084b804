//! The questions of a bench.

use itertools::Itertools as _;
use spindle_base::units::parse_size_bytes;

use super::{Access, Place, Question};

const MEBIBYTE: u64 = 1 << 20;
const IODEPTHS_QUICK: [u64; 2] = [1, 16];
/// The published curves have iodepths from 1 to 200.
const IODEPTHS_FULL: [u64; 8] = [1, 2, 4, 8, 16, 32, 100, 200];
pub const IODEPTH_HIGH: u64 = 200;
const RANDOM_UNITS_QUICK: [u64; 2] = [4 << 10, 16 << 10];
const RANDOM_UNITS_FULL: [u64; 4] = [4 << 10, 8 << 10, 16 << 10, MEBIBYTE];
const FSYNC_BLOCKS: [u64; 3] = [1 << 10, 8 << 10, 16 << 10];
/// Iodepths at which the file system is compared with the raw device.
const FILE_SYSTEM_IODEPTHS: [u64; 2] = [1, 16];
const FILE_SYSTEM_BLOCK: u64 = 16 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wishes {
    pub full: bool,
    /// Overrides the default list.
    pub iodepth: Option<Vec<u64>>,
    /// Block sizes of random access in bytes; overrides the default list.
    pub block_sizes: Option<Vec<u64>>,
}

/// The questions that a target can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    pub raw: bool,
    pub raw_writes: bool,
    pub file: bool,
    pub file_writes: bool,
}

/// Parses `4K` to bytes.
pub fn parse_block_size(text: &str) -> Result<u64, String> {
    let bytes = parse_size_bytes(text.trim())?;
    match (512..=MEBIBYTE).contains(&bytes) && bytes.is_power_of_two() {
        true => Ok(bytes),
        false => Err(format!("{bytes} bytes must be a power of two from 512 bytes to 1 MiB")),
    }
}

/// The questions in order: reads before writes, because writes change the state of the disk.
pub fn questions(wishes: &Wishes, abilities: Abilities) -> Vec<Question> {
    let (iodepths, block_sizes) = match wishes.full {
        true => (&IODEPTHS_FULL[..], &RANDOM_UNITS_FULL[..]),
        false => (&IODEPTHS_QUICK[..], &RANDOM_UNITS_QUICK[..]),
    };
    let iodepths = wishes.iodepth.as_deref().unwrap_or(iodepths).iter().copied().sorted().collect_vec();
    let block_sizes =
        wishes.block_sizes.as_deref().unwrap_or(block_sizes).iter().copied().sorted().collect_vec();
    // Without a raw device, a file takes its place.
    let place = if abilities.raw { Place::Raw } else { Place::FileSystem };
    let writes = if abilities.raw { abilities.raw_writes } else { abilities.file_writes };
    let mut questions = Vec::new();
    let mut ask = |place, access: Access, block_bytes, iodepth| {
        let question = Question { place, access, block_bytes, iodepth };
        if !questions.contains(&question) {
            questions.push(question);
        }
    };
    let random = |ask: &mut dyn FnMut(Place, Access, u64, u64), access| {
        for (&block_bytes, &iodepth) in block_sizes.iter().cartesian_product(&iodepths) {
            ask(place, access, block_bytes, iodepth);
        }
    };
    random(&mut ask, Access::RandomRead);
    let streams: &[u64] = if wishes.full { &[1, 4] } else { &[1] };
    for &iodepth in streams {
        ask(place, Access::SequentialRead, MEBIBYTE, iodepth);
    }
    if writes {
        for block_bytes in FSYNC_BLOCKS {
            ask(place, Access::Fsync, block_bytes, 1);
        }
        for &iodepth in streams {
            ask(place, Access::SequentialWrite, MEBIBYTE, iodepth);
        }
        random(&mut ask, Access::RandomWrite);
    }
    if abilities.raw && abilities.file {
        let both_write = abilities.raw_writes && abilities.file_writes;
        let accesses =
            if both_write { &[Access::RandomRead, Access::RandomWrite][..] } else { &[Access::RandomRead] };
        for &access in accesses {
            for iodepth in FILE_SYSTEM_IODEPTHS {
                ask(Place::Raw, access, FILE_SYSTEM_BLOCK, iodepth);
                ask(Place::FileSystem, access, FILE_SYSTEM_BLOCK, iodepth);
            }
        }
    }
    questions
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Wishes = Wishes { full: false, iodepth: None, block_sizes: None };
    const ALL: Abilities = Abilities { raw: true, raw_writes: true, file: true, file_writes: true };

    #[test]
    fn nothing_is_asked_twice() {
        for full in [false, true] {
            let questions = questions(&Wishes { full, ..QUICK }, ALL);
            let mut sorted = questions.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), questions.len());
        }
    }

    #[test]
    fn without_leave_the_raw_device_is_not_written() {
        for file in [false, true] {
            let abilities = Abilities { raw: true, raw_writes: false, file, file_writes: file };
            let mut questions = questions(&QUICK, abilities).into_iter();
            assert!(!questions.any(|question| question.place == Place::Raw && question.access.is_write()));
        }
    }

    #[test]
    fn a_file_system_stands_beside_the_raw_device_at_1_and_16_threads() {
        let questions = questions(&QUICK, ALL);
        for question in questions.iter().filter(|question| question.place == Place::FileSystem) {
            assert!(questions.contains(&Question { place: Place::Raw, ..*question }), "{question}");
        }
        let on_files = questions.iter().filter(|question| question.place == Place::FileSystem);
        assert_eq!(on_files.map(|question| question.iodepth).collect::<Vec<_>>(), [1, 16, 1, 16]);
    }

    #[test]
    fn block_sizes_are_powers_of_two_up_to_a_mebibyte() {
        assert_eq!(parse_block_size("16K"), Ok(16 << 10));
        assert_eq!(parse_block_size(" 4 KiB"), Ok(4 << 10));
        for bad in ["2M", "3K", "4"] {
            assert!(parse_block_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn given_iodepths_are_asked_in_rising_order() {
        let wishes = Wishes { iodepth: Some(vec![16, 1, 4, 4]), block_sizes: Some(vec![4 << 10]), ..QUICK };
        let raw_only = Abilities { raw: true, raw_writes: false, file: false, file_writes: false };
        let questions = questions(&wishes, raw_only).into_iter();
        let random = questions.filter(|question| question.access == Access::RandomRead);
        assert_eq!(random.map(|question| question.iodepth).collect_vec(), [1, 4, 16]);
    }
}
