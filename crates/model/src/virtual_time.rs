//! The virtual-time driver: it jumps to the time of the next event.

use crate::closed_loop::Driver;
use crate::device::Device;
use crate::request::{Completion, Request};
use crate::time::Instant;

#[derive(Debug)]
pub struct VirtualTime<D> {
    now: Instant,
    device: D,
}

impl<D: Device> VirtualTime<D> {
    pub fn new(device: D) -> VirtualTime<D> {
        VirtualTime { now: Instant::ZERO, device }
    }

    pub fn device(&self) -> &D {
        &self.device
    }

    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Advances the time. Completions stay pending until the driver waits for them.
    pub fn sleep(&mut self, nanoseconds: u64) {
        self.now = self.now + nanoseconds;
    }
}

impl<D: Device> Driver for VirtualTime<D> {
    fn now(&self) -> Instant {
        self.now
    }

    fn submit(&mut self, request: Request) {
        self.device.submit(self.now, request);
    }

    fn wait(&mut self) -> Option<Completion> {
        loop {
            if let Some(completion) = self.device.poll(self.now) {
                return Some(completion);
            }
            self.now = self.now.max(self.device.poll_at()?);
        }
    }
}
