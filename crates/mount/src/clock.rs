//! Real time as model time: a k-th of the time on CLOCK_MONOTONIC since the disk came up.
//!
//! This is the only place that converts. A number of nanoseconds with `real` in its name is on or of
//! CLOCK_MONOTONIC; every other one is model time.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use spindle_base::dilation::Dilation;
use spindle_model::{Instant, SECOND};

/// A moment on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RealInstant {
    real_ns: u64,
}

impl RealInstant {
    /// The earliest moment, for a timer that expires at once.
    pub(crate) const FIRST: RealInstant = RealInstant { real_ns: 1 };

    pub(crate) fn now() -> RealInstant {
        let time = clock_gettime(ClockId::Monotonic);
        RealInstant { real_ns: time.tv_sec as u64 * SECOND + time.tv_nsec as u64 }
    }

    pub(crate) fn after(self, real: Duration) -> RealInstant {
        RealInstant { real_ns: self.real_ns.saturating_add(whole_ns(real)) }
    }

    /// For an absolute timer.
    pub(crate) fn timespec(self) -> Timespec {
        Timespec { tv_sec: (self.real_ns / SECOND) as i64, tv_nsec: (self.real_ns % SECOND) as _ }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    dilation: Dilation,
    /// One moment in either time: power-on, or the latest change of the dilation.
    real_origin: RealInstant,
    model_origin: Instant,
}

impl Clock {
    pub(crate) fn start(dilation: Dilation) -> Clock {
        Clock { dilation, real_origin: RealInstant::now(), model_origin: Instant::ZERO }
    }

    pub(crate) fn dilation(&self) -> Dilation {
        self.dilation
    }

    pub(crate) fn now(&self) -> Instant {
        self.at(RealInstant::now())
    }

    /// The model time of a moment; the origin's if it was earlier.
    pub(crate) fn at(&self, moment: RealInstant) -> Instant {
        self.model_origin + self.model_ns(moment.real_ns.saturating_sub(self.real_origin.real_ns))
    }

    /// The moment of a model time.
    pub(crate) fn real(&self, instant: Instant) -> RealInstant {
        self.real_origin.after(self.real_duration(instant - self.model_origin))
    }

    /// How long a real time is in the model.
    pub(crate) fn model_ns(&self, real_ns: u64) -> u64 {
        whole_ns(self.dilation.dilated(Duration::from_nanos(real_ns)))
    }

    /// How long a model time really takes.
    pub(crate) fn real_duration(&self, model_ns: u64) -> Duration {
        self.dilation.real(Duration::from_nanos(model_ns))
    }

    /// From `moment` on, model time passes at another pace. It neither jumps nor goes back.
    pub(crate) fn set_dilation(&mut self, dilation: Dilation, moment: RealInstant) {
        *self = Clock { dilation, model_origin: self.at(moment), real_origin: moment };
    }
}

/// Saturates after 584 years.
fn whole_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: RealInstant = RealInstant { real_ns: 1_000 * SECOND };

    fn clock(dilation: &str) -> Clock {
        let dilation = dilation.parse().unwrap();
        Clock { dilation, real_origin: ORIGIN, model_origin: Instant::ZERO }
    }

    fn after_origin(real_ns: u64) -> RealInstant {
        RealInstant { real_ns: ORIGIN.real_ns + real_ns }
    }

    #[test]
    fn model_time_is_a_kth_of_real_time_and_back() {
        let check = |dilation: &str, real_ns: u64, model_ns: u64| {
            let clock = clock(dilation);
            assert_eq!(clock.at(after_origin(real_ns)), Instant(model_ns), "k = {dilation}");
            assert_eq!(clock.real(Instant(model_ns)), after_origin(real_ns), "k = {dilation}");
        };
        check("1", 86_400 * SECOND + 1, 86_400 * SECOND + 1);
        check("4", 40_000_000, 10_000_000);
        check("2.5", 25, 10);
        check("64", 640 * SECOND, 10 * SECOND);
    }

    #[test]
    fn an_event_in_the_far_future_stays_there() {
        for dilation in ["1", "64"] {
            let timespec = clock(dilation).real(Instant::FAR_FUTURE).timespec();
            assert!(timespec.tv_sec > 100 * 365 * 86_400, "k = {dilation}: {timespec:?}");
        }
    }

    #[test]
    fn a_change_of_the_dilation_changes_the_pace_of_model_time_and_not_its_present() {
        let mut clock = clock("4");
        clock.set_dilation("2".parse().unwrap(), after_origin(8 * SECOND));
        assert_eq!(clock.at(after_origin(8 * SECOND)), Instant(2 * SECOND));
        assert_eq!(clock.at(after_origin(10 * SECOND)), Instant(3 * SECOND));
        assert_eq!(clock.real(Instant(3 * SECOND)), after_origin(10 * SECOND));
        // An answer from just before the change, counted after it.
        assert_eq!(clock.at(after_origin(7 * SECOND)), Instant(2 * SECOND));
    }
}
