//! The kernel's events of block devices, as its tracing prints them, become a block trace.
//!
//! Formats: Linux, include/trace/events/block.h (`block_rq_issue`, and `block_bio_queue` for devices that pass
//! requests on, such as those of the device mapper); the letters of an operation: kernel/trace/blktrace.c,
//! `blk_fill_rwbs`; lost events: kernel/trace/trace.c, `print_trace_line`.

use spindle_model::{Instant, Operation, SECTOR_BYTES, Traced};

/// Event of a request that is handed to a disk, and of a request to a device without a queue of its own.
pub(super) const REQUEST: &str = "block_rq_issue";
pub(super) const PASSED_ON: &str = "block_bio_queue";

/// Most requests that are kept, 40 bytes each.
const REQUESTS_MOST: usize = 1_000_000;

/// A line of the kernel's trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    Event(Event),
    /// So many events did not fit into the kernel's buffer.
    Lost(u64),
    Other,
}

/// A request, with a flush before it or instead of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    /// By the clock of the trace.
    pub at_ns: u64,
    pub is_flushed: bool,
    /// `None` for a flush alone, and for a request without data of a kind that a trace has not.
    pub operation: Option<Operation>,
    pub sector: u64,
    pub sector_count: u64,
    pub force_unit_access: bool,
}

/// Reads a line of `trace_pipe`.
pub(super) fn parse(line: &str) -> Line {
    if let Some((_, rest)) = line.split_once("[LOST ") {
        return rest.split(' ').next().and_then(|count| count.parse().ok()).map_or(Line::Other, Line::Lost);
    }
    event(line).map_or(Line::Other, Line::Event)
}

fn event(line: &str) -> Option<Event> {
    let split = |name: &str| line.split_once(&format!(": {name}: "));
    let (head, request) = split(REQUEST).or_else(|| split(PASSED_ON))?;
    let (seconds, fraction) = head.split_whitespace().next_back()?.split_once('.')?;
    // Microseconds have six digits.
    let at_ns = seconds.parse::<u64>().ok()? * 1_000_000_000 + fraction.parse::<u64>().ok()? * 1_000;
    let words: Vec<&str> = request.split_whitespace().collect();
    // The bytes of a command may stand between the letters and the place.
    let plus = words.iter().position(|word| *word == "+")?;
    let sector: u64 = words.get(plus.checked_sub(1)?)?.parse().ok()?;
    let sector_count: u64 = words.get(plus + 1)?.parse().ok()?;
    let letters = words.get(1)?;
    let (is_flushed, rest) = match letters.strip_prefix('F') {
        Some(rest) => (true, rest),
        None => (false, *letters),
    };
    let operation = match rest.as_bytes() {
        _ if sector_count == 0 => None,
        [b'R', ..] => Some(Operation::Read),
        [b'W', b'Z', ..] => Some(Operation::WriteZeroes),
        [b'W', ..] => Some(Operation::Write),
        [b'D', ..] => Some(Operation::Discard),
        _ => None,
    };
    let force_unit_access = operation == Some(Operation::Write) && rest.contains('F');
    Some(Event { at_ns, is_flushed, operation, sector, sector_count, force_unit_access })
}

/// The part of a disk whose requests are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub first_sector: u64,
    pub sector_count: u64,
}

/// Requests of slices of time, one after the other.
#[derive(Debug)]
pub(super) struct Slices {
    extent: Extent,
    requests: Vec<Traced>,
    /// Length of the slices that are over.
    before_ns: u64,
    /// Begin of the slice that goes on, by the clock of the trace.
    begun_ns: Option<u64>,
    pub slice_count: u32,
    pub lost_count: u64,
    /// Events of all devices that were read.
    pub event_count: u64,
    /// False once there was no room for a request.
    pub is_complete: bool,
}

impl Slices {
    pub(super) fn new(extent: Extent) -> Slices {
        Slices {
            extent,
            requests: Vec::new(),
            before_ns: 0,
            begun_ns: None,
            slice_count: 0,
            lost_count: 0,
            event_count: 0,
            is_complete: true,
        }
    }

    pub(super) fn begin(&mut self, now_ns: u64) {
        self.begun_ns = Some(now_ns);
        self.slice_count += 1;
    }

    /// All events of the slice have been added.
    pub(super) fn end(&mut self, now_ns: u64) {
        if let Some(begun_ns) = self.begun_ns.take() {
            self.before_ns += now_ns.saturating_sub(begun_ns);
        }
    }

    pub(super) fn add(&mut self, line: &str) {
        match parse(line) {
            Line::Event(event) => self.add_event(&event),
            Line::Lost(count) => self.lost_count += count,
            Line::Other => {}
        }
    }

