//! MariaDB, MySQL and Percona Server, run privately: those of the distribution's packages, any by its path, and old ones that Spindle
//! fetches.
//!
//! A server of ours never touches one that is installed: it reads no option file, has its own directories, listens on a
//! unix socket in its runtime directory only, and runs as a numeric user that no account has. Root may log in without a
//! password; only root and that user can reach the socket. A primary also listens on 127.0.0.1, for its replicas (`replication.rs`).

mod files;
mod prepare;
mod program;
mod release;
mod replication;
mod settings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use mysql::Conn;
use mysql::prelude::Queryable;
use rustix::process::Signal;
use spindle_load::sql::mysql::connect;
use spindle_load::{Endpoint, WorkloadSpec};

use super::log::quote;
use super::memory::parse_size_bytes;
use super::monitor::{self, Inquiry};
use super::own_user::OwnUser;
use super::process::{Process, QUESTION_PATIENCE, check_socket, output_within};
use super::replication::Replication;
use super::{Instance, Refusal, Running, Server, Source, Trust};
use crate::host::provenance;
use crate::record::FileClass;
use files::is_plain;
pub(crate) use files::redo_bytes;
use program::Program;
pub use release::{Flavour, Release};
pub(super) use settings::objection;
use settings::plain_name;

const USER: OwnUser = OwnUser(61_417);
/// The workload's schema; made when it is loaded.
const DATABASE: &str = "spindle";

/// Settings that shape the files when they are made.
const SHAPING_SETTINGS: [&str; 9] = [
    "innodb_page_size",
    "innodb_checksum_algorithm",
    "innodb_undo_tablespaces",
    "innodb_data_file_path",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "innodb_file_per_table",
    "innodb_file_format",
    "innodb_redo_log_capacity",
];

/// Settings that the tables are made with, and those of the plugins that make them.
const TABLE_SETTINGS: [&str; 6] = [
    "default_storage_engine",
    "storage_engine",
    "plugin_load",
    "plugin_load_add",
    "plugin_dir",
    "plugin_maturity",
];

/// Nothing needs to survive a crash while a database is loaded; the clean shutdown makes it whole. Without a dump of the
/// buffer pool a trial starts with an empty one. A binary log of the rows would be a second copy of them in every snapshot.
const LOADING_SETTINGS: [(&str, &str); 6] = [
    ("innodb_buffer_pool_size", "512M"),
    ("innodb_flush_log_at_trx_commit", "0"),
    ("innodb_doublewrite", "OFF"),
    (files::LOG_BIN, "OFF"),
    (DUMP_OF_THE_POOL, "OFF"),
    ("innodb_flush_method", "O_DIRECT"),
];

const DUMP_OF_THE_POOL: &str = "innodb_buffer_pool_dump_at_shutdown";

#[derive(Debug)]
pub struct Mysql {
    flavour: Flavour,
    source: Source,
    trust: Trust,
}

impl Mysql {
    /// `Percona` is of the same kind as `MySql`.
    pub fn new(flavour: Flavour, source: Source, trust: Trust) -> Mysql {
        Mysql { flavour, source, trust }
    }

    fn program(&self) -> Result<(Program, Release)> {
        let program = Program::find(self.flavour, &self.source)?;
        USER.check_way(&program.path)?;
        let release = program.release()?;
        let is_mariadb = release.flavour == Flavour::MariaDb;
        if is_mariadb != (self.flavour == Flavour::MariaDb) {
            let kind = kind_of(release.flavour);
            let words = format!("{} is {release}; write kind = \"{kind}\"", program.path.display());
            return Err(Refusal(words).into());
        }
        if let Some(base) = &program.base {
            USER.check_way(base)?;
        }
        Ok((program, release))
    }

    /// Of a server that is not here, or that must not be asked, what the newest can do.
    fn release(&self) -> Release {
        if self.trust == Trust::ReadOnly && matches!(self.source, Source::Program(_)) {
            return Release::newest(self.flavour);
        }
        self.program().map_or_else(|_| Release::newest(self.flavour), |(_, release)| release)
    }
}

fn kind_of(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::MariaDb => "mariadb",
        Flavour::MySql | Flavour::Percona => "mysql",
    }
}

