//! A device that takes no time: the floor of a driver, and the smallest device to copy for a new one.
//!
//! # Divergence
//! No such drive exists. Every write is durable at once, so a power cut takes nothing that was acknowledged.

use crate::commands::Commands;
use crate::declare;
use crate::device::{Counters, Device, Fate, PowerCut, WriteFate};
use crate::parameter::Invalid;
use crate::profile::DeviceParameters;
use crate::request::{Completion, Operation, Request};
use crate::time::Instant;

declare! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct NullParameters {}
}

impl DeviceParameters for NullParameters {
    const KIND: &'static str = "null";

    fn capacity_bytes(&self) -> Option<u64> {
        None
    }

    fn build(&self, size_bytes: u64, _seed: u64) -> Result<Box<dyn Device>, Invalid> {
        Ok(Box::new(Null::new(size_bytes)))
    }
}

#[derive(Debug)]
pub struct Null {
    size_bytes: u64,
    commands: Commands,
}

impl Null {
    pub fn new(size_bytes: u64) -> Null {
        Null { size_bytes, commands: Commands::default() }
    }
}

impl Device for Null {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn submit(&mut self, now: Instant, request: Request) {
        let slot = self.commands.accept(now, request, self.size_bytes);
        self.commands.finish(now, slot);
    }

    fn poll_at(&self) -> Option<Instant> {
        self.commands.next_finished_at()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.commands.collect(now)
    }

    fn power_cut(&mut self, _now: Instant) -> PowerCut {
        // Done, but nobody was told: the write is there.
        let writes = self
            .commands
            .outstanding()
            .into_iter()
            .filter(|command| command.request.operation == Operation::Write)
            .map(|command| WriteFate {
                id: command.request.id,
                offset_bytes: command.request.offset_bytes,
                size_bytes: command.request.size_bytes,
                acknowledged: false,
                fate: Fate::Kept,
            })
            .collect();
        self.commands.reset();
        PowerCut { writes }
    }

    fn counters(&self) -> Counters {
        self.commands.counters
    }
}
