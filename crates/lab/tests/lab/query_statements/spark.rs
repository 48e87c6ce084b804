//! Spark merges the fragments that two servers answer, and gives one server's answers.

use std::io;
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use spindle_lab::server::package::cache_directory;
use spindle_scatter::execute::Route;
use spindle_scatter::spark;

use super::*;
use crate::skip;

/// A line before each answer.
const MARK: &str = "the answer:";
const SHARDED: &[(&str, &str)] = &[("ontime_fact", "date_id")];

/// Spark's command line and MySQL's JDBC driver, as `tools/install clients` gets them.
fn programs() -> Option<[PathBuf; 2]> {
    let cache = cache_directory().unwrap();
    let paths = ["spark/bin/spark-sql", "java/mysql-connector-j.jar"].map(|path| cache.join(path));
    if paths.iter().all(|path| path.exists()) {
        Some(paths)
    } else {
        skip("no Spark: run `tools/install clients`")
    }
}

/// A port for a server's socket, because Java knows no sockets of Unix.
fn port_of(socket: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), UnixStream::connect(&socket).unwrap());
            let (from_client, to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            // What ends on one side ends on the other; a side that is gone is the end as well.
            thread::spawn(move || {
                let _ = io::copy(&mut &from_client, &mut &to_server);
                let _ = to_server.shutdown(Shutdown::Write);
            });
            thread::spawn(move || {
                let _ = io::copy(&mut &server, &mut &client);
                let _ = client.shutdown(Shutdown::Write);
            });
        }
    });
    port
}

/// The shard of this number on a server of its own.
fn over_tcp(star: &Star, shard: usize) -> Server {
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port_of(star.socket.clone()))
        .user(Some("root"))
        .db_name(Some(format!("shard_{shard}_of_2")));
    Server { name: format!("server {shard}"), options: options.into() }
}

/// Numbers with another scale are equal, and a quotient has as many digits as the server gives it.
fn normal(rows: Vec<Vec<Option<String>>>) -> Vec<Vec<Option<String>>> {
    let value = |value: String| match value.parse::<f64>() {
        Ok(number) => format!("{number:.4}"),
        Err(_) => value,
    };
    let mut rows: Vec<Vec<_>> =
        rows.into_iter().map(|row| row.into_iter().map(|cell| cell.map(value)).collect()).collect();
    rows.sort();
    rows
}

/// The rows that Spark prints of one answer.
fn printed(query: &Query, lines: &str) -> Vec<Vec<Option<String>>> {
    let cell = |cell: &str| (cell != "NULL").then(|| cell.as_bytes().to_vec());
    compared(query, lines.lines().map(|line| line.split('\t').map(cell).collect()).collect())
}

#[test]
fn spark_gives_one_servers_answers() {
    let Some([program, driver]) = in_check_all(programs) else { return };
    let load = || Star::load(json!({"kind": "ontime", "rows": 30_000}));
    let (Some(first), Some(second)) = (load(), load()) else { return };
    let stars = [first, second];
    let servers = stars.iter().enumerate().map(|(shard, star)| {
        star.shards(SHARDED, 2);
        over_tcp(star, shard)
    });
    let servers: Vec<Server> = servers.collect();
    let mapping = Mapping { column: "date_id".to_owned(), ..Mapping::default() };
    let options = Options { connections: 2, rows_least: 1.0, ..Options::default() };
    let cluster = Cluster { servers: servers.clone(), mapping: Some(mapping) };
    let mut scatter = Scatter::connect(cluster, options).unwrap();

    let mut script = String::new();
    let statements = ontime::statements();
    for query in &statements {
        let Route::Split(plan, assigned) = scatter.route(query.sql).unwrap() else {
            panic!("{} is not split", query.name)
        };
        let text = spark::script(&plan, &assigned, &servers)
            .unwrap_or_else(|Refusal(why)| panic!("{}: {why}", query.name));
        let (before, last) = text.trim_end().rsplit_once('\n').unwrap();
        script += &format!("{before}\nSELECT '{MARK}';\n{last}\n");
    }
    let directory = directory();
    let file = directory.path().join("all.sql");
    std::fs::write(&file, script).unwrap();
    // Its script asks the first Python in the path where Spark is.
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new(program)
        .args(["--master", "local[2]", "--conf", "spark.ui.enabled=false"])
        .args(["--conf", "spark.sql.catalogImplementation=in-memory"])
        .args([&"--driver-class-path".into(), &driver, &"--jars".into(), &driver, &"-f".into(), &file])
        .current_dir(directory.path())
        .env("PATH", path)
        .env("SPARK_LOCAL_IP", "127.0.0.1")
        .env("MYSQL_PWD", "")
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers: Vec<&str> = told.split(&format!("{MARK}\n")).skip(1).collect();
    assert_eq!(answers.len(), statements.len(), "{told}");
    let mut direct = stars[0].direct();
    for (query, answer) in statements.iter().zip(answers) {
        // What the next script says of its settings.
        let answer = answer.split("spark.sql.ansi.enabled").next().unwrap_or_default();
        let (_, expected) = asked(&mut direct, query.sql).unwrap();
        assert_eq!(normal(printed(query, answer)), normal(compared(query, expected)), "{}", query.name);
    }
}
