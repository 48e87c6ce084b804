//! The real-time driver of a [`Device`]. Virtual time jumps to `poll_at()`; this driver waits for it.
//!
//! One thread sleeps on a timer until the model's next event, lets the model make it happen, and completes
//! finished requests. A submitting thread re-arms the timer if the next event has come closer. Rules (after
//! SimPy's `rt.py` and ublk-disksim):
//!
//! * A late wake-up delays the reply, never the device's timeline: events happen in the model at their own
//!   time, however late the thread wakes. The lateness of each reply is counted.
//! * The measured floor, the cost of a request on its way through the kernel and back, is subtracted. Each
//!   request arrives that much earlier in model time ([`Device::submit_late`]), but not before the answer for
//!   which its sender waited.
//! * With the timing off the model is not asked at all.
//! * Under a dilation of k, model time is a k-th of real time ([`Clock`]). Everything here and all statistics
//!   are in model time. What is a property of this machine (floor, wake-ups, a sender's processor time) is
//!   known in real time, has `REAL` or `real` in its name, and is a k-th as long in the model.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Debug};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use spindle_base::dilation::Dilation;
use spindle_model::{
    Ageing, Change, Changed, Counters, Device, Instant, MICROSECOND, MILLISECOND, Operation, Outcome,
    Request, RequestId, SECOND, counters_of_all,
};

use crate::clock::{Clock, RealInstant};
use crate::constant::Constant;
use crate::realtime;
use crate::statistics::{Floor, Statistics};
use crate::trace::Recorder;

/// Called with the payload of a completed request, from the thread that finds it due.
pub type OnComplete<P> = dyn Fn(P, Outcome) + Send + Sync;

/// Drives one device in real time. `P` is the caller's data for answering a request.
pub struct Driver<P: Send + 'static> {
    shared: Arc<Shared<P>>,
    thread: Option<JoinHandle<()>>,
}

impl<P: Send + 'static> Debug for Driver<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Driver").finish_non_exhaustive()
    }
}

struct Shared<P> {
    core: Mutex<Core<P>>,
    /// Absent when the submitting thread also waits for the model's events.
    timer: Option<OwnedFd>,
    stop: AtomicBool,
    on_complete: Box<OnComplete<P>>,
}

struct Core<P> {
    clock: Clock,
    device: Box<dyn Device>,
    /// The device under test, while a constant delay takes its place.
    set_aside: Option<Box<dyn Device>>,
    /// The latest moment that the model has seen.
    model_now: Instant,
    armed_for: Option<Instant>,
    pending: BTreeMap<RequestId, Pending<P>>,
    /// The latest answers, each until a request follows it.
    unfollowed: VecDeque<Unfollowed>,
    next_id: u64,
    /// Share of the machine's cores that were busy recently.
    cores_busy: f64,
    /// As measured, in real time.
    real_floor: Floor,
    /// Settings and counts. [`Driver::statistics`] adds the figures that are read at that moment.
    statistics: Statistics,
    lateness: Histogram<u64>,
    counted_since: Instant,
    /// Also once it has ended, until it is written.
    trace: Option<Recorder>,
}

#[derive(Debug, Clone, Copy)]
struct Unfollowed {
    due_at: Instant,
    /// Never before `due_at`, and much later when the host stood still.
    answered_at: Instant,
}

struct Pending<P> {
    payload: P,
    timing: Timing,
}

/// One request to be answered now.
pub(crate) struct Due<P> {
    pub(crate) payload: P,
    pub(crate) outcome: Outcome,
    pub(crate) timing: Timing,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    operation: Operation,
    size_bytes: u64,
    arrived: Instant,
    submitted: Instant,
    /// When the answer should leave; `None` with the timing off.
    due_at: Option<Instant>,
}

/// An answered request and the moment of its answer.
struct Answered {
    timing: Timing,
    at: RealInstant,
}

