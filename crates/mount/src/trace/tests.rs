use std::os::unix::fs::symlink;

use spindle_model::{Operation, RequestId, Rng};

use super::encoding::TICK_NS;
use super::*;

const DISK: u64 = 1 << 40;

fn traced(ticks: u64, operation: Operation, first: u64, sectors: u64) -> Traced {
    Traced {
        at: Instant(ticks * TICK_NS),
        operation,
        offset_bytes: first * SECTOR_BYTES,
        size_bytes: sectors * SECTOR_BYTES,
        force_unit_access: false,
    }
}

/// Complete, a moment longer than its last request.
fn trace(requests: Vec<Traced>) -> Trace {
    let duration_ns = requests.last().map_or(0, |last| last.at.0) + 7;
    Trace { requests, duration_ns, disk_size_bytes: DISK, is_complete: true }
}

/// The trace comes back from its file. Returns the size of its encoded requests in bytes.
#[track_caller]
fn check(trace: &Trace) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.trace");
    let head = write(&path, trace).unwrap();
    assert_eq!(read(&path).unwrap(), *trace);
    assert_eq!(head.request_count, trace.requests.len() as u64);
    fs::metadata(&path).unwrap().len() - HEADER_BYTES as u64
}

#[test]
fn every_kind_of_request_comes_back() {
    let last = DISK / SECTOR_BYTES - 8;
    let requests = vec![
        traced(0, Operation::Read, 0, 8),
        traced(0, Operation::Write, last, 8),
        Traced { force_unit_access: true, ..traced(3, Operation::Write, 0, 1) },
        traced(3, Operation::Flush, 0, 0),
        traced(500_000_000_000, Operation::Discard, 1 << 20, 1 << 22),
        traced(500_000_000_001, Operation::WriteZeroes, 7, 0),
    ];
    check(&trace(requests.clone()));
    check(&Trace { is_complete: false, ..trace(requests) });
    check(&trace(Vec::new()));
}

#[test]
fn requests_at_random_come_back_in_a_few_bytes_each() {
    const COUNT: u64 = 10_000;
    const OPERATIONS: [Operation; 4] =
        [Operation::Read, Operation::Write, Operation::Discard, Operation::WriteZeroes];
    let seed = 18;
    println!("seed {seed}");
    let mut random = Rng::new(seed);
    let mut ticks = 0;
    let requests = (0..COUNT).map(|_| {
        // 100 us apart.
        ticks += random.below(2_000);
        let operation = OPERATIONS[random.below(4) as usize];
        Traced {
            force_unit_access: random.below(2) == 1,
            ..traced(ticks, operation, random.below(DISK / SECTOR_BYTES - 64), random.below(64))
        }
    });
    let bytes = check(&trace(requests.collect()));
    assert!(bytes <= 9 * COUNT, "{bytes}");
}

#[test]
fn sequential_requests_and_flushes_between_them_are_short() {
    let requests = (0..1_000).flat_map(|index| {
        let write = traced(200 * index, Operation::Write, 5_000 + 32 * index, 32);
        [write, traced(200 * index + 7, Operation::Flush, 0, 0)]
    });
    let bytes = check(&trace(requests.collect()));
    assert!(bytes <= 5 * 1_000 + 16, "{bytes}");
}

/// A trace after `tamper` with its file is refused with the message `expect`.
#[track_caller]
fn check_refused(tamper: impl FnOnce(&mut Vec<u8>), expect: &str) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.trace");
    let requests = vec![traced(1, Operation::Read, 8, 8), traced(2, Operation::Flush, 0, 0)];
    write(&path, &Trace { disk_size_bytes: 16 * SECTOR_BYTES, ..trace(requests) }).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len(), HEADER_BYTES + 4);
    tamper(&mut bytes);
    fs::write(&path, bytes).unwrap();
    let refused = format!("{:#}", read(&path).unwrap_err());
    assert_eq!(refused, format!("reading the block trace {}: {expect}", path.display()));
}

fn set(field: usize, value: u64) -> impl FnOnce(&mut Vec<u8>) {
    move |bytes: &mut Vec<u8>| {
        bytes[field * FIELD_BYTES..(field + 1) * FIELD_BYTES].copy_from_slice(&value.to_le_bytes());
    }
}

/// Changes one byte of the encoded requests.
fn put(place: usize, byte: u8) -> impl FnOnce(&mut Vec<u8>) {
    move |bytes: &mut Vec<u8>| bytes[HEADER_BYTES + place] = byte
}

