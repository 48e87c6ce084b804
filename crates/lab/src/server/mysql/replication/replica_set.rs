//! Progress of a primary's replicas, and the comparison of their tables with its own. Positions are bytes of
//! the primary's binary log.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row};
use spindle_load::sql::mysql::connect;
use spindle_load::{Check, Endpoint};

use super::super::files::BINLOG;
use crate::server::replication::{Position, Progress, ReplicaSet};

/// A server without an answer after this time is stalled, or has no core to answer on.
const ANSWER_PATIENCE: Duration = Duration::from_millis(250);
/// The server's own databases.
const SYSTEM_DATABASES: &str = "'mysql', 'information_schema', 'performance_schema', 'sys'";

/// A primary and its replicas, all queried over their sockets.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) primary: Endpoint,
    /// Connection to the primary.
    pub(super) monitor: Conn,
    pub(super) binlog_directory: PathBuf,
    pub(super) replicas: Vec<Replica>,
    pub(super) semi_sync: bool,
}

#[derive(Debug)]
pub(super) struct Replica {
    pub(super) endpoint: Endpoint,
    /// Made when needed, and again after a missing answer.
    pub(super) connection: Option<Conn>,
}

impl ReplicaSet for Set {
    fn is_running(&mut self) -> Result<bool> {
        let running = |status: &Option<Status>| status.as_ref().is_some_and(|status| status.is_running);
        let all_run = self.statuses()?.iter().all(running);
        if !all_run || !self.semi_sync {
            return Ok(all_run);
        }
        let clients = "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_master_clients'";
        let clients: Option<(String, usize)> =
            self.monitor.query_first(clients).context("asking the primary for its replicas")?;
        Ok(clients.is_some_and(|(_, clients)| clients == self.replicas.len()))
    }

    fn look(&mut self) -> Result<Progress> {
        // The primary is queried last, so it has written everything that a replica has applied.
        let statuses = self.statuses()?;
        let logs = binary_logs(&self.binlog_directory)?;
        let position = |status: &Status| Position {
            applied_bytes: bytes_before(&logs, &status.file) + status.position_bytes,
            behind_s: status.behind_s,
        };
        let replicas = statuses.iter().map(|status| status.as_ref().map(position)).collect();
        Ok(Progress { written_bytes: logs.values().sum(), replicas })
    }

    fn compare(&mut self, replica: usize) -> Result<Check> {
        let theirs = checksums(&self.replicas[replica].endpoint)?;
        let ours = checksums(&self.primary)?;
        let names = ours.keys().chain(theirs.keys().filter(|name| !ours.contains_key(*name)));
        let differ: Vec<&str> =
            names.filter(|name| ours.get(*name) != theirs.get(*name)).map(String::as_str).collect();
        let detail = match differ.as_slice() {
            [] => format!("{} tables have the primary's checksums", ours.len()),
            _ => format!("not as on the primary: {}", differ.join(", ")),
        };
        Ok(Check { name: "every table is the primary's".to_owned(), passed: differ.is_empty(), detail })
    }
}

impl Set {
    /// `None` for a replica that does not answer in time.
    fn statuses(&mut self) -> Result<Vec<Option<Status>>> {
        let replicas = self.replicas.iter_mut().enumerate();
        let status = |(index, replica): (usize, &mut Replica)| {
            replica.status().with_context(|| format!("replica {}", index + 1))
        };
        replicas.map(status).collect()
    }
}

/// Names and sizes, the oldest first: numbers have leading zeros.
fn binary_logs(directory: &Path) -> Result<BTreeMap<String, u64>> {
    let doing = || format!("looking for binary logs in {}", directory.display());
    let mut logs = BTreeMap::new();
    for entry in fs::read_dir(directory).with_context(doing)? {
        let entry = entry.with_context(doing)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix(BINLOG).and_then(|rest| rest.strip_prefix('.'));
        if number.is_some_and(|number| number.parse::<u32>().is_ok()) {
            logs.insert(name, entry.metadata().with_context(doing)?.len());
        }
    }
    Ok(logs)
}