/// A reply is late if it is later than this share of its service time...
const LATE_SHARE: f64 = 0.05;
/// ...and later than this, about the size of the floor's correction. The path and its spread are this
/// machine's, so this is real time: under dilation the path's share of a dilated service time shrinks, and so
/// does what it excuses. 50 us of model time would excuse k times that.
const LATE_MIN_REAL_NS: u64 = 50 * MICROSECOND;
/// Most wake-ups of a halted core of a virtual machine take less than this.
const LEAD_REAL: Duration = Duration::from_micros(40);
const CORES_BUSY_MAX: f64 = 0.25;
/// A sender that is idle for this long after an answer was not waiting for it. In between it uses the
/// processor, which dilation does not slow down.
const FOLLOWS_WITHIN_REAL_NS: u64 = MILLISECOND;
/// One hour.
const LATENESS_MAX_NS: u64 = 3600 * SECOND;

impl<P: Send + 'static> Driver<P> {
    /// Starts a driver with a thread of its own that answers due requests.
    ///
    /// # Errors
    /// The kernel refuses a timer or a thread.
    pub fn start(
        device: Box<dyn Device>,
        dilation: Dilation,
        on_complete: impl Fn(P, Outcome) + Send + Sync + 'static,
    ) -> io::Result<Driver<P>> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        let mut driver = Driver::new(device, dilation, Some(timer), Box::new(on_complete));
        let for_thread = driver.shared.clone();
        let thread = std::thread::Builder::new()
            .name("timer".to_owned())
            .spawn(move || for_thread.wait_and_answer())?;
        driver.thread = Some(thread);
        Ok(driver)
    }

    /// A driver without a thread: the caller of [`Driver::accept`] waits until [`Driver::next_due`] and then
    /// calls [`Driver::take_due`]. `on_complete` is called only by [`Driver::set_timing`].
    pub(crate) fn unattended(
        device: Box<dyn Device>,
        dilation: Dilation,
        on_complete: impl Fn(P, Outcome) + Send + Sync + 'static,
    ) -> Driver<P> {
        Driver::new(device, dilation, None, Box::new(on_complete))
    }

    fn new(
        device: Box<dyn Device>,
        dilation: Dilation,
        timer: Option<OwnedFd>,
        on_complete: Box<OnComplete<P>>,
    ) -> Driver<P> {
        let transport = if timer.is_some() { "threads" } else { "io_uring" };
        let core = Core {
            clock: Clock::start(dilation),
            device,
            set_aside: None,
            model_now: Instant::ZERO,
            armed_for: None,
            pending: BTreeMap::new(),
            unfollowed: VecDeque::new(),
            next_id: 0,
            cores_busy: 0.0,
            real_floor: Floor::default(),
            statistics: Statistics {
                timing: true,
                scheduler: "SCHED_OTHER".to_owned(),
                transport: transport.to_owned(),
                ..Statistics::default()
            },
            lateness: Histogram::new_with_bounds(1, LATENESS_MAX_NS, 3).expect("valid bounds"),
            counted_since: Instant::ZERO,
            trace: None,
        };
        let shared = Shared { core: Mutex::new(core), timer, stop: AtomicBool::new(false), on_complete };
        Driver { shared: Arc::new(shared), thread: None }
    }

    /// Gives a request to the device. Its completion may be called before this returns.
    pub fn submit(&self, operation: Operation, offset_bytes: u64, size_bytes: u64, payload: P) {
        let mut due = Vec::new();
        self.accept(operation, offset_bytes, size_bytes, payload, &mut due);
        self.shared.answer(due);
    }

    /// As [`Driver::submit`], but hands due requests to the caller, which answers them and then calls
    /// [`Driver::record`].
    pub(crate) fn accept(
        &self,
        operation: Operation,
        offset_bytes: u64,
        size_bytes: u64,
        payload: P,
        due: &mut Vec<Due<P>>,
    ) {
        let shared = &*self.shared;
        let mut core = shared.lock();
        let now = core.clock.now();
        let mut timing = Timing { operation, size_bytes, arrived: now, submitted: now, due_at: None };
        if !core.statistics.timing {
            due.push(Due { payload, outcome: Outcome::Success, timing });
            return;
        }
        let id = RequestId(core.next_id);
        core.next_id += 1;
        let floor_real_ns = core.real_floor.at(core.pending.len() as u64 + 1, core.cores_busy);
        let floor_ns = core.clock.model_ns(floor_real_ns);
        let sent = Instant(now.0.saturating_sub(floor_ns)).max(core.follow(now));
        let model_now = core.model_now.max(sent);
        core.model_now = model_now;
        let request = Request { id, operation, offset_bytes, size_bytes, force_unit_access: false };
        if let Some(trace) = &mut core.trace {
            trace.add(sent, &request);
        }
        timing.submitted = core.device.submit_late(sent, model_now, request);
        core.pending.insert(id, Pending { payload, timing });
        core.collect_due(now, due);
        shared.arm(&mut core);
    }

    /// Collects the requests that are due now. The caller answers them and then calls [`Driver::record`].
    pub(crate) fn take_due(&self, due: &mut Vec<Due<P>>) {
        let mut core = self.shared.lock();
        if core.statistics.timing {
            let now = core.clock.now();
            core.collect_due(now, due);
        }
    }

    /// Real time until the next event, zero if it is due, and the last part of that time, to be spent awake.
    /// Waking a sleeping core sometimes takes that long. The second duration is zero while the cores are
    /// busy, because busy polling would take a core from others. `None` when nothing is in flight.
    pub(crate) fn next_due(&self) -> Option<(Duration, Duration)> {
        let core = self.shared.lock();
        let next = core.device.poll_at().filter(|_| core.statistics.timing)?;
        let lead = if core.cores_busy < CORES_BUSY_MAX { LEAD_REAL } else { Duration::ZERO };
        Some((core.clock.real_duration(next - core.clock.now()), lead))
    }

    /// Counts requests that were answered just now.
    pub(crate) fn record(&self, timings: impl Iterator<Item = Timing>) {
        let at = RealInstant::now();
        self.shared.lock().add_all(timings.map(|timing| Answered { timing, at }));
    }

    /// Sets the scheduling policy of the answering thread, as reported in the statistics.
    pub(crate) fn set_scheduler(&self, name: &str) {
        name.clone_into(&mut self.shared.lock().statistics.scheduler);
    }

    /// Off: requests are answered at once, including waiting ones. On: the model decides again.
    pub fn set_timing(&self, on: bool) {
        let mut core = self.shared.lock();
        core.statistics.timing = on;
        if on {
            return;
        }
        let now = core.clock.now();
        let waiting = std::mem::take(&mut core.pending);
        drop(core);
        let due = waiting.into_values().map(|Pending { payload, timing }| Due {
            payload,
            outcome: Outcome::Success,
            timing: Timing { due_at: Some(now), ..timing },
        });
        self.shared.answer(due.collect());
    }

    /// Replaces the device by a constant delay in real time, or restores the device. Nothing may be in
    /// flight.
    pub fn set_delay_real_ns(&self, delay_real_ns: Option<u64>) {
        let mut core = self.shared.lock();
        if let Some(device) = core.set_aside.take() {
            core.device = device;
        }
        if let Some(delay_real_ns) = delay_real_ns {
            let delay_ns = core.clock.model_ns(delay_real_ns);
            let size_bytes = core.device.size_bytes();
            let constant = Box::new(Constant { size_bytes, delay_ns, waiting: VecDeque::new() });
            core.set_aside = Some(std::mem::replace(&mut core.device, constant));
        }
    }

    /// Puts the device into the state after the given use, or with `None` erases it: see [`Device::set_use`].
    /// False, without effect, while a request is in flight.
    pub fn set_use(&self, ageing: Option<&Ageing>) -> bool {
        let mut core = self.shared.lock();
        let is_idle = core.pending.is_empty() && core.device.poll_at().is_none();
        if is_idle {
            core.device.set_use(ageing);
        }
        is_idle
    }

    /// A part of the device changes now, whatever is in flight: see [`Device::change`].
    ///
    /// # Errors
    /// The part cannot change so.
    pub fn change(&self, change: Change) -> Changed {
        let mut core = self.shared.lock();
        let now = core.clock.now();
        core.model_now = core.model_now.max(now);
        let model_now = core.model_now;
        let changed = core.device.change(model_now, change)?;
        let mut due = Vec::new();
        if core.statistics.timing {
            core.collect_due(now, &mut due);
        }
        core.armed_for = None;
        self.shared.arm(&mut core);
        drop(core);
        self.shared.answer(due);
        Ok(changed)
    }

    /// Sets the cost of a request outside the model, in real time; see the module's header. Resets the
    /// statistics, because the requests so far were those of the floor's measurement.
    pub fn set_floor(&self, real_floor: Floor) {
        self.shared.lock().real_floor = real_floor;
        self.reset_statistics();
    }

    /// From now on a second of model time takes `dilation` real seconds. Resets the statistics, so that those
    /// of two dilations are never added up. False, without effect, while a request is in flight.
    pub fn set_dilation(&self, dilation: Dilation) -> bool {
        let mut core = self.shared.lock();
        let is_idle = core.pending.is_empty();
        if is_idle {
            core.clock.set_dilation(dilation, RealInstant::now());
            core.reset_statistics();
            // The device may have an event of its own ahead, such as the end of a clean-up.
            core.armed_for = None;
            self.shared.arm(&mut core);
        }
        is_idle
    }

    /// Begins the counts and the uptime anew. The counters of the device stay.
    pub fn reset_statistics(&self) {
        self.shared.lock().reset_statistics();
    }

    /// Keeps every request from now on in this recorder, but those that arrive with the timing off.
    pub(crate) fn begin_trace(&self, mut recorder: Recorder) {
        let mut core = self.shared.lock();
        recorder.begin(core.clock.now());
        let earlier = core.trace.replace(recorder);
        drop(core);
        // No request waits while its memory is given back.
        drop(earlier);
    }

    /// Ends the trace, which [`Driver::take_trace`] returns.
    pub(crate) fn end_trace(&self) {
        let mut core = self.shared.lock();
        let now = core.clock.now();
        if let Some(trace) = &mut core.trace {
            trace.end(now);
        }
    }

    /// The trace, which ends now unless it has ended. `None` if none was begun since the last one was taken.
    pub(crate) fn take_trace(&self) -> Option<Recorder> {
        self.end_trace();
        self.shared.lock().trace.take()
    }

    /// Sets the busy share of the cores, which weighs the floor of idle cores against that of busy ones.
    pub fn set_cores_busy(&self, share: f64) {
        self.shared.lock().cores_busy = share;
    }

    /// The counters of the device and of all below it, also while it is set aside.
    pub fn counters_of_all(&self) -> Vec<Counters> {
        let core = self.shared.lock();
        counters_of_all(&**core.set_aside.as_ref().unwrap_or(&core.device))
    }

    pub fn statistics(&self) -> Statistics {
        let core = self.shared.lock();
        let counters = core.device.counters();
        let Statistics { read, write, flush, discard, .. } = &core.statistics;
        let latency_ns = [read, write, flush, discard].map(|operation| operation.latency_ns);
        Statistics {
            uptime_ns: core.clock.now() - core.counted_since,
            dilation: core.clock.dilation(),
            floor: core.real_floor.each(|real_ns| core.clock.model_ns(real_ns)),
            io_flusher_refused: !realtime::has_io_flusher(),
            queue_time_ns: latency_ns.iter().sum(),
            queue_depth: core.pending.len() as u64,
            seeks: counters.seeks,
            nand_write_bytes: counters.nand_write_bytes,
            nand_moved_bytes: counters.nand_moved_bytes,
            erases: counters.erases,
            most_erases: counters.most_erases,
            lateness_histogram: encode(&core.lateness),
            major_faults: realtime::major_faults(),
            ..core.statistics.clone()
        }
    }
}

