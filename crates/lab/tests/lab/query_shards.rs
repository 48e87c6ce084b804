//! Queries over three servers against the answer of one with all rows.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use spindle_scatter::mapping::{Directory, Mapper, Mapping};
use spindle_scatter::split::Options;

use crate::in_check_all;
use crate::query_support::*;

#[test]
fn shards_join_what_is_on_one_server() {
    let Some(mut bench) = in_check_all(bench) else { return };
    let mut check = |query: &str| bench.check_over(query, Over::Shards);
    // A copy on each server, and a table that is sharded as the facts are.
    check("SELECT dow, COUNT(*), SUM(price) FROM fact JOIN dim USING (day_id) GROUP BY dow");
    check("SELECT dow, COUNT(*), SUM(price) FROM fact JOIN days USING (day_id) GROUP BY dow");
    check("SELECT COUNT(*) FROM fact, parts WHERE fact.day_id = parts.day_id AND fact.id = parts.id");
    check("SELECT COUNT(*) FROM fact f LEFT JOIN dim ON dim.day_id = f.delay");
    check("SELECT COUNT(*) FROM dim RIGHT JOIN fact ON dim.day_id = fact.day_id AND dow = 3");
    // Rows without aggregates.
    check("SELECT id, note FROM fact WHERE id < 50 ORDER BY id DESC LIMIT 5, 7");
    check("SELECT DISTINCT carrier FROM fact WHERE carrier <> 'C'");
    check("SELECT GROUP_CONCAT(id ORDER BY id) FROM fact WHERE id < 30");
    check("SELECT COUNT(*) FROM fact WHERE day_id NOT IN (SELECT day_id FROM dim WHERE year = 2012)");
    check("SELECT COUNT(*), MAX(note) FROM none");
}

#[test]
fn subqueries_over_several_servers_are_answered_first() {
    let Some(mut bench) = in_check_all(bench) else { return };
    let mut check = |query: &str| bench.check_over(query, Over::Shards);
    check("SELECT COUNT(*) FROM fact WHERE id > (SELECT AVG(id) FROM parts)");
    check("SELECT COUNT(*) FROM fact WHERE note IN (SELECT DISTINCT note FROM parts WHERE id < 100)");
    check("SELECT COUNT(*) FROM fact WHERE note NOT IN (SELECT note FROM none)");
    check("SELECT COUNT(*) FROM fact WHERE moment = (SELECT MIN(moment) FROM parts)");
    check(
        "SELECT COUNT(*) FROM fact WHERE EXISTS (SELECT 1 FROM none) OR price > (SELECT MAX(price) FROM parts) - 1",
    );
    check(
        "SELECT carrier, SUM(price) s FROM fact GROUP BY carrier HAVING s > (SELECT SUM(price) / 10 FROM fact)",
    );
    check(
        "WITH t AS (SELECT carrier, SUM(price) s FROM fact GROUP BY carrier) SELECT carrier FROM t WHERE s = (SELECT MAX(s) FROM t)",
    );
    bench.check_over("SELECT carrier, SUM(price) s FROM fact GROUP BY carrier HAVING s > (SELECT SUM(price) / 10 FROM fact)", Over::OneServer);
    bench.check_refused(
        "SELECT COUNT(*) FROM fact f WHERE price > (SELECT AVG(price) FROM parts p WHERE p.id = f.id)",
        "a subquery reads the sharded table",
    );
}

#[test]
fn what_is_on_several_servers_is_not_joined() {
    let Some(mut bench) = in_check_all(bench) else { return };
    let mut check = |query: &str, reason: &str| bench.check_refused(query, reason);
    check("SELECT COUNT(*) FROM fact JOIN parts USING (id)", "may be on another server");
    check("SELECT COUNT(*) FROM dim LEFT JOIN fact USING (day_id)", "another server may have");
    check("SELECT COUNT(*) OVER () FROM fact", "window");
    check("SELECT RAND() FROM fact", "RAND");
    check("CREATE TEMPORARY TABLE t AS SELECT 1", "seen by one connection only");
}

