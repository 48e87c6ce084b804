//! A layer that adds faults to the device below: slow requests, stuck requests, read errors, and a lying
//! FLUSH.
//!
//! Faults are added to the behaviour of the device below, in this order: the extra time of a dying drive
//! (serialised, because retries block the whole drive), a spike (delays one request), a stall (blocks all
//! completions), a stuck request.
//!
//! A lying FLUSH completes without being passed to the device below, and FUA is stripped from writes. A power
//! cut therefore loses writes that the host takes for durable. Real drives have shown this: Zheng et al.,
//! "Understanding the robustness of SSDs under power fault" (FAST'13).

mod parameters;
#[cfg(test)]
mod tests;

use parameters::MILLION;
pub use parameters::{Dying, FaultParameters, ReadErrors, Spikes, Stalls, Stuck};

use crate::children::{Child, in_host_terms};
use crate::device::{Ageing, Counters, Device, PowerCut};
use crate::layers::LayerParameters;
use crate::parameter::Invalid;
use crate::request::{Completion, Operation, Outcome, Request, RequestId};
use crate::requests::{Requests, Slot};
use crate::rng::Rng;
use crate::time::{Instant, SECOND};

/// The faults of a request, drawn at submission.
#[derive(Debug, Clone, Copy)]
struct Plan {
    slot: Slot,
    extra_ns: u64,
    fails: bool,
    stuck: bool,
}

#[derive(Debug)]
pub struct Fault {
    parameters: FaultParameters,
    rng: Rng,
    requests: Requests,
    below: Child<Plan>,
    submitted: u64,
    /// Reads completed since the drive began to fail.
    reads: u64,
    /// When the dying drive finishes the previous request.
    free_at: Instant,
    /// Completed below, and withheld until a reset of the device.
    stuck: Option<Slot>,
}

impl Fault {
    /// # Errors
    /// Parameters rejected by [`FaultParameters::validate`].
    pub fn new(parameters: FaultParameters, seed: u64, below: Box<dyn Device>) -> Result<Fault, Invalid> {
        parameters.validate()?;
        Ok(Fault {
            parameters,
            rng: Rng::new(seed),
            requests: Requests::default(),
            below: Child::new(below),
            submitted: 0,
            reads: 0,
            free_at: Instant::ZERO,
            stuck: None,
        })
    }

    /// The host times out and resets the device. A request that is stuck forever fails. Returns its id.
    pub fn reset(&mut self, now: Instant) -> Option<RequestId> {
        self.advance(now);
        let slot = self.stuck.take()?;
        self.requests.finish_as(now, slot, Outcome::Failure);
        Some(self.requests.get(slot).request.id)
    }

    fn plan(&mut self, slot: Slot, request: Request) -> Plan {
        let mut plan = Plan { slot, extra_ns: 0, fails: false, stuck: false };
        if let Some(Spikes { per_million, extra_ns }) = self.parameters.spikes
            && self.rng.below(MILLION) < per_million
        {
            plan.extra_ns += extra_ns;
        }
        if request.operation == Operation::Read {
            let errors = &self.parameters.read_errors;
            let touches = |&(offset_bytes, size_bytes): &(u64, u64)| {
                request.offset_bytes < offset_bytes.saturating_add(size_bytes)
                    && offset_bytes < request.end_bytes()
            };
            let is_unlucky = errors.per_million > 0 && self.rng.below(MILLION) < errors.per_million;
            plan.fails = is_unlucky || errors.ranges.iter().any(touches);
            if plan.fails {
                plan.extra_ns += errors.recovery_ns;
            }
        }
        plan.stuck = self.parameters.stuck.is_some_and(|stuck| stuck.after_requests == self.submitted);
        plan
    }

    fn advance(&mut self, now: Instant) {
        while let Some(at) = self.below.poll_at().filter(|&at| at <= now) {
            while let Some((plan, completion)) = self.below.poll(at) {
                self.complete(plan, completion);
            }
        }
    }

    fn complete(&mut self, plan: Plan, completion: Completion) {
        let outcome = if plan.fails { Outcome::Failure } else { completion.outcome };
        let mut at = self.after_dying(completion.at, plan.slot) + plan.extra_ns;
        if let Some(Stalls { period_ns, duration_ns }) = self.parameters.stalls {
            let into_period_ns = at.0 % period_ns;
            if at.0 >= period_ns && into_period_ns < duration_ns {
                at = at + (duration_ns - into_period_ns);
            }
        }
        match self.parameters.stuck {
            Some(Stuck { duration_ns: Some(duration_ns), .. }) if plan.stuck => at = at + duration_ns,
            Some(Stuck { duration_ns: None, .. }) if plan.stuck => {
                self.stuck = Some(plan.slot);
                return;
            }
            _ => {}
        }
        self.requests.finish_as(at, plan.slot, outcome);
    }

    fn after_dying(&mut self, at: Instant, slot: Slot) -> Instant {
        let Some(dying) = self.parameters.dying else { return at };
        let Some(elapsed_ns) = at.0.checked_sub(dying.starts_at_ns) else { return at };
        let by_time = u128::from(dying.extra_ns_per_s) * u128::from(elapsed_ns) / u128::from(SECOND);
        let extra_ns = by_time as u64 + dying.extra_ns_per_read * self.reads;
        self.reads += u64::from(self.requests.get(slot).request.operation == Operation::Read);
        self.free_at = self.free_at.max(at) + extra_ns;
        self.free_at
    }
}

impl Device for Fault {
    fn size_bytes(&self) -> u64 {
        self.below.size_bytes()
    }

    fn submit_late(&mut self, sent: Instant, now: Instant, request: Request) -> Instant {
        self.advance(now);
        let slot = self.requests.accept(sent, request, self.below.size_bytes());
        let plan = self.plan(slot, request);
        self.submitted += 1;
        let lost_ns = match self.parameters.lying_flush_ns {
            Some(flush_ns) if request.operation == Operation::Flush => {
                let at = now + flush_ns;
                self.complete(plan, Completion { id: request.id, at, outcome: Outcome::Success });
                now - sent
            }
            Some(_) => self.below.pass_on(sent, Request { force_unit_access: false, ..request }, plan),
            None => self.below.pass_on(sent, request, plan),
        };
        self.advance(now);
        sent + lost_ns
    }

    fn poll_at(&self) -> Option<Instant> {
        self.requests.next_finished_at().into_iter().chain(self.below.poll_at()).min()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.advance(now);
        self.requests.collect(now)
    }

    fn power_cut(&mut self, now: Instant) -> PowerCut {
        self.advance(now);
        let writes = in_host_terms(self.below.power_cut(now), &self.requests);
        self.requests.reset();
        self.stuck = None;
        self.free_at = now;
        PowerCut { writes }
    }

    fn counters(&self) -> Counters {
        self.requests.counters.over([self.below.counters()])
    }

    fn age(&mut self, ageing: &Ageing) {
        self.below.age(ageing);
    }

    fn secure_erase(&mut self) {
        self.below.secure_erase();
    }
}
