//! A real server under the real load process. One small database is loaded once; each test starts its own
//! server on its own copy of the files.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use spindle_base::histogram::decode;
use spindle_lab::host::trial_time::TrialTime;
use spindle_lab::record::FileClass;
use spindle_lab::run::client::ClientProcess;
use spindle_lab::server::package;
use spindle_lab::server::{Instance, Refusal, Running, Server, by_kind};
use spindle_load::sql::{self, Session};
use spindle_load::workloads::tpcc;
use spindle_load::{Endpoint, RunSpec, Second, Summary, Workload, WorkloadSpec};
use tempfile::TempDir;

use crate::{PATIENCE, planted, skip, wait_until};

pub(crate) const SEED: u64 = 20_261_121;
pub(crate) const WAREHOUSES: u32 = 2;

/// The server of the machine.
pub(crate) fn installed(kind: &str) -> Option<Box<dyn Server>> {
    let server = by_kind(kind).unwrap();
    if server.version().is_err() {
        return skip(&format!("no {kind}"));
    }
    Some(server)
}

/// Fetches a server that is not yet in the machine's cache.
pub(crate) fn get(name: &str) -> PathBuf {
    let output = Command::new(env!("CARGO_BIN_EXE_spindle")).args(["server", "get", name]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    package::by_name(name).unwrap().program().unwrap()
}

/// A kind of server with the settings that all its tests begin with.
pub(crate) struct Bed {
    kind: &'static str,
    settings: &'static [(&'static str, &'static str)],
    loaded: Mutex<Weak<TempDir>>,
}

impl Bed {
    pub(crate) const fn new(kind: &'static str, settings: &'static [(&'static str, &'static str)]) -> Bed {
        Bed { kind, settings, loaded: Mutex::new(Weak::new()) }
    }

    pub(crate) fn server(&self) -> Option<Box<dyn Server>> {
        installed(self.kind)
    }

    pub(crate) fn instance(&self, directory: &Path) -> Instance {
        instance(directory, self.settings)
    }

    /// The loaded and cleanly stopped database that the tests copy. The last test that holds it removes it.
    fn original(&self, server: &dyn Server) -> Arc<TempDir> {
        let mut shared = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = shared.upgrade() {
            return loaded;
        }
        eprintln!("seed {SEED}");
        let loaded = Arc::new(directory());
        load(server, self.instance(loaded.path()));
        *shared = Arc::downgrade(&loaded);
        loaded
    }

    /// On an empty database.
    pub(crate) fn empty(&self) -> Option<OwnServer> {
        Some(OwnServer::empty(self.server()?, self.settings))
    }

    /// On a copy of the loaded database.
    pub(crate) fn loaded(&self) -> Option<OwnServer> {
        self.loaded_with(&[])
    }

    pub(crate) fn loaded_with(&self, settings: &[(&str, &str)]) -> Option<OwnServer> {
        let server = self.server()?;
        let directory = directory();
        let mut instance = self.instance(directory.path());
        instance.settings.extend(owned(settings));
        let original = self.original(&*server);
        let copied = Command::new("cp")
            .args(["-a", "--reflink=auto"])
            .arg(original.path().join("data"))
            .arg(&instance.data_directory)
            .status()
            .unwrap();
        assert!(copied.success());
        Some(OwnServer::start(server, instance, directory, Some(original)))
    }

    /// Starts with one more setting; the sentence must name it.
    #[track_caller]
    pub(crate) fn check_refused(&self, name: &str, value: &str, before_any_work: bool, expect: &str) {
        let Some(server) = self.server() else { return };
        let directory = directory();
        let mut instance = self.instance(directory.path());
        if !before_any_work {
            server.prepare(&instance).unwrap();
        }
        instance.settings.insert(name.to_owned(), value.to_owned());
        let error = match server.start(&instance) {
            Err(error) => error,
            Ok(mut running) => running.wait_ready(PATIENCE).unwrap_err(),
        };
        assert!(format!("{error:#}").contains(expect), "{error:#}");
        assert_eq!(error.downcast_ref::<Refusal>().is_some(), before_any_work, "{error:#}");
        assert_eq!(instance.data_directory.exists(), !before_any_work);
    }
}

/// A server that runs on files of its own. Dropping it ends the server, then removes the files.
pub(crate) struct OwnServer {
    running: Box<dyn Running>,
    server: Box<dyn Server>,
    pub(crate) instance: Instance,
    directory: TempDir,
    /// Kept for the other tests as long as this one runs.
    _original: Option<Arc<TempDir>>,
}

impl Deref for OwnServer {
    type Target = dyn Running;

    fn deref(&self) -> &Self::Target {
        &*self.running
    }
}

impl DerefMut for OwnServer {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.running
    }
}

