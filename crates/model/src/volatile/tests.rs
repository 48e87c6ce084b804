//! The map of dirty pieces, as claims.

use super::*;

fn fates(writes: &VolatileWrites) -> Vec<(u64, u64, u64)> {
    let fates = writes.power_cut(&[], &[], &mut Rng::new(1));
    fates.iter().map(|part| (part.id.0, part.offset_bytes / 512, part.size_bytes / 512)).collect()
}

fn check(inserted: &[(u64, u64)], settled: Option<(u64, u64)>, expect: &[(u64, u64, u64)]) {
    let mut writes = VolatileWrites::default();
    for (id, &(start, end)) in (0..).zip(inserted) {
        writes.insert(start, end, RequestId(id), id);
    }
    if let Some((start, end)) = settled {
        let mut taken = Vec::new();
        writes.take(start, end, &mut taken);
        writes.settle(&taken);
    }
    assert_eq!(fates(&writes), expect);
    let dirty: u64 = writes.pieces.iter().map(|piece| piece.end - piece.start).sum();
    assert_eq!(writes.dirty_sectors, dirty);
}

#[test]
fn a_newer_write_splits_an_older_one_and_remembers_the_middle() {
    check(&[(0, 30), (10, 20)], None, &[(0, 0, 10), (0, 10, 10), (0, 20, 10), (1, 10, 10)]);
}

#[test]
fn what_was_replaced_is_forgotten_when_the_newer_part_is_durable() {
    check(&[(0, 10), (0, 20)], Some((0, 10)), &[(1, 10, 10)]);
}

#[test]
fn what_was_replaced_twice_is_remembered_once_per_write() {
    check(&[(0, 8), (0, 8), (0, 8)], None, &[(0, 0, 8), (1, 0, 8), (2, 0, 8)]);
}

#[test]
fn a_chain_of_replacements_ends_with_the_last_one() {
    check(&[(0, 8), (0, 8), (0, 8)], Some((0, 8)), &[]);
}

#[test]
fn runs_join_neighbours_and_respect_the_longest() {
    let mut writes = VolatileWrites::default();
    for (id, start) in [(1, 0), (2, 8), (3, 16), (4, 100), (5, 108)] {
        writes.insert(start, start + 8, RequestId(id), id);
    }
    assert_eq!([0, 9, 23].map(|sector| writes.run_around(sector, 1_000)), [Some((0, 24)); 3]);
    assert_eq!(writes.run_around(104, 1_000), Some((100, 116)));
    assert_eq!([24, 99].map(|sector| writes.run_around(sector, 1_000)), [None; 2]);
    assert_eq!(writes.run_around(0, 16), Some((0, 16)));
    assert_eq!(writes.run_around(20, 8), Some((12, 20)));
}

#[test]
fn only_contiguous_dirty_data_covers_a_read() {
    let mut writes = VolatileWrites::default();
    writes.insert(0, 8, RequestId(1), 1);
    writes.insert(8, 16, RequestId(2), 2);
    writes.insert(24, 32, RequestId(3), 3);
    assert!(writes.covers(4, 16) && !writes.covers(4, 25) && !writes.covers(16, 20));
}
