//! Every OLTP script under the real load process, on any server. Shared by test binaries.
#![allow(
    unreachable_pub,
    clippy::allow_attributes,
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should panic"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use spindle_lab::client::ClientProcess;
use spindle_load::oltp::{Distribution, Script, Spec};
use spindle_load::{Endpoint, RunSpec, WorkloadSpec};

const SEED: u64 = 20_261_122;
const PATIENCE: Duration = Duration::from_secs(120);

pub fn check_every_script(endpoint: &Endpoint) {
    let mut is_loaded = false;
    for script in Script::ALL {
        let workload = WorkloadSpec::Oltp(Spec {
            script,
            tables: 2,
            rows: 20_000,
            distribution: Distribution::Pareto,
            terminals: 4,
            autocommit: false,
            point_selects: 10,
            range_size: 100,
            rate: None,
        });
        let spec = RunSpec { endpoint: endpoint.clone(), workload, seed: SEED };
        let workload = spec.workload.build().unwrap();
        // What an insert adds is none of the next script's rows.
        if !std::mem::replace(&mut is_loaded, script != Script::Insert) {
            workload.load(endpoint, SEED, &mut |_| {}).unwrap();
        }
        let mut client = ClientProcess::spawn(Path::new(env!("CARGO_BIN_EXE_spindle")), &spec).unwrap();
        client.wait_ready(PATIENCE).unwrap();
        let summary = client.measure(Duration::from_millis(500), &mut |_| {}).unwrap();
        client.stop().unwrap();
        assert_eq!(summary.errors, BTreeMap::new(), "{script:?}");
        assert!(summary.headline_value > 0.0, "{script:?}");
        let checks = workload.verify(endpoint).unwrap();
        assert!(checks.len() == 3 && checks.iter().all(|check| check.passed), "{script:?}: {checks:?}");
    }
}