impl<P: Send + 'static> Drop for Driver<P> {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(timer) = &self.shared.timer {
            set_timer(timer, RealInstant::FIRST);
        }
        if let Some(thread) = self.thread.take() {
            // That thread has printed its panic; there is nothing to add.
            let _ = thread.join();
        }
    }
}

impl<P: Send> Shared<P> {
    fn lock(&self) -> MutexGuard<'_, Core<P>> {
        self.core.lock().expect("the model does not panic")
    }

    /// The timer thread.
    fn wait_and_answer(&self) {
        realtime::set_timer_slack();
        if realtime::set_fifo(realtime::ANSWERING) {
            "SCHED_FIFO".clone_into(&mut self.lock().statistics.scheduler);
        }
        let timer = self.timer.as_ref().expect("this thread is started with a timer");
        while !self.stop.load(Ordering::Acquire) {
            let mut expirations = [0; 8];
            match rustix::io::read(timer, &mut expirations) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("reading the timer: {error}"),
            }
            let mut due = Vec::new();
            let mut core = self.lock();
            let now = core.clock.now();
            core.collect_due(now, &mut due);
            core.armed_for = None;
            self.arm(&mut core);
            drop(core);
            self.answer(due);
        }
    }

    /// Wakes the timer thread at the model's next event, unless it wakes earlier anyway.
    fn arm(&self, core: &mut Core<P>) {
        let (Some(timer), Some(next)) = (&self.timer, core.device.poll_at()) else { return };
        if core.armed_for.is_none_or(|armed_for| next < armed_for) {
            core.armed_for = Some(next);
            set_timer(timer, core.clock.real(next));
        }
    }

    fn answer(&self, due: Vec<Due<P>>) {
        if due.is_empty() {
            return;
        }
        let mut answered = Vec::with_capacity(due.len());
        for Due { payload, outcome, timing } in due {
            (self.on_complete)(payload, outcome);
            answered.push(Answered { timing, at: RealInstant::now() });
        }
        self.lock().add_all(answered.into_iter());
    }
}

