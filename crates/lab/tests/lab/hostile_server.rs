//! A server under test, and whoever runs as its user, is not trusted: what it puts in the way of root changes nothing of root's.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use crate::server_support::{Bed, PATIENCE, directory};
use rustix::process::geteuid;

static MARIADB: Bed = Bed::new("mariadb", "mariadbd", &[("innodb_buffer_pool_size", "16M")]);
static POSTGRESQL: Bed = Bed::new("postgresql", "postgres", &[("shared_buffers", "8MB")]);

const SECRET: &str = "[ERROR] root:secret:1:1";

/// A file of root's that no link may lead to.
struct Victim(PathBuf);

impl Victim {
    fn new(directory: &Path) -> Victim {
        let victim = directory.join("victim");
        fs::write(&victim, SECRET).unwrap();
        Victim(victim)
    }

    #[track_caller]
    fn check_untouched(&self) {
        assert_eq!(fs::read_to_string(&self.0).unwrap(), SECRET);
        assert_eq!(fs::metadata(&self.0).unwrap().uid(), 0, "it was given away");
    }
}

/// Every name by which root once wrote into the directory of the server's user.
const NAMES: [&str; 5] = ["error.log", "install.log", "passwd", "system_tables.sql", "accounts.sql"];

fn check_links_are_not_followed(bed: &Bed) {
    let Some(server) = bed.server().filter(|_| geteuid().is_root()) else { return };
    let directory = directory();
    let victim = Victim::new(directory.path());
    let instance = bed.instance(directory.path());
    fs::create_dir(&instance.runtime_directory).unwrap();
    for name in NAMES {
        symlink(&victim.0, instance.runtime_directory.join(name)).unwrap();
    }
    server.prepare(&instance).unwrap();
    let mut running = server.start(&instance).unwrap();
    running.wait_ready(PATIENCE).unwrap();
    victim.check_untouched();
    running.crash().unwrap();
    let words = format!("{:#}", running.check_alive(PATIENCE).unwrap_err());
    assert!(words.contains("died") && !words.contains("secret"), "{words}");
    victim.check_untouched();
}

#[test]
fn mariadb_cannot_turn_roots_log_to_another_file() {
    check_links_are_not_followed(&MARIADB);
}

#[test]
fn postgresql_cannot_turn_roots_log_to_another_file() {
    check_links_are_not_followed(&POSTGRESQL);
}

#[test]
fn a_link_in_the_place_of_the_log_is_replaced_and_not_followed() {
    let Some(server) = MARIADB.server().filter(|_| geteuid().is_root()) else { return };
    let directory = directory();
    let victim = Victim::new(directory.path());
    let instance = MARIADB.instance(directory.path());
    server.prepare(&instance).unwrap();
    symlink(&victim.0, directory.path().join("runtime.log")).unwrap();
    let mut running = server.start(&instance).unwrap();
    running.wait_ready(PATIENCE).unwrap();
    victim.check_untouched();
    let log = fs::symlink_metadata(directory.path().join("runtime.log")).unwrap();
    assert!(log.is_file() && log.uid() == 0 && log.mode() & 0o777 == 0o600, "{log:?}");
}

#[test]
fn a_directory_that_is_a_link_is_not_given_away() {
    for bed in [&MARIADB, &POSTGRESQL] {
        let Some(server) = bed.server().filter(|_| geteuid().is_root()) else { return };
        let directory = directory();
        let instance = bed.instance(directory.path());
        let other = directory.path().join("other");
        fs::create_dir(&other).unwrap();
        symlink(&other, &instance.data_directory).unwrap();
        let error = format!("{:#}", server.prepare(&instance).unwrap_err());
        assert!(error.contains("is not a directory of its own"), "{error}");
        assert_eq!(fs::metadata(&other).unwrap().uid(), 0, "it was given away");
    }
}

#[test]
fn mariadb_is_not_opened_to_others_by_another_spelling_of_a_setting() {
    for name in ["disable-skip-networking", "loose_port", "skip-skip-networking", "bind-addres", "extra-port"]
    {
        MARIADB.check_refused(name, "1", true, &format!("setting `{name}`: "));
    }
}

#[test]
fn no_spelling_of_a_setting_moves_mariadbs_files_off_the_storage() {
    for name in [
        "innodb-log-group",
        "loose_innodb_log_group_home_dir",
        "plugin-innodb-undo-directory",
        "aria_log_dir_path",
    ] {
        MARIADB.check_refused(name, "/tmp", true, &format!("setting `{name}`: "));
    }
}

#[test]
fn postgresql_is_not_opened_to_others_by_another_spelling_of_a_setting() {
    for name in
        ["listen-addresses", "LISTEN-addresses", "unix-socket-directories", "work_mem=4MB listen_addresses"]
    {
        POSTGRESQL.check_refused(name, "127.0.0.1", true, &format!("setting `{name}`: "));
    }
}
