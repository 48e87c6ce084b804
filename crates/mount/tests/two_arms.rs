//! One test body, two arms: a device behaves in real time as in virtual time.

use std::cell::Cell;
use std::time::Duration;

use spindle_base::dilation::Dilation;
use spindle_model::{
    ClosedLoop, Completion, Counters, Device, Driver, Instant, MICROSECOND, MILLISECOND, Measured, Operation,
    Outcome, PowerCut, Request, VirtualTime,
};
use spindle_mount::RealTime;

const PATIENCE: Duration = Duration::from_secs(120);

/// Two servers of a fixed time each, behind one queue.
#[derive(Debug, Clone, Default)]
struct TwoServers {
    service_ns: u64,
    free_at: [Instant; 2],
    completions: Vec<Completion>,
}

impl Device for TwoServers {
    fn size_bytes(&self) -> u64 {
        1 << 30
    }

    fn submit_late(&mut self, _sent: Instant, now: Instant, request: Request) -> Instant {
        self.free_at.sort();
        let at = self.free_at[0].max(now) + self.service_ns;
        self.free_at[0] = at;
        self.completions.push(Completion { id: request.id, at, outcome: Outcome::Success });
        self.completions.sort_by_key(|completion| (completion.at, completion.id));
        now
    }

    fn poll_at(&self) -> Option<Instant> {
        self.completions.first().map(|completion| completion.at)
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        let due = self.completions.first()?.at <= now;
        due.then(|| self.completions.remove(0))
    }

    fn power_cut(&mut self, _now: Instant) -> PowerCut {
        PowerCut::default()
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }
}

fn device(service_ns: u64) -> TwoServers {
    TwoServers { service_ns, ..TwoServers::default() }
}

/// Runs the same requests in virtual and in real time and gives both to `expect`.
fn check(service_ns: u64, queue_depth: u64, request_count: u64, expect: impl Fn(&str, &Measured)) {
    let workload = ClosedLoop { queue_depth, request_count, ..ClosedLoop::default() };
    expect("virtual time", &workload.run(&mut VirtualTime::new(device(service_ns))));
    let mut real = RealTime::start(Box::new(device(service_ns)), Dilation::NONE).expect("a timer");
    expect("real time", &workload.run(&mut real));
    assert_eq!(real.wait(), None, "nothing is left");
    // The last answers are counted just after they were given.
    while real.statistics().read.count < request_count {
        std::thread::yield_now();
    }
}

#[test]
fn nothing_is_answered_before_its_time() {
    check(MILLISECOND, 2, 100, |arm, measured| {
        let quickest = measured.latencies_ns(Operation::Read).min();
        assert!(quickest >= Some(MILLISECOND), "{arm}: {quickest:?}");
    });
}

#[test]
fn every_request_is_answered_once() {
    check(50 * MICROSECOND, 8, 2000, |arm, measured| {
        assert_eq!(measured.count(Operation::Read), 2000, "{arm}");
    });
}

/// A device that is never idle keeps its own time, however late each reply was. On a busy machine a stall can
/// last as long as a run, and then another run counts.
#[test]
fn lateness_does_not_add_up() {
    let started = std::time::Instant::now();
    let slowest = Cell::new(f64::INFINITY);
    while slowest.get() >= 2.0 {
        assert!(started.elapsed() < PATIENCE, "the device fell behind: {}", slowest.get());
        slowest.set(0.0);
        check(500 * MICROSECOND, 16, 2000, |arm, measured| {
            let ideal_ns = 2000 / 2 * 500 * MICROSECOND;
            let ratio = measured.elapsed_ns as f64 / ideal_ns as f64;
            assert!(ratio >= 1.0, "{arm}: quicker than the device: {ratio}");
            slowest.set(slowest.get().max(ratio));
        });
    }
}
