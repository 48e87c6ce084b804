//! A MariaDB of a test's own behind a proxy in the same process.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use spindle_load::Endpoint;
use spindle_scatter::mapping::Mapping;
use spindle_scatter::proxy::{Plugin, Proxy, Settings, User, Users};
use spindle_scatter::servers::Server;
use spindle_scatter::shards::Cluster;
use spindle_scatter::split::Options;

use crate::server_support::{OwnServer, installed};
use crate::wait_until;

/// One column of each type, and rows with its ends, with nothing, and with what is hard to tell.
const SCHEMA: &[&str] = &[
    "CREATE DATABASE shop CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    "USE shop",
    "CREATE TABLE kinds (id INT PRIMARY KEY, tiny TINYINT, small SMALLINT UNSIGNED, medium MEDIUMINT, large BIGINT, \
     whole BIGINT UNSIGNED, filled INT(6) UNSIGNED ZEROFILL, flag BIT(9), price DECIMAL(20,4), ratio DOUBLE, share FLOAT, \
     day DATE, moment DATETIME(6), stamp TIMESTAMP NULL, clock TIME(3), year YEAR, name VARCHAR(40), code CHAR(3), \
     bytes VARBINARY(40), note TEXT, picture BLOB, state ENUM('on','off'), tags SET('a','b'), data JSON, place POINT)",
    "INSERT INTO kinds VALUES \
     (1, -128, 65535, -8388608, -9223372036854775808, 18446744073709551615, 42, b'100000001', -1234567890.1234, 0.1, 0.5, \
      '2020-02-29', '2020-02-29 23:59:58.000001', '2020-02-29 10:00:00', '-838:59:59', 2026, 'it''s é 中 \\\\', 'ab', \
      x'00ff27', 'long', x'deadbeef00', 'off', 'a,b', '{\"a\": 1}', POINT(1, 2)), \
     (2, 127, 0, 8388607, 9223372036854775807, 0, 123456, b'0', 0, -1.7976931348623157e308, -2.25, \
      '9999-12-31', '1000-01-01 00:00:00', '1970-01-02 00:00:01', '00:00:00.001', 1901, '', '', '', '', '', 'on', '', '[]', NULL), \
     (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
      NULL, NULL, NULL, NULL)",
    "CREATE TABLE fact (id INT PRIMARY KEY, day_id INT NOT NULL, amount DECIMAL(10,2), KEY (day_id))",
    "INSERT INTO fact SELECT seq, 1 + seq % 1000, seq % 97 / 4 FROM seq_1_to_20000",
    "ANALYZE TABLE fact",
];

/// `fact` alone, without MariaDB's tables of numbers.
const SCHEMA_OF_MYSQL: &[&str] = &[
    "CREATE DATABASE shop",
    "USE shop",
    "CREATE TABLE fact (id INT PRIMARY KEY, day_id INT NOT NULL, amount DECIMAL(10,2), KEY (day_id))",
    "SET SESSION cte_max_recursion_depth = 20000",
    "INSERT INTO fact WITH RECURSIVE n (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < 20000) \
     SELECT seq, 1 + seq % 1000, seq % 97 / 4 FROM n",
    "ANALYZE TABLE fact",
];

/// Which half of `fact` a shard does not have.
const OTHER_HALF: [&str; 2] =
    ["DELETE FROM fact WHERE day_id MOD 2 = 1", "DELETE FROM fact WHERE day_id MOD 2 = 0"];

pub(crate) struct Bench {
    /// One, or one for each shard.
    pub(crate) servers: Vec<OwnServer>,
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    proxy: Option<JoinHandle<anyhow::Result<()>>>,
}

pub(crate) fn bench() -> Option<Bench> {
    bench_with(|_| {})
}

/// With other settings of the proxy.
pub(crate) fn bench_with(change: impl FnOnce(&mut Settings)) -> Option<Bench> {
    start(vec![own_server()?], None, change)
}

pub(crate) fn bench_of_mysql() -> Option<Bench> {
    start(vec![own_server_of("mysql", SCHEMA_OF_MYSQL)?], None, |_| {})
}

/// `fact` is sharded by its day over two servers, and `kinds` is on each.
pub(crate) fn bench_of_shards() -> Option<Bench> {
    bench_of_shards_with(|_| {})
}

/// With other settings of the proxy.
pub(crate) fn bench_of_shards_with(change: impl FnOnce(&mut Settings)) -> Option<Bench> {
    let servers = vec![own_server()?, own_server()?];
    for (own, half) in servers.iter().zip(OTHER_HALF) {
        Conn::new(direct_options(own).db_name(Some("shop"))).unwrap().query_drop(half).unwrap();
    }
    let mapping = Mapping { column: "day_id".to_owned(), ..Mapping::default() };
    start(servers, Some(mapping), change)
}

fn own_server() -> Option<OwnServer> {
    own_server_of("mariadb", SCHEMA)
}

fn own_server_of(kind: &str, schema: &[&str]) -> Option<OwnServer> {
    let settings =
        &[("innodb_buffer_pool_size", "64M"), ("max_allowed_packet", "64M"), ("max_connections", "400")];
    let own = OwnServer::empty(installed(kind)?, settings);
    let mut first = Conn::new(direct_options(&own)).unwrap();
    schema.iter().for_each(|statement| first.query_drop(statement).unwrap());
    Some(own)
}

