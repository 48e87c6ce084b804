//! Time dilation: time passes k times slower for everything but the processor (Gupta et al., "To infinity and
//! beyond", NSDI 2006). A device of 10 ms then answers after k times 10 ms, and every figure is told in
//! dilated time.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The factor k: a second of dilated time takes k seconds of real time.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Dilation(f64);

impl Dilation {
    /// Dilated time is real time.
    pub const NONE: Dilation = Dilation(1.0);
    pub const HIGH: f64 = 64.0;

    /// The real time of a dilated one.
    pub fn real(self, dilated: Duration) -> Duration {
        scale(dilated, self.0)
    }

    /// The dilated time of a real one.
    pub fn dilated(self, real: Duration) -> Duration {
        scale(real, 1.0 / self.0)
    }
}

/// To the nearest nanosecond; saturates after 584 years.
fn scale(duration: Duration, factor: f64) -> Duration {
    Duration::from_nanos((duration.as_nanos() as f64 * factor).round() as u64)
}

impl Default for Dilation {
    fn default() -> Dilation {
        Dilation::NONE
    }
}

impl TryFrom<f64> for Dilation {
    type Error = String;

    fn try_from(k: f64) -> Result<Dilation, String> {
        match (1.0..=Dilation::HIGH).contains(&k) {
            true => Ok(Dilation(k)),
            false => Err(format!("is {k}, must be 1 to {}", Dilation::HIGH)),
        }
    }
}

impl From<Dilation> for f64 {
    fn from(dilation: Dilation) -> f64 {
        dilation.0
    }
}

impl FromStr for Dilation {
    type Err = String;

    fn from_str(text: &str) -> Result<Dilation, String> {
        let k = text.trim().parse::<f64>();
        k.map_err(|_| format!("`{text}` is not a number; must be 1 to {}", Dilation::HIGH))?.try_into()
    }
}

impl Display for Dilation {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_out_of_bounds_is_refused_in_one_sentence() {
        let check = |text: &str, expect: &str| assert_eq!(text.parse::<Dilation>().unwrap_err(), expect);
        check("0.5", "is 0.5, must be 1 to 64");
        check("65", "is 65, must be 1 to 64");
        check("NaN", "is NaN, must be 1 to 64");
        check("four", "`four` is not a number; must be 1 to 64");
    }

    #[test]
    fn real_time_is_k_times_as_long() {
        let dilation: Dilation = "4".parse().unwrap();
        assert_eq!(dilation.real(Duration::from_millis(10)), Duration::from_millis(40));
        assert_eq!(dilation.dilated(Duration::from_millis(40)), Duration::from_millis(10));
        assert_eq!(Dilation::NONE.real(Duration::from_nanos(7)), Duration::from_nanos(7));
    }
}
