//! Statements that write, over three servers: afterwards these have what one server has.

use crate::in_check_all;
use crate::query_support::*;

/// All rows that the statements here can change.
const FACTS: &str = "SELECT id, day_id, carrier, price, note FROM fact WHERE id > 19000 ORDER BY id";
const PARTS: &str = "SELECT id, day_id, carrier, price, note FROM parts WHERE id > 19000 ORDER BY id, day_id";
const DAYS: &str =
    "SELECT dow, COUNT(*), SUM(day_id), COUNT(fact.id) FROM dim JOIN fact USING (day_id) GROUP BY dow";

#[track_caller]
fn check(bench: &mut Bench) {
    bench.check_over(FACTS, Over::Shards);
    bench.check_over(PARTS, Over::Shards);
    bench.check_over(DAYS, Over::Shards);
}

#[test]
fn rows_go_to_the_servers_of_their_keys() {
    let Some(mut bench) = in_check_all(bench) else { return };
    bench.write("INSERT INTO fact (id, day_id, note) VALUES (90001, 1, 'a'), (90002, 2, 'it''s (b), '), (90003, 3, NULL), (90004, 4, 'd')");
    bench.write("INSERT INTO fact SET id = 90005, day_id = 5, carrier = 'AA'");
    // The primary key has the day.
    bench.write("INSERT INTO parts (day_id, id) VALUES (5, 90005), (6, 90006), (5, 90005) ON DUPLICATE KEY UPDATE note = 'twice'");
    bench.write("REPLACE INTO parts (id, day_id, price) VALUES (90005, 5, 7.5), (90007, 7, 8.25)");
    check(&mut bench);
    bench.write("UPDATE fact SET price = price + 1, note = CONCAT(note, '!') WHERE id > 19000");
    bench.write("UPDATE fact SET carrier = 'Z' WHERE day_id IN (1, 4)");
    bench.write("DELETE FROM fact WHERE day_id = 3 AND id > 90000");
    bench.write("DELETE FROM fact WHERE id BETWEEN 19500 AND 19900");
    check(&mut bench);
}

#[test]
fn a_reference_table_is_changed_on_each_server() {
    let Some(mut bench) = in_check_all(bench) else { return };
    bench.write("INSERT INTO dim VALUES (17, '2010-01-17', 2010, 1)");
    bench.write("UPDATE dim SET dow = dow + 10 WHERE year = 2011");
    bench.write("DELETE FROM dim WHERE year = 2013");
    check(&mut bench);
    // Copies that differ are noticed when the table is read.
    bench.write("ALTER TABLE dim ADD COLUMN stamp DATETIME(6)");
    bench.write("UPDATE dim SET stamp = NOW(6) WHERE dow = 3");
    check(&mut bench);
}

#[test]
fn a_statement_that_fails_on_one_server_has_done_nothing() {
    let Some(mut bench) = in_check_all(bench) else { return };
    // Day 2 is on the last server, and its row is there already.
    bench.write("INSERT INTO fact (id, day_id) VALUES (90002, 2)");
    let words =
        bench.refused_write("INSERT INTO fact (id, day_id) VALUES (90000, 3), (90001, 1), (90002, 2)");
    assert!(words.contains("Duplicate entry") && words.contains("shard2"), "{words}");
    check(&mut bench);
    // In a transaction, what was before it stays.
    bench.write("BEGIN");
    bench.write("INSERT INTO fact (id, day_id) VALUES (90010, 3), (90011, 4)");
    bench.refused_write("INSERT INTO fact (id, day_id) VALUES (90000, 3), (90001, 1), (90002, 2)");
    bench.write("COMMIT");
    check(&mut bench);
}

#[test]
fn a_transaction_is_one_on_each_server() {
    let Some(mut bench) = in_check_all(bench) else { return };
    bench.write("START TRANSACTION");
    bench.write("DELETE FROM fact WHERE id > 19990");
    bench.write("SAVEPOINT some");
    bench.write("UPDATE fact SET note = 'x' WHERE id > 19980");
    bench.write("ROLLBACK TO SAVEPOINT some");
    bench.write("INSERT INTO fact (id, day_id) VALUES (90001, 1), (90002, 2)");
    let words = bench.refused_write("SELECT COUNT(*) FROM fact");
    assert!(words.contains("each server has a part of the transaction"), "{words}");
    bench.write("COMMIT");
    check(&mut bench);
    bench.write("BEGIN");
    bench.write("DELETE FROM fact WHERE id > 19000");
    bench.write("ROLLBACK");
    check(&mut bench);
}

#[test]
fn what_one_server_would_do_otherwise_is_refused() {
    let Some(mut bench) = in_check_all(bench) else { return };
    for (statement, reason) in [
        ("INSERT INTO fact SELECT * FROM none", "its rows come from a query"),
        ("INSERT INTO fact (id) VALUES (1)", "it gives no value of day_id"),
        ("UPDATE fact SET day_id = 1 WHERE id = 5", "would be on another server"),
        ("DELETE FROM fact ORDER BY id LIMIT 5", "a LIMIT is of all servers together"),
        ("UPDATE dim SET dow = RAND() * 7", "RAND"),
        ("REPLACE INTO fact (id, day_id) VALUES (5, 1)", "a unique key without day_id"),
        ("DELETE fact FROM fact JOIN dim USING (day_id)", ""),
    ] {
        let words = bench.refused_write(statement);
        assert!(
            words.contains("this is not answered over several servers, because") && words.contains(reason),
            "{words}"
        );
    }
    check(&mut bench);
}
