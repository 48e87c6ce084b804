//! Workloads on SQLite: each runs, and its checks find what is wrong in its database.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should panic")]

use spindle_load::sql::{self, FromRow};
use spindle_load::{Check, Client, Endpoint, Failure, Outcome, WorkloadSpec};

mod analytic;
mod oltp;
mod small;
mod sql_bench;
mod tpcc;

const TERMINALS: u32 = 2;

struct Database {
    _directory: tempfile::TempDir,
    endpoint: Endpoint,
    spec: WorkloadSpec,
}

impl Database {
    fn empty(spec: WorkloadSpec) -> Database {
        let directory = tempfile::tempdir().unwrap();
        let pragmas = [("journal_mode", "WAL"), ("synchronous", "OFF")];
        let pragmas = pragmas.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let endpoint = Endpoint::Sqlite { path: directory.path().join("database"), pragmas };
        Database { _directory: directory, endpoint, spec }
    }

    fn loaded(spec: WorkloadSpec) -> Database {
        let database = Database::empty(spec);
        let mut last = None;
        database
            .spec
            .build()
            .unwrap()
            .load(&database.endpoint, 1, &mut |progress| {
                last = Some(progress);
                Ok(())
            })
            .unwrap();
        let last = last.unwrap();
        assert_eq!(last.rows_done, last.rows_total);
        database
    }

    /// The same database under another workload.
    fn with(&mut self, spec: WorkloadSpec) -> &Database {
        self.spec = spec;
        self
    }

    fn execute(&self, statement: &str) {
        sql::connect(&self.endpoint).unwrap().execute(statement).unwrap();
    }

    fn number(&self, query: &str) -> i64 {
        sql::connect(&self.endpoint).unwrap().number(query).unwrap()
    }

    fn first<T: FromRow>(&self, query: &str) -> T {
        let mut session = sql::connect(&self.endpoint).unwrap();
        let statement = session.prepare(query).unwrap();
        session.first(statement, &[]).unwrap().unwrap()
    }

    /// Each terminal ends this many transactions, once all are connected. Returns their kinds and outcomes.
    fn outcomes(&self, transactions: usize) -> Vec<Vec<(usize, Outcome)>> {
        let workload = self.spec.build().unwrap();
        let clients = (0..TERMINALS).map(|terminal| workload.connect(&self.endpoint, terminal, 7).unwrap());
        let clients: Vec<_> = clients.collect();
        let run = |mut client: Box<dyn Client>| {
            (0..transactions).map(|_| (client.choose(), client.execute().unwrap())).collect()
        };
        std::thread::scope(|scope| {
            let terminals: Vec<_> =
                clients.into_iter().map(|client| scope.spawn(move || run(client))).collect();
            terminals.into_iter().map(|terminal| terminal.join().unwrap()).collect()
        })
    }

    /// How many transactions of each kind ended.
    fn run(&self, transactions: usize) -> Vec<usize> {
        let mut kinds = vec![0; self.spec.build().unwrap().kinds().len()];
        self.outcomes(transactions).into_iter().flatten().for_each(|(kind, _)| kinds[kind] += 1);
        kinds
    }

    fn violations(&self) -> Vec<Check> {
        let checks = self.spec.build().unwrap().verify(&self.endpoint).unwrap();
        assert!(!checks.is_empty());
        checks.into_iter().filter(|check| !check.passed).collect()
    }

    #[track_caller]
    fn check_failed(&self, expect: &[&str]) {
        let details: Vec<String> = self.violations().into_iter().map(|check| check.detail).collect();
        assert_eq!(details, expect);
    }

    /// The error of the next transaction.
    fn failure(&self) -> Failure {
        let mut client = self.spec.build().unwrap().connect(&self.endpoint, 0, 7).unwrap();
        client.choose();
        client.execute().unwrap_err()
    }
}
