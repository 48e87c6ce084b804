//! The cost and the benefit of replication, as arithmetic.

use super::*;
use crate::closed_loop::{ClosedLoop, Driver, Measured, Order};
use crate::devices::null::Null;
use crate::request::RequestId;
use crate::time::{MICROSECOND, MILLISECOND, SECOND};
use crate::virtual_time::VirtualTime;
use crate::volume;

const SIZE_BYTES: u64 = 1 << 30;
const KIB: u64 = 1 << 10;

/// A gigabit link: 16 KiB take 163.84 us, the way to the peer and back 200 us.
fn parameters(protocol: Protocol) -> ReplicatedParameters {
    ReplicatedParameters {
        protocol,
        bytes_per_s: 100_000_000,
        round_trip_ns: 200 * MICROSECOND,
        jitter_ns: 0,
        send_buffer_bytes: 1 << 20,
        outages: Vec::new(),
        congestions: Vec::new(),
        timeout_ns: 6 * SECOND,
        resync_bytes_per_s: 10_000_000,
        active_extents: 0,
        extent_bytes: 4 << 20,
        survivor: Survivor::Local,
    }
}

fn null() -> Box<dyn Device> {
    Box::new(Null::new(SIZE_BYTES))
}

fn constant(nanoseconds: u64) -> Box<dyn Device> {
    volume::tests::constant(SIZE_BYTES, nanoseconds)
}

fn replicated(parameters: ReplicatedParameters, local_ns: u64, peer_ns: u64) -> VirtualTime<Replicated> {
    VirtualTime::new(Replicated::new(parameters, 1, constant(local_ns), constant(peer_ns)).unwrap())
}

fn request(id: u64, operation: Operation, size_bytes: u64) -> Request {
    let offset_bytes = if operation == Operation::Flush { 0 } else { id * 64 * KIB };
    Request { id: RequestId(id), operation, offset_bytes, size_bytes, force_unit_access: false }
}

fn latency_ns(driver: &mut VirtualTime<Replicated>, operation: Operation, size_bytes: u64) -> u64 {
    let begin = driver.now();
    driver.submit(request(1_000, operation, size_bytes));
    driver.wait().unwrap().at - begin
}

/// Latency of a 16 KiB write with local and peer devices that take 50 and 300 us.
fn check_write(protocol: Protocol, expected_us: u64) {
    let mut driver = replicated(parameters(protocol), 50 * MICROSECOND, 300 * MICROSECOND);
    // 163.84 us on the wire.
    assert_eq!(latency_ns(&mut driver, Operation::Write, 16 * KIB) / MICROSECOND, expected_us);
}

#[test]
fn protocol_a_waits_for_the_local_device() {
    check_write(Protocol::A, 50);
}

#[test]
fn protocol_b_waits_for_the_wire_and_a_round_trip() {
    check_write(Protocol::B, 363);
}

#[test]
fn protocol_c_waits_for_the_peers_device_too() {
    check_write(Protocol::C, 663);
}

#[test]
fn a_slow_local_device_hides_the_peer() {
    for protocol in [Protocol::A, Protocol::B, Protocol::C] {
        let mut driver = replicated(parameters(protocol), 5 * MILLISECOND, 300 * MICROSECOND);
        assert_eq!(latency_ns(&mut driver, Operation::Write, 16 * KIB), 5 * MILLISECOND);
    }
}

#[test]
fn reads_and_flushes_are_local() {
    let mut driver = replicated(parameters(Protocol::C), 50 * MICROSECOND, 9 * MILLISECOND);
    assert_eq!(latency_ns(&mut driver, Operation::Read, 16 * KIB), 50 * MICROSECOND);
    assert_eq!(latency_ns(&mut driver, Operation::Flush, 0), 50 * MICROSECOND);
    assert_eq!(latency_ns(&mut driver, Operation::Discard, 16 * KIB), 9_200 * MICROSECOND);
}

fn writes(parameters: ReplicatedParameters, size_bytes: u64, queue_depth: u64) -> Measured {
    let workload = ClosedLoop {
        read_percent: 0,
        size_bytes,
        queue_depth,
        request_count: 2_000,
        order: Order::Sequential,
        span_bytes: SIZE_BYTES,
        ..ClosedLoop::default()
    };
    workload.run(&mut VirtualTime::new(Replicated::new(parameters, 1, null(), null()).unwrap()))
}

