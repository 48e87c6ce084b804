//! What of a load is done: counts and places in the files, shard by shard, in a file that outlives the process.
//!
//! A shard's batch is one transaction. Its end is noted as begun before COMMIT is sent, and as done after the server
//! has answered. So a process that dies leaves each shard at the end of a batch, except one that was between the two
//! notes: whether that batch was committed only its server knows, and the next start says so.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use spindle_base::Mistake;

use super::InDoubt;
use super::input::Position;
use super::rejects::{Reject, RejectFile};

/// Changes with the meaning of a state.
const VERSION: u32 = 1;

/// Rows of one server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Those that replaced others are among them.
    pub loaded: u64,
    /// Rows that were there before and gave way.
    pub replaced: u64,
    /// Rows whose key was there already.
    pub ignored: u64,
    pub rejected: u64,
}

impl Counts {
    pub fn rows(&self) -> u64 {
        self.loaded + self.ignored + self.rejected
    }

    pub(super) fn add(&mut self, other: Counts) {
        self.loaded += other.loaded;
        self.replaced += other.replaced;
        self.ignored += other.ignored;
        self.rejected += other.rejected;
    }
}

/// By what a load is known again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) table: String,
    /// With their sizes.
    pub(super) files: Vec<(String, u64)>,
    /// The statement that loads.
    pub(super) statement: String,
    pub(super) servers: Vec<String>,
    pub(super) rejects: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct State {
    version: u32,
    identity: Identity,
    pub(super) shards: Vec<ShardState>,
    /// All records before it that have no shard are in the reject file.
    pub(super) read: Position,
    pub(super) rejected_on_reading: u64,
    rejects_bytes: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ShardState {
    /// All records of the shard before it are done.
    pub(super) done: Position,
    pub(super) counts: Counts,
    begun: Option<Begun>,
}

/// A batch whose COMMIT may have been sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Begun {
    to: Position,
    counts: Counts,
    rejects: Vec<Reject>,
}

impl State {
    pub(super) fn new(identity: Identity) -> State {
        let shards = vec![
            ShardState { done: Position::of_file(0, 0), ..ShardState::default() };
            identity.servers.len()
        ];
        State {
            version: VERSION,
            identity,
            shards,
            read: Position::of_file(0, 0),
            rejected_on_reading: 0,
            rejects_bytes: 0,
        }
    }

    /// The state that a load has left, if it is this load's.
    pub(super) fn read(path: &Path, identity: &Identity) -> Result<State> {
        let reading = || format!("reading {}", path.display());
        let text = fs::read_to_string(path).with_context(reading)?;
        let state: State = serde_json::from_str(&text).with_context(reading)?;
        let (one, other) = (&state.identity, identity);
        let difference = match () {
            () if state.version != VERSION => "version",
            () if one.table != other.table => "table",
            () if one.files != other.files => "files",
            () if one.servers != other.servers => "servers",
            () if one.statement != other.statement => "options",
            () if one.rejects != other.rejects => "reject file",
            () => return Ok(state),
        };
        let words = format!("{} is of a load whose {difference} differ from this one's", path.display());
        Err(Mistake::of_flag("resume", words).into())
    }

    /// Settles batches that may have been committed.
    pub(super) fn settle(&mut self, in_doubt: Option<InDoubt>, rejects: &mut RejectFile) -> Result<()> {
        let Identity { servers, files, .. } = &self.identity;
        for (shard, name) in self.shards.iter_mut().zip(servers) {
            let Some(begun) = shard.begun.take() else { continue };
            match in_doubt {
                Some(InDoubt::Missing) => {}
                Some(InDoubt::Loaded) => {
                    shard.done = begun.to;
                    shard.counts.add(begun.counts);
                    self.rejects_bytes = rejects.append(&begun.rejects)?;
                }
                None => {
                    let place = |at: Position| format!("line {} of {}", at.line, files[at.file].0);
                    let words = format!(
                        "whether {name} committed a batch of {} rows, from {} on and before {}, is not known: look for \
                         them in the table, and add --in-doubt loaded or --in-doubt missing",
                        begun.counts.rows(),
                        place(shard.done),
                        place(begun.to)
                    );
                    return Err(Mistake::of_flag("resume", words).into());
                }
            }
        }
        Ok(())
    }

