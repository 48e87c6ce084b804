//! One database whole and over three shards, and the answers of both.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mysql::consts::ColumnType;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use spindle_load::Endpoint;
use spindle_scatter::execute::{Route, Scatter};
use spindle_scatter::mapping::Mapping;
use spindle_scatter::plan::Refusal;
use spindle_scatter::servers::Server;
use spindle_scatter::shards::Cluster;
use spindle_scatter::split::Options;

use crate::server_support::*;

/// A star: facts by day, once with an index on the day and once in partitions of it. Two days are not in the dimension.
const SCHEMA: &[&str] = &[
    "CREATE DATABASE IF NOT EXISTS star CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    "USE star",
    "CREATE TABLE dim (day_id INT PRIMARY KEY, day DATE NOT NULL, year INT NOT NULL, dow INT NOT NULL)",
    "INSERT INTO dim SELECT seq, DATE_ADD('2009-12-31', INTERVAL seq DAY), YEAR(DATE_ADD('2009-12-31', INTERVAL seq DAY)), \
     DAYOFWEEK(DATE_ADD('2009-12-31', INTERVAL seq DAY)) FROM seq_1_to_1461",
    "DELETE FROM dim WHERE day_id IN (17, 700)",
    "CREATE TABLE fact (id INT NOT NULL, day_id INT NOT NULL, carrier VARCHAR(8), delay INT, price DECIMAL(10,2), \
     ratio DOUBLE, note VARCHAR(20), moment DATETIME, PRIMARY KEY (id), KEY (day_id))",
    "INSERT INTO fact SELECT seq, 1 + seq * 7919 % 1461, ELT(1 + seq % 7, 'AA', 'aa', 'bB', 'BB ', 'C', NULL, ''), \
     IF(seq % 11 = 0, NULL, CAST(seq AS SIGNED) % 300 - 50), seq % 1000 / 7, 1e9 + seq % 3, IF(seq % 5 = 0, NULL, CONCAT('it''s ', seq % 17, ' z')), \
     '2010-01-01' + INTERVAL seq * 37 MINUTE FROM seq_1_to_20000",
    "CREATE TABLE parts LIKE fact",
    "ALTER TABLE parts DROP PRIMARY KEY, ADD PRIMARY KEY (id, day_id), DROP KEY day_id",
    "ALTER TABLE parts PARTITION BY RANGE (day_id) (PARTITION p0 VALUES LESS THAN (366), PARTITION p1 VALUES LESS THAN (731), \
     PARTITION p2 VALUES LESS THAN (1096), PARTITION p3 VALUES LESS THAN MAXVALUE)",
    "INSERT INTO parts SELECT * FROM fact",
    "CREATE TABLE days LIKE dim",
    "INSERT INTO days SELECT * FROM dim",
    "CREATE TABLE none LIKE fact",
    "CREATE TABLE heap AS SELECT * FROM fact",
    "ANALYZE TABLE dim, days, fact, parts, heap",
];

const SHARDS: usize = 3;