#[test]
fn a_query_of_reference_tables_goes_to_one_server() {
    let Some(mut bench) = in_check_all(bench) else { return };
    bench.check_whole("SELECT year FROM dim WHERE day_id < 3", Over::Shards, "return all their rows");
    bench.check_whole("SELECT ROW_NUMBER() OVER (ORDER BY day_id) FROM dim LIMIT 3", Over::Shards, "window");
    bench.check_whole("SELECT 1 + 1", Over::Shards, "");
    assert_eq!(bench.servers_of("SELECT dow, COUNT(*) FROM dim GROUP BY dow"), [0]);
    assert_eq!(bench.servers_of("SHOW TABLES"), [0]);
}

#[test]
fn conditions_on_the_key_leave_servers_out() {
    let Some(mut bench) = in_check_all(bench) else { return };
    let mut check = |condition: &str, expect: &[usize]| {
        let query = format!("SELECT COUNT(*) FROM fact WHERE {condition}");
        assert_eq!(bench.servers_of(&query), expect, "{condition}");
        bench.difference(&query, Over::Shards).unwrap();
    };
    check("day_id = 7", &[1]);
    check("7 = day_id AND note IS NULL", &[1]);
    check("day_id <=> 8", &[2]);
    check("day_id IN (3, 6, NULL)", &[0]);
    check("day_id IN (3, 7)", &[0, 1]);
    check("day_id BETWEEN 4 AND 5", &[1, 2]);
    check("day_id BETWEEN 4 AND 6", &[0, 1, 2]);
    check("day_id = 7 AND day_id = 8", &[0]);
    check("day_id = NULL", &[0]);
    check("day_id <=> NULL", &[0]);
    // These may be true of other keys.
    check("day_id = 7 OR delay > 3", &[0, 1, 2]);
    check("day_id = '7'", &[0, 1, 2]);
    check("day_id = 7.0", &[0, 1, 2]);
    check("day_id + 0 = 7", &[0, 1, 2]);
    check("NOT day_id = 7", &[0, 1, 2]);
    check("day_id NOT IN (7)", &[0, 1, 2]);
}

#[test]
fn a_key_that_a_condition_names_leaves_one_server_for_any_query() {
    let Some(mut bench) = in_check_all(bench) else { return };
    let mut check = |query: &str| bench.check_whole(query, Over::Shards, "its conditions leave one server");
    check("SELECT id, ROW_NUMBER() OVER (ORDER BY id) FROM fact WHERE day_id = 7");
    check("SELECT COUNT(*) FROM fact JOIN parts USING (id) WHERE fact.day_id = 7 AND parts.day_id = 10");
    bench.check_refused(
        "SELECT COUNT(*) FROM fact JOIN parts USING (id) WHERE fact.day_id = 7 AND parts.day_id = 8",
        "may be on another server",
    );
}

#[test]
fn tables_that_are_not_as_shards_have_them_are_refused() {
    let Some(mut bench) = in_check_all(bench) else { return };
    bench.changed(&["DELETE FROM shard1.dim WHERE day_id = 9"], by_day()).unwrap();
    bench.check_refused("SELECT COUNT(*) FROM dim", "table dim: shard0 has a row whose day_id is");
    let of_reference = Mapping { reference: BTreeSet::from(["dim".to_owned()]), ..by_day() };
    bench.changed(&[], of_reference).unwrap();
    bench.check_refused("SELECT COUNT(*) FROM dim", "table dim: has other rows on shard1 than on shard0");
    bench.changed(&["INSERT INTO shard2.fact SELECT * FROM star.fact WHERE day_id = 1"], by_day()).unwrap();
    bench.check_refused("SELECT COUNT(*) FROM fact", "table fact: shard2 has a row whose day_id is 1");
    bench.changed(&["ALTER TABLE shard1.parts MODIFY delay BIGINT"], by_day()).unwrap();
    bench.check_refused(
        "SELECT COUNT(*) FROM parts",
        "table parts: has a column delay of bigint(20) on shard1",
    );
    bench.changed(&["DROP TABLE shard2.days"], by_day()).unwrap();
    bench.check_refused("SELECT COUNT(*) FROM days", "table days: is missing on shard2");
    bench
        .changed(
            &["CREATE VIEW shard0.v AS SELECT 1 AS a", "CREATE VIEW shard1.v AS SELECT 1 AS a"],
            by_day(),
        )
        .unwrap();
    bench.changed(&["CREATE VIEW shard2.v AS SELECT 1 AS a"], by_day()).unwrap();
    bench.check_refused("SELECT COUNT(*) FROM v", "table v: is a view");
}

