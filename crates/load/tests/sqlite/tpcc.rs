//! TPC-C: the same statements as on a server, checked by the same conditions.

use spindle_load::WorkloadSpec;
use spindle_load::workloads::tpcc::{Preset, Spec};

use crate::{Database, TERMINALS};

const TRANSACTIONS: usize = 400;

#[test]
fn the_conditions_hold_after_a_load_and_a_run_and_find_a_planted_violation() {
    let database = Database::loaded(WorkloadSpec::Tpcc(Spec::new(1, TERMINALS)));
    database.check_failed(&[]);
    for outcomes in database.outcomes(TRANSACTIONS) {
        let committed = outcomes.iter().filter(|(_, outcome)| !outcome.rolled_back).count();
        assert!(committed > TRANSACTIONS * 95 / 100, "{committed}");
    }
    database.check_failed(&[]);
    assert!(database.number("SELECT COUNT(*) FROM orders") > 30_000);

    database.execute("UPDATE warehouse SET w_ytd = w_ytd + 0.01");
    let names: Vec<String> = database.violations().into_iter().map(|check| check.name).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names[0].starts_with("3.3.2.1 ") && names[1].starts_with("3.3.2.8 "), "{names:?}");
}

#[test]
fn the_preset_of_tpcc_mysql_has_its_indexes_and_stays_consistent() {
    let spec = Spec { preset: Some(Preset::TpccMysql), ..Spec::new(1, TERMINALS) };
    let database = Database::loaded(WorkloadSpec::Tpcc(spec));
    let indexes = "SELECT COUNT(*) FROM sqlite_schema WHERE name IN ('stock_by_item', 'order_line_by_stock')";
    assert_eq!(database.number(indexes), 2);
    database.run(TRANSACTIONS);
    database.check_failed(&[]);
}