fn start(
    servers: Vec<OwnServer>,
    mapping: Option<Mapping>,
    change: impl FnOnce(&mut Settings),
) -> Option<Bench> {
    let of_cluster = |(index, own)| Server {
        name: format!("server {index}"),
        options: direct_options(own).db_name(Some("shop")).into(),
    };
    let mut settings = Settings {
        cluster: Cluster { servers: servers.iter().enumerate().map(of_cluster).collect(), mapping },
        options: Options { connections: 2, rows_least: 1.0, ..Options::default() },
        users: Users::default(),
        tls: None,
        is_writable: false,
        clients_most: 64,
    };
    change(&mut settings);
    let proxy = Proxy::bind("127.0.0.1:0".parse().unwrap(), settings).unwrap();
    let address = proxy.address().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&stop);
    let proxy = std::thread::spawn(move || proxy.run(|| is_over.load(Ordering::Relaxed)));
    Some(Bench { servers, address, stop, proxy: Some(proxy) })
}

fn direct_options(own: &OwnServer) -> OptsBuilder {
    let Endpoint::MysqlSocket { path, user, .. } = own.endpoint() else { panic!("no socket") };
    OptsBuilder::new().socket(Some(path.to_string_lossy().into_owned())).user(Some(user))
}

impl Bench {
    /// Past the proxy, to its only server or its first one.
    pub(crate) fn direct(&self) -> Conn {
        self.directs().remove(0)
    }

    pub(crate) fn directs(&self) -> Vec<Conn> {
        let direct = |own| Conn::new(direct_options(own).db_name(Some("shop"))).unwrap();
        self.servers.iter().map(direct).collect()
    }

    /// A client that does not look for the server's own socket.
    pub(crate) fn options(&self) -> OptsBuilder {
        OptsBuilder::new()
            .ip_or_hostname(Some(self.address.ip().to_string()))
            .tcp_port(self.address.port())
            .prefer_socket(false)
            .user(Some("me"))
    }

    pub(crate) fn client(&self) -> Conn {
        Conn::new(self.options()).unwrap()
    }

    /// Statements at the servers whose text has this.
    pub(crate) fn running(&self, text: &str) -> usize {
        let query = "SELECT info FROM information_schema.processlist WHERE id <> CONNECTION_ID()";
        let of = |mut direct: Conn| direct.query::<Option<String>, _>(query).unwrap();
        self.directs().into_iter().flat_map(of).flatten().filter(|info| info.contains(text)).count()
    }

    /// Waits until the servers have no client but the one that asks, and the one that watches them.
    pub(crate) fn wait_until_alone(&self) {
        let query =
            "SELECT COUNT(*) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND db = 'shop'";
        for own in &self.servers {
            let mut direct = Conn::new(direct_options(own).db_name(Some("shop"))).unwrap();
            wait_until("the proxy's connections to leave", || {
                direct.query_first::<usize, _>(query).unwrap() == Some(0)
            });
        }
    }

    /// Ends the proxy, as a signal does.
    pub(crate) fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(proxy) = self.proxy.take() {
            proxy.join().unwrap().unwrap();
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end();
        }
    }
}

/// A client that sends what it is told to, byte by byte.
pub(crate) struct RawClient(TcpStream);

impl RawClient {
    /// Of a user without a password.
    pub(crate) fn connect(address: SocketAddr) -> RawClient {
        const PROTOCOL_41: u32 = 0x200;
        const SECURE_CONNECTION: u32 = 0x8000;
        const PLUGIN_AUTH: u32 = 0x8_0000;
        let mut client = RawClient(TcpStream::connect(address).unwrap());
        client.read();
        let capabilities = PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH;
        let mut answer = capabilities.to_le_bytes().to_vec();
        answer.extend_from_slice(&[0, 0, 0, 1, 45]);
        answer.extend_from_slice(&[0; 23]);
        answer.extend_from_slice(b"me\0\0mysql_native_password\0");
        client.send(1, &answer);
        assert_eq!(client.read()[0], 0);
        client
    }

    pub(crate) fn send(&mut self, sequence: u8, payload: &[u8]) {
        let length = (payload.len() as u32).to_le_bytes();
        let head = [length[0], length[1], length[2], sequence];
        self.0.write_all(&[&head, payload].concat()).unwrap();
    }

    pub(crate) fn read(&mut self) -> Vec<u8> {
        let mut head = [0; 4];
        self.0.read_exact(&mut head).unwrap();
        let mut payload = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
        self.0.read_exact(&mut payload).unwrap();
        payload
    }
}

pub(crate) fn user(name: &str, password: &str, plugin: Option<Plugin>) -> User {
    User { name: name.to_owned(), password: password.to_owned(), plugin }
}

pub(crate) fn with_users() -> Option<Bench> {
    bench_with(|settings| {
        settings.users = Users(vec![
            user("native", "one", Some(Plugin::Native)),
            user("sha2", "two", Some(Plugin::CachingSha2)),
            user("any", "three", None),
        ]);
    })
}
