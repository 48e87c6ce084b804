//! From the files to the shards: one thread reads, and one for each shard loads.
//!
//! Memory is bounded: a shard has one batch that is filled, one that waits and one that is loaded.

use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use anyhow::{Result, bail};
use spindle_base::Mistake;

use super::batch::Batch;
use super::files::{self, Part};
use super::ledger::{Identity, Ledger, State};
use super::reader::{Outlet, Reader};
use super::rejects::RejectFile;
use super::route::Route;
use super::sink::Loader;
use super::target::Target;
use super::{Destination, Input, Request, Start, Summary};

/// Loads. `go_on` gets the number of bytes that are read of all files, and ends the load by an error.
///
/// # Errors
/// [`Mistake`] before any row is loaded; else the first failure. What was committed before it is noted in the state.
pub fn run(request: &Request, go_on: &mut dyn FnMut(u64) -> Result<()>) -> Result<Summary> {
    let target = Target::of(request)?;
    let sizes = request.inputs.iter().map(Input::size).collect::<Result<Vec<u64>, Mistake>>()?;
    request.inputs.iter().try_for_each(|input| input.check(request))?;
    let statement = target.statement(request, "spindle");
    let identity = Identity {
        table: request.table.quoted(),
        files: request.inputs.iter().map(Input::to_string).zip(sizes.iter().copied()).collect(),
        statement: format!("{statement} IGNORE {} LINES", request.format.ignored_lines),
        servers: request.cluster.servers.iter().map(|server| server.name.clone()).collect(),
        rejects: request.rejects.display().to_string(),
    };
    let (state, state_path, rejects) = start(request, identity)?;
    let reader = Reader::new(request, &target, &sizes, &state);
    let ledger = Ledger::open(state, state_path.map(Path::to_owned), rejects, request.rejects_most)?;
    let pumped = sinks(request, &statement, &reader.files, &ledger)
        .and_then(|sinks| pump(&reader, sinks, &ledger, go_on));
    let rows = match pumped {
        Ok(rows) => rows,
        Err(error) => {
            ledger.give_up();
            return Err(error);
        }
    };
    let summary = summary(request, &target, rows, &ledger);
    check_counts(&summary)?;
    ledger.close()?;
    Ok(summary)
}

/// The state that the load begins with, where it is noted, and the reject file.
fn start(request: &Request, identity: Identity) -> Result<(State, Option<&Path>, RejectFile)> {
    let (state, start) = match &request.destination {
        Destination::Servers { state, start } => (state.as_deref(), *start),
        Destination::Directory(directory) => {
            files::prepare(directory, &request.table.name, request.cluster.servers.len())?;
            (None, Start::New)
        }
    };
    match (start, state) {
        (Start::New, state) => {
            if let Some(path) = state.filter(|path| path.exists()) {
                let words =
                    format!("{} is of a load that has not ended: --resume goes on with it", path.display());
                return Err(Mistake::of_flag("state", words).into());
            }
            Ok((State::new(identity), state, RejectFile::new(&request.rejects)?))
        }
        (Start::Resume(_), None) => Err(Mistake::of_flag("resume", "needs --state").into()),
        (Start::Resume(_), Some(path)) if !path.exists() => {
            let words = format!("{} is not there: no load has to be resumed", path.display());
            Err(Mistake::of_flag("resume", words).into())
        }
        (Start::Resume(in_doubt), Some(path)) => {
            let mut state = State::read(path, &identity)?;
            let mut rejects = RejectFile::again(&request.rejects, state.rejects_bytes())?;
            state.settle(in_doubt, &mut rejects)?;
            Ok((state, Some(path), rejects))
        }
    }
}

/// Where the batches of a shard go.
enum Sink<'a> {
    Server(Loader<'a>),
    File(Part<'a>),
}

fn sinks<'a>(
    request: &Request,
    statement: &'a str,
    files: &'a [String],
    ledger: &'a Ledger,
) -> Result<Vec<Sink<'a>>> {
    let servers = request.cluster.servers.iter().enumerate();
    let sink = |(shard, server)| match &request.destination {
        Destination::Servers { .. } => {
            Loader::connect(shard, server, statement, request.on_duplicate, files, ledger).map(Sink::Server)
        }
        Destination::Directory(directory) => {
            Part::create(directory, &request.table.name, shard, ledger).map(Sink::File)
        }
    };
    servers.map(sink).collect()
}

