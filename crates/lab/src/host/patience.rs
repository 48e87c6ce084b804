//! Waits that end. Whoever is waited for may stand still: a server that was stopped, an emulator under it, a
//! tool. Then the trial is a failed row that says who did not answer.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::host::interrupt::{Interrupt, Interrupted};
use spindle_base::text;

/// How often a wait looks up.
const POLL: Duration = Duration::from_millis(20);
/// After a signal: for work that ends soon, because what it needs was killed.
const GRACE: Duration = Duration::from_secs(10);

/// For work on a database of this size, which nothing does slower than at 1 MiB a second.
pub fn for_data(least: Duration, size_bytes: u64) -> Duration {
    least + Duration::from_secs(size_bytes >> 20)
}

/// A wait for work that somebody else may never let end.
#[derive(Debug, Clone, Copy)]
pub struct Wait<'a> {
    pub patience: Duration,
    /// Who is waited for, in sentences.
    pub who: &'a str,
    /// Ends the wait too.
    pub interrupt: Option<&'a Interrupt>,
}

impl Wait<'_> {
    /// Does `work` on a thread of its own, and leaves it behind when the time is over: it ends with what it
    /// waits for, at the latest with this process.
    ///
    /// # Errors
    /// That of `work`; nobody answered in time.
    pub fn for_work<T: Send + 'static>(self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        self.for_work_with(|| (), work)
    }

    /// As [`Wait::for_work`]; `meanwhile` is called again and again.
    pub fn for_work_with<T: Send + 'static>(
        self,
        mut meanwhile: impl FnMut(),
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, result) = channel();
        let named = std::thread::Builder::new().name(format!("waits for {}", self.who));
        named
            .spawn(move || {
                // Nobody listens any more to work that was left behind.
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
