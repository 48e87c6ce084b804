//! The prior use of a drive. It is no layer: it sets the state of the stack below before the first request.

pub use crate::device::Ageing;
use crate::device::{Built, Device};
use crate::layers::{LayerParameters, Told, take};

impl LayerParameters for Ageing {
    fn summary(&self, below: &[Told<'_>]) -> String {
        format!(
            "{} Used: filled to {} %, then overwritten at random by {} % of its size.",
            below[0].summary, self.fill_percent, self.overwrite_percent
        )
    }

    fn only_prepares(&self) -> bool {
        true
    }

    fn build(&self, below: Vec<Box<dyn Device>>, _size_bytes: u64, _seed: u64) -> Built {
        let [mut device] = take(below);
        device.set_use(Some(self));
        Ok(device)
    }
}
