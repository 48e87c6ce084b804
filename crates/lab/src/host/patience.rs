//! Waits with a time limit. A server, the emulator under it or a tool may hang. The trial then becomes a
//! failed row that names the one that did not answer.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::host::interrupt::{Interrupt, Interrupted};
use spindle_base::text;

/// Interval between checks of a wait.
const POLL: Duration = Duration::from_millis(20);
/// Time after a signal for work that ends soon because its process was killed.
const GRACE: Duration = Duration::from_secs(10);

/// Time limit of work on a database of this size. All such work is faster than 1 MiB a second.
pub fn for_data(least: Duration, size_bytes: u64) -> Duration {
    least + Duration::from_secs(size_bytes >> 20)
}

/// A wait for work that may never end.
#[derive(Debug, Clone, Copy)]
pub struct Wait<'a> {
    pub patience: Duration,
    /// The awaited party, as a noun for messages.
    pub who: &'a str,
    /// Its signal ends the wait too.
    pub interrupt: Option<&'a Interrupt>,
}

impl Wait<'_> {
    /// Runs `work` on a thread of its own, and abandons it after the time limit. The thread ends when its
    /// work ends, at the latest with this process.
    ///
    /// # Errors
    /// The error of `work`, or no answer in time.
    pub fn for_work<T: Send + 'static>(self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        self.for_work_with(|| (), work)
    }

    /// As [`Wait::for_work`], with regular calls of `meanwhile`.
    pub fn for_work_with<T: Send + 'static>(
        self,
        mut meanwhile: impl FnMut(),
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, result) = channel();
        let named = std::thread::Builder::new().name(format!("waits for {}", self.who));
        named
            .spawn(move || {
                // Fails only for abandoned work.
                let _ = sender.send(work());
            })
            .context("starting a thread")?;
        let begun = Instant::now();
        let mut interrupted_at = None;
        loop {
            match result.recv_timeout(POLL) {
                Ok(done) => {
                    meanwhile();
                    return done;
                }
                Err(RecvTimeoutError::Disconnected) => bail!("the wait for {} panicked", self.who),
                Err(RecvTimeoutError::Timeout) => meanwhile(),
            }
            if self.interrupt.is_some_and(Interrupt::is_set)
                && interrupted_at.get_or_insert_with(Instant::now).elapsed() > GRACE
            {
                return Err(Interrupted.into());
            }
            if begun.elapsed() > self.patience {
                bail!("{} did not answer within {}", self.who, text::duration(self.patience));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(patience: Duration) -> Wait<'static> {
        Wait { patience, who: "the server", interrupt: None }
    }

    #[test]
    fn work_that_ends_gives_its_result() {
        let long = Duration::from_secs(600);
        assert_eq!(wait(long).for_work(|| Ok(7)).unwrap(), 7);
        let error = wait(long).for_work::<()>(|| bail!("no")).unwrap_err();
        assert_eq!(error.to_string(), "no");
    }

    #[test]
    fn whoever_does_not_answer_is_named() {
        let forever = || -> Result<()> {
            std::thread::sleep(Duration::from_secs(3600));
            Ok(())
        };
        let error = wait(Duration::from_millis(100)).for_work(forever).unwrap_err();
        assert_eq!(error.to_string(), "the server did not answer within 100 ms");
    }

    #[test]
    fn patience_grows_with_the_data() {
        assert_eq!(for_data(Duration::from_secs(60), 0), Duration::from_secs(60));
        assert_eq!(for_data(Duration::from_secs(60), 10 << 30), Duration::from_secs(60 + 10_240));
    }
}