fn work(mut sink: Sink<'_>, batches: &Receiver<Batch>) -> Result<()> {
    for batch in batches {
        match &mut sink {
            Sink::Server(loader) => loader.take(batch)?,
            Sink::File(part) => part.take(&batch)?,
        }
    }
    Ok(())
}

/// Returns the number of rows.
fn pump(
    reader: &Reader<'_>,
    sinks: Vec<Sink<'_>>,
    ledger: &Ledger,
    go_on: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<u64> {
    thread::scope(|scope| {
        let mut outlets = Vec::new();
        let mut workers = Vec::new();
        for (sink, done) in sinks.into_iter().zip(&reader.done) {
            let (sender, batches) = sync_channel(1);
            workers.push(scope.spawn(move || work(sink, &batches)));
            let rows_most = reader.request.batch_rows;
            outlets.push(Outlet { sender, batch: Batch::default(), done: *done, rows_most });
        }
        let read = reader.read(&mut outlets, ledger, go_on).and_then(|rows| {
            outlets.iter_mut().try_for_each(Outlet::send)?;
            Ok(rows)
        });
        // The workers end with their last batch.
        drop(outlets);
        let worked: Vec<Result<()>> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        worked.into_iter().collect::<Result<()>>()?;
        read
    })
}

fn summary(request: &Request, target: &Target, rows: u64, ledger: &Ledger) -> Summary {
    let state = ledger.state();
    let name = |(shard, server): (usize, &crate::servers::Server)| match &request.destination {
        Destination::Servers { .. } => server.name.clone(),
        Destination::Directory(directory) => {
            files::path(directory, &request.table.name, shard).display().to_string()
        }
    };
    let names = request.cluster.servers.iter().enumerate().map(name);
    Summary {
        rows,
        rejected_on_reading: state.rejected_on_reading,
        shards: names.zip(state.shards.iter().map(|shard| shard.counts)).collect(),
        is_reference: target.route == Route::Every,
        statement: target.statement(request, "FILE"),
    }
}

/// Every row that was read is loaded, left out or rejected.
fn check_counts(summary: &Summary) -> Result<()> {
    let rows = |(name, counts): &(String, super::Counts)| (name.clone(), counts.rows());
    let mut accounts: Vec<(String, u64)> = summary.shards.iter().map(rows).collect();
    if !summary.is_reference {
        accounts = vec![("all shards together".to_owned(), accounts.iter().map(|(_, rows)| rows).sum())];
    }
    for (name, rows) in accounts {
        let accounted = rows + summary.rejected_on_reading;
        if accounted != summary.rows {
            bail!(
                "{} rows were read, but {accounted} are accounted for by {name} and the reject file",
                summary.rows
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Counts;

    #[test]
    fn a_row_that_is_not_accounted_for_is_told() {
        let counts = |loaded, ignored, rejected| Counts { loaded, ignored, rejected, replaced: 0 };
        let check = |is_reference: bool, shards: [Counts; 2], expect: Option<&str>| {
            let shards = shards.map(|counts| ("a".to_owned(), counts)).to_vec();
            let summary =
                Summary { rows: 10, rejected_on_reading: 1, shards, is_reference, statement: String::new() };
            let told = check_counts(&summary).err().map(|error| error.to_string());
            assert_eq!(told.as_deref(), expect);
        };
        check(false, [counts(4, 0, 1), counts(3, 1, 0)], None);
        check(true, [counts(9, 0, 0), counts(7, 1, 1)], None);
        check(
            false,
            [counts(4, 0, 0), counts(4, 0, 0)],
            Some("10 rows were read, but 9 are accounted for by all shards together and the reject file"),
        );
        check(
            true,
            [counts(9, 0, 0), counts(8, 0, 0)],
            Some("10 rows were read, but 9 are accounted for by a and the reject file"),
        );
    }
}