#[test]
fn a_full_send_buffer_slows_protocol_a_to_the_link() {
    let measured = writes(parameters(Protocol::A), 64 * KIB, 1);
    let free = measured.latencies_ns(Operation::Write).take_while(|&latency_ns| latency_ns == 0).count();
    assert_eq!(free, 16);
    let rate = 1_984.0 * 65_536.0 / (measured.elapsed_ns as f64 / 1e9);
    assert!((rate / 100e6 - 1.0).abs() < 0.01, "{rate}");
}

#[test]
fn a_send_buffer_smaller_than_what_the_wire_holds_bounds_the_rate() {
    let far = ReplicatedParameters { round_trip_ns: 100 * MILLISECOND, ..parameters(Protocol::A) };
    let measured = writes(far, 64 * KIB, 1);
    // 1 MiB goes out in 10.5 ms, and is released a round trip after each write: 16 writes in 100 ms and 655
    // us.
    let rate = 2_000.0 * 65_536.0 / (measured.elapsed_ns as f64 / 1e9);
    assert!((rate / (16.0 * 65_536.0 / 0.100_655) - 1.0).abs() < 0.01, "{rate}");
}

#[test]
fn protocol_c_overlaps_at_queue_depth() {
    let rate =
        |queue_depth| writes(parameters(Protocol::C), 4 * KIB, queue_depth).per_second(Operation::Write);
    // 40.96 us on the wire and 200 us of travel.
    let (alone, many) = (rate(1), rate(32));
    assert!((alone * 240.96e-6 - 1.0).abs() < 0.01, "{alone}");
    assert!((many * 40.96e-6 - 1.0).abs() < 0.01, "{many}");
}

#[test]
fn a_congested_link_gives_what_is_left() {
    let congestions =
        vec![Congestion { starts_at_ns: 0, duration_ns: 1_000 * SECOND, bytes_per_s: 5_000_000 }];
    let measured = writes(ReplicatedParameters { congestions, ..parameters(Protocol::C) }, 64 * KIB, 4);
    let rate = 2_000.0 * 65_536.0 / (measured.elapsed_ns as f64 / 1e9);
    assert!((rate / 5e6 - 1.0).abs() < 0.01, "{rate}");
}

#[test]
fn jitter_is_added_both_ways() {
    let jittery = ReplicatedParameters { jitter_ns: MILLISECOND, ..parameters(Protocol::B) };
    let measured = writes(jittery, 4 * KIB, 1);
    let mean_ns = measured.mean_ns(Operation::Write);
    // 240.96 us, and twice half a millisecond; the standard error of the mean is 9 us.
    assert!((mean_ns - 1_240_960.0).abs() < 27_000.0, "{mean_ns}");
}

fn with_outage(protocol: Protocol, seconds: u64) -> VirtualTime<Replicated> {
    let outages = vec![Outage { starts_at_ns: SECOND, duration_ns: seconds * SECOND }];
    replicated(ReplicatedParameters { outages, ..parameters(protocol) }, 0, 0)
}

#[test]
fn a_short_outage_delays_and_does_not_disconnect() {
    let mut driver = with_outage(Protocol::B, 3);
    driver.sleep(2 * SECOND);
    let waited_ns = latency_ns(&mut driver, Operation::Write, 16 * KIB);
    assert_eq!(waited_ns, 2 * SECOND + 363_840);
    assert!(driver.device().is_connected());
    assert_eq!(driver.device().out_of_sync_bytes(), 0);
}

