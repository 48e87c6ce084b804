//! The proof that a server lives in dilated time: it is asked to sleep for a second of its own, and the real
//! clock looks on.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use spindle_base::dilation::Dilation;
use spindle_load::Endpoint;
use spindle_load::sql;

/// How far the server's clock may be from the trial's.
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
            is_a_second(seen),
            "the server's clock does not run in dilated time: its sleep of 1 s took {seen:.3} s of the trial's time \
             (dilation {}); nothing of this trial counts",
            self.dilation
        );
        Ok(())
    }
}

fn is_a_second(seconds: f64) -> bool {
    (seconds - 1.0).abs() <= TOLERANCE
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
        if is_a_second(dilation.dilated_s(shortest.as_secs_f64())) {
            break;
        }
    }
    Ok(shortest)
}
