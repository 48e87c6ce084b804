//! A change of the load.

use schemars::JsonSchema;
use serde::Deserialize;
use spindle_base::Mistake;

use super::{Change, Kind};
use crate::scenario::Scenario;
use crate::server::FOREIGN_TOOLS;

/// More is a mistake.
const TIMES_MAX: f64 = 100.0;

/// Change of the load.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct Load {
    /// From then on, so many times the workload's `rate`, or without one, its `terminals`.
    times: f64,
}

impl Kind for Load {
    fn change(&self, scenario: &Scenario) -> Result<Change, Mistake> {
        let times = self.times;
        if !(times > 0.0 && times <= TIMES_MAX) {
            let message = format!("{times} is out of range; it can be more than 0, to {TIMES_MAX}");
            return Err(Mistake::at("times", message));
        }
        let can_change = |name: &&String| {
            let workload = scenario.workloads[*name].build_with_tools(FOREIGN_TOOLS);
            workload.is_ok_and(|workload| workload.rate_per_s().is_some() || workload.takes_more_terminals())
        };
        if let Some(name) = scenario.matrix.workload.iter().find(|name| !can_change(name)) {
            let message = format!(
                "workload `{name}` of kind `{}` keeps its number of terminals",
                scenario.workloads[name].kind()
            );
            return Err(Mistake::new(message));
        }
        Ok(Change::Load { times })
    }
}