/// What a server counted before and after a load, and what the clients counted meanwhile.
pub(crate) struct Counted {
    pub(crate) before: BTreeMap<String, f64>,
    pub(crate) after: BTreeMap<String, f64>,
    pub(crate) summary: Summary,
}

impl OwnServer {
    pub(crate) fn empty(server: Box<dyn Server>, settings: &[(&str, &str)]) -> OwnServer {
        OwnServer::empty_in(directory(), server, settings)
    }

    pub(crate) fn empty_in(
        directory: TempDir,
        server: Box<dyn Server>,
        settings: &[(&str, &str)],
    ) -> OwnServer {
        let instance = instance(directory.path(), settings);
        server.prepare(&instance).unwrap();
        OwnServer::start(server, instance, directory, None)
    }

    fn start(
        server: Box<dyn Server>,
        instance: Instance,
        directory: TempDir,
        original: Option<Arc<TempDir>>,
    ) -> OwnServer {
        let running = start(&*server, &instance);
        OwnServer { running, server, instance, directory, _original: original }
    }

    /// After a stop or a crash.
    pub(crate) fn start_again(&mut self) {
        self.running = start(&*self.server, &self.instance);
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn session(&self) -> Box<dyn Session> {
        sql::connect(&self.endpoint()).unwrap()
    }

    pub(crate) fn number(&self, query: &str) -> i64 {
        self.session().number(query).unwrap()
    }

    /// Runs TPC-C, stops, starts, crashes and starts. No order is lost and no condition is violated.
    /// `commits` is the server's counter of commits, and `counters` are others that it must have.
    pub(crate) fn check_restarts(&mut self, commits: &str, counters: &[&str]) -> Counted {
        check_consistent(&**self);
        let before = self.counters().unwrap();
        let mut client = load_process(&**self, 8);
        assert_ne!(client.process_id(), std::process::id());
        let mut warm_up_seconds = 0;
        wait_until("a second of the warm-up", || {
            let mut count = |second: &Second| warm_up_seconds += u32::from(!second.measured);
            client.watch(Duration::from_secs(1), &mut count).unwrap();
            warm_up_seconds > 0
        });
        let is_complete = |summary: &Summary, seconds: &[Second]| {
            has_seconds(summary, seconds) && summary.kinds.iter().all(|kind| kind.committed > 0)
        };
        let (summary, seconds) = measure_until(&mut client, Duration::from_secs(4), is_complete).unwrap();
        client.stop().unwrap();
        check_nothing_failed(&summary);
        assert!(is_complete(&summary, &seconds), "{:?}", summary.kinds);
        assert!(summary.client_cpu_s > 0.0, "{summary:?}");
        let commit_wait_s = summary.commit_wait_s.unwrap();
        assert!(commit_wait_s > 0.0 && commit_wait_s < summary.terminal_time_s);
        let in_seconds: u64 = seconds.iter().map(|second| second.transactions).sum();
        assert!(in_seconds > 0 && in_seconds <= transactions(&summary));
        let after = self.counters().unwrap();
        let commits = after[commits] - before.get(commits).copied().unwrap_or(0.0);
        assert!(commits >= summary.kinds[0].committed as f64, "{commits}");
        for name in counters {
            assert!(after.contains_key(*name), "{name}: {after:?}");
        }
        check_consistent(&**self);

        const ORDERS: &str = "SELECT COUNT(*) FROM orders";
        let orders = self.number(ORDERS);
        assert!(orders as u64 >= u64::from(WAREHOUSES) * 30_000 + summary.kinds[0].committed, "{orders}");
        self.stop(PATIENCE).unwrap();
        self.start_again();
        assert_eq!(self.number(ORDERS), orders);
        self.crash().unwrap();
        self.start_again();
        assert_eq!(self.number(ORDERS), orders);
        check_consistent(&**self);
        Counted { before, after, summary }
    }

    /// With a cache for the whole database, it is read once; the server's own housekeeping may read a page or two
    /// later. `reads` counts pages; a session's are only counted once it is out of `sessions`.
    pub(crate) fn check_fills_its_cache(&mut self, reads: &str, page_bytes: f64, sessions: &str) {
        // The harness has sessions of its own.
        let own = (0..10).map(|_| self.number(sessions)).min().unwrap();
        let mut filling = || {
            let before = self.counters().unwrap()[reads];
            self.fill_cache().unwrap();
            wait_until("the sessions have left", || self.number(sessions) <= own);
            self.counters().unwrap()[reads] - before
        };
        let (first, second) = (filling(), filling());
        assert!(first * page_bytes > 50e6 && second < first / 1_000.0, "{first} and {second} pages");
    }

    /// With a cache that is too small, nothing is read.
    pub(crate) fn check_leaves_its_cache(&mut self, reads: &str) {
        let before = self.counters().unwrap()[reads];
        self.fill_cache().unwrap();
        let count = self.counters().unwrap()[reads] - before;
        assert!(count < 1_000.0, "{count} pages were read");
    }

    pub(crate) fn check_every_planted_violation(&self) {
        planted::check_every_planted_violation(&*tpcc_workload(), &self.endpoint());
    }

    /// `schema`: where the server keeps the tables.
    pub(crate) fn check_preset_of_tpcc_mysql(&self, schema: &str) {
        let workload: WorkloadSpec = serde_json::from_str(
            r#"{"kind": "tpcc", "preset": "tpcc-mysql", "warehouses": 1, "terminals": 3}"#,
        )
        .unwrap();
        let built = workload.build().unwrap();
        // The second load drops tables that refer to each other.
        for _ in 0..2 {
            built.load(&self.endpoint(), SEED, &mut |_| Ok(())).unwrap();
        }
        let keys = "SELECT COUNT(*) FROM information_schema.referential_constraints WHERE constraint_schema";
        assert_eq!(self.number(&format!("{keys} = '{schema}'")), 10);
        let mut client = ready_client(&RunSpec::new(self.endpoint(), workload, SEED));
        let summary = client.measure(Duration::from_secs(1), &mut |_| ()).unwrap();
        client.stop().unwrap();
        check_nothing_failed(&summary);
        assert_eq!(summary.metric.name, "new orders per minute, those rolled back by intent included");
        assert_eq!(planted::violations(&*built, &self.endpoint()), Vec::<String>::new());
    }

    /// `program`: as the sentence about its death names it.
    pub(crate) fn check_death_under_load(&mut self, program: &str) {
        let mut client = load_process(&**self, 4);
        client.watch(Duration::from_millis(500), &mut |_| ()).unwrap();
        self.crash().unwrap();
        let killed_at = Instant::now();
        let error = client.measure(PATIENCE, &mut |_| ()).unwrap_err();
        assert!(format!("{error:#}").contains("the load cannot go on"), "{error:#}");
        assert!(killed_at.elapsed() < PATIENCE, "the load went on to the end of the window");
        let error = format!("{:#}", self.counters().unwrap_err());
        assert!(error.contains(&format!("{program} died")), "{error}");
    }

    /// A setting of the server makes transactions fail that meet a row newer than their snapshot.
    pub(crate) fn check_newer_rows(&self) {
        let mut client = load_process(&**self, 8);
        let has_retried = |summary: &Summary, _: &[Second]| retried(summary) > 0;
        let (summary, _) = measure_until(&mut client, Duration::from_secs(3), has_retried).unwrap();
        client.stop().unwrap();
        check_nothing_failed(&summary);
        assert!(retried(&summary) > 0, "{:?}", summary.kinds);
        check_consistent(&**self);
    }

    /// One terminal against an opponent that has locked all customers with the statements of `lock`.
    /// `waiting` is the server's counter of transactions that wait for a lock. `provoke` is called when the
    /// terminal waits for a customer and holds locks of its own; it returns after the terminal has lost. The
    /// opponent gives way in the measured window. Returns the number of retries.
    pub(crate) fn check_retries(
        &mut self,
        lock: &[&str],
        waiting: &str,
        provoke: impl FnOnce(&dyn Running, &mut dyn Session),
    ) -> u64 {
        let mut opponent = self.session();
        lock.iter().for_each(|statement| opponent.execute(statement).unwrap());
        let mut client = load_process(&**self, 1);
        wait_until("the terminal to wait for a lock", || self.counters().unwrap()[waiting] == 1.0);
        provoke(&**self, &mut *opponent);
        let mut give_way = |_: &Second| opponent.rollback().unwrap();
        let summary = client.measure(Duration::from_secs(3), &mut give_way).unwrap();
        client.stop().unwrap();
        check_nothing_failed(&summary);
        let longest = summary.kinds.iter().map(|kind| decode(&kind.histogram).unwrap().max());
        let longest_us = longest.max().unwrap();
        assert!(longest_us >= 1_000_000, "{longest_us} us: the latency includes attempts that were lost");
        check_consistent(&**self);
        retried(&summary)
    }

    pub(crate) fn check_settings_and_user(&mut self, expect: &[(&str, &str)]) {
        let expect = owned(expect);
        let names: Vec<String> = expect.keys().cloned().collect();
        assert_eq!(self.settings(&names).unwrap(), expect);
        check_runs_as_nobodys_user(self.process_id());
    }

    /// `least`: how many processes such a server has.
    pub(crate) fn check_dropped(self, least: usize) {
        let mut session = self.session();
        session.execute("SELECT 1").unwrap();
        let (directory, process) = (self.path().to_owned(), format!("/proc/{}", self.process_id()));
        let before = processes(&directory);
        assert!(before >= least && Path::new(&process).exists(), "{before} processes");
        drop(self);
        assert!(processes(&directory) == 0 && !Path::new(&process).exists());
        assert!(session.execute("SELECT 1").is_err());
    }
}

/// Not in the test's own temporary directory, which only its owner may enter.
pub(crate) fn directory() -> TempDir {
    directory_in(&std::env::temp_dir())
}

pub(crate) fn directory_in(parent: &Path) -> TempDir {
    let directory = tempfile::Builder::new().prefix("spindle-test-").tempdir_in(parent).unwrap();
    let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    directory
}

/// Processes that are at work in a directory.
pub(crate) fn processes(directory: &Path) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let places = all.filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok());
    places.filter(|place| place.starts_with(directory)).count()
}