impl Server for Mysql {
    fn kind(&self) -> &'static str {
        kind_of(self.flavour)
    }

    fn accepted_workloads(&self) -> Vec<&'static str> {
        [WorkloadSpec::ON_EVERY_DATABASE, &["sysbench", "mysqlslap"]].concat()
    }

    fn check_workload(&self, kind: &str, settings: &BTreeMap<String, String>) -> Result<(), Refusal> {
        match table_engine(settings) {
            Some(engine) if kind == "tpcc" && has_no_transactions(engine) => Err(Refusal(format!(
                "keeps its tables in {engine} (`default_storage_engine`), which has no transactions"
            ))),
            _ => Ok(()),
        }
    }

    fn files_of(&self, class: FileClass, settings: &BTreeMap<String, String>) -> Result<String, Refusal> {
        files::files_of(&self.release(), class, settings)
    }

    fn path(&self) -> Result<Option<PathBuf>> {
        Ok(Some(Program::find(self.flavour, &self.source)?.path))
    }

    fn version(&self) -> Result<String> {
        Ok(self.program()?.1.to_string())
    }

    fn check(&self, instance: &Instance) -> Result<(), Refusal> {
        settings::check(&instance.settings)?;
        check_socket(&socket(instance))?;
        files::check(&self.release(), &instance.settings)?;
        check_buffer_pool(&instance.settings)?;
        // A missing server is not the settings' fault and is told elsewhere.
        self.program()
            .map_or(Ok(()), |(program, release)| check_names(&program, &release, &instance.settings))
    }

    fn load_settings(&self, settings: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let release = self.release();
        let shapes = |name: &str| {
            let name = plain_name(name);
            SHAPING_SETTINGS.contains(&name.as_str()) || is_for_tables(&name)
        };
        let mut chosen: BTreeMap<String, String> = settings
            .iter()
            .filter(|(name, _)| shapes(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let known = |name: &str| match name {
            DUMP_OF_THE_POOL => release.can(release::DUMP_OF_THE_POOL),
            // Elsewhere nothing turns it on.
            files::LOG_BIN => release.can(release::BINLOG_BY_DEFAULT),
            _ => true,
        };
        let loading = LOADING_SETTINGS.into_iter().filter(|(name, _)| known(name));
        chosen.extend(loading.map(|(name, value)| (name.to_owned(), value.to_owned())));
        chosen
    }

    fn prepare(&self, instance: &Instance) -> Result<()> {
        self.check(instance)?;
        own_directories(instance)?;
        let (program, release) = self.program()?;
        prepare::prepare(&program, &release, instance)
    }

    fn start(&self, instance: &Instance) -> Result<Box<dyn Running>> {
        self.start_with(instance, &["--skip-networking".to_owned()])
    }

    fn replication(&self) -> Option<&dyn Replication> {
        (self.flavour == Flavour::MariaDb).then_some(self)
    }
}

impl Mysql {
    /// `more` are options besides the instance's.
    fn start_with(&self, instance: &Instance, more: &[String]) -> Result<Box<dyn Running>> {
        self.check(instance)?;
        own_directories(instance)?;
        let (program, release) = self.program()?;
        let runtime = &instance.runtime_directory;
        let mut command = Command::new(&program.path);
        // Of two values of one option the server takes the later, which is ours.
        command
            .arg("--no-defaults")
            .args(plain_options(&release, &instance.settings))
            .args(program.options())
            .arg(option("datadir", &instance.data_directory.to_string_lossy()))
            .arg(option("socket", &socket(instance).to_string_lossy()))
            .arg(option("pid-file", &runtime.join("pid").to_string_lossy()))
            .args(files::options(&release, instance).iter().map(|(name, value)| option(name, value)))
            .arg("--skip-name-resolve")
            .args(own_options(&release))
            .args(more);
        let process = Process::spawn(USER.run(&mut command), &program.name(), runtime, quote)?;
        let socket = socket(instance);
        let inquiry = Inquiry::new(&program.name(), endpoint(&socket, "mysql"));
        Ok(Box::new(RunningMysql { process, endpoint: endpoint(&socket, DATABASE), inquiry }))
    }
}

/// What MySQL would do otherwise: listen in a second protocol, want a directory that only packages make, and refuse the loader's rows.
fn own_options(release: &Release) -> Vec<&'static str> {
    match release.flavour {
        Flavour::MariaDb => Vec::new(),
        // What a workload told the server to keep (SET PERSIST) would override what we say here.
        _ if release.can(release::NO_FILES) => {
            vec![
                "--local-infile=1",
                "--loose-mysqlx=0",
                "--secure-file-priv=NULL",
                "--loose-persisted-globals-load=0",
            ]
        }
        _ => vec!["--local-infile=1"],
    }
}