fn set_timer(timer: &OwnedFd, at: RealInstant) {
    let value = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at.timespec() };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &value).expect("a valid time");
}

impl<P> Core<P> {
    fn reset_statistics(&mut self) {
        let Statistics { timing, scheduler, transport, .. } = std::mem::take(&mut self.statistics);
        self.statistics = Statistics { timing, scheduler, transport, ..Statistics::default() };
        self.lateness.reset();
        self.counted_since = self.clock.now();
    }

    /// The earliest moment at which a request that arrives now can have been sent. A sender that waits for an
    /// answer sends nothing meanwhile, and the one that waited longest comes first. A floor that was measured
    /// too high therefore does not make the device faster.
    fn follow(&mut self, now: Instant) -> Instant {
        let within_ns = self.clock.model_ns(FOLLOWS_WITHIN_REAL_NS);
        while self.unfollowed.front().is_some_and(|first| first.answered_at + within_ns < now) {
            self.unfollowed.pop_front();
        }
        self.unfollowed.pop_front().map_or(Instant::ZERO, |first| first.due_at)
    }

    /// Lets all due events happen, each at its own time.
    fn collect_due(&mut self, now: Instant, due: &mut Vec<Due<P>>) {
        while let Some(at) = self.device.poll_at().filter(|&at| at <= now) {
            self.model_now = self.model_now.max(at);
            while let Some(completion) = self.device.poll(self.model_now) {
                // Absent if switching the timing off has answered it.
                if let Some(Pending { payload, timing }) = self.pending.remove(&completion.id) {
                    let timing = Timing { due_at: Some(completion.at), ..timing };
                    self.unfollowed.push_back(Unfollowed { due_at: completion.at, answered_at: now });
                    due.push(Due { payload, outcome: completion.outcome, timing });
                }
            }
        }
    }

