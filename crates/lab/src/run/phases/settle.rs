//! The phase that ends when the load is steady.

use std::time::{Duration, Instant};

use anyhow::Result;
use spindle_load::Second;

use super::{Phases, WATCH_STEP, sample};
use crate::observe::settling::Watch;
use crate::record::Settling;
use crate::run::client::ClientProcess;
use crate::run::further::Further;
use crate::server::Running;
use crate::stack::layout::Layout;
use crate::volume::mounts::Mounts;

/// The figures of the last second arrive a moment after its end.
const LAST_SECOND: Duration = Duration::from_secs(1);

impl Phases<'_> {
    /// Lets the load run until it is steady, or for this long of the trial's time. Every second is sampled as
    /// those of the window are, so that the window finds the load that it will have.
    pub(in crate::run) fn settle(
        &self,
        client: &mut ClientProcess,
        at_most: Duration,
        layout: &Layout,
        mounts: &mut Mounts,
        further: &mut Further<'_>,
        running: &mut dyn Running,
    ) -> Result<Settling> {
        self.publisher.bound_phase(at_most);
        let mut watch = Watch::begin(layout, running.telemetry());
        let mut look = || sample(self.interrupt, &self.time, mounts, further, running);
        let begun = Instant::now();
        let end = begun + self.time.real_time_of(at_most + LAST_SECOND);
        let mut earlier = look()?;
        let mut failure = None;
        let mut is_steady = false;
        let mut on_second = |second: &Second| {
            self.progress.tick();
            self.publisher.second_of_clients(second);
            match look() {
                Ok(now) => {
                    is_steady = watch.second(second, [&earlier, &now]);
                    earlier = now;
                }
                Err(error) => failure = Some(error),
            }
            is_steady || failure.is_some()
        };
        let mut is_over = false;
        while !is_over && Instant::now() < end {
            self.interrupt.check()?;
            let left = end.saturating_duration_since(Instant::now());
            client.watch(left.min(WATCH_STEP), &mut |second| is_over = is_over || on_second(second))?;
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        let needed = self.time.clock.dilation.dilated(begun.elapsed());
        Ok(watch.end(needed.min(at_most), at_most))
    }
}
