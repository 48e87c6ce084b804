//! What a state says to the next start.

use tempfile::TempDir;

use super::*;

fn identity() -> Identity {
    Identity {
        table: "`facts`".to_owned(),
        files: vec![("a.csv".to_owned(), 100), ("b.csv".to_owned(), 50)],
        statement: "LOAD DATA".to_owned(),
        servers: vec!["one".to_owned(), "two".to_owned()],
        rejects: "rejects.csv".to_owned(),
    }
}

struct Bench {
    directory: TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench { directory: TempDir::new().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn ledger(&self) -> Ledger {
        let rejects = RejectFile::new(&self.path("rejects.csv")).unwrap();
        Ledger::open(State::new(identity()), Some(self.path("state")), rejects, 2).unwrap()
    }

    fn state(&self) -> State {
        State::read(&self.path("state"), &identity()).unwrap()
    }
}

fn at(file: usize, byte: u64, line: u64) -> Position {
    Position { file, byte, line, rows: line }
}

fn loaded(rows: u64) -> Counts {
    Counts { loaded: rows, ..Counts::default() }
}

fn reject(line: u64) -> Reject {
    let text = |text: &str| text.to_owned();
    Reject { file: text("a.csv"), line, server: text("one"), reason: text("bad"), record: b"x,\xff".to_vec() }
}

#[test]
fn reading_goes_on_where_the_last_shard_is() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    for (shard, to) in [(0, at(1, 10, 2)), (1, at(0, 80, 8))] {
        ledger.begin(shard, to, loaded(5), Vec::new()).unwrap();
        ledger.finish(shard).unwrap();
    }
    let state = bench.state();
    assert_eq!((state.from(), state.shards[0].counts), (at(0, 80, 8), loaded(5)));
}

#[test]
fn a_batch_without_an_answer_is_settled_by_the_user() {
    let bench = Bench::new();
    let counts = Counts { loaded: 4, rejected: 1, ..Counts::default() };
    bench.ledger().begin(1, at(1, 10, 2), counts, vec![reject(3)]).unwrap();
    let settle = |in_doubt: Option<InDoubt>| {
        let mut state = bench.state();
        let mut rejects = RejectFile::again(&bench.path("rejects.csv"), 0).unwrap();
        state.settle(in_doubt, &mut rejects).map(|()| state)
    };
    assert_eq!(
        settle(None).unwrap_err().to_string(),
        "--resume: whether two committed a batch of 5 rows, from line 1 of a.csv on and before line 2 of b.csv, is not \
         known: look for them in the table, and add --in-doubt loaded or --in-doubt missing"
    );
    let missing = settle(Some(InDoubt::Missing)).unwrap();
    assert_eq!((missing.shards[1].counts, missing.rejects_bytes()), (Counts::default(), 0));
    let is_there = settle(Some(InDoubt::Loaded)).unwrap();
    assert_eq!((is_there.shards[1].counts, is_there.shards[1].done), (counts, at(1, 10, 2)));
    let text = fs::read(bench.path("rejects.csv")).unwrap();
    assert_eq!(text, b"file,line,server,reason,record\na.csv,3,one,bad,\"x,\xff\"\n");
    assert_eq!(is_there.rejects_bytes(), text.len() as u64);
}

#[test]
fn a_state_is_of_one_load() {
    let bench = Bench::new();
    bench.ledger();
    let check = |other: Identity, expect: &str| {
        let told = State::read(&bench.path("state"), &other).unwrap_err().to_string();
        assert!(told.ends_with(&format!("is of a load whose {expect} differ from this one's")), "{told}");
    };
    check(Identity { files: vec![("a.csv".to_owned(), 101)], ..identity() }, "files");
    check(Identity { statement: "LOAD DATA REPLACE".to_owned(), ..identity() }, "options");
    check(Identity { servers: vec!["one".to_owned()], ..identity() }, "servers");
}

#[test]
fn a_load_that_has_done_nothing_leaves_no_state() {
    let bench = Bench::new();
    bench.ledger().give_up();
    assert!(!bench.path("state").exists());
    let ledger = bench.ledger();
    ledger.reject(&reject(1), at(0, 5, 2)).unwrap();
    ledger.give_up();
    assert!(bench.path("state").exists());
}

#[test]
fn more_rejects_than_allowed_end_the_load_and_are_shown() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    ledger.reject(&reject(1), at(0, 5, 2)).unwrap();
    ledger.check_rejects(&[reject(2)]).unwrap();
    let error = ledger.check_rejects(&[reject(2), reject(3)]).unwrap_err().to_string();
    assert!(error.starts_with("more than 2 rows are rejected (--rejects-most); "), "{error}");
    let text = fs::read(bench.path("rejects.csv")).unwrap();
    assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), 4);
    // Those of the batch that was given up do not count.
    let state = bench.state();
    assert!(state.rejects_bytes() < text.len() as u64 && state.rejected() == 1);
}
