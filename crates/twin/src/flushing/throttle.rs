//! How the kernel holds buffered writes back beside reads (block/blk-wbt.c, block/blk-rq-qos.c).
//!
//! The fastest read of a window tells whether writes are in its way. If it took longer than the target, fewer writes may
//! be under way, else more. A drive with a volatile cache does all it has before it gets more (`wbt_rqw_done`); any other
//! gets the next write when one is done. Who comes while the write-back waits, waits behind it.
//!
//! # Divergence
//! * A window has 100 ms also after reads were slow, when the kernel's are shorter.
//! * The writers of a server without memory for more dirty pages do not raise the depth (`wb_recent_wait`).

use spindle_model::SECOND;

use super::TICKS_PER_SECOND;

/// What a drive did in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    /// Of the fastest read.
    pub least_read_ns: Option<u64>,
    pub writes: u64,
    /// For which one of its reads is under way, as the kernel watches one at a time.
    pub waits_for_read_ns: u64,
}

/// The throttle of one drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Throttle {
    target_ns: u64,
    waits_for_all: bool,
    /// Down is positive.
    step: i32,
    idle_windows: u32,
    is_waiting: bool,
}

/// Of a loop device (`queue_depth`).
const QUEUE: u64 = 128;
/// Writes under way at step 0 (`RWB_DEF_DEPTH`).
const DEPTH: u64 = 16;
/// A tick: `RWB_WINDOW_NSEC` is 100 ms.
const WINDOW_NS: u64 = SECOND / TICKS_PER_SECOND;
/// `RWB_MIN_WRITE_SAMPLES`.
const FEWEST_WRITES: u64 = 3;
/// `RWB_UNKNOWN_BUMP`.
const IDLE_WINDOWS: u32 = 5;

impl Throttle {
    pub(crate) fn new(rotates: bool, has_volatile_cache: bool) -> Throttle {
        // `wbt_default_latency_nsec`.
        let target_ns = if rotates { 75_000_000 } else { 2_000_000 };
        Throttle { target_ns, waits_for_all: has_volatile_cache, step: 0, idle_windows: 0, is_waiting: false }
    }

    /// A window ended.
    pub(crate) fn end_window(&mut self, seen: Seen, under_way: u64) {
        let too_long = if seen.least_read_ns.is_some() { WINDOW_NS } else { self.target_ns };
        let is_slow = |read_ns| read_ns > self.target_ns && seen.writes >= FEWEST_WRITES;
        if seen.waits_for_read_ns > too_long || seen.least_read_ns.is_some_and(is_slow) {
            self.go_down();
        } else if seen.writes > 0 || under_way > 0 {
            self.go_up();
        } else {
            self.idle_windows += 1;
            if self.idle_windows >= IDLE_WINDOWS {
                self.step -= self.step.signum();
                self.idle_windows = 0;
            }
        }
    }

    fn go_down(&mut self) {
        if self.most() > 1 {
            self.step = if self.step < 0 { 0 } else { self.step + 1 };
        }
        self.idle_windows = 0;
    }

    fn go_up(&mut self) {
        if self.most() < QUEUE * 3 / 4 {
            self.step -= 1;
        }
        self.idle_windows = 0;
    }

    /// Writes under way of those who do not write in the background.
    fn most(&self) -> u64 {
        match self.step {
            0.. => 1 + ((DEPTH - 1) >> self.step.unsigned_abs()),
            _ => (1 + ((DEPTH - 1) << self.step.unsigned_abs())).min(QUEUE * 3 / 4),
        }
    }

    /// Writes under way of the write-back, with reads in the last tenth of a second.
    fn depth(&self) -> u64 {
        match self.most() {
            ..=2 => 1,
            most => most.div_ceil(4),
        }
    }

    /// Whether the write-back can send one more while so many are under way.
    pub(crate) fn lets_through(&mut self, under_way: u64) -> bool {
        let is_full = under_way >= self.depth();
        self.is_waiting = is_full || (self.waits_for_all && self.is_waiting && under_way > 0);
        !self.is_waiting
    }

    /// Whether other buffered writes wait behind the write-back.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Seen = Seen { least_read_ns: Some(100_000), writes: 10, waits_for_read_ns: 0 };
    const SLOW: Seen = Seen { least_read_ns: Some(3_000_000), writes: 10, waits_for_read_ns: 0 };

    #[track_caller]
    fn check_depths(rotates: bool, windows: &[(Seen, u64)]) {
        let mut throttle = Throttle::new(rotates, false);
        assert_eq!(throttle.depth(), 4);
        for (seen, depth) in windows {
            throttle.end_window(*seen, 1);
            assert_eq!(throttle.depth(), *depth, "{throttle:?} after {seen:?}");
        }
    }

    #[test]
    fn the_depth_grows_while_reads_are_fast_and_falls_at_once_when_they_are_slow() {
        check_depths(false, &[(FAST, 8), (FAST, 16), (FAST, 24), (FAST, 24), (SLOW, 4), (FAST, 8)]);
        check_depths(
            false,
            &[(SLOW, 2), (SLOW, 1), (SLOW, 1), (SLOW, 1), (SLOW, 1), (FAST, 1), (FAST, 1), (FAST, 2)],
        );
        check_depths(true, &[(SLOW, 8), (SLOW, 16)]);
    }

    #[test]
    fn a_read_that_does_not_end_is_slow() {
        let stuck = |waits_for_read_ns, least_read_ns| Seen { waits_for_read_ns, least_read_ns, writes: 10 };
        check_depths(true, &[(stuck(80_000_000, Some(1)), 8), (stuck(110_000_000, Some(1)), 4)]);
        check_depths(true, &[(stuck(80_000_000, None), 2)]);
    }

    #[test]
    fn an_idle_drive_returns_to_the_first_depth() {
        let mut throttle = Throttle::new(false, false);
        (0..2).for_each(|_| throttle.end_window(FAST, 1));
        for depth in [16, 8, 4] {
            assert_eq!(throttle.depth(), depth);
            (0..IDLE_WINDOWS).for_each(|_| throttle.end_window(Seen::default(), 0));
        }
        assert_eq!(throttle.depth(), 4);
    }

    #[test]
    fn a_drive_with_a_volatile_cache_does_all_before_it_gets_more() {
        let passes = |has_volatile_cache| {
            let mut throttle = Throttle::new(false, has_volatile_cache);
            [3, 4, 3, 1, 0, 3].map(|under_way| throttle.lets_through(under_way))
        };
        assert_eq!(passes(false), [true, false, true, true, true, true]);
        assert_eq!(passes(true), [true, false, false, false, true, true]);
    }
}
