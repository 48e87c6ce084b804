//! One request of a block trace as bytes. The header of [`super`] has the format.

use anyhow::{Context, Result, bail, ensure};
use spindle_model::{Instant, Operation, SECTOR_BYTES, Traced};

/// Unit of a time.
pub(super) const TICK_NS: u64 = 100;
/// Three numbers of ten bytes.
pub(super) const REQUEST_BYTES_MOST: usize = 30;

const OPERATIONS: [Operation; 5] =
    [Operation::Read, Operation::Write, Operation::Flush, Operation::Discard, Operation::WriteZeroes];
/// The lowest bits of the first number.
const OPERATION_MASK: u64 = 7;
const FORCE_UNIT_ACCESS: u64 = 8;
const TIME_SHIFT: u32 = 4;

/// What a request is told relative to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Position {
    /// Time of the request before it.
    ticks: u64,
    /// The sector after that request.
    sector: u64,
}

impl Position {
    /// Adds a request at its end. A request that is not of whole sectors has those that it touches.
    pub(super) fn encode(&mut self, request: &Traced, bytes: &mut Vec<u8>) {
        let ticks = (request.at.0 / TICK_NS).max(self.ticks);
        let flag = if request.force_unit_access { FORCE_UNIT_ACCESS } else { 0 };
        put(bytes, ((ticks - self.ticks) << TIME_SHIFT) | flag | code(request.operation));
        self.ticks = ticks;
        if request.operation == Operation::Flush {
            return;
        }
        let first = request.offset_bytes / SECTOR_BYTES;
        let end = (request.offset_bytes + request.size_bytes).div_ceil(SECTOR_BYTES);
        put(bytes, zigzag(first.wrapping_sub(self.sector) as i64));
        put(bytes, end - first);
        self.sector = end;
    }

    /// Takes the next request from the begin of `bytes`. The disk has this many sectors.
    pub(super) fn decode(&mut self, bytes: &mut &[u8], sectors: u64) -> Result<Traced> {
        let head = take(bytes)?;
        let code = head & OPERATION_MASK;
        let Some(&operation) = OPERATIONS.get(code as usize) else { bail!("there is no operation {code}") };
        let ticks = self.ticks.checked_add(head >> TIME_SHIFT);
        let at_ns = ticks.and_then(|ticks| ticks.checked_mul(TICK_NS)).context("its time is out of range")?;
        self.ticks = at_ns / TICK_NS;
        let mut traced = Traced {
            at: Instant(at_ns),
            operation,
            offset_bytes: 0,
            size_bytes: 0,
            force_unit_access: head & FORCE_UNIT_ACCESS != 0,
        };
        if operation != Operation::Flush {
            let first = self.sector.checked_add_signed(unzigzag(take(bytes)?));
            let count = take(bytes)?;
            let end =
                first.and_then(|first| first.checked_add(count)).context("its offset is out of range")?;
            ensure!(end <= sectors, "it ends at sector {end} of a disk of {sectors} sectors");
            traced.offset_bytes = (end - count) * SECTOR_BYTES;
            traced.size_bytes = count * SECTOR_BYTES;
            self.sector = end;
        }
        Ok(traced)
    }
}

/// Index in [`OPERATIONS`].
fn code(operation: Operation) -> u64 {
    match operation {
        Operation::Read => 0,
        Operation::Write => 1,
        Operation::Flush => 2,
        Operation::Discard => 3,
        Operation::WriteZeroes => 4,
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().context("it ends before its last byte")?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit.
        ensure!(part << shift >> shift == part, "a number has more than 64 bits");
        number |= part << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    bail!("a number has more than 64 bits")
}

/// Small numbers of either sign become small numbers.
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_bytes_of_the_standard() {
        let check = |number: u64, expect: &[u8]| {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            assert_eq!(bytes, expect, "{number}");
            let mut rest = &bytes[..];
            assert_eq!((take(&mut rest).unwrap(), rest.len()), (number, 0));
        };
        // The examples of DWARF 5, section 7.6.
        check(2, &[2]);
        check(127, &[127]);
        check(128, &[0x80, 1]);
        check(129, &[0x81, 1]);
        check(12_857, &[57 + 0x80, 100]);
        check(u64::MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
    }

    #[test]
    fn numbers_of_either_sign_come_back() {
        let check = |number: i64, expect: u64| {
            assert_eq!((zigzag(number), unzigzag(expect)), (expect, number));
        };
        check(0, 0);
        check(-1, 1);
        check(1, 2);
        check(-2, 3);
        check(i64::MAX, u64::MAX - 1);
        check(i64::MIN, u64::MAX);
    }

    #[test]
    fn every_operation_has_its_place_in_the_list() {
        for (index, operation) in OPERATIONS.into_iter().enumerate() {
            assert_eq!(code(operation), index as u64);
        }
    }

    #[test]
    fn a_number_without_an_end_is_refused() {
        let check = |mut bytes: &[u8], expect: &str| {
            assert_eq!(take(&mut bytes).unwrap_err().to_string(), expect);
        };
        check(&[0x80], "it ends before its last byte");
        check(&[0x80; 11], "a number has more than 64 bits");
        check(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], "a number has more than 64 bits");
    }
}
