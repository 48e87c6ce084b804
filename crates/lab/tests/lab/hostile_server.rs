//! A server under test and its user are not trusted: no link that they make leads root to a file of root's.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::PATIENCE;
use crate::emulated_support::{Bench, scenario};
use crate::server_support::{Bed, directory, start};
use rustix::process::geteuid;

static MARIADB: Bed = Bed::new("mariadb", &[("innodb_buffer_pool_size", "16M")]);
static POSTGRESQL: Bed = Bed::new("postgresql", &[("shared_buffers", "8MB")]);

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

/// Names of files that root once wrote in the directory of the server's user.
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
    let mut running = start(&*server, &instance);
    victim.check_untouched();
    running.crash().unwrap();
    let words = format!("{:#}", running.check_alive(PATIENCE).unwrap_err());
    assert!(words.contains("died") && !words.contains("secret"), "{words}");
    victim.check_untouched();
}

#[test]
fn mariadb_cannot_lead_roots_log_to_another_file() {
    check_links_are_not_followed(&MARIADB);
}

#[test]
fn postgresql_cannot_lead_roots_log_to_another_file() {
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
    let _running = start(&*server, &instance);
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

/// A program that only notes its user.
fn tell_tale(bench: &Bench, name: &str) -> (PathBuf, PathBuf) {
    let told = bench.path("told");
    fs::create_dir_all(&told).unwrap();
    fs::set_permissions(&told, fs::Permissions::from_mode(0o777)).unwrap();
    let program = bench.write(name, &format!("#!/bin/sh\nid -u >>{}/by\nexit 1\n", told.display()));
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    (program, told.join("by"))
}

/// A plan does not run the program. A run does, as this user.
#[track_caller]
fn check_who_runs(name: &str, user: &str, scenario: impl Fn(&Bench, &Path) -> String) {
    if !geteuid().is_root() {
        return;
    }
    let bench = Bench::anywhere();
    let (program, told) = tell_tale(&bench, name);
    bench.write("test.toml", &scenario(&bench, &program));
    let output = bench.run(&["plan", "test.toml"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!told.exists(), "the plan ran it as {}", fs::read_to_string(&told).unwrap());
    let output = bench.run(&["run", "test.toml"]);
    assert!(!output.status.success());
    let told = fs::read_to_string(&told).unwrap();
    assert!(told.lines().count() > 0 && told.lines().all(|line| line == user), "{told}");
}

#[test]
fn a_program_that_a_scenario_names_as_its_server_runs_as_the_servers_user() {
    check_who_runs("mysqld", "61417", |_, program| {
        let card = "[stacks.log]\nprofile = \"iodrive-160\"\nsize = \"1 GiB\"\n[layouts.apart]\ndata = \"card\"\nredo = \"log\"";
        scenario(&[
            ("kind = \"mariadb\"", &format!("kind = \"mariadb\"\nprogram = {program:?}")),
            ("[servers.mariadb]", &format!("{card}\n[servers.mariadb]")),
            ("stack = [\"card\"]", "layout = [\"apart\"]"),
        ])
    });
}

#[test]
fn the_programs_of_an_adapter_run_as_the_adapters_user() {
    check_who_runs("version", "61419", |bench, program| {
        let adapter = format!(
            "version = [{program:?}]\nprepare = [\"false\"]\nstart = [\"false\"]\nurl = \"socket:{{runtime}}/s\"\n\
             setting = \"--{{name}}={{value}}\"\n"
        );
        let file = bench.write("adapter.toml", &adapter.replace("start = [", "start = [\"{settings}\", "));
        scenario(&[("kind = \"mariadb\"", &format!("kind = \"adapter\"\nfile = {file:?}"))])
    });
}

#[test]
fn a_program_that_a_scenario_names_as_its_clients_runs_as_a_user_of_its_own() {
    let tpcc = "kind = \"tpcc\"\nwarehouses = 1\nterminals = 4";
    check_who_runs("sysbench", "61420", |_, program| {
        let sysbench = "kind = \"sysbench\"\nscript = \"read-write\"\ndistribution = \"uniform\"\ntables = 1\nrows = 100\nterminals = 1";
        scenario(&[(tpcc, &format!("{sysbench}\nprogram = {program:?}"))])
    });
    check_who_runs("mysqlslap", "61420", |_, program| {
        let slap =
            "kind = \"mysqlslap\"\nload_type = \"mixed\"\nterminals = 1\nqueries = 10\nengine = \"innodb\"";
        scenario(&[(tpcc, &format!("{slap}\nprogram = {program:?}"))])
    });
}
