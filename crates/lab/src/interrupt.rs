//! Ctrl-C and SIGTERM: a flag that the runner looks at between steps and once a second.
//!
//! Nothing is done inside the signal handler. The runner notices, takes the client, the server and the volume down in
//! their usual order by returning, and says how to resume.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};

/// How long a signal may go unnoticed while the runner waits.
const POLL: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// The user asked to stop; not a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

impl Interrupt {
    /// Listens to SIGINT and SIGTERM from now on. The second SIGINT of an impatient user kills as usual: what it leaves
    /// behind is cleared by the next start.
    pub fn listen() -> Result<Interrupt> {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&interrupt.0))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupt.0)))
                .context("listening to signals")?;
        }
        Ok(interrupt)
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn check(&self) -> Result<(), Interrupted> {
        if self.is_set() { Err(Interrupted) } else { Ok(()) }
    }

    pub fn sleep(&self, duration: Duration) -> Result<(), Interrupted> {
        let end = Instant::now() + duration;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(POLL));
        }
    }
}
