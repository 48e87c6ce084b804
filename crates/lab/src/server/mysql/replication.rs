//! Replication of MariaDB by global transaction identifiers (GTID), asynchronous or semi-synchronous.
//!
//! * All servers of a set start from copies of one database that was loaded without a binary log, so that a replica begins with the first
//!   transaction of the primary's: its `gtid_slave_pos` is empty.
//! * Replication needs TCP. The primary listens on 127.0.0.1 only, and before it lets anybody in (`init_file`) it forgets every account that
//!   could log in over TCP but the replicas' own.
//! * A semi-synchronous commit waits for the first replica that has it in its relay log; that the replica's relay log is on its disk then takes
//!   `sync_relay_log = 1` (mariadb.com/kb, Semisynchronous Replication).
//! * Positions are bytes of the primary's binary log and where a replica is in it (SHOW SLAVE STATUS). Sizes are those of the files: SHOW BINARY
//!   LOGS would wait with the commits that wait for an acknowledgement.

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

use super::files::{self, BINLOG, is_off, setting};
use super::release::{self, Release};
use super::settings::plain_name;
use super::{Mysql, USER, endpoint, option, socket};
use crate::record::{ReplicationMode, WaitPoint};
use crate::server::own_user::beside;
use crate::server::replication::{
    Access, MemberSettings, Position, Progress, ReplicaSet, Replication, ReplicationSpec,
};
use crate::server::{Instance, Refusal, Running};

const REPLICATION_USER: &str = "spindle_replica";
/// The primary's; those of the replicas follow.
const PRIMARY_SERVER_ID: usize = 1;
/// A server that does not answer within this time stands still, or has no core to answer on.
const ANSWER_PATIENCE: Duration = Duration::from_millis(250);
/// For a server that has just become ready, and is told what it has to know.
const CONNECT_PATIENCE: Duration = Duration::from_secs(60);
/// Of databases that are the server's own.
const SYSTEM_DATABASES: &str = "'mysql', 'information_schema', 'performance_schema', 'sys'";

/// What the scenario's own keys, or Spindle, decide.
const DECIDED: [(&str, &str); 10] = [
    ("server_id", "every server of a set has one of its own"),
    ("skip_log_bin", "replicas follow the binary log"),
    ("init_file", "the primary begins with one of Spindle's"),
    ("skip_slave_start", "Spindle starts the replicas"),
    ("relay_log", "it lies with the binary log"),
    ("relay_log_index", "it lies with the binary log"),
    ("rpl_semi_sync_master_enabled", "`mode` says it"),
    ("rpl_semi_sync_slave_enabled", "`mode` says it"),
    ("rpl_semi_sync_master_wait_point", "`wait_point` says it"),
    ("rpl_semi_sync_master_timeout", "`timeout` says it"),
];
/// By these a replica would leave out what the primary has.
const FILTERS: [&str; 3] = ["replicate_", "binlog_do_db", "binlog_ignore_db"];

type Settings = BTreeMap<String, String>;

impl Replication for Mysql {
    fn settings(
        &self,
        mode: ReplicationMode,
        primary: &Settings,
        own: &Settings,
    ) -> Result<MemberSettings, Refusal> {
        check_version(&self.release(), mode)?;
        primary.keys().chain(own.keys()).try_for_each(|name| check_name(name))?;
        let mut primary = primary.clone();
        for (name, value) in [("log_bin", "ON"), ("binlog_format", "ROW")] {
            if setting(&primary, name).is_none() {
                primary.insert(name.to_owned(), value.to_owned());
            }
        }
        if setting(&primary, "log_bin").is_some_and(is_off) {
            return Err(Refusal("setting `log_bin`: replicas follow the binary log; remove it".to_owned()));
        }
        let replaced = |name: &str| setting(own, &plain_name(name)).is_some();
        let mut replica: Settings = primary.clone().into_iter().filter(|(name, _)| !replaced(name)).collect();
        replica.extend(own.clone());
        Ok(MemberSettings { primary, replica })
    }

    fn told_settings(&self, spec: &ReplicationSpec) -> Vec<String> {
        let semi_sync: &[&str] = match spec.mode {
            ReplicationMode::Async => &[],
            ReplicationMode::SemiSync => &["rpl_semi_sync_master_wait_point", "rpl_semi_sync_master_timeout"],
        };
        semi_sync.iter().chain(&["sync_binlog"]).map(|&name| name.to_owned()).collect()
    }

