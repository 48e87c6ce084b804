//! Replication of MariaDB by global transaction identifiers (GTID), asynchronous or semi-synchronous.
//!
//! * All servers of a set start from copies of one database that was loaded without a binary log. A replica
//!   begins with the primary's first transaction: its `gtid_slave_pos` is empty.
//! * Replication needs TCP. The primary listens on 127.0.0.1 only. Before it accepts connections
//!   (`init_file`), it removes every account that could log in over TCP except the replicas' own.
//! * A semi-synchronous commit waits for the first replica that has it in its relay log. Only with
//!   `sync_relay_log = 1` is that relay log on the replica's disk (mariadb.com/kb, Semisynchronous
//!   Replication).
//! * Positions are bytes of the primary's binary log and a replica's position in it (SHOW SLAVE STATUS).
//!   Sizes are those of the files: SHOW BINARY LOGS would wait with the commits that wait for an
//!   acknowledgement.

mod replica_set;

use std::time::Duration;

use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use spindle_load::Endpoint;

use self::replica_set::{Replica, Set, connect_for};
use super::files::{self, is_off};
use super::options::option;
use super::release::{self, Release};
use super::settings::KNOWN;
use super::{Mysql, USER, endpoint, socket};
use crate::record::{ReplicationMode, WaitPoint};
use crate::server::instance::{Instance, Running};
use crate::server::process::own_user::beside;
use crate::server::replication::{Access, MemberSettings, ReplicaSet, Replication, ReplicationSpec};
use crate::server::settings::{Refusal, Settings, plain_name, setting};

const REPLICATION_USER: &str = "spindle_replica";
/// The primary's id; those of the replicas follow.
const PRIMARY_SERVER_ID: usize = 1;
/// For a server that has just become ready and gets its replication setup.
const CONNECT_PATIENCE: Duration = Duration::from_secs(60);
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
        let replicas: Vec<Replica> =
            replicas.iter().map(|replica| Replica { endpoint: system(replica), connection: None }).collect();
        replicas.iter().try_for_each(|replica| follow(&replica.endpoint, access))?;
        let primary_endpoint = system(primary);
        Ok(Box::new(Set {
            monitor: connect_for(&primary_endpoint, CONNECT_PATIENCE)?,
            primary: primary_endpoint,
            binlog_directory: files::binlog_directory(primary).to_owned(),
            replicas,
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
    if let Some(reason) = KNOWN.decided.get(&plain) {
        return Err(Refusal(format!("setting `{name}`: {reason}; remove it")));
    }
    if KNOWN.filters.iter().any(|filter| plain.starts_with(filter)) {
        let reason = "a replica must end with its primary's data, or the trial fails its verification";
        return Err(Refusal(format!("setting `{name}`: {reason}; remove it")));
    }
    Ok(())
}

/// Statements that run before anybody can connect and stay out of the binary log. They remove root's accounts
/// for TCP, which have no password.
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

#[cfg(test)]
mod tests {
    use super::super::Flavour;
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// A missing server counts as the newest release.
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
        assert!(refused(&[("rpl_semi_sync_master_timeout", "7")], &[]).contains("`timeout` decides it"));
        assert!(refused(&[], &[("replicate-do-db", "x")]).contains("its primary's data"));
    }

    #[test]
    fn a_version_without_it_is_refused() {
        let check = |text: &str, mode| check_version(&Release::parse(text).unwrap(), mode).map_err(|r| r.0);
        let old = "Ver 10.2.44-MariaDB for Linux";
        assert_eq!(check(old, ReplicationMode::Async), Ok(()));
        assert!(check(old, ReplicationMode::SemiSync).unwrap_err().contains("from 10.3.3 on"));
    }
}
