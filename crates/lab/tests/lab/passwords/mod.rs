//! While clients work, no command line has the password: everybody on the machine can read it there.

use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mysql::prelude::Queryable;
use spindle_load::sql::mysql::connect;
use spindle_load::workloads::mysqlslap::{self, LoadType};
use spindle_load::{Endpoint, RunSpec, WorkloadSpec};

use crate::server_support::{has_metric, measure_until, ready_client};

const USER: &str = "watched";
/// With characters that have a meaning to a shell or in a file of options.
const PASSWORD: &str = "p#w \"d'%1";
const TOOLS: [&str; 2] = ["sysbench", "mariadb-slap"];

/// `spindle load sysbench` and the load process of mysqlslap, on a server that wants a password.
pub(crate) fn check(endpoint: &Endpoint) {
    let Endpoint::MysqlSocket { path, database, .. } = endpoint else {
        panic!("a private server has a socket")
    };
    let mut root = connect(endpoint).unwrap();
    let password = PASSWORD.replace('\'', "''");
    root.query_drop(format!("CREATE USER {USER}@localhost IDENTIFIED BY '{password}'")).unwrap();
    root.query_drop(format!("GRANT ALL ON *.* TO {USER}@localhost")).unwrap();
    let port = forward(path.clone());
    let is_over = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&is_over));
        // Also when a panic ends the watched work.
        let end = End(&is_over);
        run_sysbench(port, database);
        run_mysqlslap(port, database);
        drop(end);
        watcher.join().unwrap()
    });
    assert_eq!(seen, TOOLS.map(|tool| (tool, false)), "whether a command line of the tool has the password");
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A private server answers at its socket only: a port in front of it.
fn forward(socket: PathBuf) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = UnixStream::connect(&socket).unwrap();
            let (mut from_client, mut to_client) = (client.try_clone().unwrap(), client);
            let (mut from_server, mut to_server) = (server.try_clone().unwrap(), server);
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from_client, &mut to_server);
                let _ = to_server.shutdown(Shutdown::Both);
            });
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from_server, &mut to_client);
                let _ = to_client.shutdown(Shutdown::Both);
            });
        }
    });
    port
}

/// Each tool that was at work, in the order of [`TOOLS`], and whether one of its command lines had the
/// password. No other process may have it.
fn watch(is_over: &AtomicBool) -> Vec<(&'static str, bool)> {
    let mut seen = TOOLS.map(|tool| (tool, None));
    while !is_over.load(Ordering::Relaxed) {
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let command_line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let has_password = command_line.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes());
            let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            match seen.iter_mut().find(|(tool, _)| *tool == name.trim()) {
                Some((_, found)) => *found = Some(has_password || *found == Some(true)),
                None => assert!(!has_password, "{name}"),
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    seen.into_iter().filter_map(|(tool, found)| Some((tool, found?))).collect()
}

fn run_sysbench(port: u16, database: &str) {
    let server = format!("mysql://{USER}@127.0.0.1:{port}/{database}");
    let options = ["--script", "read-only", "--distribution", "uniform", "--tables", "1", "--rows", "1000"];
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["load", "sysbench", "--server", &server, "--prepare", "--terminals", "1", "--duration", "1s"])
        .args(options)
        .env("MYSQL_PWD", PASSWORD)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn run_mysqlslap(port: u16, database: &str) {
    let [host, user, password] = ["127.0.0.1", USER, PASSWORD].map(str::to_owned);
    let workload = WorkloadSpec::Mysqlslap(mysqlslap::Spec {
        load_type: LoadType::Mixed,
        terminals: 1,
        queries: 1000,
        engine: "innodb".to_owned(),
        autoincrement: false,
        program: "mariadb-slap".into(),
    });
    let endpoint = Endpoint::MysqlTcp { host, port, user, password, database: database.to_owned() };
    let spec = RunSpec::new(endpoint, workload, 1);
    let mut client = ready_client(&spec);
    let (summary, _) = measure_until(&mut client, Duration::from_secs(1), has_metric).unwrap();
    assert!(summary.metric.value > 0.0);
    client.stop().unwrap();
}
