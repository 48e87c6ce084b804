//! Damage that the consistency conditions of TPC-C must see, in words that every database understands.

use spindle_load::sql::connect;
use spindle_load::{Check, Endpoint, Workload};

/// A name, the damage, how it is undone, and the conditions that it must violate. In a database of two
/// warehouses.
const CASES: [(&str, &str, &str, &[&str]); 14] = [
    (
        "4.3.3",
        "UPDATE stock SET s_w_id = 99 WHERE s_w_id = 1 AND s_i_id = 5",
        "UPDATE stock SET s_w_id = 1 WHERE s_w_id = 99",
        &["4.3.3"],
    ),
    (
        "4.3.3, a whole warehouse",
        "UPDATE warehouse SET w_id = 99 WHERE w_id = 2",
        "UPDATE warehouse SET w_id = 2 WHERE w_id = 99",
        &["4.3.3"],
    ),
    (
        "3.3.2.1",
        "UPDATE warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 2",
        "UPDATE warehouse SET w_ytd = w_ytd - 0.01 WHERE w_id = 2",
        &["3.3.2.1 ", "3.3.2.8 "],
    ),
    (
        "3.3.2.2",
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 10",
        "UPDATE district SET d_next_o_id = d_next_o_id - 1 WHERE d_w_id = 1 AND d_id = 10",
        &["3.3.2.2 "],
    ),
    (
        "3.3.2.3",
        "DELETE FROM new_orders WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 2500",
        "INSERT INTO new_orders (no_w_id, no_d_id, no_o_id) VALUES (1, 1, 2500)",
        &["3.3.2.3 ", "3.3.2.5 ", "3.3.2.11 "],
    ),
    (
        "3.3.2.4",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 2 AND o_d_id = 3 AND o_id = 17",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_w_id = 2 AND o_d_id = 3 AND o_id = 17",
        &["3.3.2.4 ", "3.3.2.6 "],
    ),
    (
        "3.3.2.5",
        "UPDATE orders SET o_carrier_id = 1 WHERE o_w_id = 1 AND o_d_id = 4 AND o_id = 3000",
        "UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 4 AND o_id = 3000",
        &["3.3.2.5 ", "3.3.2.7 "],
    ),
    (
        "3.3.2.6 where 3.3.2.4 still holds",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + CASE WHEN o_id = 17 THEN 1 ELSE -1 END WHERE o_w_id = 2 AND o_d_id = 3 AND o_id IN (17, 18)",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt - CASE WHEN o_id = 17 THEN 1 ELSE -1 END WHERE o_w_id = 2 AND o_d_id = 3 AND o_id IN (17, 18)",
        &["3.3.2.6 "],
    ),
    (
        "3.3.2.7",
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1",
        "UPDATE order_line SET ol_delivery_d = '2026-01-01' WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1",
        &["3.3.2.7 "],
    ),
    (
        "3.3.2.8",
        "UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 1; UPDATE district SET d_ytd = d_ytd + 1 WHERE d_w_id = 1 AND d_id = 1",
        "UPDATE warehouse SET w_ytd = w_ytd - 1 WHERE w_id = 1; UPDATE district SET d_ytd = d_ytd - 1 WHERE d_w_id = 1 AND d_id = 1",
        &["3.3.2.8 ", "3.3.2.9 "],
    ),
    (
        "3.3.2.9 where 3.3.2.1 and 3.3.2.8 still hold",
        "UPDATE district SET d_ytd = d_ytd + CASE WHEN d_id = 1 THEN 1 ELSE -1 END WHERE d_w_id = 1 AND d_id IN (1, 2)",
        "UPDATE district SET d_ytd = d_ytd - CASE WHEN d_id = 1 THEN 1 ELSE -1 END WHERE d_w_id = 1 AND d_id IN (1, 2)",
        &["3.3.2.9 "],
    ),
    (
        "3.3.2.10",
        "UPDATE customer SET c_balance = c_balance + 1, c_ytd_payment = c_ytd_payment - 1 WHERE c_w_id = 2 AND c_d_id = 2 AND c_id = 2",
        "UPDATE customer SET c_balance = c_balance - 1, c_ytd_payment = c_ytd_payment + 1 WHERE c_w_id = 2 AND c_d_id = 2 AND c_id = 2",
        &["3.3.2.10 "],
    ),
    (
        "3.3.2.11",
        "UPDATE customer SET c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = 2 AND c_d_id = 2 AND c_id = 2",
        "UPDATE customer SET c_delivery_cnt = c_delivery_cnt - 1 WHERE c_w_id = 2 AND c_d_id = 2 AND c_id = 2",
        &["3.3.2.11 "],
    ),
    (
        "3.3.2.12",
        "UPDATE customer SET c_ytd_payment = c_ytd_payment + 0.01 WHERE c_w_id = 2 AND c_d_id = 10 AND c_id = 3000",
        "UPDATE customer SET c_ytd_payment = c_ytd_payment - 0.01 WHERE c_w_id = 2 AND c_d_id = 10 AND c_id = 3000",
        &["3.3.2.12 "],
    ),
];

/// The conditions that do not hold, with their details.
pub(crate) fn violations(workload: &dyn Workload, endpoint: &Endpoint) -> Vec<String> {
    let checks = workload.verify(endpoint).unwrap();
    assert_eq!(checks.len(), 13);
    let failed = checks.into_iter().filter(|check| !check.passed);
    failed.map(|Check { name, detail, .. }| format!("{name}: {detail}")).collect()
}

/// Each case violates its conditions and no others. Afterwards the database is whole again.
#[track_caller]
pub(crate) fn check_every_planted_violation(workload: &dyn Workload, endpoint: &Endpoint) {
    let mut session = connect(endpoint).unwrap();
    for (name, damage, repair, expect) in CASES {
        for statement in damage.split("; ") {
            let prepared = session.prepare(statement).unwrap();
            assert!(session.run(prepared, &[]).unwrap() > 0, "{name}: nothing was damaged");
        }
        let found = violations(workload, endpoint);
        for condition in expect {
            assert!(found.iter().any(|violation| violation.starts_with(condition)), "{name}: {found:?}");
        }
        // The warehouse that vanished takes conditions on its other tables with it.
        assert!(found.len() == expect.len() || name.contains("whole"), "{name} violates more: {found:?}");
        repair.split("; ").for_each(|statement| session.execute(statement).unwrap());
    }
    assert_eq!(violations(workload, endpoint), Vec::<String>::new());
}
