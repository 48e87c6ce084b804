//! A real server under the real load process. One small database is loaded once; each test starts its own
//! server on its own copy of the files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use spindle_lab::run::client::ClientProcess;
use spindle_lab::server::{Instance, Refusal, Running, Server, Source, by_source};
use spindle_load::workloads::tpcc;
use spindle_load::{RunSpec, Summary, WorkloadSpec, sql};
use tempfile::TempDir;

use crate::planted;

pub(crate) const SEED: u64 = 20_261_121;
pub(crate) const WAREHOUSES: u32 = 2;
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A kind of server with the settings that all its tests begin with.
pub(crate) struct Bed {
    pub(crate) kind: &'static str,
    pub(crate) program: &'static str,
    source: fn() -> Source,
    settings: &'static [(&'static str, &'static str)],
    loaded: Mutex<Weak<TempDir>>,
}

impl Bed {
    pub(crate) const fn new(
        kind: &'static str,
        program: &'static str,
        settings: &'static [(&'static str, &'static str)],
    ) -> Bed {
        Bed::of(kind, program, || Source::Installed, settings)
    }

    pub(crate) const fn of(
        kind: &'static str,
        program: &'static str,
        source: fn() -> Source,
        settings: &'static [(&'static str, &'static str)],
    ) -> Bed {
        Bed { kind, program, source, settings, loaded: Mutex::new(Weak::new()) }
    }

    /// `None` where there is none, which CI must have.
    pub(crate) fn server(&self) -> Option<Box<dyn Server>> {
        let server = by_source(self.kind, &(self.source)()).unwrap();
        if server.version().is_err() {
            assert!(std::env::var_os("CI").is_none(), "CI must have {}", self.program);
            eprintln!("skipped: no {}", self.program);
            return None;
        }
        Some(server)
    }

    pub(crate) fn instance(&self, directory: &Path) -> Instance {
        instance(directory, self.settings)
    }

    /// The loaded and cleanly stopped database that the tests copy. The last test that holds it removes it.
    fn loaded(&self) -> Arc<TempDir> {
        let mut shared = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = shared.upgrade() {
            return loaded;
        }
        eprintln!("seed {SEED}");
        let loaded = Arc::new(directory());
        load(&*self.server().unwrap(), self.instance(loaded.path()));
        *shared = Arc::downgrade(&loaded);
        loaded
    }

    /// Keep the first value for as long as the test runs.
    pub(crate) fn copy_of_loaded(&self, directory: &Path) -> (Arc<TempDir>, Instance) {
        let loaded = self.loaded();
        let instance = self.instance(directory);
        let copied = Command::new("cp")
            .args(["-a", "--reflink=auto"])
            .arg(loaded.path().join("data"))
            .arg(&instance.data_directory)
            .status()
            .unwrap();
        assert!(copied.success());
        (loaded, instance)
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

    pub(crate) fn check_every_planted_violation(&self) {
        let Some(server) = self.server() else { return };
        let directory = directory();
        let (_loaded, instance) = self.copy_of_loaded(directory.path());
        let running = start(&*server, &instance);
        planted::check_every_planted_violation(&*workload(1).build().unwrap(), &running.endpoint());
    }

    /// `schema`: where the server keeps the tables.
    pub(crate) fn check_preset_of_tpcc_mysql(&self, schema: &str) {
        let Some(server) = self.server() else { return };
        let directory = directory();
        let instance = self.instance(directory.path());
        server.prepare(&instance).unwrap();
        let running = start(&*server, &instance);
        let workload: WorkloadSpec = serde_json::from_str(
            r#"{"kind": "tpcc", "preset": "tpcc-mysql", "warehouses": 1, "terminals": 3}"#,
        )
        .unwrap();
        let built = workload.build().unwrap();
        // The second time the tables are dropped that refer to each other.
        for _ in 0..2 {
            built.load(&running.endpoint(), SEED, &mut |_| Ok(())).unwrap();
        }
        let mut session = sql::connect(&running.endpoint()).unwrap();
        let keys = "SELECT COUNT(*) FROM information_schema.referential_constraints WHERE constraint_schema";
        let keys = session.prepare(&format!("{keys} = '{schema}'")).unwrap();
        assert_eq!(session.first::<(u64,)>(keys, &[]).unwrap(), Some((10,)));
        let spec = RunSpec::new(running.endpoint(), workload, SEED);
        let mut client = ClientProcess::spawn(Path::new(env!("CARGO_BIN_EXE_spindle")), &spec).unwrap();
        client.wait_ready(PATIENCE).unwrap();
        let summary = client.measure(Duration::from_secs(1), &mut |_| ()).unwrap();
        client.stop().unwrap();
        check_nothing_failed(&summary);
        assert_eq!(summary.metric.name, "new orders per minute, those rolled back by intent included");
        assert_eq!(planted::violations(&*built, &running.endpoint()), Vec::<String>::new());
    }

    pub(crate) fn check_death_under_load(&self) {
        let Some(server) = self.server() else { return };
        let directory = directory();
        let (_loaded, instance) = self.copy_of_loaded(directory.path());
        let mut running = start(&*server, &instance);
        let mut client = load_process(&*running, 4);
        client.watch(Duration::from_millis(500), &mut |_| ()).unwrap();
        running.crash().unwrap();
        let killed_at = Instant::now();
        let error = client.measure(Duration::from_secs(60), &mut |_| ()).unwrap_err();
        assert!(format!("{error:#}").contains("the load cannot go on"), "{error:#}");
        assert!(killed_at.elapsed() < Duration::from_secs(60), "it did not wait for the end of the window");
        let error = format!("{:#}", running.counters().unwrap_err());
        assert!(error.contains(&format!("{} died", self.program)), "{error}");
    }
}

/// Not in the test's own temporary directory, which only its owner may enter.
pub(crate) fn directory() -> TempDir {
    let directory = tempfile::Builder::new().prefix("spindle-test-").tempdir().unwrap();
    let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    directory
}

pub(crate) fn instance(directory: &Path, settings: &[(&str, &str)]) -> Instance {
    Instance {
        data_directory: directory.join("data"),
        class_directories: BTreeMap::new(),
        runtime_directory: directory.join("runtime"),
        settings: settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
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
    let workload = workload(1).build().unwrap();
    workload
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

pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn load_process(running: &dyn Running, terminals: u32) -> ClientProcess {
    let spec = RunSpec::new(running.endpoint(), workload(terminals), SEED);
    let mut client = ClientProcess::spawn(Path::new(env!("CARGO_BIN_EXE_spindle")), &spec).unwrap();
    client.wait_ready(PATIENCE).unwrap();
    client
}

pub(crate) fn violations(running: &dyn Running) -> Vec<String> {
    planted::violations(&*workload(1).build().unwrap(), &running.endpoint())
}

pub(crate) fn check_nothing_failed(summary: &Summary) {
    assert_eq!(summary.errors, BTreeMap::new());
    assert!(summary.kinds.iter().all(|kind| kind.failed == 0), "{:?}", summary.kinds);
}

pub(crate) fn retried(summary: &Summary) -> u64 {
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
