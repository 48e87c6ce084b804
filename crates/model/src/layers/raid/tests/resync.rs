//! The differences between members after a power cut, and their resynchronisation.

use super::*;

fn resyncing(level: RaidLevel, resync: Resync) -> RaidParameters {
    RaidParameters { resync, rebuild_most_bytes_per_s: 64 << 20, ..whole(level) }
}

/// Writes one page, waits for this time until the power fails, then leaves the array idle. Returns the bytes
/// read and written by the resynchronisation, and its duration.
fn resynchronised(parameters: RaidParameters, pause_ns: u64) -> (u64, u64, u64) {
    let mut array = Array::new(parameters, 4);
    array.outcome(Operation::Write, 0, 4_096);
    array.driver.sleep(pause_ns);
    let now = array.driver.now();
    array.driver.device_mut().power_cut(now);
    array.log.lock().unwrap().clear();
    assert_eq!(array.driver.wait(), None);
    assert_eq!(array.driver.device().resync_left_bytes(), 0);
    let log = array.log.lock().unwrap();
    let bytes = |wanted| -> u64 {
        log.iter().filter(|(_, operation, ..)| *operation == wanted).map(|(.., size)| size).sum()
    };
    (bytes(Operation::Read), bytes(Operation::Write), array.driver.now() - now)
}

#[test]
fn an_array_that_was_being_written_is_compared_as_a_whole() {
    for (level, reads, writes) in [
        (RaidLevel::Raid1, 1, 3),
        (RaidLevel::Raid5, 4, 0),
        (RaidLevel::Raid6, 4, 0),
        (RaidLevel::Raid10, 4, 0),
    ] {
        let (read, written, took_ns) = resynchronised(resyncing(level, Resync::Whole), 0);
        assert_eq!((read, written), (reads * MEMBER_BYTES, writes * MEMBER_BYTES), "{level:?}");
        // Two units of half a MiB at 64 MiB/s: the second unit starts after the time of the first.
        assert!(took_ns >= transfer_of(512 << 10) + MILLISECOND, "{level:?}: {took_ns}");
        assert_eq!(resynchronised(resyncing(level, Resync::Never), 0), (0, 0, 0), "{level:?}");
    }
}

#[test]
fn an_array_that_nobody_wrote_to_is_clean() {
    let parameters = resyncing(RaidLevel::Raid5, Resync::Whole);
    assert_eq!(resynchronised(parameters.clone(), 250 * MILLISECOND), (0, 0, 0));
    assert_eq!(resynchronised(parameters, 150 * MILLISECOND).0, 4 * MEMBER_BYTES);
}

#[test]
fn with_a_bitmap_only_what_was_being_written_is_compared() {
    for level in [RaidLevel::Raid5, RaidLevel::Raid10] {
        let bitmap = resyncing(level, Resync::Bitmap { region_bytes: 2 * CHUNK });
        assert_eq!(resynchronised(bitmap.clone(), 1_000 * MILLISECOND).0, 4 * 2 * CHUNK, "{level:?}");
        assert_eq!(resynchronised(bitmap, 6_000 * MILLISECOND).0, 0, "{level:?}");
    }
}

#[test]
fn a_second_cut_does_not_forget_what_the_first_left() {
    // One unit completes between the two cuts. A whole resynchronisation continues from there. A bit stands
    // for its region until all of the region is done.
    for (resync, left_bytes) in [
        (Resync::Whole, MEMBER_BYTES - (512 << 10)),
        (Resync::Bitmap { region_bytes: MEMBER_BYTES }, MEMBER_BYTES),
    ] {
        let mut array = Array::new(resyncing(RaidLevel::Raid10, resync), 4);
        array.outcome(Operation::Write, 0, 4_096);
        for expect in [MEMBER_BYTES, left_bytes] {
            let now = array.driver.now();
            array.driver.device_mut().power_cut(now);
            assert_eq!(array.driver.device().resync_left_bytes(), expect, "{resync:?}");
            array.driver.sleep(MILLISECOND);
        }
    }
}

#[test]
fn a_busy_host_slows_the_resynchronisation() {
    let parameters =
        RaidParameters { rebuild_least_bytes_per_s: 1 << 20, ..resyncing(RaidLevel::Raid10, Resync::Whole) };
    let mut array = Array::new(parameters, 4);
    array.outcome(Operation::Write, 0, 4_096);
    let now = array.driver.now();
    array.driver.device_mut().power_cut(now);
    let reads = ClosedLoop { span_bytes: MEMBER_BYTES, request_count: 300, ..ClosedLoop::default() };
    reads.run(&mut array.driver);
    // 300 ms at 1 MiB/s: the first unit started at once, the second is due after 500 ms.
    assert_eq!(array.driver.device().resync_left_bytes(), MEMBER_BYTES - (512 << 10));
}

#[test]
fn a_resynchronisation_that_cannot_be_says_why() {
    let problem = |parameters: RaidParameters| parameters.validate(4).unwrap_err().to_string();
    assert_eq!(
        problem(resyncing(RaidLevel::Raid0, Resync::Whole)),
        "`resync` has nothing to compare at level 0"
    );
    assert_eq!(
        problem(resyncing(RaidLevel::Raid5, Resync::Bitmap { region_bytes: 5_000 })),
        "`bitmap_chunk` is 5 KB, must be a power of two, 4 KiB to 1 TiB"
    );
}