    fn add_event(&mut self, event: &Event) {
        self.event_count += 1;
        let Some(begun_ns) = self.begun_ns else { return };
        let at = Instant(self.before_ns + event.at_ns.saturating_sub(begun_ns));
        let Extent { first_sector, sector_count } = self.extent;
        let offset = event
            .sector
            .checked_sub(first_sector)
            .filter(|offset| offset.checked_add(event.sector_count).is_some_and(|end| end <= sector_count));
        if event.is_flushed {
            let operation = Operation::Flush;
            self.keep(Traced { at, operation, offset_bytes: 0, size_bytes: 0, force_unit_access: false });
        }
        if let (Some(operation), Some(offset)) = (event.operation, offset) {
            self.keep(Traced {
                at,
                operation,
                offset_bytes: offset * SECTOR_BYTES,
                size_bytes: event.sector_count * SECTOR_BYTES,
                force_unit_access: event.force_unit_access,
            });
        }
    }

    fn keep(&mut self, request: Traced) {
        if self.requests.len() < REQUESTS_MOST {
            self.requests.push(request);
        } else {
            self.is_complete = false;
        }
    }

    pub(super) fn is_full(&self) -> bool {
        !self.is_complete
    }

    /// The requests in the order of their times, and the time that they cover. The kernel's buffers are one
    /// for each core, so that events are printed nearly in order.
    pub(super) fn into_requests(mut self) -> (Vec<Traced>, u64) {
        self.requests.sort_by_key(|request| request.at);
        let last_ns = self.requests.last().map_or(0, |request| request.at.0);
        (self.requests, self.before_ns.max(last_ns))
    }
}

/// How long to pause after a slice, so that the mean rate of events is at most this one. None for a slice with
/// few of them.
pub(super) fn pause_s(events: u64, slice_s: f64, rate_most_per_s: f64) -> f64 {
    /// So that a window has some slices at any rate.
    const PAUSE_MOST_S: f64 = 60.0;
    (events as f64 / rate_most_per_s - slice_s).clamp(0.0, PAUSE_MOST_S)
}