#[test]
fn a_long_outage_disconnects_and_the_peer_catches_up_at_the_resync_rate() {
    let mut driver = with_outage(Protocol::C, 20);
    driver.sleep(2 * SECOND);
    // Down since 1 s, timed out at 7 s.
    assert_eq!(latency_ns(&mut driver, Operation::Write, 64 * KIB), 5 * SECOND);
    assert!(!driver.device().is_connected());
    for id in 0..1_000 {
        driver.submit(request(id, Operation::Write, 64 * KIB));
        assert_eq!(driver.wait().unwrap().at.0, 7 * SECOND);
    }
    assert_eq!(driver.device().out_of_sync_bytes(), 1_001 * 64 * KIB);
    let back_at = Instant(21 * SECOND + 200 * MICROSECOND);
    let resync_ns = 1_001 * 64 * KIB * SECOND / 10_000_000;
    let mut left_at = |at: Instant| {
        while driver.device().poll_at().is_some_and(|due_at| due_at <= at) {
            let due_at = driver.device().poll_at().unwrap();
            driver.device_mut().poll(due_at);
        }
        driver.device().out_of_sync_bytes()
    };
    assert_eq!(left_at(back_at), 1_001 * 64 * KIB);
    let half = left_at(back_at + resync_ns / 2) as f64 / (1_001.0 * 65_536.0);
    assert!((half - 0.5).abs() < 0.01, "{half}");
    assert!(left_at(back_at + resync_ns * 99 / 100) > 0);
    assert_eq!(left_at(back_at + resync_ns + SECOND / 100), 0);
}

#[test]
fn a_new_write_brings_what_it_covers_into_sync() {
    let outages = vec![Outage { starts_at_ns: 0, duration_ns: 10 * SECOND }];
    let slow_resync = ReplicatedParameters { outages, resync_bytes_per_s: 1_000, ..parameters(Protocol::C) };
    let mut driver = replicated(slow_resync, 0, 0);
    driver.sleep(7 * SECOND);
    // Two places; the first is copied at once, the second a minute later.
    for id in [10, 20] {
        driver.submit(request(id, Operation::Write, 64 * KIB));
        driver.wait().unwrap();
    }
    driver.sleep(5 * SECOND);
    driver.submit(request(20, Operation::Write, 64 * KIB));
    driver.wait().unwrap();
    assert!(driver.now() < Instant(13 * SECOND));
    assert_eq!(driver.device().out_of_sync_bytes(), 0);
}

#[test]
fn protocol_a_fills_its_buffer_and_then_blocks_until_the_timeout() {
    let mut driver = with_outage(Protocol::A, 20);
    driver.sleep(SECOND);
    for id in 0..17 {
        driver.submit(request(id, Operation::Write, 64 * KIB));
    }
    let done: Vec<u64> = std::iter::from_fn(|| driver.wait()).map(|done| done.at.0).collect();
    assert_eq!(&done[..16], [SECOND; 16]);
    assert_eq!(done[16], 7 * SECOND);
}

/// Writes lost when the host continues on the peer, of 40 acknowledged and flushed writes of 64 KiB.
fn lost_on_fail_over(protocol: Protocol) -> usize {
    let parameters = ReplicatedParameters { survivor: Survivor::Peer, ..parameters(protocol) };
    let mut driver = replicated(parameters, 0, 0);
    for id in 0..20 {
        driver.submit(request(2 * id, Operation::Write, 64 * KIB));
        driver.wait().unwrap();
        driver.submit(request(2 * id + 1, Operation::Flush, 0));
        driver.wait().unwrap();
    }
    let now = driver.now();
    let cut = driver.device_mut().power_cut(now);
    assert!(cut.writes.iter().all(|write| write.acknowledged && write.fate == Fate::Lost));
    cut.writes.len()
}

#[test]
fn fail_over_loses_what_protocol_a_had_not_sent() {
    // The first 16 fit the buffer at once. The twentieth is acknowledged when the fourth is released, so the
    // peer has four.
    assert_eq!(lost_on_fail_over(Protocol::A), 16);
    assert_eq!(lost_on_fail_over(Protocol::B), 0);
    assert_eq!(lost_on_fail_over(Protocol::C), 0);
}

#[test]
fn fail_over_while_disconnected_loses_what_is_out_of_sync() {
    let outages = vec![Outage { starts_at_ns: 0, duration_ns: 100 * SECOND }];
    let survivor = Survivor::Peer;
    let mut driver = replicated(ReplicatedParameters { outages, survivor, ..parameters(Protocol::C) }, 0, 0);
    driver.submit(request(0, Operation::Write, 64 * KIB));
    assert_eq!(driver.wait().unwrap().at.0, 6 * SECOND);
    let now = driver.now();
    assert_eq!(driver.device_mut().power_cut(now).writes.len(), 1);
}

