//! The proxy of queries: what its clients get is what the server itself answers, and nothing is left of them.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mysql::consts::{ColumnFlags, ColumnType};
use mysql::prelude::Queryable;
use mysql::{ChangeUserOpts, Conn, Value};

use crate::serve_support::{
    Bench, RawClient, bench, bench_of_mysql, bench_of_shards, bench_of_shards_with, bench_with, with_users,
};
use crate::{cli, in_check_all, wait_until};

/// What a client is told of a result.
#[derive(Debug, PartialEq)]
struct Told {
    heads: Vec<(String, ColumnType, ColumnFlags, u16, u8, u32)>,
    rows: Vec<Vec<Value>>,
}

fn told<P: mysql::prelude::Protocol>(
    result: mysql::Result<mysql::QueryResult<'_, '_, '_, P>>,
) -> Result<Told, String> {
    let result = result.map_err(|error| error.to_string())?;
    let head = |column: &mysql::Column| {
        (
            format!("{}.{}", column.table_str(), column.name_str()),
            column.column_type(),
            column.flags(),
            column.character_set(),
            column.decimals(),
            column.column_length(),
        )
    };
    let heads = result.columns().as_ref().iter().map(head).collect();
    let rows = result.map(|row| row.map(mysql::Row::unwrap)).collect::<Result<_, _>>();
    Ok(Told { heads, rows: rows.map_err(|error| error.to_string())? })
}

fn code(error: &mysql::Error) -> (u16, String) {
    match error {
        mysql::Error::MySqlError(error) => (error.code, error.state.clone()),
        other => panic!("{other}"),
    }
}

#[track_caller]
fn check_code<T: std::fmt::Debug>(result: mysql::Result<T>, code_expected: u16, state: &str) {
    assert_eq!(code(&result.unwrap_err()), (code_expected, state.to_owned()));
}

#[test]
fn answers_are_those_of_the_server() {
    let Some(bench) = in_check_all(bench) else { return };
    let (mut direct, mut client) = (bench.direct(), bench.client());
    for query in [
        "SELECT * FROM kinds ORDER BY id",
        "SELECT id, name FROM kinds WHERE id > 99",
        "SELECT NULL, 1, -1, 1.50, 1e10, 'é', x'00ff', TRUE, CAST(5 AS UNSIGNED), DATE'2020-01-01'",
        "SELECT name AS `a b` FROM kinds AS k UNION SELECT 'x' ORDER BY 1",
        "SHOW COLUMNS FROM kinds",
        "SHOW VARIABLES LIKE 'sql_mode'",
        "EXPLAIN SELECT * FROM fact WHERE id = 7",
        "SELECT * FROM none_such",
        "SELECT FROM",
        "SELECT (SELECT id FROM kinds)",
    ] {
        assert_eq!(told(client.query_iter(query)), told(direct.query_iter(query)), "{query}");
        assert_eq!(told(client.exec_iter(query, ())), told(direct.exec_iter(query, ())), "{query}, prepared");
    }
    // In fragments.
    for query in [
        "SELECT COUNT(*), SUM(amount), MIN(day_id) FROM fact WHERE day_id BETWEEN 100 AND 800",
        "SELECT day_id % 10 AS d, COUNT(*), AVG(amount) FROM fact GROUP BY d ORDER BY d",
    ] {
        let rows = |connection: &mut Conn| connection.query::<mysql::Row, _>(query).unwrap();
        let values = |rows: Vec<mysql::Row>| rows.into_iter().map(mysql::Row::unwrap).collect::<Vec<_>>();
        assert_eq!(values(rows(&mut client)), values(rows(&mut direct)), "{query}");
    }
    check_code(client.query_drop("SELECT 1; SELECT 2"), 1064, "42000");
    check_code(client.query_drop("INSERT INTO fact VALUES (0, 0, 0)"), 1290, "HY000");
    check_code(client.prep("DELETE FROM fact"), 1290, "HY000");
    assert_eq!(client.query_first::<u32, _>("SELECT COUNT(*) FROM fact").unwrap(), Some(20_000));
}