fn option(name: &str, value: &str) -> String {
    format!("--{name}={value}")
}

fn socket(instance: &Instance) -> PathBuf {
    instance.runtime_directory.join("socket")
}

/// Settings that the server gets as they were written.
fn plain_options(release: &Release, settings: &BTreeMap<String, String>) -> impl Iterator<Item = String> {
    let plain = settings.iter().filter(|(name, _)| is_plain(name));
    plain.map(|(name, value)| option(name, value_for(release, value)))
}

/// A switch in the words that this version knows.
fn value_for<'a>(release: &Release, value: &'a str) -> &'a str {
    match value.to_ascii_uppercase().as_str() {
        "ON" | "TRUE" if !release.can(release::WORDS_FOR_SWITCHES) => "1",
        "OFF" | "FALSE" if !release.can(release::WORDS_FOR_SWITCHES) => "0",
        _ => value,
    }
}

fn is_for_tables(name: &str) -> bool {
    TABLE_SETTINGS.contains(&name) || name.starts_with("rocksdb_")
}

fn table_engine(settings: &BTreeMap<String, String>) -> Option<&str> {
    ["default_storage_engine", "storage_engine"].iter().find_map(|name| files::setting(settings, name))
}

/// Others may be plugins; the loader asks the server about them.
fn has_no_transactions(engine: &str) -> bool {
    const ENGINES: [&str; 8] =
        ["myisam", "aria", "memory", "heap", "csv", "archive", "blackhole", "mrg_myisam"];
    ENGINES.contains(&engine.to_ascii_lowercase().as_str())
}

/// InnoDB would start with a pool larger than memory, and the trial would measure the swap.
fn check_buffer_pool(settings: &BTreeMap<String, String>) -> Result<(), Refusal> {
    const NAME: &str = "innodb_buffer_pool_size";
    let Some((name, value)) = settings.iter().find(|(name, _)| name.replace('-', "_") == NAME) else {
        return Ok(());
    };
    let Some(pool_bytes) = parse_size_bytes(value) else {
        return Err(Refusal(format!(
            "setting `{name}` = \"{value}\" is no size; write for example \"128M\""
        )));
    };
    let memory_bytes = provenance::memory_bytes();
    if pool_bytes > memory_bytes {
        return Err(Refusal(format!(
            "setting `{name}` = \"{value}\" is larger than this machine's memory of {} MiB; choose less",
            memory_bytes >> 20
        )));
    }
    Ok(())
}

/// Lets the server itself read the settings, without starting: it knows its own names and values best.
fn check_names(
    program: &Program,
    release: &Release,
    settings: &BTreeMap<String, String>,
) -> Result<(), Refusal> {
    /// It looks for plugins in tables that are not there.
    const NO_TABLES: &str = "mysql.plugin";
    /// A wrong value of a switch is passed over.
    const PASSED_OVER: &str = "due to invalid value";
    let mut command = Command::new(&program.path);
    command.arg("--no-defaults").args(plain_options(release, settings));
    command.args(program.options()).args(own_options(release)).stdin(Stdio::null());
    if release.can(release::VALIDATE_CONFIG) {
        // Values that are passed over are warnings.
        command.args(["--validate-config", "--log-error-verbosity=2"]);
    } else {
        command.args(["--help", "--verbose"]);
    }
    let Ok(output) = output_within(USER.run(&mut command), QUESTION_PATIENCE) else { return Ok(()) };
    let errors = String::from_utf8_lossy(&output.stderr);
    let complains = |line: &str| line.contains("[ERROR]") || line.contains(PASSED_OVER);
    let lines = errors.lines().filter(|line| !line.contains(NO_TABLES));
    // A wrong value of an InnoDB setting disables InnoDB, and is no failure.
    if output.status.success() && !lines.clone().any(complains) {
        return Ok(());
    }
    let passed_over = lines.clone().find(|line| line.contains(PASSED_OVER));
    let words = match passed_over.and_then(|line| line.split_once(": ")) {
        Some((_, words)) => words.to_owned(),
        None => quote(&lines.collect::<Vec<_>>().join("\n")),
    };
    Err(Refusal(format!("the server refuses them: {words}")))
}