/// Sorted.
pub(crate) fn file_names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn owned(settings: &[(&str, &str)]) -> BTreeMap<String, String> {
    settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn instance(directory: &Path, settings: &[(&str, &str)]) -> Instance {
    Instance {
        data_directory: directory.join("data"),
        class_directories: BTreeMap::new(),
        runtime_directory: directory.join("runtime"),
        settings: owned(settings),
        environment: Vec::new(),
        control_group: None,
        changing: Vec::new(),
    }
}

/// A directory for each class of files that MariaDB and MySQL can keep apart from their data.
pub(crate) fn class_directories(directory: &Path) -> BTreeMap<FileClass, PathBuf> {
    let classes =
        [FileClass::Redo, FileClass::Doublewrite, FileClass::Undo, FileClass::Binlog, FileClass::Temp];
    classes.map(|class| (class, directory.join(class.key()))).into()
}

pub(crate) fn start(server: &dyn Server, instance: &Instance) -> Box<dyn Running> {
    let mut running = server.start(instance).unwrap();
    running.wait_ready(PATIENCE).unwrap();
    running
}

/// As a data set is made.
pub(crate) fn load(server: &dyn Server, mut instance: Instance) {
    instance.settings = server.load_settings(&instance.settings);
    server.prepare(&instance).unwrap();
    let mut running = start(server, &instance);
    let mut last = None;
    tpcc_workload()
        .load(&running.endpoint(), SEED, &mut |progress| {
            last = Some(progress);
            Ok(())
        })
        .unwrap();
    let last = last.unwrap();
    assert_eq!(last.rows_done, last.rows_total);
    running.stop(PATIENCE).unwrap();
}

pub(crate) fn workload(terminals: u32) -> WorkloadSpec {
    WorkloadSpec::Tpcc(tpcc::Spec::new(WAREHOUSES, terminals))
}

pub(crate) fn tpcc_workload() -> Box<dyn Workload> {
    workload(1).build().unwrap()
}

/// The load process when its clients are connected.
pub(crate) fn ready_client(spec: &RunSpec) -> ClientProcess {
    let mut client =
        ClientProcess::spawn(Path::new(env!("CARGO_BIN_EXE_spindle")), spec, &TrialTime::real()).unwrap();
    client.wait_ready(PATIENCE).unwrap();
    client
}

pub(crate) fn load_process(running: &dyn Running, terminals: u32) -> ClientProcess {
    ready_client(&RunSpec::new(running.endpoint(), workload(terminals), SEED))
}

/// Measures until a window `has` what is asked for: on a busy machine little ends in a short window.
pub(crate) fn measure_until(
    client: &mut ClientProcess,
    window: Duration,
    has: impl Fn(&Summary, &[Second]) -> bool,
) -> anyhow::Result<(Summary, Vec<Second>)> {
    let started = Instant::now();
    loop {
        let mut seconds = Vec::new();
        let summary = client.measure(window, &mut |second| seconds.push(second.clone()))?;
        if has(&summary, &seconds) || started.elapsed() > PATIENCE {
            return Ok((summary, seconds));
        }
    }
}

pub(crate) fn has_metric(summary: &Summary, _: &[Second]) -> bool {
    summary.metric.value > 0.0
}

/// One of the window's seconds has transactions, too.
pub(crate) fn has_seconds(summary: &Summary, seconds: &[Second]) -> bool {
    summary.metric.value > 0.0 && seconds.iter().any(|second| second.transactions > 0)
}

/// What the workload finds in the database it has used.
#[track_caller]
pub(crate) fn check_verified(workload: &dyn Workload, endpoint: &Endpoint) {
    let checks = workload.verify(endpoint).unwrap();
    assert!(!checks.is_empty() && checks.iter().all(|check| check.passed), "{checks:?}");
}

/// All conditions of TPC-C hold.
#[track_caller]
pub(crate) fn check_consistent(running: &dyn Running) {
    assert_eq!(planted::violations(&*tpcc_workload(), &running.endpoint()), Vec::<String>::new());
}

#[track_caller]
pub(crate) fn check_nothing_failed(summary: &Summary) {
    assert_eq!(summary.errors, BTreeMap::new());
    assert!(summary.kinds.iter().all(|kind| kind.failed == 0), "{:?}", summary.kinds);
}

pub(crate) fn transactions(summary: &Summary) -> u64 {
    summary.kinds.iter().map(|kind| kind.committed + kind.rolled_back).sum()
}

fn retried(summary: &Summary) -> u64 {
    summary.kinds.iter().map(|kind| kind.retried).sum()
}

#[track_caller]
pub(crate) fn check_runs_as_nobodys_user(process_id: u32) {
    let status = std::fs::read_to_string(format!("/proc/{process_id}/status")).unwrap();
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    let user: u32 = user.split_whitespace().next().unwrap().parse().unwrap();
    if rustix::process::geteuid().is_root() {
        assert!((61_184..=65_519).contains(&user), "{user}");
        let accounts = std::fs::read_to_string("/etc/passwd").unwrap();
        let id = user.to_string();
        assert!(accounts.lines().all(|line| line.split(':').nth(2) != Some(id.as_str())));
    }
}
