//! Under a dilation of k a device takes k times as long, and its figures are those without dilation.

use std::collections::VecDeque;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant as RealInstant};

use spindle_base::dilation::Dilation;
use spindle_base::histogram;
use spindle_model::{
    Completion, Counters, Device, Instant, MILLISECOND, Operation, Outcome, PowerCut, Request,
};
use spindle_mount::{Driver, Statistics};

const SERVICE_NS: u64 = 10 * MILLISECOND;

/// Takes ten milliseconds for each request.
#[derive(Debug, Default)]
struct Slow {
    waiting: VecDeque<Completion>,
}

impl Device for Slow {
    fn size_bytes(&self) -> u64 {
        1 << 20
    }

    fn submit_late(&mut self, _sent: Instant, now: Instant, request: Request) -> Instant {
        let at = now + SERVICE_NS;
        self.waiting.push_back(Completion { id: request.id, at, outcome: Outcome::Success });
        now
    }

    fn poll_at(&self) -> Option<Instant> {
        self.waiting.front().map(|first| first.at)
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.waiting.front().is_some_and(|first| first.at <= now).then(|| self.waiting.pop_front())?
    }

    fn power_cut(&mut self, _now: Instant) -> PowerCut {
        PowerCut::default()
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }
}

/// A driver that answers to a receiver, and a function that reads once: the real time from before the request
/// until after its answer was counted, and the statistics.
fn reading(dilation: Dilation) -> (Driver<()>, impl Fn(&Driver<()>) -> (Duration, Statistics)) {
    let (sender, answered) = channel();
    let driver = Driver::start(Box::new(Slow::default()), dilation, move |(), _| {
        // Fails only after the receiver is gone, when nothing waits for it any more.
        let _ = sender.send(());
    });
    let driver = driver.expect("a timer");
    let read = move |driver: &Driver<()>| {
        let count = driver.statistics().read.count;
        let begun = RealInstant::now();
        driver.submit(Operation::Read, 0, 4096, ());
        answered.recv().expect("the driver lives");
        let answered_after = begun.elapsed();
        // An answer is counted just after it was given.
        while driver.statistics().read.count == count {
            std::thread::yield_now();
        }
        (answered_after, driver.statistics())
    };
    (driver, read)
}

#[track_caller]
fn check_read(driver: &Driver<()>, read: impl Fn(&Driver<()>) -> (Duration, Statistics), k: u64) {
    let before = RealInstant::now();
    let (answered_after, statistics) = read(driver);
    let counted_after_ns = before.elapsed().as_nanos() as u64;
    assert!(answered_after >= Duration::from_nanos(k * SERVICE_NS), "k = {k}: {answered_after:?}");
    assert_eq!(statistics.dilation.factor(), k as f64);
    let latency_ns = statistics.read.latency_ns;
    assert!(latency_ns >= SERVICE_NS, "k = {k}: {latency_ns} ns");
    // Told in real time, it would be longer than the test took; so would the lateness, and the uptime.
    assert!(k * latency_ns <= counted_after_ns, "k = {k}: {latency_ns} ns of {counted_after_ns} ns");
    let lateness_ns = latency_ns - SERVICE_NS;
    let recorded_ns = histogram::decode(&statistics.lateness_histogram).expect("a histogram").max();
    let precision_ns = 2 + lateness_ns / 500;
    assert!(recorded_ns.abs_diff(lateness_ns) <= precision_ns, "k = {k}: {recorded_ns} and {lateness_ns} ns");
    assert_eq!(statistics.queue_time_ns, latency_ns);
}

#[test]
fn a_device_of_10_ms_answers_after_40_ms_of_real_time_and_tells_10_ms() {
    let (driver, read) = reading("4".parse().unwrap());
    check_read(&driver, &read, 4);
}

#[test]
fn the_time_since_the_disk_came_up_is_told_in_dilated_time() {
    let begun = RealInstant::now();
    let (driver, _) = reading("8".parse().unwrap());
    let up = RealInstant::now();
    std::thread::sleep(Duration::from_millis(80));
    let low_ns = up.elapsed().as_nanos() as u64 / 8;
    let uptime_ns = driver.statistics().uptime_ns;
    let high_ns = begun.elapsed().as_nanos() as u64 / 8;
    assert!((low_ns..=high_ns + 1).contains(&uptime_ns), "{uptime_ns} ns, must be {low_ns} to {high_ns}");
}

#[test]
fn the_dilation_of_an_idle_disk_can_be_changed_and_begins_the_statistics_anew() {
    let (driver, read) = reading(Dilation::NONE);
    check_read(&driver, &read, 1);
    for k in [4, 2] {
        assert!(driver.set_dilation(k.to_string().parse().unwrap()));
        assert_eq!(driver.statistics().read.count, 0, "k = {k}");
        check_read(&driver, &read, k);
    }
    driver.submit(Operation::Read, 0, 4096, ());
    assert!(!driver.set_dilation(Dilation::NONE), "a request is in flight");
    assert_eq!(driver.statistics().dilation.factor(), 2.0);
}

#[test]
fn statistics_from_before_dilation_are_those_without() {
    let mut old = serde_json::to_value(Statistics::default()).unwrap();
    old.as_object_mut().unwrap().remove("dilation").expect("it is told");
    let read: Statistics = serde_json::from_value(old).unwrap();
    assert_eq!(read.dilation, Dilation::NONE);
}