    /// Where reading begins.
    pub(super) fn from(&self) -> Position {
        self.shards.iter().map(|shard| shard.done).min().unwrap_or_default()
    }

    pub(super) fn rejected(&self) -> u64 {
        self.rejected_on_reading + self.shards.iter().map(|shard| shard.counts.rejected).sum::<u64>()
    }

    pub(super) fn rejects_bytes(&self) -> u64 {
        self.rejects_bytes
    }
}

/// Shared by the reader and the workers.
#[derive(Debug)]
pub(super) struct Ledger {
    books: Mutex<Books>,
    rejects_most: u64,
}

#[derive(Debug)]
struct Books {
    state: State,
    /// Without one, nothing is kept for another process.
    path: Option<PathBuf>,
    rejects: RejectFile,
}

impl Ledger {
    pub(super) fn open(
        state: State,
        path: Option<PathBuf>,
        rejects: RejectFile,
        rejects_most: u64,
    ) -> Result<Ledger> {
        let books = Books { state, path, rejects };
        books.save()?;
        Ok(Ledger { books: Mutex::new(books), rejects_most })
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().expect("nobody panics over the books")
    }

    /// A row that the reader cannot give to a shard.
    pub(super) fn reject(&self, reject: &Reject, to: Position) -> Result<()> {
        let mut books = self.books();
        books.state.rejects_bytes = books.rejects.append(std::slice::from_ref(reject))?;
        books.state.rejected_on_reading += 1;
        books.state.read = to;
        books.save()?;
        self.check(&books, 0)
    }

    /// Says that a shard's batch is about to be committed.
    pub(super) fn begin(
        &self,
        shard: usize,
        to: Position,
        counts: Counts,
        rejects: Vec<Reject>,
    ) -> Result<()> {
        self.check_rejects(&rejects)?;
        let mut books = self.books();
        books.state.shards[shard].begun = Some(Begun { to, counts, rejects });
        books.save()
    }

    /// Says that it is committed.
    pub(super) fn finish(&self, shard: usize) -> Result<()> {
        let mut books = self.books();
        let begun = books.state.shards[shard].begun.take().expect("it has begun");
        if !begun.rejects.is_empty() {
            books.state.rejects_bytes = books.rejects.append(&begun.rejects)?;
        }
        let state = &mut books.state.shards[shard];
        state.done = begun.to;
        state.counts.add(begun.counts);
        books.save()
    }

    /// Ends the load if a batch has too many rejected rows. They are shown in the reject file, but do not count.
    pub(super) fn check_rejects(&self, rejects: &[Reject]) -> Result<()> {
        let mut books = self.books();
        let outcome = self.check(&books, rejects.len());
        if outcome.is_err() {
            books.rejects.append(rejects)?;
        }
        outcome
    }

    fn check(&self, books: &Books, more: usize) -> Result<()> {
        if books.state.rejected() + more as u64 > self.rejects_most {
            let path = books.rejects.path().display();
            bail!(
                "more than {} rows are rejected (--rejects-most); {path} has them with their reasons",
                self.rejects_most
            );
        }
        Ok(())
    }

    pub(super) fn state(&self) -> State {
        self.books().state.clone()
    }

    /// The load is complete; nobody has to go on with it.
    pub(super) fn close(&self) -> Result<()> {
        match &self.books().path {
            Some(path) => fs::remove_file(path).with_context(|| format!("removing {}", path.display())),
            None => Ok(()),
        }
    }

    /// The load has failed. If it has done nothing, nobody has to go on with it either.
    pub(super) fn give_up(&self) {
        let books = self.books();
        let is_untouched = |shard: &ShardState| shard.done.rows == 0 && shard.begun.is_none();
        if books.state.shards.iter().all(is_untouched) && books.state.rejected() == 0 {
            // The failure itself is what the user must hear of.
            let _ = books.path.as_ref().map(fs::remove_file);
        }
    }
}

impl Books {
    /// In place of the earlier state, or not at all.
    fn save(&self) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        let writing = || format!("writing {}", path.display());
        let mut file = File::create(&beside).with_context(writing)?;
        let text = serde_json::to_vec(&self.state).with_context(writing)?;
        file.write_all(&text).and_then(|()| file.sync_all()).with_context(writing)?;
        fs::rename(&beside, path).with_context(writing)
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