#[test]
fn a_directory_says_where_rows_are() {
    let Some(mut bench) = in_check_all(bench) else { return };
    let directory =
        Directory { ranges: vec![(1, 500, 0), (501, 1000, 1), (1001, 2000, 2)], ..Directory::default() };
    let mapping = Mapping { mapper: Mapper::Directory(directory), ..by_day() };
    let mut statements = Vec::new();
    for (shard, (first, last)) in [(1, 500), (501, 1000), (1001, 2000)].into_iter().enumerate() {
        statements.push(format!("DELETE FROM shard{shard}.fact"));
        statements.push(format!(
            "INSERT INTO shard{shard}.fact SELECT * FROM star.fact WHERE day_id BETWEEN {first} AND {last}"
        ));
    }
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    bench.changed(&statements, mapping).unwrap();
    assert_eq!(bench.servers_of("SELECT COUNT(*) FROM fact WHERE day_id BETWEEN 400 AND 600"), [0, 1]);
    bench.check_over(
        "SELECT carrier, COUNT(*) FROM fact WHERE day_id BETWEEN 400 AND 600 GROUP BY carrier",
        Over::Shards,
    );
    bench.check_over("SELECT dow, COUNT(*) FROM fact JOIN dim USING (day_id) GROUP BY dow", Over::Shards);
}

/// Much work for few rows.
const LONG: &str = "SELECT SUM(a.id * b.id + c.id * d.id) FROM fact a JOIN fact b USING (day_id) JOIN fact c USING (day_id) \
                    JOIN fact d USING (day_id) JOIN fact e USING (day_id) JOIN fact f USING (day_id)";
/// From the failure to the end of all fragments. Connections to end them by take a part of it.
const SOON: Duration = Duration::from_secs(1);

#[test]
fn a_late_fragment_ends_the_query_and_all_fragments() {
    let Some(mut bench) = in_check_all(bench) else { return };
    let timeout = Duration::from_millis(300);
    let mut scatter = bench.shards(Options { timeout: Some(timeout), ..Options::default() });
    let began = Instant::now();
    let error = scatter.run(LONG).unwrap_err();
    assert!(error.to_string().contains("took longer than 0.3 s"), "{error:#}");
    bench.check_nothing_runs((timeout + SOON).saturating_sub(began.elapsed()));
    assert_eq!(scatter.run("SELECT COUNT(*) FROM fact").unwrap().rows.len(), 1);
}

#[test]
fn a_query_is_ended_from_another_thread() {
    let Some(mut bench) = in_check_all(bench) else { return };
    let mut scatter = bench.shards(Options::default());
    let killer = scatter.killer();
    let ended = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        killer.kill();
        Instant::now()
    });
    let error = scatter.run(LONG).unwrap_err();
    assert!(format!("{error:#}").contains("interrupted"), "{error:#}");
    assert!(ended.join().unwrap().elapsed() < SOON);
    bench.check_nothing_runs(SOON);
}

#[test]
fn an_error_names_the_shard_and_says_the_servers_words() {
    let Some(mut bench) = in_check_all(bench) else { return };
    let mut scatter = bench.shards(Options { rows_least: 1.0, ..Options::default() });
    let error = scatter.run("SELECT SUM(EXP(IF(day_id MOD 3 = 1, id, 0))) FROM fact").unwrap_err();
    let text = format!("{error:#}");
    assert!(text.contains("a fragment on shard1") && text.contains("DOUBLE value is out of range"), "{text}");
    bench.check_nothing_runs(SOON);
}

#[test]
fn a_snapshot_is_of_one_moment() {
    let Some(bench) = in_check_all(bench) else { return };
    let mut scatter = bench.shards(Options { is_snapshot: true, rows_least: 1.0, ..Options::default() });
    let count = |scatter: &mut spindle_scatter::execute::Scatter| {
        let rows = scatter.run("SELECT SUM(delay), COUNT(*) FROM fact").unwrap().rows;
        String::from_utf8(rows[0][1].clone().unwrap()).unwrap().parse::<u64>().unwrap()
    };
    let first = count(&mut scatter);
    // Without a snapshot, the first of these that differs would be odd sooner or later.
    let writer = bench.writer();
    let last =
        (0..30).map(|_| count(&mut scatter)).inspect(|now| assert_eq!((now - first) % 2, 0)).last().unwrap();
    drop(writer);
    assert!(last > first);
}