/// Bytes in the logs before `file`; a replica that has not begun names no file.
fn bytes_before(logs: &BTreeMap<String, u64>, file: &str) -> u64 {
    let before = logs.iter().take_while(|(name, _)| *name != file).map(|(_, bytes)| bytes);
    if logs.contains_key(file) { before.sum() } else { 0 }
}

/// A row of SHOW SLAVE STATUS.
struct Status {
    /// With a known first position.
    is_running: bool,
    /// Position in the primary's binary log, up to which everything is applied.
    file: String,
    position_bytes: u64,
    behind_s: Option<f64>,
}

impl Status {
    /// # Errors
    /// The replica has stopped; with its own message.
    fn of(row: &Row) -> Result<Status> {
        let field = |name: &str| -> String {
            row.get_opt::<Option<String>, _>(name).and_then(Result::ok).flatten().unwrap_or_default()
        };
        for (thread, words, what) in [
            ("Slave_SQL_Running", "Last_SQL_Error", "applying"),
            ("Slave_IO_Running", "Last_IO_Error", "receiving"),
        ] {
            if field(thread) == "No" {
                let words = Some(field(words)).filter(|words| !words.is_empty());
                bail!("it has stopped {what}: {}", words.unwrap_or_else(|| "it gives no reason".to_owned()));
            }
        }
        let file = field("Relay_Master_Log_File");
        let both_run = ["Slave_IO_Running", "Slave_SQL_Running"].iter().all(|thread| field(thread) == "Yes");
        Ok(Status {
            is_running: both_run && !file.is_empty(),
            file,
            position_bytes: field("Exec_Master_Log_Pos").parse().unwrap_or(0),
            behind_s: field("Seconds_Behind_Master").parse().ok(),
        })
    }
}

impl Replica {
    /// `None` if it does not answer in time.
    fn status(&mut self) -> Result<Option<Status>> {
        self.ask().as_ref().map(Status::of).transpose()
    }

    fn ask(&mut self) -> Option<Row> {
        if self.connection.is_none() {
            self.connection = connect_for(&self.endpoint, ANSWER_PATIENCE).ok();
        }
        let row = self.connection.as_mut()?.query_first("SHOW SLAVE STATUS");
        if row.is_err() {
            self.connection = None;
        }
        row.ok().flatten()
    }
}

/// A connection with `patience` as the limit of every answer.
pub(super) fn connect_for(endpoint: &Endpoint, patience: Duration) -> Result<Conn> {
    let Endpoint::MysqlSocket { path, user, .. } = endpoint else { bail!("a private server has a socket") };
    let options = OptsBuilder::new()
        .socket(Some(path.to_string_lossy()))
        .user(Some(user))
        .read_timeout(Some(patience))
        .write_timeout(Some(patience));
    Conn::new(options).with_context(|| format!("connecting to {}", path.display()))
}

/// Checksums of all tables of the users.
fn checksums(endpoint: &Endpoint) -> Result<BTreeMap<String, Option<u64>>> {
    let mut connection = connect(endpoint)?;
    let tables: Vec<String> = connection
        .query(format!(
            "SELECT CONCAT('`', table_schema, '`.`', table_name, '`') FROM information_schema.tables \
             WHERE table_schema NOT IN ({SYSTEM_DATABASES}) AND table_type = 'BASE TABLE'"
        ))
        .context("listing the tables")?;
    if tables.is_empty() {
        return Ok(BTreeMap::new());
    }
    let checksums: Vec<(String, Option<u64>)> =
        connection.query(format!("CHECKSUM TABLE {}", tables.join(", "))).context("adding the tables up")?;
    Ok(checksums.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_from_the_first_file() {
        let directory = tempfile::tempdir().unwrap();
        for (name, bytes) in
            [("binlog.000002", 50), ("binlog.000001", 100), ("binlog.index", 9), ("ibdata1", 7)]
        {
            fs::write(directory.path().join(name), vec![0; bytes]).unwrap();
        }
        let logs = binary_logs(directory.path()).unwrap();
        assert_eq!(logs, [("binlog.000001".to_owned(), 100), ("binlog.000002".to_owned(), 50)].into());
        let before = ["binlog.000001", "binlog.000002", ""].map(|file| bytes_before(&logs, file));
        assert_eq!(before, [0, 100, 0]);
    }
}