pub(crate) struct Bench {
    pub(crate) direct: Conn,
    one: Scatter,
    shards: Scatter,
    path: String,
    _server: OwnServer,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Over {
    OneServer,
    Shards,
}

const OPTIONS: fn() -> Options = || Options { connections: 2, rows_least: 1.0, ..Options::default() };

/// A database of the server of this socket.
fn server(path: &str, database: &str) -> Server {
    let options = OptsBuilder::new().socket(Some(path)).user(Some("root")).db_name(Some(database));
    Server { name: database.to_owned(), options: options.into() }
}

pub(crate) fn bench() -> Option<Bench> {
    let own = OwnServer::empty(installed("mariadb")?, &[("innodb_buffer_pool_size", "64M")]);
    let Endpoint::MysqlSocket { path, .. } = own.endpoint() else { panic!("no socket") };
    let path = path.to_string_lossy().into_owned();
    let mut first = server(&path, "").connect().unwrap();
    SCHEMA.iter().for_each(|statement| first.query_drop(statement).unwrap());
    for shard in 0..SHARDS {
        shard_statements(shard).iter().for_each(|statement| first.query_drop(statement).unwrap());
    }
    let direct = server(&path, "star");
    Some(Bench {
        one: Scatter::connect(Cluster::of(direct.clone()), OPTIONS()).unwrap(),
        direct: direct.connect().unwrap(),
        shards: shards(&path, by_day(), OPTIONS()).unwrap(),
        path,
        _server: own,
    })
}

fn shards(path: &str, mapping: Mapping, options: Options) -> anyhow::Result<Scatter> {
    let servers = (0..SHARDS).map(|shard| server(path, &format!("shard{shard}"))).collect();
    Scatter::connect(Cluster { servers, mapping: Some(mapping) }, options)
}

pub(crate) fn by_day() -> Mapping {
    Mapping { column: "day_id".to_owned(), ..Mapping::default() }
}

/// Facts by the remainder of their day; the dimension whole.
fn shard_statements(shard: usize) -> Vec<String> {
    let mut statements = vec![
        format!("CREATE DATABASE shard{shard} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"),
        format!("CREATE TABLE shard{shard}.dim LIKE star.dim"),
        format!("INSERT INTO shard{shard}.dim SELECT * FROM star.dim"),
    ];
    for table in ["fact", "parts", "days", "none"] {
        statements.push(format!("CREATE TABLE shard{shard}.{table} LIKE star.{table}"));
        statements.push(format!(
            "INSERT INTO shard{shard}.{table} SELECT * FROM star.{table} WHERE day_id MOD {SHARDS} = {shard}"
        ));
        statements.push(format!("ANALYZE TABLE shard{shard}.{table}"));
    }
    statements
}

pub(crate) type Rows = Vec<Vec<Option<String>>>;
/// As a server writes them.
pub(crate) type Values = Vec<Vec<Option<Vec<u8>>>>;
/// Names and types of columns.
pub(crate) type Heads = Vec<(String, ColumnType)>;

pub(crate) fn text(rows: Values) -> Rows {
    let value = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
    rows.into_iter().map(|row| row.into_iter().map(|cell| cell.map(value)).collect()).collect()
}

/// Of values that a collation holds for equal, a group shows any.
fn plain(rows: Rows) -> Rows {
    let value = |value: String| value.to_lowercase().trim_end().to_owned();
    rows.into_iter().map(|row| row.into_iter().map(|cell| cell.map(value)).collect()).collect()
}

/// Sums of floating point numbers depend on their order.
fn is_same(one: &Option<String>, other: &Option<String>, kind: ColumnType) -> bool {
    match (one, other, kind) {
        (Some(one), Some(other), ColumnType::MYSQL_TYPE_DOUBLE | ColumnType::MYSQL_TYPE_FLOAT) => {
            let (one, other): (f64, f64) = (one.parse().unwrap(), other.parse().unwrap());
            // Rounded for showing, they may differ by one of the last digit.
            let shown = one.to_string().split_once('.').map_or(0, |(_, digits)| digits.len() as i32);
            let last_digit = if shown < 9 { 1.01 * 10_f64.powi(-shown) } else { 0.0 };
            (one - other).abs() <= (1e-9 * one.abs().max(other.abs()).max(1e3)).max(last_digit)
        }
        _ => one == other,
    }
}

/// A result of the server's own and that of fragments.
struct Both {
    fragments: Result<usize, Refusal>,
    heads: [Heads; 2],
    rows: [Rows; 2],
}

impl Both {
    fn are_equal(&self) -> bool {
        let [direct, split] = &self.rows;
        let same_row = |(one, other): (&Vec<Option<String>>, &Vec<Option<String>>)| {
            let kinds = self.heads[0].iter().map(|(_, kind)| *kind);
            one.iter().zip(other).zip(kinds).all(|((one, other), kind)| is_same(one, other, kind))
        };
        self.heads[0] == self.heads[1]
            && direct.len() == split.len()
            && direct.iter().zip(split).all(same_row)
    }
}

pub(crate) fn heads(columns: &[mysql::Column]) -> Heads {
    let kind = |column: &mysql::Column| match column.column_type() {
        // Both are told of a string without a length.
        ColumnType::MYSQL_TYPE_STRING => ColumnType::MYSQL_TYPE_VAR_STRING,
        // A column of a temporary table may be wider than a value of an expression.
        ColumnType::MYSQL_TYPE_LONG => ColumnType::MYSQL_TYPE_LONGLONG,
        kind => kind,
    };
    columns.iter().map(|column| (column.name_str().into_owned(), kind(column))).collect()
}

/// The server's own answer: its columns, and the values as the server writes them.
pub(crate) fn asked(direct: &mut Conn, query: &str) -> mysql::Result<(Heads, Values)> {
    let result = direct.query_iter(query)?;
    let heads = heads(result.columns().as_ref());
    let value = |value: mysql::Value| match value {
        mysql::Value::NULL => None,
        mysql::Value::Bytes(bytes) => Some(bytes),
        other => panic!("{other:?}"),
    };
    let rows = result.map(|row| Ok(row?.unwrap().into_iter().map(value).collect()));
    Ok((heads, rows.collect::<mysql::Result<_>>()?))
}

impl Bench {
    /// # Errors
    /// The server refuses the query, or it is not answered over several.
    fn both(&mut self, query: &str, over: Over) -> Result<Both, String> {
        let (direct_heads, direct) = asked(&mut self.direct, query).map_err(|error| error.to_string())?;
        let answer = match over {
            Over::OneServer => self.one.run(query).unwrap_or_else(|error| panic!("{query}: {error:#}")),
            Over::Shards => match self.shards.run(query) {
                Err(error) if error.is::<spindle_base::Mistake>() => return Err(error.to_string()),
                answer => answer.unwrap_or_else(|error| panic!("{query}: {error:#}")),
            },
        };
        let mut rows = [direct, answer.rows].map(|rows| plain(text(rows)));
        if !query.contains("ORDER BY") {
            rows.iter_mut().for_each(|rows| rows.sort());
        }
        Ok(Both { fragments: answer.fragments, heads: [direct_heads, heads(&answer.columns)], rows })
    }

