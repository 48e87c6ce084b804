//! The phase that ends when the load is steady.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{Phases, sample};
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
        let mut earlier = look()?;
        self.watch_until(client, at_most + LAST_SECOND, &mut |second| {
            let now = look()?;
            let is_steady = watch.second(second, [&earlier, &now]);
            earlier = now;
            Ok(is_steady)
        })?;
        let needed = self.time.clock.dilation.dilated(begun.elapsed());
        Ok(watch.end(needed.min(at_most), at_most))
    }
}
