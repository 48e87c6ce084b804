//! The prior use of a drive. It is no layer: it sets the state of the stack below before the first request.

use crate::declare;
use crate::device::{Built, Device};
use crate::layers::{LayerParameters, Told, take};

declare! {
    /// Prior use of a drive: filled from its start, then overwritten at random.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Ageing {
        /// Share of the device that holds data.
        pub fill_percent: u64 = Percent "fill" in 0..=100, default 100;
        /// Bytes overwritten within that share, in percent of the whole device. At 300, a full drive is
        /// overwritten three times, and uniform overwrites reach a steady state.
        pub overwrite_percent: u64 = Percent "overwrite" in 0..=10_000, default 300;
        /// Seed of the overwritten places.
        pub seed: u64 = Count "seed", default 1;
    }
}

impl LayerParameters for Ageing {
    fn summary(&self, below: &[Told<'_>]) -> String {
        format!(
            "{} Used: filled to {} %, then overwritten at random by {} % of its size.",
            below[0].summary, self.fill_percent, self.overwrite_percent
        )
    }

    fn build(&self, below: Vec<Box<dyn Device>>, _size_bytes: u64, _seed: u64) -> Built {
        let [mut device] = take(below);
        device.set_use(Some(self));
        Ok(device)
    }
}