    fn add_all(&mut self, answered: impl Iterator<Item = Answered>) {
        let late_min_ns = self.clock.model_ns(LATE_MIN_REAL_NS);
        for Answered { timing, at } in answered {
            let at = self.clock.at(at);
            let Some(due_at) = timing.due_at else {
                self.add(&timing, 0);
                continue;
            };
            self.add(&timing, at - timing.arrived);
            let lateness_ns = at - due_at;
            self.lateness.saturating_record(lateness_ns);
            self.statistics.late_ns += lateness_ns.saturating_sub(late_min_ns);
            let service_ns = due_at - timing.submitted;
            if lateness_ns > late_min_ns.max((LATE_SHARE * service_ns as f64) as u64) {
                self.statistics.late_requests += 1;
            }
        }
    }

    fn add(&mut self, timing: &Timing, latency_ns: u64) {
        let operation = match timing.operation {
            Operation::Read => &mut self.statistics.read,
            Operation::Write => &mut self.statistics.write,
            Operation::Flush => &mut self.statistics.flush,
            Operation::Discard | Operation::WriteZeroes => &mut self.statistics.discard,
        };
        operation.count += 1;
        operation.bytes += timing.size_bytes;
        operation.latency_ns += latency_ns;
    }
}

fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(histogram, &mut bytes).expect("writing to memory");
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes)
}

