//! The verification of a trial: the twelve consistency conditions over all warehouses. Must not know how the
//! database was filled or changed.

mod conditions;
mod facts;

use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, anyhow};

use crate::protocol::Endpoint;
use crate::sql::connect;
use crate::workload::Check;
use crate::workload::Violations;
use conditions::CONDITIONS;
use facts::{add_history, read_history, read_warehouse};
use spindle_base::text::plural;

/// Enough to keep two cores busy. More connections would compete for a small buffer pool.
const CONNECTIONS: usize = 2;

pub(super) fn verify(endpoint: &Endpoint, warehouses: u32) -> Result<Vec<Check>> {
    let history = read_history(&mut *connect(endpoint)?).context("reading the history table")?;
    let next = AtomicU32::new(1);
    let check_warehouses = || -> Result<Vec<Violations>> {
        let mut session = connect(endpoint)?;
        let mut all = vec![Violations::default(); CONDITIONS.len()];
        loop {
            let id = next.fetch_add(1, Ordering::Relaxed);
            if id > warehouses {
                return Ok(all);
            }
            let mut warehouse =
                read_warehouse(&mut *session, id).with_context(|| format!("reading warehouse {id}"))?;
            add_history(&mut warehouse, &history);
            for (violations, (_, condition)) in all.iter_mut().zip(CONDITIONS) {
                violations.add(condition(&warehouse).into_iter().collect());
            }
        }
    };
    let mut total = vec![Violations::default(); CONDITIONS.len()];
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(check_warehouses)).collect();
        threads.into_iter().try_for_each(|thread| {
            let part = thread.join().map_err(|_| anyhow!("a verifying thread panicked"))??;
            total.iter_mut().zip(part).for_each(|(total, part)| total.add(part));
            anyhow::Ok(())
        })
    })?;

    let place = plural(warehouses as usize, "warehouse");
    let checks = CONDITIONS.iter().zip(total).map(|((name, _), violations)| violations.check(name, &place));
    Ok(checks.collect())
}