    fn start_primary(
        &self,
        instance: &Instance,
        spec: &ReplicationSpec,
        access: &Access,
    ) -> Result<Box<dyn Running>> {
        let file = beside(&instance.runtime_directory, "accounts.sql");
        let (_, release) = self.program()?;
        USER.write(&file, accounts(&release, &access.password).as_bytes())?;
        let mut options = vec![
            option("bind-address", "127.0.0.1"),
            option("port", &access.port.to_string()),
            option("server-id", &PRIMARY_SERVER_ID.to_string()),
            option("init-file", &file.to_string_lossy()),
        ];
        if spec.is_semi_sync() {
            options.push(option("rpl-semi-sync-master-enabled", "ON"));
            let point = spec.wait_point.map(|point| match point {
                WaitPoint::AfterSync => "AFTER_SYNC",
                WaitPoint::AfterCommit => "AFTER_COMMIT",
            });
            options.extend(point.map(|point| option("rpl-semi-sync-master-wait-point", point)));
            let timeout_ms = spec.timeout.map(|timeout| timeout.as_millis().to_string());
            options.extend(timeout_ms.map(|ms| option("rpl-semi-sync-master-timeout", &ms)));
        }
        self.start_with(instance, &options)
    }

    fn start_replica(
        &self,
        instance: &Instance,
        spec: &ReplicationSpec,
        number: usize,
    ) -> Result<Box<dyn Running>> {
        let directory = files::binlog_directory(instance);
        let mut options = vec![
            "--skip-networking".to_owned(),
            option("server-id", &(PRIMARY_SERVER_ID + number).to_string()),
            option("relay-log", &directory.join("relay").to_string_lossy()),
            "--skip-slave-start".to_owned(),
        ];
        if spec.is_semi_sync() {
            options.push(option("rpl-semi-sync-slave-enabled", "ON"));
        }
        self.start_with(instance, &options)
    }

    fn connect(
        &self,
        primary: &Instance,
        replicas: &[Instance],
        spec: &ReplicationSpec,
        access: &Access,
    ) -> Result<Box<dyn ReplicaSet>> {
        let system = |instance: &Instance| endpoint(&socket(instance), "mysql");
        let replicas: Vec<Endpoint> = replicas.iter().map(system).collect();
        replicas.iter().try_for_each(|replica| follow(replica, access))?;
        Ok(Box::new(Set {
            monitor: connect_for(&system(primary), CONNECT_PATIENCE)?,
            primary: system(primary),
            binlog_directory: files::binlog_directory(primary).to_owned(),
            replicas: replicas.into_iter().map(|endpoint| Replica { endpoint, connection: None }).collect(),
            semi_sync: spec.is_semi_sync(),
        }))
    }
}