    /// Whether a query was split. What the server refuses is no difference.
    pub(crate) fn difference(&mut self, query: &str, over: Over) -> Result<bool, String> {
        match self.both(query, over) {
            Err(_) => Ok(false),
            Ok(both) if both.are_equal() => Ok(both.fragments.is_ok()),
            Ok(Both { heads, rows, .. }) => {
                Err(format!("{over:?}: {query}\n{heads:?}\n{:?}\n{:?}", rows[0], rows[1]))
            }
        }
    }

    /// Fragments of one server and of several give the same answer.
    #[track_caller]
    pub(crate) fn check(&mut self, query: &str) {
        self.check_over(query, Over::OneServer);
        self.check_over(query, Over::Shards);
    }

    #[track_caller]
    pub(crate) fn check_over(&mut self, query: &str, over: Over) {
        let both = self.both(query, over).unwrap();
        if let Err(Refusal(why)) = &both.fragments {
            panic!("{over:?}: {query} is answered on one connection, because {why}");
        }
        assert!(
            both.are_equal(),
            "{over:?}: {query}\n{:?}\n{:?}\n{:?}",
            both.heads,
            both.rows[0],
            both.rows[1]
        );
    }

    /// One connection answers, for this reason.
    #[track_caller]
    pub(crate) fn check_whole(&mut self, query: &str, over: Over, reason: &str) {
        let both = self.both(query, over).unwrap();
        let Err(Refusal(why)) = &both.fragments else { panic!("{query} is split") };
        assert!(why.contains(reason), "{query}: {why}");
        assert!(both.are_equal(), "{query}\n{:?}\n{:?}", both.rows[0], both.rows[1]);
    }