#[cfg(test)]
mod tests {
    use spindle_model::{Completion, Counters, PowerCut};

    use super::*;
    use crate::statistics::FloorCost;

    /// Answers at once, and shares when requests were sent.
    struct Sent {
        waiting: VecDeque<Completion>,
        sent: Arc<Mutex<Vec<Instant>>>,
    }

    impl Device for Sent {
        fn size_bytes(&self) -> u64 {
            1 << 20
        }
        fn submit_late(&mut self, sent: Instant, _now: Instant, request: Request) -> Instant {
            self.sent.lock().unwrap().push(sent);
            self.waiting.push_back(Completion { id: request.id, at: sent, outcome: Outcome::Success });
            sent
        }
        fn poll_at(&self) -> Option<Instant> {
            self.waiting.front().map(|first| first.at)
        }
        fn poll(&mut self, _now: Instant) -> Option<Completion> {
            self.waiting.pop_front()
        }
        fn power_cut(&mut self, _now: Instant) -> PowerCut {
            PowerCut::default()
        }
        fn counters(&self) -> Counters {
            Counters::default()
        }
    }

    #[track_caller]
    fn check_sent(dilation: &str, k: u64) {
        const FLOOR_REAL_NS: u64 = 100 * MILLISECOND;
        let sent = Arc::new(Mutex::new(Vec::new()));
        let device = Sent { waiting: VecDeque::new(), sent: sent.clone() };
        let driver = Driver::unattended(Box::new(device), dilation.parse().unwrap(), |(), _| ());
        let cost = FloorCost { alone_ns: FLOOR_REAL_NS, each_other_ns: 0 };
        driver.set_floor(Floor { idle: cost, busy: cost });
        assert_eq!(driver.statistics().floor.idle.alone_ns, FLOOR_REAL_NS / k);
        let read = || {
            let mut due = Vec::new();
            driver.accept(Operation::Read, 0, 4096, (), &mut due);
            assert_eq!(due.len(), 1);
            let timing = due[0].timing;
            assert_eq!(Some(timing.submitted), timing.due_at);
            (timing.submitted, timing.arrived)
        };
        std::thread::sleep(Duration::from_nanos(2 * FLOOR_REAL_NS));
        let (first, first_arrived) = read();
        assert_eq!(first.0, first_arrived.0 - FLOOR_REAL_NS / k);
        // That answer was due 100 ms ago, but it was given just now: a floor that is too high changes
        // nothing.
        let high = FloorCost { alone_ns: 2 * FLOOR_REAL_NS, each_other_ns: 0 };
        driver.set_floor(Floor { idle: high, busy: high });
        let (second, second_arrived) = read();
        if second_arrived.0 - first_arrived.0 <= FOLLOWS_WITHIN_REAL_NS / k {
            assert_eq!(second, first);
        }
        std::thread::sleep(Duration::from_nanos(3 * FLOOR_REAL_NS));
        let (third, third_arrived) = read();
        assert_eq!(third.0, third_arrived.0 - 2 * FLOOR_REAL_NS / k);
        assert_eq!(*sent.lock().unwrap(), [first, second, third]);
    }

