//! TPC-C on SQLite: the same statements as on a server, checked by the same conditions.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should panic")]

use std::collections::BTreeMap;

use spindle_load::sql::{self, FromRow};
use spindle_load::workloads::tpcc;
use spindle_load::{Endpoint, Workload, WorkloadSpec};

const TRANSACTIONS: usize = 400;

fn pragmas(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_conditions_hold_after_a_load_and_after_a_run_and_see_what_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::Sqlite {
        path: directory.path().join("database"),
        pragmas: pragmas(&[("journal_mode", "WAL"), ("synchronous", "OFF")]),
    };
    let workload = WorkloadSpec::Tpcc(tpcc::Spec::new(1, 2)).build().unwrap();
    workload.load(&endpoint, 1, &mut |_| Ok(())).unwrap();
    let failed = || failed(&*workload, &endpoint);
    assert_eq!(failed(), Vec::<String>::new());

    let committed = committed(&*workload, &endpoint);
    assert!(committed.iter().all(|&count| count > TRANSACTIONS * 95 / 100), "{committed:?}");
    assert_eq!(failed(), Vec::<String>::new());
    assert!(first::<(u32,)>(&endpoint, "SELECT COUNT(*) FROM orders").0 > 30_000);

    let mut session = sql::connect(&endpoint).unwrap();
    session.execute("UPDATE warehouse SET w_ytd = w_ytd + 0.01").unwrap();
    let failed = failed();
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(failed[0].starts_with("3.3.2.1 ") && failed[1].starts_with("3.3.2.8 "), "{failed:?}");
}

#[test]
fn the_preset_of_tpcc_mysql_has_its_indexes_and_stays_consistent() {
    let directory = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::Sqlite {
        path: directory.path().join("database"),
        pragmas: pragmas(&[("journal_mode", "WAL"), ("synchronous", "OFF")]),
    };
    let spec = tpcc::Spec { preset: Some(tpcc::Preset::TpccMysql), ..tpcc::Spec::new(1, 2) };
    let workload = WorkloadSpec::Tpcc(spec).build().unwrap();
    workload.load(&endpoint, 1, &mut |_| Ok(())).unwrap();
    let indexes = "SELECT COUNT(*) FROM sqlite_schema WHERE name IN ('stock_by_item', 'order_line_by_stock')";
    assert_eq!(first::<(u32,)>(&endpoint, indexes).0, 2);
    committed(&*workload, &endpoint);
    assert_eq!(failed(&*workload, &endpoint), Vec::<String>::new());
}

/// Of two terminals.
fn committed(workload: &dyn Workload, endpoint: &Endpoint) -> Vec<usize> {
    std::thread::scope(|scope| {
        let run = |terminal| {
            let mut client = workload.connect(endpoint, terminal, 7).unwrap();
            (0..TRANSACTIONS)
                .map(|_| {
                    client.choose();
                    client.execute().unwrap()
                })
                .filter(|outcome| !outcome.rolled_back)
                .count()
        };
        let terminals: Vec<_> = (0..2).map(|terminal| scope.spawn(move || run(terminal))).collect();
        terminals.into_iter().map(|terminal| terminal.join().unwrap()).collect()
    })
}

fn failed(workload: &dyn Workload, endpoint: &Endpoint) -> Vec<String> {
    let checks = workload.verify(endpoint).unwrap();
    checks.into_iter().filter(|check| !check.passed).map(|check| check.name).collect()
}

fn first<T: FromRow>(endpoint: &Endpoint, query: &str) -> T {
    let mut session = sql::connect(endpoint).unwrap();
    let statement = session.prepare(query).unwrap();
    session.first(statement, &[]).unwrap().unwrap()
}
