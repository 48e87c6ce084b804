//! The matrix of a scenario: which combinations are cells.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file::SettingValue;

pub(super) mod sweep;

pub use sweep::{Variants, place_of_setting};

/// Names in the order of the cells. The first of each axis belongs to the baseline of comparisons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Matrix {
    /// Stacks. Leave it out if the matrix has layouts.
    #[serde(default)]
    #[schemars(example = ["hdd-7200", "ebs-gp3"])]
    pub stack: Vec<String>,
    /// Layouts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = ["log-apart"])]
    pub layout: Vec<String>,
    /// Servers. Leave it out if the scenario has no servers.
    #[serde(default)]
    #[schemars(example = ["mariadb"])]
    pub server: Vec<String>,
    /// Workloads.
    #[schemars(example = ["tpcc"])]
    pub workload: Vec<String>,
    /// Any further key: values of a key of the workloads, or of a setting of the servers. The names of the
    /// variants state them, so they are not in the hash.
    #[serde(flatten, skip_serializing)]
    pub(super) sweeps: BTreeMap<String, Vec<SettingValue>>,
}