    #[test]
    fn a_request_was_sent_a_floor_ago_but_not_before_the_answer_that_it_follows() {
        check_sent("1", 1);
    }

    #[test]
    fn under_dilation_the_floor_is_as_long_in_real_time_and_a_kth_in_model_time() {
        check_sent("4", 4);
    }

    #[track_caller]
    fn check_late(dilation: &str, excused_ns: u64) {
        let device = Sent { waiting: VecDeque::new(), sent: Arc::default() };
        let driver = Driver::unattended(Box::new(device), dilation.parse().unwrap(), |(), _| ());
        let mut due = Vec::new();
        driver.accept(Operation::Read, 0, 4096, (), &mut due);
        std::thread::sleep(Duration::from_millis(1));
        driver.record(due.iter().map(|due| due.timing));
        // It was due when it arrived, so all of its latency is lateness.
        let Statistics { read, late_ns, late_requests, .. } = driver.statistics();
        assert_eq!((late_ns, late_requests), (read.latency_ns - excused_ns, 1), "k = {dilation}");
    }

    #[test]
    fn the_path_excuses_50_us_of_real_time() {
        check_late("1", 50_000);
        check_late("4", 12_500);
    }

    #[track_caller]
    fn check_trace(dilation: &str, k: u64) {
        const PAUSE_REAL: Duration = Duration::from_millis(20);
        let device = Sent { waiting: VecDeque::new(), sent: Arc::default() };
        let driver = Driver::unattended(Box::new(device), dilation.parse().unwrap(), |(), _| ());
        let write = |offset_bytes: u64| {
            driver.accept(Operation::Write, offset_bytes, 4096, (), &mut Vec::new());
        };
        write(0);
        assert!(driver.take_trace().is_none());
        let begun = std::time::Instant::now();
        driver.begin_trace(Recorder::new(1 << 20, 1 << 16).unwrap());
        write(1 << 12);
        driver.set_timing(false);
        write(2 << 12);
        driver.set_timing(true);
        std::thread::sleep(PAUSE_REAL);
        write(3 << 12);
        driver.end_trace();
        let most_ns = begun.elapsed().as_nanos() as u64 / k;
        write(4 << 12);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.trace");
        driver.take_trace().unwrap().write(&path).unwrap();
        let trace = crate::trace::read(&path).unwrap();
        let offsets: Vec<u64> = trace.requests.iter().map(|request| request.offset_bytes).collect();
        assert_eq!((offsets, trace.is_complete), (vec![1 << 12, 3 << 12], true));
        let least_ns = PAUSE_REAL.as_nanos() as u64 / k;
        let [first, last] = [0, 1].map(|index| trace.requests[index].at.0);
        // Times are rounded down to 100 ns.
        assert!(last - first + 100 >= least_ns && trace.duration_ns <= most_ns, "k = {k}: {trace:?}");
        assert!(driver.take_trace().is_none());
    }

    #[test]
    fn a_trace_has_the_timed_requests_between_its_begin_and_its_end_in_model_time() {
        check_trace("1", 1);
        check_trace("4", 4);
    }

    #[test]
    fn the_wait_for_an_event_is_k_times_as_long_and_that_of_the_floors_measurement_is_not() {
        let device = Constant { size_bytes: 1 << 20, delay_ns: SECOND, waiting: VecDeque::new() };
        let check = |delay_real_ns: Option<u64>, expect: Duration| {
            let driver = Driver::unattended(Box::new(device.clone()), "4".parse().unwrap(), |(), _| ());
            driver.set_delay_real_ns(delay_real_ns);
            let begun = std::time::Instant::now();
            driver.accept(Operation::Read, 0, 4096, (), &mut Vec::new());
            let (wait, _) = driver.next_due().expect("a request is in flight");
            assert!(wait <= expect && wait + begun.elapsed() >= expect, "{wait:?}, not {expect:?}");
        };
        check(None, Duration::from_secs(4));
        check(Some(100 * MILLISECOND), Duration::from_millis(100));
    }
}
