//! Every OLTP script under the real load process, on any server, and the foreign tools beside them.

use std::collections::BTreeMap;
use std::time::Duration;

use spindle_base::histogram::decode;
use spindle_load::workloads::mysqlslap::{self, LoadType};
use spindle_load::workloads::oltp::{Distribution, Script, Spec};
use spindle_load::workloads::sysbench;
use spindle_load::{Endpoint, RunSpec, WorkloadSpec};

use crate::server_support::{has_metric, has_seconds, measure_until, ready_client};

const SEED: u64 = 20_261_122;

/// The tool itself: its database passes the checks of the native workload.
pub(crate) fn check_the_tool(endpoint: &Endpoint) {
    for (script, distribution) in [
        (Script::ReadWrite, Distribution::Uniform),
        (Script::Insert, Distribution::Special),
        (Script::Delete, Distribution::Pareto),
    ] {
        let workload = WorkloadSpec::Sysbench(sysbench::Spec {
            script,
            tables: 2,
            rows: 2_000,
            distribution,
            terminals: 4,
            autocommit: false,
            program: "sysbench".into(),
        });
        let spec = RunSpec::new(endpoint.clone(), workload, SEED);
        let workload = spec.workload.build().unwrap();
        workload.load(endpoint, SEED, &mut |_| Ok(())).unwrap();
        let mut client = ready_client(&spec);
        client.watch(Duration::from_millis(200), &mut |_| {}).unwrap();
        let (summary, seconds) = measure_until(&mut client, Duration::from_secs(2), has_seconds).unwrap();
        client.stop().unwrap();
        let kind = &summary.kinds[0];
        assert!(kind.committed > 0 && summary.client_cpu_s > 0.0, "{script:?}: {summary:?}");
        assert_eq!(decode(&kind.histogram).unwrap().len(), kind.committed, "{script:?}");
        // The tool prints its last second only when a transaction ends after it.
        assert!((1..=2).contains(&seconds.len()), "{script:?}: {seconds:?}");
        assert!(
            seconds.iter().all(|second| second.transactions <= kind.committed),
            "{script:?}: {seconds:?}"
        );
        assert!(seconds.iter().any(|second| second.transactions > 0), "{script:?}: {seconds:?}");
        let checks = workload.verify(endpoint).unwrap();
        assert!(checks.len() == 3 && checks.iter().all(|check| check.passed), "{script:?}: {checks:?}");
    }
}

pub(crate) fn check_every_script(endpoint: &Endpoint) {
    let mut is_loaded = false;
    for script in Script::ALL {
        let workload = WorkloadSpec::Oltp(Spec {
            script,
            tables: 2,
            rows: 20_000,
            distribution: Distribution::Pareto,
            rand_zipfian_exp: None,
            terminals: 4,
            autocommit: false,
            point_selects: 10,
            range_size: 100,
            rate: None,
        });
        let spec = RunSpec::new(endpoint.clone(), workload, SEED);
        let workload = spec.workload.build().unwrap();
        // The next script loads again after `insert`, which adds rows.
        if !std::mem::replace(&mut is_loaded, script != Script::Insert) {
            workload.load(endpoint, SEED, &mut |_| Ok(())).unwrap();
        }
        let mut client = ready_client(&spec);
        let (summary, _) = measure_until(&mut client, Duration::from_millis(500), has_metric).unwrap();
        client.stop().unwrap();
        assert_eq!(summary.errors, BTreeMap::new(), "{script:?}");
        assert!(summary.metric.value > 0.0, "{script:?}");
        let checks = workload.verify(endpoint).unwrap();
        assert!(checks.len() == 3 && checks.iter().all(|check| check.passed), "{script:?}: {checks:?}");
    }
}

/// MariaDB's client, with generated statements.
pub(crate) fn check_mysqlslap(endpoint: &Endpoint) {
    let run = |load_type: LoadType, engine: &str| {
        let engine = engine.to_owned();
        let program = "mariadb-slap".into();
        let workload =
            mysqlslap::Spec { load_type, terminals: 3, queries: 100, engine, autoincrement: false, program };
        let spec = RunSpec::new(endpoint.clone(), WorkloadSpec::Mysqlslap(workload), SEED);
        let mut client = ready_client(&spec);
        let (summary, _) = measure_until(&mut client, Duration::from_secs(1), has_metric)?;
        client.stop().unwrap();
        assert!(spec.workload.build().unwrap().verify(endpoint).unwrap()[0].passed);
        anyhow::Ok(summary)
    };
    let mixed = run(LoadType::Mixed, "innodb").unwrap();
    // Three clients share a hundred queries: each has the whole part of its share.
    assert!(mixed.kinds[0].committed > 0 && mixed.kinds[0].committed.is_multiple_of(99), "{mixed:?}");
    assert!(mixed.metric.value > 0.0 && mixed.client_cpu_s > 0.0, "{mixed:?}");
    let error = format!("{:#}", run(LoadType::Key, "innodb").unwrap_err());
    assert!(error.contains("Can't perform key test without a primary key"), "{error}");
    let error = format!("{:#}", run(LoadType::Write, "bogus").unwrap_err());
    assert!(error.contains("Unknown storage engine 'bogus'"), "{error}");
}