#[test]
fn a_damaged_trace_is_refused_with_the_place() {
    check_refused(Vec::clear, "it is not a block trace of Spindle");
    check_refused(|bytes| bytes[0] = b'x', "it is not a block trace of Spindle");
    check_refused(|bytes| bytes.truncate(HEADER_BYTES - 1), "it ends in its header");
    check_refused(set(1, 2), "it has version 2, and only version 1 can be read");
    let size = "its requests have 3 bytes instead of 4 (at most 67108864)";
    check_refused(|bytes| bytes.truncate(HEADER_BYTES + 3), size);
    check_refused(set(4, 5), "5 requests do not fit in 4 bytes");
    check_refused(set(4, 3), "request 3 of 3: it ends before its last byte");
    check_refused(set(4, 1), "1 bytes follow its last request");
    check_refused(set(3, 150), "request 2 is later than its end");
    check_refused(set(5, 15 * SECTOR_BYTES), "request 1 of 2: it ends at sector 16 of a disk of 15 sectors");
    check_refused(set(5, u64::MAX), "no disk has 18446744073709551615 bytes");
    check_refused(put(0, 16 + 5), "request 1 of 2: there is no operation 5");
    check_refused(put(1, 1), "request 1 of 2: its offset is out of range");
    check_refused(put(3, 0x82), "request 2 of 2: it ends before its last byte");
}

fn request(operation: Operation, offset_bytes: u64, size_bytes: u64) -> Request {
    Request { id: RequestId(0), operation, offset_bytes, size_bytes, force_unit_access: false }
}

/// The trace of a recorder.
fn kept(recorder: &Recorder) -> Trace {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.trace");
    let head = recorder.write(&path).unwrap();
    let trace = read(&path).unwrap();
    assert_eq!((head.duration_ns, head.is_complete), (trace.duration_ns, trace.is_complete));
    trace
}

#[test]
fn a_recorder_keeps_what_was_sent_between_its_begin_and_its_end() {
    let mut recorder = Recorder::new(DISK, 1 << 16).unwrap();
    recorder.begin(Instant(1_000_000));
    // Sent before the begin and arrived after it.
    recorder.add(Instant(990_000), &request(Operation::Read, 4096, 8192));
    recorder.add(Instant(1_070_050), &request(Operation::Write, 0, 4096));
    // Sent earlier by a smaller floor.
    recorder.add(Instant(1_065_000), &request(Operation::Flush, 0, 0));
    recorder.end(Instant(1_100_000));
    recorder.add(Instant(1_110_000), &request(Operation::Read, 0, 4096));
    recorder.end(Instant(1_200_000));
    let expect = vec![
        traced(0, Operation::Read, 8, 16),
        traced(700, Operation::Write, 0, 8),
        traced(700, Operation::Flush, 0, 0),
    ];
    let expect = Trace { requests: expect, duration_ns: 100_000, disk_size_bytes: DISK, is_complete: true };
    assert_eq!(kept(&recorder), expect);
}

#[test]
fn a_full_recorder_ends_and_tells_until_when_it_holds() {
    const LIMIT: u64 = 4096;
    let mut recorder = Recorder::new(DISK, LIMIT).unwrap();
    let place = recorder.bytes.as_ptr();
    recorder.begin(Instant::ZERO);
    let add = |recorder: &mut Recorder, index: u64| {
        recorder.add(Instant(index * 1_000), &request(Operation::Read, (index % 2) << 39, 4096));
    };
    (0..LIMIT).for_each(|index| add(&mut recorder, index));
    recorder.end(Instant(LIMIT * 1_000));
    assert!(recorder.bytes.len() as u64 <= LIMIT && recorder.bytes.as_ptr() == place);
    let trace = kept(&recorder);
    let count = trace.requests.len() as u64;
    assert!((LIMIT / 10..LIMIT / 6).contains(&count), "{count}");
    assert_eq!((trace.is_complete, trace.duration_ns), (false, count * 1_000));
}

#[test]
fn a_request_that_is_not_of_whole_sectors_has_those_that_it_touches() {
    let mut recorder = Recorder::new(DISK, 1 << 16).unwrap();
    recorder.begin(Instant::ZERO);
    recorder.add(Instant::ZERO, &request(Operation::Read, 700, 400));
    recorder.end(Instant(1_000));
    assert_eq!(kept(&recorder).requests, [traced(0, Operation::Read, 1, 2)]);
}

#[test]
fn memory_beyond_the_limit_is_refused() {
    let refused = Recorder::new(DISK, LIMIT_BYTES + 1).unwrap_err().to_string();
    assert_eq!(refused, "the memory of a block trace can be at most 67108864 bytes");
}

#[test]
fn a_file_that_exists_is_not_written_and_a_link_is_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let [file, link, target] = ["file", "link", "target"].map(|name| directory.path().join(name));
    fs::write(&file, "mine").unwrap();
    symlink(&target, &link).unwrap();
    for path in [&file, &link] {
        let refused = format!("{:#}", write(path, &trace(Vec::new())).unwrap_err());
        assert!(refused.starts_with("the host could not keep the block trace"), "{refused}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert!(!target.exists() && link.is_symlink());
}
