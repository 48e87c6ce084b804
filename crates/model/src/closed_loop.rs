//! A closed-loop workload with a fixed queue depth, over any driver: one test body for virtual time and real
//! time.

use std::collections::VecDeque;

use crate::children::request;
use crate::request::{Completion, Operation, Request, RequestId};
use crate::rng::Rng;
use crate::time::Instant;

/// Carries requests to a device and waits for its completions, in virtual or in real time.
pub trait Driver {
    fn now(&self) -> Instant;

    fn submit(&mut self, request: Request);

    /// The next completion; `None` when the device is idle. Afterwards [`Driver::now`] is the time at which
    /// the host received the completion.
    fn wait(&mut self) -> Option<Completion>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Random,
    Sequential,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ClosedLoop {
    /// Share of reads; all other requests are writes.
    pub read_percent: u64,
    pub size_bytes: u64,
    /// Requests in flight.
    pub queue_depth: u64,
    pub order: Order,
    /// Offsets are multiples of `size_bytes` below this.
    pub span_bytes: u64,
    /// A FLUSH follows each write, before the next write, like a commit.
    pub flush_after_write: bool,
    /// Limit on submitted requests, flushes included.
    pub request_count: u64,
    /// No request is submitted after this time.
    pub time_limit_ns: u64,
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    pub operation: Operation,
    pub latency_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Measured {
    /// In order of completion.
    pub samples: Vec<Sample>,
    /// Time from the first submission to the last completion.
    pub elapsed_ns: u64,
}

impl Measured {
    pub fn latencies_ns(&self, operation: Operation) -> impl Iterator<Item = u64> {
        self.samples
            .iter()
            .filter(move |sample| sample.operation == operation)
            .map(|sample| sample.latency_ns)
    }

    pub fn count(&self, operation: Operation) -> u64 {
        self.latencies_ns(operation).count() as u64
    }

    /// Mean latency of an operation in nanoseconds; zero if there was none.
    pub fn mean_ns(&self, operation: Operation) -> f64 {
        let count = self.count(operation).max(1);
        self.latencies_ns(operation).sum::<u64>() as f64 / count as f64
    }

    pub fn per_second(&self, operation: Operation) -> f64 {
        self.count(operation) as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

impl Default for ClosedLoop {
    fn default() -> ClosedLoop {
        ClosedLoop {
            read_percent: 100,
            size_bytes: 4_096,
            queue_depth: 1,
            order: Order::Random,
            span_bytes: 1 << 30,
            flush_after_write: false,
            request_count: 10_000,
            time_limit_ns: u64::MAX,
            seed: 1,
        }
    }
}

/// Requests in flight by number, from the oldest incomplete one. Lookup takes constant time in any order of
/// completion.
#[derive(Debug, Default)]
struct InFlight {
    first: u64,
    requests: VecDeque<Option<(Operation, Instant)>>,
}

impl InFlight {
    fn remove(&mut self, id: RequestId) -> Option<(Operation, Instant)> {
        let index = usize::try_from(id.0.checked_sub(self.first)?).ok()?;
        let removed = self.requests.get_mut(index)?.take();
        while let Some(None) = self.requests.front() {
            self.requests.pop_front();
            self.first += 1;
        }
        removed
    }
}

impl ClosedLoop {
    /// Runs until a limit is reached and every request has completed.
    pub fn run(&self, driver: &mut impl Driver) -> Measured {
        assert!(self.size_bytes > 0 && self.span_bytes >= self.size_bytes, "{self:?}: no room for a request");
        let mut rng = Rng::new(self.seed);
        let mut in_flight = InFlight::default();
        let mut measured = Measured::default();
        let started_at = driver.now();
        let mut submitted = 0;
        let mut place = 0;
        let mut submit = |driver: &mut _, after: Option<Operation>, in_flight: &mut InFlight| {
            let now = Driver::now(driver);
            if submitted == self.request_count || now - started_at >= self.time_limit_ns {
                return;
            }
            let request = self.next(submitted, after, &mut place, &mut rng);
            submitted += 1;
            in_flight.requests.push_back(Some((request.operation, now)));
            Driver::submit(driver, request);
        };
        for _ in 0..self.queue_depth {
            submit(driver, None, &mut in_flight);
        }
        while !in_flight.requests.is_empty() {
            let completion = driver.wait().expect("the device lost a request");
            let (operation, submitted_at) =
                in_flight.remove(completion.id).expect("the device completed a request twice");
            let latency_ns = driver.now() - submitted_at;
            measured.samples.push(Sample { operation, latency_ns });
            submit(driver, Some(operation), &mut in_flight);
        }
        measured.elapsed_ns = driver.now() - started_at;
        measured
    }

    fn next(&self, number: u64, after: Option<Operation>, place: &mut u64, rng: &mut Rng) -> Request {
        let id = RequestId(number);
        if self.flush_after_write && after == Some(Operation::Write) {
            return Request { id, ..request(Operation::Flush, 0, 0) };
        }
        let operation = if rng.below(100) < self.read_percent { Operation::Read } else { Operation::Write };
        let places = self.span_bytes / self.size_bytes;
        let index = match self.order {
            Order::Random => rng.below(places),
            Order::Sequential => {
                *place += 1;
                (*place - 1) % places
            }
        };
        Request { id, ..request(operation, index * self.size_bytes, self.size_bytes) }
    }
}
