//! The smallest workload: no server, known answers; tests everything above it in milliseconds.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub terminals: u32,
    /// Mean time of one transaction.
    pub latency_us: u64,
}