fn check_version(release: &Release, mode: ReplicationMode) -> Result<(), Refusal> {
    if !release.can(release::GTID) {
        return Err(Refusal(format!("the server is {release}, which has no GTIDs; 10.0.2 is the first")));
    }
    if mode == ReplicationMode::SemiSync && !release.can(release::SEMI_SYNC) {
        return Err(Refusal(format!(
            "the server is {release}, and semi-synchronous replication is built in from 10.3.3 on; write mode = \"async\""
        )));
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), Refusal> {
    let plain = plain_name(name);
    if let Some((_, reason)) = DECIDED.iter().find(|(decided, _)| *decided == plain) {
        return Err(Refusal(format!("setting `{name}`: {reason}; remove it")));
    }
    if FILTERS.iter().any(|filter| plain.starts_with(filter)) {
        let reason = "a replica must end with what its primary has, or the trial fails its verification";
        return Err(Refusal(format!("setting `{name}`: {reason}; remove it")));
    }
    Ok(())
}

/// Done before anybody can connect, and not written to the binary log. root has no password, and accounts for TCP too.
fn accounts(release: &Release, password: &str) -> String {
    let table = if release.can(release::GLOBAL_PRIVILEGES) { "global_priv" } else { "user" };
    format!(
        "SET SESSION sql_log_bin = 0;\n\
         DELETE FROM mysql.{table} WHERE Host <> 'localhost';\n\
         FLUSH PRIVILEGES;\n\
         CREATE USER '{REPLICATION_USER}'@'127.0.0.1' IDENTIFIED BY '{password}';\n\
         GRANT REPLICATION SLAVE ON *.* TO '{REPLICATION_USER}'@'127.0.0.1';\n"
    )
}

fn follow(replica: &Endpoint, access: &Access) -> Result<()> {
    let mut connection = connect_for(replica, CONNECT_PATIENCE)?;
    let Access { port, password } = access;
    connection
        .query_drop(format!(
            "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = '{REPLICATION_USER}', \
             MASTER_PASSWORD = '{password}', MASTER_CONNECT_RETRY = 1, MASTER_USE_GTID = slave_pos"
        ))
        .context("telling a replica where its primary is")?;
    connection.query_drop("START SLAVE").context("starting a replica")
}

struct Set {
    primary: Endpoint,
    /// To the primary.
    monitor: Conn,
    binlog_directory: PathBuf,
    replicas: Vec<Replica>,
    semi_sync: bool,
}

struct Replica {
    endpoint: Endpoint,
    /// Made when it is needed, and again after an answer that did not come.
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
        // The primary is asked last: it has written whatever a replica has applied.
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
    /// `None` for one that does not answer in time.
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

    /// A replica that has not begun is in no file.
    fn bytes_before(&self, file: &str) -> u64 {
        if !self.0.iter().any(|(name, _)| name == file) {
            return 0;
        }
        self.0.iter().take_while(|(name, _)| name != file).map(|(_, bytes)| bytes).sum()
    }
}

/// Of SHOW SLAVE STATUS.
struct Status {
    receives: String,
    applies: String,
    /// Of the primary's binary log, up to where all is applied.
    file: String,
    position_bytes: u64,
    behind_s: Option<f64>,
}

impl Status {
    /// # Errors
    /// It has stopped; with what it says of that.
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

    /// Its first position is known too.
    fn is_running(&self) -> bool {
        self.receives == "Yes" && self.applies == "Yes" && !self.file.is_empty()
    }
}

impl Replica {
    /// `None` when it does not answer in time.
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

/// A connection whose answers come within `patience`.
fn connect_for(endpoint: &Endpoint, patience: Duration) -> Result<Conn> {
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

/// Of all tables of the users.
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
    use super::super::Flavour;
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// A server that is not here counts as the newest.
    fn members(primary: &[(&str, &str)], own: &[(&str, &str)]) -> Result<MemberSettings, Refusal> {
        let source = crate::server::Source::Program("/nowhere".into());
        let server = Mysql::new(Flavour::MariaDb, source, crate::server::Trust::MayRun);
        Replication::settings(&server, ReplicationMode::SemiSync, &settings(primary), &settings(own))
    }

    #[test]
    fn replicas_have_the_primarys_settings_but_for_their_own() {
        let given = members(&[("sync-binlog", "1"), ("binlog_format", "MIXED")], &[("sync_binlog", "0")]);
        let given = given.unwrap();
        let expect = [("binlog_format", "MIXED"), ("log_bin", "ON"), ("sync-binlog", "1")];
        assert_eq!(given.primary, settings(&expect));
        let expect = [("binlog_format", "MIXED"), ("log_bin", "ON"), ("sync_binlog", "0")];
        assert_eq!(given.replica, settings(&expect));
        assert_eq!(members(&[], &[]).unwrap().primary["binlog_format"], "ROW");
    }

    #[test]
    fn settings_that_collide_are_refused() {
        let refused =
            |primary: &[(&str, &str)], own: &[(&str, &str)]| members(primary, own).unwrap_err().to_string();
        assert!(refused(&[("log-bin", "OFF")], &[]).starts_with("setting `log_bin`: replicas follow"));
        assert!(
            refused(&[("skip-log-bin", "1")], &[]).starts_with("setting `skip-log-bin`: replicas follow")
        );
        assert!(refused(&[], &[("server_id", "7")]).contains("has one of its own"));
        assert!(refused(&[("rpl_semi_sync_master_timeout", "7")], &[]).contains("`timeout` says it"));
        assert!(refused(&[], &[("replicate-do-db", "x")]).contains("what its primary has"));
    }

    #[test]
    fn a_version_without_it_is_refused() {
        let check = |text: &str, mode| check_version(&Release::parse(text).unwrap(), mode).map_err(|r| r.0);
        let old = "Ver 10.2.44-MariaDB for Linux";
        assert_eq!(check(old, ReplicationMode::Async), Ok(()));
        assert!(check(old, ReplicationMode::SemiSync).unwrap_err().contains("from 10.3.3 on"));
    }

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
