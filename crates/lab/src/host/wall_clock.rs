//! Whether somebody set the clock of the machine. Figures come from the monotonic clock, which cannot be set;
//! times of day in a record are of the wall clock.

use std::time::{Instant, SystemTime};

/// A clock may be a little off until time synchronisation steps it.
const BEARABLE_S: f64 = 0.5;
/// The kernel slews a clock by at most 500 parts per million (adjtimex(2)).
const SLEW: f64 = 0.001;

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    wall: SystemTime,
    monotonic: Instant,
}

impl Clocks {
    pub fn now() -> Clocks {
        Clocks { wall: SystemTime::now(), monotonic: Instant::now() }
    }

    /// By how many seconds the wall clock has jumped since then; negative if it was set back. The monotonic
    /// clock stands still while the machine sleeps, so that is a jump, too.
    pub fn jump_s(&self) -> Option<f64> {
        let now = Clocks::now();
        let wall_s = match now.wall.duration_since(self.wall) {
            Ok(forward) => forward.as_secs_f64(),
            Err(back) => -back.duration().as_secs_f64(),
        };
        jump_s(wall_s, (now.monotonic - self.monotonic).as_secs_f64())
    }
}

fn jump_s(wall_s: f64, monotonic_s: f64) -> Option<f64> {
    let jump_s = wall_s - monotonic_s;
    (jump_s.abs() > BEARABLE_S + SLEW * monotonic_s).then_some(jump_s)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_that_was_set_has_jumped_and_one_that_is_slewed_has_not() {
        assert_eq!(jump_s(3660.0, 60.0), Some(3600.0));
        assert_eq!(jump_s(-3540.0, 60.0), Some(-3600.0));
        assert_eq!(jump_s(60.03, 60.0), None);
        assert_eq!(jump_s(3601.8, 3600.0), None);
        assert_eq!(jump_s(0.0, 0.0), None);
    }

    #[test]
    fn a_jump_is_measured_against_the_monotonic_clock() {
        let Clocks { wall, monotonic } = Clocks::now();
        assert_eq!(Clocks { wall, monotonic }.jump_s(), None);
        let set_forward = Clocks { wall: wall - Duration::from_secs(3600), monotonic };
        assert!((set_forward.jump_s().unwrap() - 3600.0).abs() < 60.0);
        let set_back = Clocks { wall: wall + Duration::from_secs(3600), monotonic };
        assert!((set_back.jump_s().unwrap() + 3600.0).abs() < 60.0);
    }
}