    /// Shards do not answer, for this reason.
    #[track_caller]
    pub(crate) fn check_refused(&mut self, query: &str, reason: &str) {
        let error = self.shards.run(query).unwrap_err();
        assert!(error.is::<spindle_base::Mistake>(), "{query}: {error:#}");
        assert!(error.to_string().contains(reason), "{query}: {error:#}");
    }

    /// What one server is asked.
    pub(crate) fn fragments_of(&mut self, query: &str) -> Vec<String> {
        match self.one.route(query).unwrap() {
            Route::Passthrough(_, Refusal(why)) => {
                panic!("{query} is answered on one connection, because {why}")
            }
            Route::Split(plan, all) => all
                .iter()
                .flat_map(|assigned| {
                    assigned.split.parts.iter().map(|part| plan.blocks[assigned.block].fragment(part))
                })
                .collect(),
        }
    }

    /// Indexes of the shards that answer a query.
    pub(crate) fn servers_of(&mut self, query: &str) -> Vec<usize> {
        let mut servers: Vec<usize> = match self.shards.route(query).unwrap() {
            Route::Passthrough(server, _) => vec![server],
            Route::Split(_, all) => all.iter().map(|assigned| assigned.server).collect(),
        };
        servers.dedup();
        servers
    }

    /// Connects to the shards anew after a change of their tables.
    pub(crate) fn changed(&mut self, statements: &[&str], mapping: Mapping) -> anyhow::Result<()> {
        statements.iter().for_each(|statement| self.direct.query_drop(statement).unwrap());
        self.shards = shards(&self.path, mapping, OPTIONS())?;
        Ok(())
    }

    /// The same statement for one server and for the shards changes as many rows.
    #[track_caller]
    pub(crate) fn write(&mut self, statement: &str) {
        self.direct.query_drop(statement).unwrap();
        let expect = self.direct.affected_rows();
        let answer = self.shards.run(statement).unwrap_or_else(|error| panic!("{statement}: {error:#}"));
        assert_eq!(answer.done.affected_rows, expect, "{statement}");
    }

    /// The error of a statement for the shards.
    #[track_caller]
    pub(crate) fn refused_write(&mut self, statement: &str) -> String {
        let Err(error) = self.shards.run(statement) else { panic!("{statement} is done") };
        format!("{error:#}")
    }

    /// Connections to the shards with these options.
    pub(crate) fn shards(&self, options: Options) -> Scatter {
        shards(&self.path, by_day(), options).unwrap()
    }

    /// Waits until no statement runs but this one.
    #[track_caller]
    pub(crate) fn check_nothing_runs(&mut self, longest: Duration) {
        let began = Instant::now();
        let running = "SELECT info FROM information_schema.processlist WHERE info IS NOT NULL AND id <> CONNECTION_ID()";
        loop {
            let left: Vec<String> = self.direct.query(running).unwrap();
            if left.is_empty() {
                return;
            }
            assert!(began.elapsed() < longest, "{left:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Adds rows to two shards in one transaction after the other, until it is dropped.
    pub(crate) fn writer(&self) -> Writer {
        let mut connection = server(&self.path, "star").connect().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            for id in 1_000_000.. {
                if told.load(Ordering::Relaxed) {
                    return;
                }
                let rows = [(0, 3), (1, 4)];
                connection.query_drop("BEGIN").unwrap();
                for (shard, day) in rows {
                    connection
                        .query_drop(format!(
                            "INSERT INTO shard{shard}.fact (id, day_id) VALUES ({id}, {day})"
                        ))
                        .unwrap();
                }
                connection.query_drop("COMMIT").unwrap();
            }
        });
        Writer { is_over, thread: Some(thread) }
    }
}

pub(crate) struct Writer {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}
