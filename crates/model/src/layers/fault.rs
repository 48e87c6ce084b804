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

use crate::device::{Device, WriteFate};
use crate::layered::{Base, Layered};
use crate::layers::LayerParameters;
use crate::parameter::Invalid;
use crate::request::{Completion, Operation, Outcome, Request, RequestId};
use crate::requests::{Slot, Submitted};
use crate::rng::Rng;
use crate::time::{Instant, SECOND};

/// The faults of a request, drawn at submission.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    slot: Slot,
    extra_ns: u64,
    fails: bool,
    stuck: bool,
}

#[derive(Debug)]
pub struct Fault {
    parameters: FaultParameters,
    rng: Rng,
    base: Base<Plan>,
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
            base: Base::over(below),
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
        self.base.requests.finish_as(now, slot, Outcome::Failure);
        Some(self.base.requests.get(slot).request.id)
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

    fn after_dying(&mut self, at: Instant, slot: Slot) -> Instant {
        let Some(dying) = self.parameters.dying else { return at };
        let Some(elapsed_ns) = at.0.checked_sub(dying.starts_at_ns) else { return at };
        let by_time = u128::from(dying.extra_ns_per_s) * u128::from(elapsed_ns) / u128::from(SECOND);
        let extra_ns = by_time as u64 + dying.extra_ns_per_read * self.reads;
        self.reads += u64::from(self.base.requests.get(slot).request.operation == Operation::Read);
        self.free_at = self.free_at.max(at) + extra_ns;
        self.free_at
    }
}

impl Layered for Fault {
    type Purpose = Plan;

    fn base(&self) -> &Base<Plan> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<Plan> {
        &mut self.base
    }

    fn begin(&mut self, now: Instant, slot: Slot) {
        let Submitted { mut request, arrived_at, .. } = *self.base.requests.get(slot);
        let plan = self.plan(slot, request);
        self.submitted += 1;
        match self.parameters.lying_flush_ns {
            Some(flush_ns) if request.operation == Operation::Flush => {
                let completion = Completion { id: request.id, at: now + flush_ns, outcome: Outcome::Success };
                self.complete(now, plan, completion);
                self.base.requests.note_lost(slot, now - arrived_at);
                return;
            }
            Some(_) => request.force_unit_access = false,
            None => {}
        }
        self.base.pass_on(arrived_at, 0, slot, request, plan);
    }

    fn complete(&mut self, _at: Instant, plan: Plan, completion: Completion) {
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
        self.base.requests.finish_as(at, plan.slot, outcome);
    }

    fn cut(&mut self, now: Instant) -> Vec<WriteFate> {
        self.stuck = None;
        self.free_at = now;
        self.base.cut_below(now)
    }
}
