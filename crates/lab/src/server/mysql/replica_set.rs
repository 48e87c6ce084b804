//! Progress of a primary's replicas, and the comparison of their tables with its own. Positions are bytes of
//! the primary's binary log.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row};
use spindle_load::sql::mysql::connect;
use spindle_load::{Check, Endpoint};

use super::files::BINLOG;
use crate::server::replication::{Position, Progress, ReplicaSet};

/// A server without an answer after this time is stalled, or has no core to answer on.
const ANSWER_PATIENCE: Duration = Duration::from_millis(250);
/// The server's own databases.
const SYSTEM_DATABASES: &str = "'mysql', 'information_schema', 'performance_schema', 'sys'";

/// A primary and its replicas, all queried over their sockets.
pub(super) struct Set {
    primary: Endpoint,
    /// Connection to the primary.
    monitor: Conn,
    binlog_directory: PathBuf,
    replicas: Vec<Replica>,
    semi_sync: bool,
}

struct Replica {
    endpoint: Endpoint,
    /// Made when needed, and again after a missing answer.
    connection: Option<Conn>,
}

impl fmt::Debug for Set {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Set").field("primary", &self.primary).finish_non_exhaustive()
    }
}

impl ReplicaSet for Set {
    fn is_running(&mut self) -> Result<bool> {
        let running = |status: &Option<Status>| status.as_ref().is_some_and(Status::is_running);
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
        let logs = BinaryLogs::read(&self.binlog_directory)?;
        let position = |status: &Status| Position {
            applied_bytes: logs.bytes_before(&status.file) + status.position_bytes,
            behind_s: status.behind_s,
        };
        let replicas = statuses.iter().map(|status| status.as_ref().map(position)).collect();
        Ok(Progress { written_bytes: logs.0.iter().map(|(_, bytes)| bytes).sum(), replicas })
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
    pub(super) fn new(
        primary: Endpoint,
        monitor: Conn,
        binlog_directory: &Path,
        replicas: Vec<Endpoint>,
        semi_sync: bool,
    ) -> Set {
        let replicas = replicas.into_iter().map(|endpoint| Replica { endpoint, connection: None });
        let binlog_directory = binlog_directory.to_owned();
        Set { primary, monitor, binlog_directory, replicas: replicas.collect(), semi_sync }
    }

    /// `None` for a replica that does not answer in time.
    fn statuses(&mut self) -> Result<Vec<Option<Status>>> {
        let replicas = self.replicas.iter_mut().enumerate();
        let status = |(index, replica): (usize, &mut Replica)| {
            replica.status().with_context(|| format!("replica {}", index + 1))
        };
        replicas.map(status).collect()
    }
}

/// Names and sizes, the oldest first.
struct BinaryLogs(Vec<(String, u64)>);

impl BinaryLogs {
    fn read(directory: &Path) -> Result<BinaryLogs> {
        let doing = || format!("looking for binary logs in {}", directory.display());
        let mut logs = Vec::new();
        for entry in fs::read_dir(directory).with_context(doing)? {
            let entry = entry.with_context(doing)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let number = name.strip_prefix(BINLOG).and_then(|rest| rest.strip_prefix('.'));
            if number.is_some_and(|number| number.parse::<u32>().is_ok()) {
                logs.push((name, entry.metadata().with_context(doing)?.len()));
            }
        }
        // Numbers have leading zeros.
        logs.sort();
        Ok(BinaryLogs(logs))
    }

    /// Bytes in the logs before `file`; a replica that has not begun names no file.
    fn bytes_before(&self, file: &str) -> u64 {
        if !self.0.iter().any(|(name, _)| name == file) {
            return 0;
        }
        self.0.iter().take_while(|(name, _)| name != file).map(|(_, bytes)| bytes).sum()
    }
}

/// A row of SHOW SLAVE STATUS.
struct Status {
    receives: String,
    applies: String,
    /// Position in the primary's binary log, up to which everything is applied.
    file: String,
    position_bytes: u64,
    behind_s: Option<f64>,
}

impl Status {
    /// # Errors
    /// The replica has stopped; with its own message.
    fn of(row: &Row) -> Result<Status> {
        let field = |name: &str| text(row, name).unwrap_or_default();
        for (thread, words, what) in [
            ("Slave_SQL_Running", "Last_SQL_Error", "applying"),
            ("Slave_IO_Running", "Last_IO_Error", "receiving"),
        ] {
            if field(thread) == "No" {
                let words = Some(field(words)).filter(|words| !words.is_empty());
                bail!("it has stopped {what}: {}", words.unwrap_or_else(|| "it does not say why".to_owned()));
            }
        }
        Ok(Status {
            receives: field("Slave_IO_Running"),
            applies: field("Slave_SQL_Running"),
            file: field("Relay_Master_Log_File"),
            position_bytes: field("Exec_Master_Log_Pos").parse().unwrap_or(0),
            behind_s: field("Seconds_Behind_Master").parse().ok(),
        })
    }

    /// Running, with a known first position.
    fn is_running(&self) -> bool {
        self.receives == "Yes" && self.applies == "Yes" && !self.file.is_empty()
    }
}

impl Replica {
    /// `None` if it does not answer in time.
    fn status(&mut self) -> Result<Option<Status>> {
        let Some(row) = self.ask() else { return Ok(None) };
        Status::of(&row).map(Some)
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

fn text(row: &Row, name: &str) -> Option<String> {
    row.get_opt::<Option<String>, _>(name)?.ok()?
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
        let logs = BinaryLogs::read(directory.path()).unwrap();
        assert_eq!(logs.0, [("binlog.000001".to_owned(), 100), ("binlog.000002".to_owned(), 50)]);
        let before = ["binlog.000001", "binlog.000002", ""].map(|file| logs.bytes_before(file));
        assert_eq!(before, [0, 100, 0]);
    }
}
