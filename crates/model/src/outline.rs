//! The devices and layers of a stack as a list: a layer before what is below it.

use crate::device::{Counters, Device};
use crate::layers::{Below, Layer};
use crate::stack::{Branch, StackSpec};

/// A device or a layer in a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Layers above it.
    pub depth: u32,
    /// Its kind; with its number in an array, or with the key of its layer's table: `disk 2`, `flash (log)`.
    pub name: String,
}

impl StackSpec {
    /// The places of a running device of this stack, in the order of [`counters_of_all`].
    pub fn outline(&self) -> Vec<Place> {
        let mut places = Vec::new();
        self.add_to(&mut places, 0, "");
        places
    }

    fn add_to(&self, places: &mut Vec<Place>, depth: u32, suffix: &str) {
        match self {
            StackSpec::Device(parameters) => {
                places.push(Place { depth, name: format!("{}{suffix}", parameters.kind()) });
            }
            StackSpec::Layer(layer, below) if layer.only_prepares() => {
                below.iter().for_each(|branch| branch.stack.add_to(places, depth, suffix));
            }
            StackSpec::Layer(layer, below) => {
                places.push(Place { depth, name: format!("{}{suffix}", layer.name()) });
                for (index, Branch { stack, .. }) in below.iter().enumerate() {
                    stack.add_to(places, depth + 1, &suffix_of(layer, index));
                }
            }
        }
    }
}

/// What tells a stack below a layer from its neighbours.
fn suffix_of(layer: &Layer, index: usize) -> String {
    let kinds = Layer::kinds();
    let kind = kinds.iter().find(|kind| kind.names[0] == layer.name());
    let (is_array, below) = kind.map_or((false, &[][..]), |kind| (kind.is_array, kind.below));
    match below.get(index) {
        _ if is_array => format!(" {}", index + 1),
        Some(Below { key, .. }) if *key != Below::ON.key => format!(" ({key})"),
        _ => String::new(),
    }
}

/// The counters of a device and of all below it, in the order of [`StackSpec::outline`].
pub fn counters_of_all(device: &dyn Device) -> Vec<Counters> {
    let below = device.below().into_iter().flat_map(counters_of_all);
    std::iter::once(device.counters()).chain(below).collect()
}
