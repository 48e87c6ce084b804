//! The inside of an emulated stack: the requests of each layer and device.

use itertools::Itertools as _;
use serde::Serialize;
use spindle_stats::mean;

use crate::record::{LayerView, Measurement};
use crate::report::format;

/// One layer or device, as means over the trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerActivity {
    /// Layers above it.
    pub depth: u32,
    pub name: String,
    pub reads_per_s: f64,
    pub writes_per_s: f64,
    pub flushes_per_s: f64,
    pub read_mb_per_s: f64,
    pub write_mb_per_s: f64,
}

pub(in crate::report) const HEADS: [&str; 6] =
    ["layer", "reads /s", "writes /s", "flushes /s", "MB/s read", "MB/s written"];

impl LayerActivity {
    /// In the order of [`HEADS`].
    pub fn fields(&self) -> [String; 6] {
        let indent = "\u{a0}\u{a0}".repeat(self.depth as usize);
        let numbers = [
            self.reads_per_s,
            self.writes_per_s,
            self.flushes_per_s,
            self.read_mb_per_s,
            self.write_mb_per_s,
        ];
        let [reads, writes, flushes, read_mb, write_mb] = numbers.map(format::number);
        [format!("{indent}{}", self.name), reads, writes, flushes, read_mb, write_mb]
    }
}

/// Empty for a bare drive, a real one, and in earlier records.
pub(super) fn layers<'a>(
    trials: impl Iterator<Item = (&'a Measurement, &'a [LayerView])>,
) -> Vec<LayerActivity> {
    let trials = trials.filter(|(measurement, _)| measurement.duration_s > 0.0).collect_vec();
    let Some((_, first)) = trials.first() else { return Vec::new() };
    let layer = |(place, layer): (usize, &LayerView)| {
        let per_s = |amount: fn(&LayerView) -> u64, unit: f64| {
            let of_trial = |(measurement, layers): &(&Measurement, &[LayerView])| {
                Some(amount(layers.get(place)?) as f64 / unit / measurement.duration_s)
            };
            mean(&trials.iter().filter_map(of_trial).collect_vec()).unwrap_or_default()
        };
        LayerActivity {
            depth: layer.depth,
            name: layer.name.clone(),
            reads_per_s: per_s(|layer| layer.reads, 1.0),
            writes_per_s: per_s(|layer| layer.writes, 1.0),
            flushes_per_s: per_s(|layer| layer.flushes, 1.0),
            read_mb_per_s: per_s(|layer| layer.read_bytes, 1e6),
            write_mb_per_s: per_s(|layer| layer.write_bytes, 1e6),
        }
    };
    first.iter().enumerate().map(layer).collect()
}
