//! Means over the trials of a cell.

use itertools::Itertools as _;
use serde::{Serialize, de::DeserializeOwned};
use spindle_stats::mean;

/// Mean of every number of a flat structure, over the trials that have one. Texts are taken from the first
/// trial. The detour through JSON covers fields that are added to the record later.
pub(super) fn average<T: DeserializeOwned>(parts: impl Iterator<Item = impl Serialize>) -> Option<T> {
    let parts = parts.map(|part| serde_json::json!(part)).collect_vec();
    let mut result = parts.first()?.clone();
    for (key, slot) in result.as_object_mut()? {
        let values = parts.iter().filter_map(|part| part[key].as_f64()).collect_vec();
        if let Some(mean) = mean(&values) {
            *slot = if slot.is_u64() { (mean.round() as u64).into() } else { mean.into() };
        }
    }
    serde_json::from_value(result).ok()
}
