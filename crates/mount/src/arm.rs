//! The real-time arm of a raw workload: the same [`ClosedLoop`] as in virtual time, on a device driven in
//! real time in this process, without FUSE.
//!
//! [`ClosedLoop`]: spindle_model::ClosedLoop

use std::io;
use std::sync::mpsc::{Receiver, channel};

use spindle_base::dilation::Dilation;
use spindle_model::{Completion, Device, Instant, Outcome, Request, RequestId};

use crate::clock::Clock;
use crate::driver::Driver;
use crate::realtime;
use crate::statistics::Statistics;

#[derive(Debug)]
pub struct RealTime {
    driver: Driver<RequestId>,
    completed: Receiver<Completion>,
    clock: Clock,
    in_flight: u64,
}

impl RealTime {
    /// # Errors
    /// The kernel refuses a timer or a thread.
    pub fn start(device: Box<dyn Device>, dilation: Dilation) -> io::Result<RealTime> {
        let clock = Clock::start(dilation);
        let (sender, completed) = channel();
        let driver = Driver::start(device, dilation, move |id, outcome: Outcome| {
            // Fails only after the receiver is gone, when nothing waits for it any more.
            let _ = sender.send(Completion { id, at: clock.now(), outcome });
        })?;
        realtime::set_timer_slack();
        Ok(RealTime { driver, completed, clock, in_flight: 0 })
    }

    pub fn statistics(&self) -> Statistics {
        self.driver.statistics()
    }
}

impl spindle_model::Driver for RealTime {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn submit(&mut self, request: Request) {
        self.in_flight += 1;
        self.driver.submit(request.operation, request.offset_bytes, request.size_bytes, request.id);
    }

    fn wait(&mut self) -> Option<Completion> {
        if self.in_flight == 0 {
            return None;
        }
        self.in_flight -= 1;
        Some(self.completed.recv().expect("the driver outlives its requests"))
    }
}
