//! What a settling that ends when the load is steady found.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The load between the warm-up and the measured window, looked at by a rule. Times are dilated.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct Settling {
    /// The rule, in words.
    pub rule: String,
    /// Whether the rule held before the time was over.
    pub is_steady: bool,
    /// Time that the settling took.
    pub needed_s: f64,
    /// Its bound in the scenario.
    pub at_most_s: f64,
    /// The series that the last look without success found moving. Empty if the first look found none.
    pub last_to_settle: Vec<String>,
    /// What the rule looked at, one value per second.
    pub series: BTreeMap<String, Vec<f64>>,
}
