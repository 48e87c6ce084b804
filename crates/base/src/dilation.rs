//! Time dilation: time passes k times slower for everything but the processor, so that the cores look k times
//! as fast (Gupta et al., "To infinity and beyond: time-warped network emulation", NSDI 2006). With k below 1 time
//! passes faster, the cores look slower, and what waits for a slow device ends sooner.
//!
//! Devices, clients and servers live in dilated time, which is real time from an origin on, divided by k.
//! Servers and clients are told the origin by the environment, because the preload library (`crates/dilate`)
//! shows them the dilated clock.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// k: 1/4 to 64.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64")]
pub struct Dilation(f64);

/// It is never NaN.
impl Eq for Dilation {}

impl Dilation {
    /// Dilated time is real time.
    pub const NONE: Dilation = Dilation(1.0);
    /// Below it the way to the emulator would take most of a fast device's time.
    pub const LEAST: f64 = 0.25;
    pub const MOST: f64 = 64.0;

    /// # Errors
    /// Out of bounds, as a sentence for after the key.
    pub fn new(factor: f64) -> Result<Dilation, String> {
        if (Dilation::LEAST..=Dilation::MOST).contains(&factor) {
            return Ok(Dilation(factor));
        }
        Err(format!("{factor} is out of range; it can be {} to {}", Dilation::LEAST, Dilation::MOST))
    }

    pub fn factor(self) -> f64 {
        self.0
    }

    pub fn is_none(&self) -> bool {
        *self == Dilation::NONE
    }

    /// How long a dilated duration takes.
    pub fn real(self, dilated: Duration) -> Duration {
        // Exactly the same without dilation.
        if self.is_none() { dilated } else { dilated.mul_f64(self.0) }
    }

    /// How long to wait on the clock for what a dilated duration suffices for. Where time passes faster, the
    /// processor's part of it does not.
    pub fn patience(self, dilated: Duration) -> Duration {
        self.real(dilated).max(dilated)
    }

    /// How long a real duration seems in dilated time.
    pub fn dilated(self, real: Duration) -> Duration {
        if self.is_none() { real } else { real.div_f64(self.0) }
    }

    /// As [`Dilation::dilated`], for seconds, also those of the processor: emulated cores are k times as
    /// fast.
    pub fn dilated_s(self, real_s: f64) -> f64 {
        real_s / self.0
    }
}

impl Default for Dilation {
    fn default() -> Dilation {
        Dilation::NONE
    }
}

impl Display for Dilation {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl TryFrom<f64> for Dilation {
    type Error = String;

    fn try_from(factor: f64) -> Result<Dilation, String> {
        Dilation::new(factor)
    }
}

impl FromStr for Dilation {
    type Err = String;

    fn from_str(text: &str) -> Result<Dilation, String> {
        let factor = text.parse().map_err(|_| format!("`{text}` is not a number; write for example 4"))?;
        Dilation::new(factor)
    }
}

/// The environment variable that the preload library reads: k, and the origin in nanoseconds on
/// CLOCK_MONOTONIC and CLOCK_REALTIME.
pub const VARIABLE: &str = "SPINDLE_DILATION";

/// The time of one trial.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    pub dilation: Dilation,
    origin: Instant,
    /// The origin on CLOCK_MONOTONIC, and since 1970.
    origin_ns: [u128; 2],
}

impl Clock {
    /// Dilated and real time are the same now.
    pub fn start(dilation: Dilation) -> Clock {
        let monotonic = clock_gettime(ClockId::Monotonic);
        let monotonic = Duration::new(monotonic.tv_sec as u64, monotonic.tv_nsec as u32);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { dilation, origin: Instant::now(), origin_ns: [monotonic.as_nanos(), since_1970.as_nanos()] }
    }

    /// Dilated time since the start.
    pub fn now(&self) -> Duration {
        self.dilation.dilated(self.origin.elapsed())
    }

    /// The value of [`VARIABLE`].
    pub fn environment(&self) -> String {
        let [monotonic, since_1970] = self.origin_ns;
        format!("{} {monotonic} {since_1970}", self.dilation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dilated_second_takes_k_seconds() {
        let four = Dilation::new(4.0).unwrap();
        assert_eq!(four.real(Duration::from_secs(1)), Duration::from_secs(4));
        assert_eq!(four.dilated(Duration::from_secs(4)), Duration::from_secs(1));
        assert_eq!(four.dilated_s(4.0), 1.0);
        let half = Dilation::new(0.5).unwrap();
        assert_eq!(half.real(Duration::from_secs(4)), Duration::from_secs(2));
        assert_eq!(half.dilated(Duration::from_secs(2)), Duration::from_secs(4));
        assert_eq!([four, half].map(|k| k.patience(Duration::from_secs(4)).as_secs()), [16, 4]);
    }

    #[test]
    fn the_bounds_are_told() {
        let check = |text: &str, expect| assert_eq!(text.parse::<Dilation>(), expect, "{text}");
        check("4", Dilation::new(4.0));
        check("2.5", Dilation::new(2.5));
        check("0.5", Dilation::new(0.5));
        check("0.2", Err("0.2 is out of range; it can be 0.25 to 64".to_owned()));
        check("65", Err("65 is out of range; it can be 0.25 to 64".to_owned()));
        check("NaN", Err("NaN is out of range; it can be 0.25 to 64".to_owned()));
        check("fast", Err("`fast` is not a number; write for example 4".to_owned()));
    }

    #[test]
    fn a_clock_runs_k_times_slower_from_its_start() {
        let clock = Clock::start(Dilation::new(10.0).unwrap());
        std::thread::sleep(Duration::from_millis(50));
        let (real, dilated) = (clock.origin.elapsed(), clock.now());
        assert!(dilated >= Duration::from_millis(5) && dilated <= real / 5, "{dilated:?} of {real:?}");
        assert!(clock.environment().starts_with("10 "), "{}", clock.environment());
    }
}
