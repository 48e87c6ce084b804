//! The thread that reads: each record to its shard's batch, or into the reject file.

use std::sync::mpsc::SyncSender;

use anyhow::{Context, Result, anyhow};

use super::Request;
use super::batch::Batch;
use super::input::{Input, Position, Record, Records, Scanner};
use super::ledger::{Ledger, State};
use super::rejects::Reject;
use super::route::Route;
use super::target::Target;

/// How often the caller hears of the progress.
const STEP_BYTES: u64 = 1 << 20;

/// Where a shard's rows go.
pub(super) struct Outlet {
    pub(super) sender: SyncSender<Batch>,
    pub(super) batch: Batch,
    /// Records before it are loaded.
    pub(super) done: Position,
    pub(super) rows_most: usize,
}

impl Outlet {
    fn take(&mut self, record: &Record<'_>, line_end: &[u8]) -> Result<()> {
        if record.from < self.done {
            return Ok(());
        }
        self.batch.push(record, line_end);
        if self.batch.is_full(self.rows_most) { self.send() } else { Ok(()) }
    }

    pub(super) fn send(&mut self) -> Result<()> {
        if self.batch.rows.is_empty() {
            return Ok(());
        }
        let next = Batch::like(&self.batch);
        let full = std::mem::replace(&mut self.batch, next);
        // The worker's own error is told in place of this one.
        self.sender.send(full).map_err(|_| anyhow!("a shard takes no more rows"))
    }
}

/// What the thread that reads needs to know.
pub(super) struct Reader<'a> {
    pub(super) request: &'a Request,
    target: &'a Target,
    /// Decodes keys.
    scanner: Scanner,
    /// Names.
    pub(super) files: Vec<String>,
    sizes: &'a [u64],
    from: Position,
    /// Of each shard.
    pub(super) done: Vec<Position>,
    /// Rows before it that have no shard are rejected already.
    rejected: Position,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        request: &'a Request,
        target: &'a Target,
        sizes: &'a [u64],
        state: &State,
    ) -> Reader<'a> {
        let key = match &target.route {
            Route::Every => None,
            Route::By(key) => Some(key.field),
        };
        Reader {
            request,
            target,
            scanner: Scanner::new(&request.format, key),
            files: request.inputs.iter().map(Input::to_string).collect(),
            sizes,
            from: state.from(),
            done: state.shards.iter().map(|shard| shard.done).collect(),
            rejected: state.read,
        }
    }

    /// Returns the number of rows.
    pub(super) fn read(
        &self,
        outlets: &mut [Outlet],
        ledger: &Ledger,
        go_on: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<u64> {
        let format = &self.request.format;
        let mut position = self.from;
        for (index, input) in self.request.inputs.iter().enumerate().skip(self.from.file) {
            if index > self.from.file {
                position = Position::of_file(index, position.rows);
            }
            let in_file = || format!("reading {input}");
            let input_from = input.open(position.byte)?;
            let mut records = Records::new(input_from, self.scanner.clone(), &format.line_end, position);
            if position.byte == 0 {
                input.check_line_end(self.request, &mut records)?;
                records.ignore_lines(format.ignored_lines).with_context(in_file)?;
            }
            let before: u64 = self.sizes[..index].iter().sum();
            let mut told = position.byte;
            go_on(before + told)?;
            while let Some(record) = records.read().with_context(in_file)? {
                self.give(&record, outlets, ledger)?;
                if record.to.byte >= told + STEP_BYTES {
                    told = record.to.byte;
                    go_on(before + told)?;
                }
            }
            position = records.position();
        }
        Ok(position.rows)
    }

    fn give(&self, record: &Record<'_>, outlets: &mut [Outlet], ledger: &Ledger) -> Result<()> {
        let line_end = &self.request.format.line_end;
        match self.shard(record) {
            Ok(Some(shard)) => outlets[shard].take(record, line_end),
            Ok(None) => outlets.iter_mut().try_for_each(|outlet| outlet.take(record, line_end)),
            Err(_) if record.from < self.rejected => Ok(()),
            Err(reason) => {
                let text = match record.is_terminated {
                    true => &record.bytes[..record.bytes.len() - line_end.len()],
                    false => record.bytes,
                };
                let reject = Reject {
                    file: self.files[record.from.file].clone(),
                    line: record.from.line,
                    server: String::new(),
                    reason,
                    record: text.to_vec(),
                };
                ledger.reject(&reject, record.to)
            }
        }
    }

    /// `None` for all of them.
    fn shard(&self, record: &Record<'_>) -> Result<Option<usize>, String> {
        if let Some(flaw) = record.flaw {
            return Err(flaw.to_owned());
        }
        let expected = self.target.columns.len();
        if record.fields != expected {
            let fields = if record.fields == 1 { "field" } else { "fields" };
            return Err(format!("it has {} {fields} in place of {expected}", record.fields));
        }
        let (Route::By(key), Some((text, is_enclosed))) = (&self.target.route, record.key) else {
            return Ok(None);
        };
        key.shard(self.scanner.value(text, is_enclosed).as_deref()).map(Some)
    }
}