/// Gives the instance's directories to the server's user, and closes the runtime directory to everybody else.
fn own_directories(instance: &Instance) -> Result<()> {
    files::directories(instance).iter().try_for_each(|directory| USER.own(directory))?;
    USER.own_runtime(&instance.runtime_directory)
}

/// A connection.
#[derive(Debug)]
pub(super) struct Monitor(Conn);

impl Monitor {
    pub(super) fn connect(endpoint: &Endpoint) -> Result<Monitor> {
        Ok(Monitor(connect(endpoint)?))
    }

    /// Levels that MariaDB and Percona Server have among their counters, by their names there. One that is told nowhere stays unknown.
    fn add_levels(&mut self, counters: &mut BTreeMap<String, f64>) {
        const HISTORY: &str = "Innodb_history_list_length";
        const AGE: &str = "Innodb_checkpoint_age";
        // MySQL before 5.6 has no such table, and another's server may not show it.
        const QUERY: &str = "SELECT COUNT FROM information_schema.INNODB_METRICS \
                             WHERE NAME = 'trx_rseg_history_len' AND STATUS = 'enabled'";
        if !counters.contains_key(HISTORY) {
            let length = self.0.query_first(QUERY).unwrap_or_default();
            counters.extend(length.map(|length: f64| (HISTORY.to_owned(), length)));
        }
        let lsn = |which: &str| counters.get(&format!("Innodb_redo_log_{which}_lsn"));
        if let (false, Some(written), Some(checkpoint)) =
            (counters.contains_key(AGE), lsn("current"), lsn("checkpoint"))
        {
            counters.insert(AGE.to_owned(), written - checkpoint);
        }
    }

    /// All rows of a statement that has a name and a value per row.
    fn pairs(&mut self, statement: &str) -> Result<Vec<(String, String)>> {
        self.0.query(statement).with_context(|| format!("asking the server: {statement}"))
    }
}

impl monitor::Monitor for Monitor {
    fn settings(&mut self, names: &[String]) -> Result<BTreeMap<String, String>> {
        let all: BTreeMap<String, String> = self.pairs("SHOW GLOBAL VARIABLES")?.into_iter().collect();
        let known = names.iter().filter_map(|name| Some((name.clone(), all.get(&plain_name(name))?.clone())));
        Ok(known.collect())
    }

    fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        let pairs = self.pairs("SHOW GLOBAL STATUS")?;
        let mut counters: BTreeMap<String, f64> =
            pairs.into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect();
        self.add_levels(&mut counters);
        Ok(counters)
    }
}

#[derive(Debug)]
struct RunningMysql {
    process: Process,
    endpoint: Endpoint,
    inquiry: Inquiry,
}

fn endpoint(socket: &Path, database: &str) -> Endpoint {
    Endpoint::MysqlSocket { path: socket.to_owned(), user: "root".to_owned(), database: database.to_owned() }
}

impl Running for RunningMysql {
    fn wait_ready(&mut self, timeout: Duration) -> Result<()> {
        let inquiry = &mut self.inquiry;
        self.process.wait_ready(timeout, || inquiry.connect().map_err(|_| None))
    }

    fn check_alive(&mut self, dying_time: Duration) -> Result<()> {
        self.process.check_alive(dying_time)
    }

    fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    fn process_id(&self) -> u32 {
        self.process.id()
    }

    fn settings(&mut self, names: &[String]) -> Result<BTreeMap<String, String>> {
        self.inquiry.settings(names).map_err(|error| self.process.explain(error))
    }

    fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        self.inquiry.counters().map_err(|error| self.process.explain(error))
    }

    fn stop(&mut self, timeout: Duration) -> Result<()> {
        self.inquiry.disconnect();
        self.process.stop(Signal::TERM, timeout)
    }

    fn crash(&mut self) -> Result<()> {
        self.inquiry.disconnect();
        self.process.crash()
    }
}