/// The mean rate of events at which a window of this length fills what is kept of it, and which takes less than
/// a hundredth of a core.
pub(super) fn rate_most_per_s(window_s: f64) -> f64 {
    /// A line of the kernel's trace takes some microseconds to print and to read.
    const CHEAP_PER_S: f64 = 2_000.0;
    /// For slices that are busier than those before.
    const MARGIN: f64 = 0.8;
    (MARGIN * REQUESTS_MOST as f64 / window_s.max(1.0)).min(CHEAP_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Event {
        match parse(line) {
            Line::Event(event) => event,
            other => panic!("{line}: {other:?}"),
        }
    }

    /// A line of Linux 6.1, with what is to be found in it.
    #[track_caller]
    fn check(line: &str, is_flushed: bool, operation: Option<Operation>, place: (u64, u64), fua: bool) {
        let Event { sector, sector_count, force_unit_access, .. } = found(line);
        let event = found(line);
        assert_eq!((event.is_flushed, event.operation), (is_flushed, operation), "{line}");
        assert_eq!(((sector, sector_count), force_unit_access), (place, fua), "{line}");
    }

    const READ: &str = "        mariadbd-4711    [001] d..1.  1234.567890: block_rq_issue: 8,0 R 16384 () 2099200 + 32 [mariadbd]";

    #[test]
    fn a_line_of_each_kind_is_read() {
        check(READ, false, Some(Operation::Read), (2_099_200, 32), false);
        assert_eq!(found(READ).at_ns, 1_234_567_890_000);
        let log =
            "ib_log_writer-99 [000] d..1.  1.000001: block_rq_issue: 8,0 WFS 4096 () 64 + 8 [ib_log_writer]";
        check(log, false, Some(Operation::Write), (64, 8), true);
        let flush =
            "  kworker/0:1H-123 [000] d..1.  1.000002: block_rq_issue: 8,0 FF 0 () 0 + 0 [kworker/0:1H]";
        check(flush, true, None, (0, 0), false);
        let discard = "fstrim-7 [000] d..1.  2.500000: block_rq_issue: 259,0 DS 65536 () 2048 + 128 [fstrim]";
        check(discard, false, Some(Operation::Discard), (2_048, 128), false);
        let zeroes = "mkfs-8 [000] d..1.  2.500000: block_rq_issue: 259,0 WZS 65536 () 2048 + 128 [mkfs]";
        check(zeroes, false, Some(Operation::WriteZeroes), (2_048, 128), false);
    }

    /// As Linux 6.18 printed them, of PostgreSQL on XFS on a loop device, and of the disk below.
    #[test]
    fn a_line_of_a_later_kernel_has_a_priority_more() {
        use Operation::{Discard, Read, Write};
        let read = "        postgres-10998   [001] .....   800.442892: block_rq_issue: 7,0 RA 8192 () 4328352 + 16 be,0,4 [postgres]";
        check(read, false, Some(Read), (4_328_352, 16), false);
        assert_eq!(found(read).at_ns, 800_442_892_000);
        let log = "        postgres-10994   [000] .....   800.444866: block_rq_issue: 7,0 WS 40960 () 1994296 + 80 be,0,4 [postgres]";
        check(log, false, Some(Write), (1_994_296, 80), false);
        let page = "    kworker/0:0H-10      [000] .N...   800.442468: block_rq_issue: 7,0 W 8192 () 3318576 + 16 rt,0,4 [kworker/0:0H]";
        check(page, false, Some(Write), (3_318_576, 16), false);
        let flush = "    kworker/0:0H-10      [000] .....   800.440963: block_rq_issue: 7,0 FF 0 () 0 + 0 none,0,0 [kworker/0:0H]";
        check(flush, true, None, (0, 0), false);
        let discard = "    kworker/1:1H-44      [001] .....   803.427014: block_rq_issue: 254,0 DS 4096 () 319301512 + 8 rt,0,4 [kworker/1:1H]";
        check(discard, false, Some(Discard), (319_301_512, 8), false);
        let asked =
            "        postgres-10994   [000] .....   800.445244: block_bio_queue: 7,0 FWS 0 + 0 [postgres]";
        check(asked, true, None, (0, 0), false);
    }

    #[test]
    fn the_bytes_of_a_command_are_passed_over() {
        let line = "smartd-5 [000] d..1.  3.000000: block_rq_issue: 8,0 N 512 (85 08 0e) 0 + 1 [smartd]";
        check(line, false, None, (0, 1), false);
    }

    #[test]
    fn a_request_that_is_passed_on_may_have_a_flush_before_it() {
        let line = "postgres-77 [000] .....  4.000000: block_bio_queue: 253,0 FWFS 4096 + 16 [postgres]";
        check(line, true, Some(Operation::Write), (4_096, 16), true);
        let flush = "postgres-77 [000] .....  4.000000: block_bio_queue: 253,0 FWS 0 + 0 [postgres]";
        check(flush, true, None, (0, 0), false);
    }

    #[test]
    fn lost_events_are_counted_and_the_rest_is_left_out() {
        assert_eq!(parse("CPU:1 [LOST 4711 EVENTS]"), Line::Lost(4711));
        for other in ["", "# tracer: nop", "a-1 [000] 1.0: sched_switch: x", "x: block_rq_issue: 8,0 R"] {
            assert_eq!(parse(other), Line::Other, "{other}");
        }
    }

    fn issue(at: &str, sector: u64) -> String {
        format!("a-1 [000] d..1.  {at}: block_rq_issue: 8,0 R 4096 () {sector} + 8 [a]")
    }

    #[test]
    fn slices_follow_each_other_without_the_time_between_them() {
        let mut slices = Slices::new(Extent { first_sector: 1_000, sector_count: 100 });
        slices.begin(10_000_000_000);
        slices.add(&issue("10.500000", 1_008));
        slices.add(&issue("10.250000", 1_000));
        slices.end(11_000_000_000);
        // Between two slices nothing is kept.
        slices.add(&issue("12.000000", 1_000));
        slices.begin(40_000_000_000);
        slices.add(&issue("40.125000", 1_092));
        // Of another partition.
        slices.add(&issue("40.200000", 1_093));
        slices.add(&issue("40.200000", 999));
        slices.end(41_000_000_000);
        assert_eq!((slices.slice_count, slices.event_count, slices.is_full()), (2, 6, false));
        let (requests, duration_ns) = slices.into_requests();
        let found: Vec<(u64, u64)> =
            requests.iter().map(|request| (request.at.0 / 1_000_000, request.offset_bytes)).collect();
        assert_eq!(found, [(250, 0), (500, 4_096), (1_125, 92 * 512)]);
        assert_eq!(duration_ns, 2_000_000_000);
    }

    #[test]
    fn a_busy_slice_is_followed_by_a_pause() {
        assert_eq!(pause_s(500, 1.0, 2_000.0), 0.0);
        assert_eq!(pause_s(20_000, 1.0, 2_000.0), 9.0);
        assert_eq!(pause_s(1_000_000, 1.0, 2_000.0), 60.0);
        assert_eq!(rate_most_per_s(60.0), 2_000.0);
        assert!((rate_most_per_s(1_800.0) - 444.4).abs() < 0.1);
    }
}