#[test]
fn what_no_link_can_be_is_refused() {
    let slow = ReplicatedParameters { bytes_per_s: 10, ..parameters(Protocol::A) };
    assert_eq!(slow.validate().unwrap_err().to_string(), "`link_rate` is 10 B/s, must be 1 KB/s to 1 TB/s");
}

#[test]
fn a_link_that_breaks_at_a_moment_and_is_restored_behaves_as_a_planned_outage() {
    let mut driver = replicated(parameters(Protocol::C), 0, 0);
    let whole_ns = latency_ns(&mut driver, Operation::Write, 64 * KIB);
    driver.submit(request(1, Operation::Write, 64 * KIB));
    driver.sleep(SECOND);
    let now = driver.now();
    let mut change = |now: Instant, is_up: bool| {
        driver.device_mut().change(now, Change::Link { is_up }).map_err(|e| e.to_string())
    };
    assert_eq!(change(now, true), Err("`link` is up already".to_owned()));
    assert_eq!(change(now, false), Ok(true));
    assert_eq!(change(now, false), Err("`link` is broken already".to_owned()));
    driver.wait().unwrap();
    // The timeout begins with the break.
    assert_eq!(latency_ns(&mut driver, Operation::Write, 64 * KIB), 6 * SECOND);
    assert_eq!(latency_ns(&mut driver, Operation::Write, 64 * KIB), 0);
    assert!(!driver.device().is_connected());
    assert_eq!(driver.device().out_of_sync_bytes(), 64 * KIB);
    let now = driver.now();
    assert_eq!(driver.device_mut().change(now, Change::Link { is_up: true }), Ok(true));
    driver.sleep(SECOND);
    assert_eq!(latency_ns(&mut driver, Operation::Write, 64 * KIB), whole_ns);
    assert!(driver.device().is_connected());
    assert_eq!(driver.device().out_of_sync_bytes(), 0);
}

#[test]
fn a_write_under_way_completes_when_a_broken_link_is_restored_before_the_timeout() {
    let mut driver = replicated(parameters(Protocol::C), 0, 0);
    for id in 0..4 {
        driver.submit(request(id, Operation::Write, 64 * KIB));
    }
    let broken_at = Instant(700 * MICROSECOND);
    driver.device_mut().change(broken_at, Change::Link { is_up: false }).unwrap();
    let restored_at = Instant(2 * SECOND);
    driver.device_mut().change(restored_at, Change::Link { is_up: true }).unwrap();
    let done: Vec<u64> = std::iter::from_fn(|| driver.wait()).map(|done| done.at.0).collect();
    // The first is on the wire by 655 us, but its acknowledgement is not back.
    assert_eq!(done, [2 * SECOND; 4]);
    assert_eq!(driver.device().out_of_sync_bytes(), 0, "copied by the resync");
}

/// Two extents of 64 KiB may be active; the link costs nothing next to the local device's 1 ms.
fn with_activity_log() -> VirtualTime<Replicated> {
    let parameters = ReplicatedParameters {
        bytes_per_s: 100_000_000_000,
        round_trip_ns: 0,
        active_extents: 2,
        extent_bytes: 64 * KIB,
        ..parameters(Protocol::B)
    };
    replicated(parameters, MILLISECOND, MICROSECOND)
}

/// A write of 4 KiB to this extent.
fn write_to(id: u64, extent: u64) -> Request {
    Request { offset_bytes: extent * 64 * KIB, ..request(id, Operation::Write, 4 * KIB) }
}

/// The requests in the order in which they end, with the millisecond.
fn ended(driver: &mut VirtualTime<Replicated>) -> Vec<(u64, u64)> {
    std::iter::from_fn(|| driver.wait()).map(|done| (done.id.0, done.at.0 / MILLISECOND)).collect()
}

