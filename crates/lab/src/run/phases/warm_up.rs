//! The phase that ends when the server's cache is warm.

use std::time::Duration;

use anyhow::Result;

use super::Phases;
use crate::observe::warmth::Warmth;
use crate::run::client::ClientProcess;
use crate::volume::mounts::Mounts;

impl Phases<'_> {
    /// Lets the load run until the cache is warm, or for this long of the trial's time.
    pub(in crate::run) fn until_warm(
        &self,
        client: &mut ClientProcess,
        at_most: Duration,
        warmth: &mut Warmth,
        mounts: &mut Mounts,
    ) -> Result<()> {
        self.publisher.bound_phase(at_most);
        self.watch_until(client, at_most, &mut |second| Ok(warmth.second(second, &mounts.samples()?)))
    }
}