#[test]
fn a_database_a_setting_and_a_transaction_are_those_of_the_session() {
    let Some(bench) = in_check_all(|| bench_with(|settings| settings.is_writable = true)) else { return };
    let mut client = bench.client();
    client.select_db("information_schema").unwrap();
    let database = |client: &mut Conn| client.query_first::<Option<String>, _>("SELECT DATABASE()").unwrap();
    assert_eq!(database(&mut client), Some(Some("information_schema".to_owned())));
    check_code(client.select_db("none_such"), 1049, "42000");
    client.query_drop("USE shop").unwrap();
    assert_eq!(database(&mut client), Some(Some("shop".to_owned())));

    client.query_drop("SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'").unwrap();
    let text: Option<String> = client.query_first(r#"SELECT '\' AS "a""#).unwrap();
    assert_eq!(text.as_deref(), Some("\\"));
    check_code(client.query_drop(r"SELECT '\'; DROP TABLE fact; -- '"), 1064, "42000");
    let name: Option<String> = client.exec_first("SELECT ?", (r"it's \",)).unwrap();
    assert_eq!(name.as_deref(), Some(r"it's \"));
    check_code(client.query_drop("SET NAMES gbk"), 1231, "42000");
    client.query_drop("SET SESSION sql_mode = DEFAULT").unwrap();

    client.query_drop("BEGIN").unwrap();
    client.query_drop("INSERT INTO fact VALUES (0, 0, 0)").unwrap();
    let count = |connection: &mut Conn| {
        connection.query_first::<u32, _>("SELECT COUNT(*) FROM fact WHERE id = 0").unwrap().unwrap()
    };
    assert_eq!((count(&mut client), count(&mut bench.direct())), (1, 0));
    client.query_drop("ROLLBACK").unwrap();
    assert_eq!((count(&mut client), count(&mut bench.direct())), (0, 0));
    client.exec_drop("INSERT INTO fact VALUES (?, ?, ?)", (0, 5, "1.5")).unwrap();
    assert_eq!((client.affected_rows(), count(&mut bench.direct())), (1, 1));

    client.query_drop("CREATE TABLE numbered (id INT AUTO_INCREMENT PRIMARY KEY, a INT)").unwrap();
    client.query_drop("INSERT INTO numbered (a) VALUES (5), (6), (6)").unwrap();
    assert_eq!((client.affected_rows(), client.last_insert_id()), (3, 1));
    client.query_drop("UPDATE numbered SET a = 7 WHERE a = 6").unwrap();
    assert_eq!(client.affected_rows(), 2);
}

#[test]
fn rows_are_written_to_the_servers_of_their_keys() {
    let Some(bench) = in_check_all(|| bench_of_shards_with(|settings| settings.is_writable = true)) else {
        return;
    };
    let mut client = bench.client();
    client
        .exec_drop("INSERT INTO fact VALUES (?, ?, ?), (?, ?, ?)", (90_001, 7, "1.5", 90_002, 8, "2"))
        .unwrap();
    assert_eq!(client.affected_rows(), 2);
    let count = |client: &mut Conn| {
        client.query_first::<u32, _>("SELECT COUNT(*) FROM fact WHERE id > 90000").unwrap().unwrap()
    };
    assert_eq!((count(&mut client), count(&mut bench.client())), (2, 2));
    client.query_drop("BEGIN").unwrap();
    client.query_drop("DELETE FROM fact WHERE id > 90000").unwrap();
    assert_eq!((client.affected_rows(), count(&mut bench.client())), (2, 2));
    client.query_drop("ROLLBACK").unwrap();
    assert_eq!(count(&mut client), 2);
    client.query_drop("BEGIN").unwrap();
    client.query_drop("DELETE FROM fact WHERE id > 90000").unwrap();
    client.query_drop("COMMIT").unwrap();
    assert_eq!((count(&mut client), count(&mut bench.client())), (0, 0));
}

#[test]
fn prepared_statements_take_values_of_all_types() {
    let Some(bench) = in_check_all(bench) else { return };
    let (mut direct, mut client) = (bench.direct(), bench.client());
    let values = [
        Value::NULL,
        Value::Int(-5),
        Value::Int(i64::MIN),
        Value::UInt(u64::MAX),
        Value::Double(0.1),
        Value::Double(-1e300),
        Value::Float(0.5),
        Value::from("it's \"é\" \\ \n ? -- /* 中"),
        Value::Bytes(vec![0, 255, 39, 92]),
        Value::from(""),
        Value::Date(2020, 2, 29, 0, 0, 0, 0),
        Value::Date(2020, 2, 29, 23, 59, 58, 1),
        Value::Time(true, 34, 22, 59, 59, 0),
        Value::Time(false, 0, 1, 2, 3, 400_000),
    ];
    for value in values {
        let of = |connection: &mut Conn| {
            let row: mysql::Row =
                connection.exec_first("SELECT HEX(?), ? IS NULL", vec![value.clone(); 2]).unwrap().unwrap();
            row.unwrap()
        };
        assert_eq!(of(&mut client), of(&mut direct), "{value:?}");
    }
    for (column, value) in [
        ("tiny", Value::Int(-128)),
        ("large", Value::Int(i64::MIN)),
        ("whole", Value::UInt(u64::MAX)),
        ("price", Value::from("-1234567890.1234")),
        ("ratio", Value::Double(0.1)),
        ("share", Value::Float(0.5)),
        ("day", Value::Date(2020, 2, 29, 0, 0, 0, 0)),
        ("moment", Value::Date(2020, 2, 29, 23, 59, 58, 1)),
        ("clock", Value::Time(true, 34, 22, 59, 59, 0)),
        ("year", Value::Int(2026)),
        ("name", Value::from("it's é 中 \\")),
        ("bytes", Value::Bytes(vec![0, 255, 39])),
    ] {
        let query = format!("SELECT id, {column} FROM kinds WHERE {column} = ? ORDER BY id LIMIT ?");
        let found: Option<(u32, Value)> = client.exec_first(query, (&value, 5)).unwrap();
        assert_eq!(found.map(|(id, _)| id), Some(1), "{column}");
    }
    // Used twice, and closed.
    let statement = client.prep("SELECT COUNT(*) FROM fact WHERE day_id BETWEEN ? AND ?").unwrap();
    let mut count =
        |first: u32, last: u32| client.exec_first::<u32, _, _>(&statement, (first, last)).unwrap();
    assert_eq!((count(1, 10), count(5, 5)), (Some(200), Some(20)));
    client.close(statement).unwrap();
    check_code(client.prep("SELECT * FROM none_such WHERE a = ?"), 1146, "42S02");
}

#[test]
fn values_and_statements_beyond_one_packet_arrive_whole() {
    let Some(bench) = in_check_all(bench) else { return };
    let mut client = bench.client();
    const LENGTH: usize = 17 << 20;
    let text = "x".repeat(LENGTH);
    let length = Some(LENGTH);
    assert_eq!(client.query_first::<usize, _>(format!("SELECT LENGTH('{text}')")).unwrap(), length);
    assert_eq!(client.exec_first::<usize, _, _>("SELECT LENGTH(?)", (&text,)).unwrap(), length);
    let back: Option<String> = client.query_first(format!("SELECT REPEAT('x', {LENGTH})")).unwrap();
    assert!(back == Some(text));
}

#[test]
fn users_prove_their_passwords() {
    let Some(bench) = in_check_all(with_users) else { return };
    let connect =
        |name: &str, password: &str| Conn::new(bench.options().user(Some(name)).pass(Some(password)));
    for (name, password) in [("native", "one"), ("sha2", "two"), ("any", "three")] {
        let mut client = connect(name, password).unwrap();
        assert_eq!(client.query_first::<u32, _>("SELECT 7").unwrap(), Some(7), "{name}");
        check_code(connect(name, "wrong"), 1045, "28000");
        check_code(connect(name, ""), 1045, "28000");
    }
    check_code(connect("nobody", "one"), 1045, "28000");
    let mut client = connect("native", "one").unwrap();
    client.query_drop("SET @a = 5").unwrap();
    let opts = ChangeUserOpts::default()
        .with_user(Some("sha2".to_owned()))
        .with_pass(Some("two".to_owned()))
        .with_db_name(Some("shop".to_owned()));
    client.change_user(opts).unwrap();
    let forgotten: Option<(Option<u32>, String)> = client.query_first("SELECT @a, DATABASE()").unwrap();
    assert_eq!(forgotten, Some((None, "shop".to_owned())));
    let wrong = ChangeUserOpts::default().with_pass(Some("wrong".to_owned()));
    check_code(client.change_user(wrong), 1045, "28000");
    // One user may not end what another one runs.
    let victim = connect("any", "three").unwrap();
    let mut other = connect("native", "one").unwrap();
    check_code(other.query_drop(format!("KILL {}", victim.connection_id())), 1095, "HY000");
}

#[test]
fn a_reset_leaves_nothing_of_the_session() {
    let Some(bench) = in_check_all(|| bench_with(|settings| settings.is_writable = true)) else { return };
    let mut client = bench.client();
    client.query_drop("SET @a = 5, SESSION sql_mode = 'ANSI_QUOTES'").unwrap();
    client.query_drop("CREATE TEMPORARY TABLE own (a INT)").unwrap();
    client.query_drop("BEGIN").unwrap();
    client.query_drop("DELETE FROM fact WHERE id = 1").unwrap();
    let own: Option<u32> = client.exec_first("SELECT COUNT(*) FROM own", ()).unwrap();
    assert_eq!(own, Some(0));
    client.reset().unwrap();
    let row: Option<(Option<u32>, String, String)> =
        client.query_first("SELECT @a, @@SESSION.sql_mode, DATABASE()").unwrap();
    let (variable, mode, database) = row.unwrap();
    assert!(variable.is_none() && !mode.contains("ANSI_QUOTES") && database == "shop", "{mode} {database}");
    check_code(client.query_drop("SELECT * FROM own"), 1146, "42S02");
    assert_eq!(
        bench.direct().query_first::<u32, _>("SELECT COUNT(*) FROM fact WHERE id = 1").unwrap(),
        Some(1)
    );
}

#[test]
fn mysql_is_served_too() {
    let Some(bench) = in_check_all(bench_of_mysql) else { return };
    let (mut direct, mut client) = (bench.direct(), bench.client());
    assert_eq!(client.server_version(), direct.server_version());
    for query in
        ["SELECT * FROM fact WHERE id < 5 ORDER BY id", "SHOW COLUMNS FROM fact", "SELECT * FROM none"]
    {
        assert_eq!(told(client.query_iter(query)), told(direct.query_iter(query)), "{query}");
    }
    let query = "SELECT COUNT(*), SUM(amount) FROM fact WHERE day_id BETWEEN ? AND ?";
    let counted = |connection: &mut Conn| {
        connection.exec_first::<(u32, String), _, _>(query, (1, 500)).unwrap().unwrap()
    };
    assert_eq!(counted(&mut client), counted(&mut direct));
    client.query_drop("SET @a = 5").unwrap();
    client.reset().unwrap();
    assert_eq!(client.query_first::<Option<u32>, _>("SELECT @a").unwrap(), Some(None));
    let id = client.connection_id();
    let asleep = std::thread::spawn(move || client.query_drop("SELECT SLEEP(604)"));
    wait_until("the query to run", || bench.running("SLEEP(604)") > 0);
    bench.client().query_drop(format!("KILL {id}")).unwrap();
    asleep.join().unwrap().unwrap_err();
    wait_until("the query to end", || bench.running("SLEEP(604)") == 0);
    drop(direct);
    bench.wait_until_alone();
}

#[test]
fn a_kill_ends_what_runs_at_the_server() {
    let Some(bench) = in_check_all(bench) else { return };
    let mut other = bench.client();
    for what in ["KILL QUERY", "KILL"] {
        let mut victim = bench.client();
        let id = victim.connection_id();
        let asleep = std::thread::spawn(move || {
            let slept = victim.query_drop("SELECT SLEEP(600)");
            (slept.is_err(), victim)
        });
        wait_until("the query to run", || bench.running("SLEEP(600)") > 0);
        let killed = Instant::now();
        other.query_drop(format!("{what} {id}")).unwrap();
        let (_, mut victim) = asleep.join().unwrap();
        wait_until("the query to end", || bench.running("SLEEP(600)") == 0);
        assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", killed.elapsed());
        // Only the connection that was killed is gone.
        assert_eq!(victim.query_drop("SELECT 1").is_ok(), what == "KILL QUERY");
    }
    check_code(other.query_drop("KILL 999999"), 1094, "HY000");
}

#[test]
fn an_unknown_command_has_an_error_and_the_next_one_an_answer() {
    let Some(bench) = in_check_all(bench) else { return };
    let mut client = RawClient::connect(bench.address);
    // Among them binary logs, which a server sends for ever.
    for command in [0x00, 0x04, 0x05, 0x0D, 0x12, 0x15, 0x1D, 0x1E, 0x40, 0xEE, 0xFA, 0xFE] {
        client.send(0, &[command, 1, 2, 3]);
        let answer = client.read();
        assert_eq!(answer[..9], *b"\xFF\x17\x04#08S01", "{command:#x}");
        client.send(0, &[0x0E]);
        assert_eq!(client.read()[0], 0);
    }
    // A statement of bytes that are no UTF-8.
    client.send(0, b"\x03SELECT \xE9");
    assert_eq!(client.read()[..3], [0xFF, 0x14, 0x05]);
    client.send(0, &[0x09]);
    assert!(String::from_utf8(client.read()).unwrap().starts_with("Uptime: "));
    // Out of order: told, and the end.
    client.send(7, &[0x0E]);
    assert_eq!(client.read()[..3], [0xFF, 0x84, 0x04]);
}

#[test]
fn rows_are_fetched_from_a_cursor() {
    let Some(bench) = in_check_all(bench) else { return };
    let mut client = RawClient::connect(bench.address);
    client.send(0, b"\x16SELECT id FROM kinds ORDER BY id");
    let prepared = client.read();
    let id = &prepared[1..5];
    // A column, and the end of columns.
    assert_eq!((prepared[5], client.read().len() > 20, client.read()[0]), (1, true, 0xFE));
    client.send(0, &[&[0x17], id, &[1, 1, 0, 0, 0]].concat());
    let [count, _, end] = [(); 3].map(|()| client.read());
    assert_eq!((count, end), (vec![1], vec![0xFE, 0, 0, 0x42, 0]));
    for expect in [&[1, 2][..], &[3]] {
        client.send(0, &[&[0x1C], id, &[2, 0, 0, 0]].concat());
        for number in expect {
            assert_eq!(client.read(), [0, 0, *number, 0, 0, 0]);
        }
        let last = if expect.len() == 1 { 0xC2 } else { 0x42 };
        assert_eq!(client.read(), [0xFE, 0, 0, last, 0]);
    }
    client.send(0, &[&[0x1C], id, &[2, 0, 0, 0]].concat());
    assert_eq!(client.read()[..3], [0xFF, 0x8D, 0x05]);
}

#[test]
fn a_client_that_leaves_leaves_no_query() {
    let Some(bench) = in_check_all(bench) else { return };
    let mut client = RawClient::connect(bench.address);
    client.send(0, b"\x03SELECT SLEEP(601)");
    wait_until("the query to run", || bench.running("SLEEP(601)") > 0);
    let left = Instant::now();
    drop(client);
    wait_until("the query to end", || bench.running("SLEEP(601)") == 0);
    assert!(left.elapsed() < Duration::from_secs(5), "{:?}", left.elapsed());
    bench.wait_until_alone();
}

#[test]
fn there_are_only_as_many_clients_as_allowed() {
    let Some(bench) = in_check_all(|| bench_with(|settings| settings.clients_most = 2)) else { return };
    let first = bench.client();
    let _second = bench.client();
    check_code(Conn::new(bench.options()), 1040, "HY000");
    drop(first);
    wait_until("the first to leave", || Conn::new(bench.options()).is_ok());
}

const COUNTED: &str = "SELECT COUNT(*), SUM(id) FROM fact WHERE day_id BETWEEN 100 AND 800";

/// 32 clients ask while the server of this index dies and comes back. `SPINDLE_PROXY_SECONDS` is their time.
fn check_outlived(mut bench: Bench, victim: usize) {
    const CLIENTS: u32 = 32;
    let seconds = std::env::var("SPINDLE_PROXY_SECONDS").ok().map_or(6, |text| text.parse().unwrap());
    let (is_over, is_back) = (AtomicBool::new(false), AtomicBool::new(true));
    let [answers, errors, wrong] = [const { AtomicU32::new(0) }; 3];
    let of = |mut direct: Conn| direct.query_first::<(u64, u64), _>(COUNTED).unwrap().unwrap();
    let parts = bench.directs().into_iter().map(of);
    let expect = Some(parts.fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1)));
    let options = bench.options();
    let ask = || {
        let mut client = Conn::new(options.clone()).unwrap();
        while !is_over.load(Ordering::Relaxed) {
            let was_back = is_back.load(Ordering::SeqCst);
            match client.query_first::<(u64, u64), _>(COUNTED) {
                Ok(row) if row == expect => _ = answers.fetch_add(1, Ordering::Relaxed),
                Ok(_) => _ = wrong.fetch_add(1, Ordering::Relaxed),
                // Of a query that was in flight when the server died, or that came before it was back.
                Err(_) if !was_back || !is_back.load(Ordering::SeqCst) => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(error) => {
                    eprintln!("{error}");
                    errors.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        (0..CLIENTS).for_each(|_| drop(scope.spawn(ask)));
        std::thread::sleep(Duration::from_secs(seconds) / 3);
        is_back.store(false, Ordering::SeqCst);
        bench.servers[victim].crash().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        bench.servers[victim].start_again();
        is_back.store(true, Ordering::SeqCst);
        let before = answers.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_secs(seconds) / 3);
        wait_until("answers of the server that is back", || answers.load(Ordering::Relaxed) > before);
        is_over.store(true, Ordering::Relaxed);
    });
    let [answers, errors, wrong] = [&answers, &errors, &wrong].map(|count| count.load(Ordering::Relaxed));
    eprintln!("{answers} answers");
    assert_eq!((errors, wrong), (0, 0));
    bench.wait_until_alone();
    let tables = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'shop'";
    for mut direct in bench.directs() {
        assert_eq!(direct.query_first::<u32, _>(tables).unwrap(), Some(2));
    }
}

#[test]
fn clients_outlive_their_server() {
    let Some(bench) = in_check_all(bench) else { return };
    check_outlived(bench, 0);
}

#[test]
fn clients_outlive_a_shard() {
    let Some(bench) = in_check_all(bench_of_shards) else { return };
    check_outlived(bench, 1);
}

#[test]
fn several_servers_are_one() {
    let Some(bench) = in_check_all(bench_of_shards) else { return };
    let mut client = bench.client();
    let count: Option<u32> = client.query_first("SELECT COUNT(*) FROM fact").unwrap();
    assert_eq!(count, Some(20_000));
    let query = "SELECT MIN(id), COUNT(*) FROM fact WHERE day_id = ?";
    for day in [7, 8] {
        let found: Option<(u32, u32)> = client.exec_first(query, (day,)).unwrap();
        assert_eq!(found, Some((day - 1, 20)));
    }
    check_code(client.query_drop("SELECT id, RAND() FROM fact"), 1235, "42000");
    check_code(client.query_drop("DELETE FROM fact"), 1290, "HY000");
    check_code(client.query_drop("SET @a = (SELECT COUNT(*) FROM fact)"), 1235, "42000");
    // On each server, a killed query ends. This one would take hours.
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];
    let tables: String = names.map(|name| format!(", kinds {name}")).concat();
    let id = client.connection_id();
    let busy = std::thread::spawn(move || {
        client.query_drop(format!("SELECT SUM(fact.id * a.id + k.id) FROM fact{tables}")).is_err()
    });
    wait_until("the fragments to run", || bench.running("kinds") >= 2);
    let killed = Instant::now();
    bench.client().query_drop(format!("KILL {id}")).unwrap();
    assert!(busy.join().unwrap());
    wait_until("the fragments to end", || bench.running("kinds") == 0);
    assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", killed.elapsed());
}

#[test]
fn a_session_with_a_transaction_ends_with_its_server() {
    let Some(mut bench) = in_check_all(bench) else { return };
    let (mut plain, mut private) = (bench.client(), bench.client());
    plain.query_drop("SET SESSION group_concat_max_len = 77").unwrap();
    plain.query_drop("USE information_schema").unwrap();
    private.query_drop("BEGIN").unwrap();
    bench.servers[0].crash().unwrap();
    bench.servers[0].start_again();
    // Its settings are those it had.
    let row: Option<(u32, String)> =
        plain.query_first("SELECT @@SESSION.group_concat_max_len, DATABASE()").unwrap();
    assert_eq!(row, Some((77, "information_schema".to_owned())));
    check_code(private.query_drop("SELECT 1"), 1430, "HY000");
    assert!(private.query_drop("SELECT 1").is_err());
}

#[test]
fn the_end_of_the_proxy_ends_its_queries() {
    let Some(mut bench) = in_check_all(bench) else { return };
    let mut client = bench.client();
    let asleep = std::thread::spawn(move || client.query_drop("SELECT SLEEP(602)").is_err());
    wait_until("the query to run", || bench.running("SLEEP(602)") > 0);
    bench.end();
    assert!(asleep.join().unwrap());
    assert_eq!(bench.running("SLEEP(602)"), 0);
    bench.wait_until_alone();
    assert!(Conn::new(bench.options()).is_err());
}

#[test]
fn the_command_says_where_it_listens_and_ends_with_a_signal() {
    let Some(bench) = in_check_all(bench) else { return };
    let spindle_load::Endpoint::MysqlSocket { path, .. } = bench.servers[0].endpoint() else {
        panic!("no socket")
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["query", "serve", "--listen", "127.0.0.1:0", "--user", "me"])
        .arg(format!("--server=socket:{}", path.display()))
        .env("SPINDLE_PROXY_PASSWORD", "secret")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = std::io::BufReader::new(command.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    let port = line.trim().strip_prefix("listening on 127.0.0.1:").unwrap().parse().unwrap();
    let mut client = Conn::new(bench.options().tcp_port(port).pass(Some("secret"))).unwrap();
    let asleep = std::thread::spawn(move || client.query_drop("SELECT SLEEP(603)").is_err());
    wait_until("the query to run", || bench.running("SLEEP(603)") > 0);
    let process = rustix::process::Pid::from_raw(command.id() as i32).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    assert_eq!(command.wait().unwrap().code(), Some(0));
    assert!(asleep.join().unwrap());
    assert_eq!(bench.running("SLEEP(603)"), 0);
}

#[test]
fn other_machines_need_a_password() {
    let told = cli::spindle(&["query", "serve", "--server", "socket:/none", "--listen", "0.0.0.0:33306"]);
    assert!(
        told.starts_with("exit code 2\n--- stderr\nspindle: --listen: 0.0.0.0:33306 can be reached"),
        "{told}"
    );
}