#[test]
fn a_write_to_an_extent_that_is_not_active_waits_for_its_note() {
    let mut driver = with_activity_log();
    let mut took_ms = |id: u64, extent: u64| {
        let begin = driver.now();
        driver.submit(write_to(id, extent));
        (driver.wait().unwrap().at - begin) / MILLISECOND
    };
    // Extent 0 is the one that was not written for longest when 2 comes, and then 1 when 0 comes again.
    let extents = [(0, 2), (0, 1), (1, 2), (1, 1), (2, 2), (1, 1), (2, 1), (0, 2), (2, 1), (1, 2)];
    for (id, (extent, expected_ms)) in (0..).zip(extents) {
        assert_eq!(took_ms(id, extent), expected_ms, "write {id}, to extent {extent}");
    }
}

#[test]
fn notes_are_written_one_at_a_time_and_writes_keep_their_order() {
    let mut driver = with_activity_log();
    for (id, extent) in [(0, 0), (1, 1), (2, 0), (3, 2)] {
        driver.submit(write_to(id, extent));
    }
    // Notes of the extents 0 and 1 end after 1 and 2 ms, and that of 2 begins when the writes to the others have ended, at 3 ms.
    assert_eq!(ended(&mut driver), [(0, 2), (1, 3), (2, 3), (3, 5)]);
}

#[test]
fn reads_and_flushes_pass_a_write_that_waits_for_its_note() {
    let mut driver = with_activity_log();
    for (id, operation) in [(0, Operation::Write), (1, Operation::Read), (2, Operation::Flush)] {
        driver.submit(request(id, operation, if operation == Operation::Flush { 0 } else { 4 * KIB }));
    }
    assert_eq!(ended(&mut driver), [(1, 1), (2, 1), (0, 2)]);
}

#[test]
fn an_extent_with_a_write_under_way_keeps_its_place() {
    let mut driver = with_activity_log();
    for (id, extent) in [(0, 0), (1, 1)] {
        driver.submit(write_to(id, extent));
    }
    assert_eq!(driver.wait().unwrap().at.0 / MILLISECOND, 2);
    driver.submit(write_to(2, 0));
    driver.submit(write_to(3, 2));
    // Extent 0 has a write until 3 ms, and so has 1: the note of 2 begins then.
    assert_eq!(ended(&mut driver), [(1, 3), (2, 3), (3, 5)]);
}

#[test]
fn a_write_of_more_extents_than_may_be_active_has_the_whole_log() {
    let mut driver = with_activity_log();
    driver.submit(write_to(0, 5));
    driver.submit(Request { offset_bytes: 0, ..request(1, Operation::Write, 256 * KIB) });
    // Extent 5 has a write until 2 ms.
    assert_eq!(ended(&mut driver), [(0, 2), (1, 4)]);
}

#[test]
fn the_activity_log_takes_the_end_of_the_local_device() {
    let sizes = |active_extents| {
        let parameters = ReplicatedParameters { active_extents, ..parameters(Protocol::C) };
        (parameters.size_bytes(&[SIZE_BYTES, SIZE_BYTES]), parameters.size_below_bytes(1 << 20, 2))
    };
    assert_eq!(sizes(0), (SIZE_BYTES, 1 << 20));
    assert_eq!(sizes(127), (SIZE_BYTES - 32 * KIB, (1 << 20) + 32 * KIB));
    let logged = ReplicatedParameters { active_extents: 127, ..parameters(Protocol::C) };
    assert!(logged.check_sizes(&[33 * KIB, SIZE_BYTES]).is_ok());
    let mistake = logged.check_sizes(&[32 * KIB, SIZE_BYTES]).unwrap_err().to_string();
    assert_eq!(mistake, "`size` of the local device is 32 KiB, must be above the 32 KiB of the activity log");
    let mut driver = with_activity_log();
    driver.submit(write_to(0, 0));
    driver.wait();
    let local = driver.device().below()[LOCAL].counters();
    assert_eq!((local.writes, local.write_bytes), (2, 8 * KIB));
}

#[test]
fn a_write_that_waits_for_its_note_is_lost_with_the_power() {
    let mut driver = with_activity_log();
    driver.submit(write_to(7, 0));
    let now = driver.now();
    let cut = driver.device_mut().power_cut(now);
    let told: Vec<_> = cut.writes.iter().map(|write| (write.id.0, write.acknowledged, write.fate)).collect();
    assert_eq!(told, [(7, false, Fate::Lost)]);
    driver.submit(write_to(8, 0));
    assert!(driver.wait().is_some(), "it goes on after power-on");
}
