//! The proof that a server lives in dilated time: it is asked to sleep for a second of its own, and the real
//! clock looks on.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use spindle_base::dilation::Dilation;
use spindle_load::Endpoint;
use spindle_load::sql;

/// How far the server's clock may be from the trial's. Where time passes faster, this is a share of a real second,
/// because what wakes late is this machine.
const TOLERANCE: f64 = 0.02;
/// A sleep ends late on busy cores, so the shortest of a few counts.
const ATTEMPTS: u32 = 3;

/// Sleeps beside the warm-up.
pub(super) struct Probe {
    dilation: Dilation,
    asleep: JoinHandle<Result<Duration>>,
}

impl Probe {
    /// `None` where there is nothing to prove: without dilation, or without a server with a clock.
    pub(super) fn start(endpoint: &Endpoint, dilation: Dilation) -> Option<Probe> {
        if dilation.is_none() || !endpoint.is_server() {
            return None;
        }
        let endpoint = endpoint.clone();
        Some(Probe { dilation, asleep: std::thread::spawn(move || second(&endpoint, dilation)) })
    }

    /// # Errors
    /// The server's second is not the trial's.
    pub(super) fn end(self) -> Result<()> {
        let slept = self.asleep.join().map_err(|_| anyhow!("the probe of the server's clock panicked"))??;
        let seen = self.dilation.dilated_s(slept.as_secs_f64());
        ensure!(
            is_a_second(slept, self.dilation),
            "the server's clock does not run in dilated time: its sleep of 1 s took {seen:.3} s of the trial's time \
             (dilation {}); nothing of this trial counts",
            self.dilation
        );
        Ok(())
    }
}

/// Whether this real duration is a second of the trial's time.
fn is_a_second(real: Duration, dilation: Dilation) -> bool {
    const SECOND: Duration = Duration::from_secs(1);
    real.abs_diff(dilation.real(SECOND)) <= dilation.patience(SECOND).mul_f64(TOLERANCE)
}

/// The real duration of a second's sleep of the server.
fn second(endpoint: &Endpoint, dilation: Dilation) -> Result<Duration> {
    let mut session = sql::connect(endpoint)?;
    let Some(sleep) = session.dialect().sleep_for_a_second() else {
        return Ok(dilation.real(Duration::from_secs(1)));
    };
    let mut shortest = Duration::MAX;
    for _ in 0..ATTEMPTS {
        let began = Instant::now();
        session.read(sleep)?;
        shortest = shortest.min(began.elapsed());
        if is_a_second(shortest, dilation) {
            break;
        }
    }
    Ok(shortest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tolerance_is_2_percent_and_20_ms_where_time_passes_faster() {
        for (k, real_ms, expect) in [
            (4.0, 4_079, true),
            (4.0, 4_081, false),
            (4.0, 1_000, false),
            (0.25, 269, true),
            (0.25, 271, false),
        ] {
            let (real, dilation) = (Duration::from_millis(real_ms), Dilation::new(k).unwrap());
            assert_eq!(is_a_second(real, dilation), expect, "{real:?} at {k}");
        }
    }
}
