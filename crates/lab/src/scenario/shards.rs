//! Databases over several servers: what a scenario must not ask of them.

use spindle_base::Mistake;
use spindle_load::Target;

use super::fit::reserved_bytes;
use super::{Bounds, Scenario};
use crate::server::{Kind, catalog};
use spindle_base::near;

/// Whether each of several servers can have storage and processes of its own.
fn can_be_sharded(kind: &Kind) -> bool {
    kind.starts_processes && kind.targets.contains(&Target::Mysql)
}

/// Checks the workloads of the matrix whose database is on several servers ([`spindle_load::Declared::shards`]).
pub(super) fn check(scenario: &Scenario, bounds: &Bounds) -> Result<(), Mistake> {
    for workload in &scenario.matrix.workload {
        let count = scenario.workloads[workload].shards();
        if count < 2 {
            continue;
        }
        let wrong = |words: String| Err(Mistake::at(format!("workloads.{workload}.shards"), words));
        for name in &scenario.matrix.server {
            let spec = &scenario.servers[name];
            if !can_be_sharded(spec.facts()) {
                let able = near::list(&catalog::names_where(can_be_sharded));
                return wrong(format!(
                    "server `{name}` is of kind = \"{}\"; servers that hold a database together are {able}",
                    spec.kind
                ));
            }
            if spec.replication.is_some() {
                return wrong(format!("server `{name}` has replicas; a server of several has none"));
            }
            let of_one = reserved_bytes(&spec.settings, &spec.server().memory_settings());
            let bytes = of_one.saturating_mul(count.into());
            if bytes > bounds.memory_bytes {
                return wrong(format!(
                    "{count} servers `{name}` reserve {} MiB of memory, more than this machine's {} MiB",
                    bytes >> 20,
                    bounds.memory_bytes >> 20
                ));
            }
        }
        let mut stacks = scenario.stacks_in_use().into_iter();
        if let Some(stack) = stacks.find(|stack| scenario.stacks[*stack].real().is_some()) {
            return wrong(format!("`{stack}` is a real disk, which {count} servers cannot share"));
        }
        if scenario.run.recovery {
            return wrong("`run.recovery` kills one server; leave one of the two out".to_owned());
        }
    }
    Ok(())
}
