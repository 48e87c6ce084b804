//! One shard's batches into its server, each by LOAD DATA LOCAL in a transaction of its own.
//!
//! LOAD DATA LOCAL makes warnings of a row's errors, whatever the `sql_mode`: it leaves out duplicates, and it shortens
//! or invents values, because it cannot stop a client that sends. So a statement with warnings is taken back, and its
//! rows are loaded in two halves, down to the row that the server does not take.

use std::io::Write as _;
use std::ops::Range;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler};

use super::OnDuplicate;
use super::batch::Batch;
use super::ledger::{Counts, Ledger};
use super::rejects::Reject;
use crate::servers::session::OTHER_GRAMMARS;
use crate::servers::{Server, words};

/// Another session may win a race for a lock so many times.
const ATTEMPTS_MOST: u32 = 5;
/// The most warnings of a statement that servers keep.
const WARNINGS_MOST: u64 = 65_535;
const DUPLICATES: [u32; 2] = [1062, 1586];
const LOST_RACES: [u16; 3] = [1020, 1205, 1213];
/// Errors of a row whose class (SQLSTATE) does not say so: no default, a value that is not one of the column's type or
/// character set, no partition, a constraint of MySQL, a view's check.
const ROW_ERRORS: [u16; 8] = [1300, 1364, 1366, 1369, 1411, 1526, 1748, 3819];

#[derive(Debug)]
pub(super) struct Loader<'a> {
    shard: usize,
    server: String,
    connection: Conn,
    statement: &'a str,
    on_duplicate: OnDuplicate,
    /// Names of the files.
    files: &'a [String],
    ledger: &'a Ledger,
}

/// What became of a batch's rows.
#[derive(Debug, Default)]
struct Outcome {
    counts: Counts,
    rejects: Vec<Reject>,
}

enum Answer {
    Taken(Counts),
    /// The server's words.
    Refused(String),
}

/// The numbers of the server's `Records: 3  Deleted: 0  Skipped: 0  Warnings: 0`, in whichever language.
#[derive(Debug, PartialEq)]
struct Info {
    records: u64,
    deleted: u64,
    skipped: u64,
    warnings: u64,
}

impl Info {
    fn of(text: &str) -> Option<Info> {
        let numbers = text.split(|one: char| !one.is_ascii_digit()).filter(|number| !number.is_empty());
        match numbers.map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?[..] {
            [records, deleted, skipped, warnings] => Some(Info { records, deleted, skipped, warnings }),
            _ => None,
        }
    }
}

impl<'a> Loader<'a> {
    pub(super) fn connect(
        shard: usize,
        server: &Server,
        statement: &'a str,
        on_duplicate: OnDuplicate,
        files: &'a [String],
        ledger: &'a Ledger,
    ) -> Result<Loader<'a>> {
        let mut connection = server.connect()?;
        prepare(&mut connection).with_context(|| format!("preparing a session of {}", server.name))?;
        Ok(Loader { shard, server: server.name.clone(), connection, statement, on_duplicate, files, ledger })
    }

    pub(super) fn take(&mut self, batch: Batch) -> Result<()> {
        let batch = Arc::new(batch);
        let mut attempt = 1;
        loop {
            let Err(error) = self.transaction(&batch) else { return Ok(()) };
            match error.downcast_ref::<mysql::Error>() {
                Some(mysql::Error::MySqlError(told))
                    if LOST_RACES.contains(&told.code) && attempt < ATTEMPTS_MOST =>
                {
                    attempt += 1;
                    self.connection.query_drop("ROLLBACK")?;
                }
                Some(told) => bail!("loading into {}: {}", self.server, words(told)),
                None => return Err(error),
            }
        }
    }

    fn transaction(&mut self, batch: &Arc<Batch>) -> Result<()> {
        self.connection.query_drop("START TRANSACTION")?;
        let mut outcome = Outcome::default();
        self.load(batch, 0..batch.rows.len(), &mut outcome)?;
        self.ledger.begin(self.shard, batch.to, outcome.counts, outcome.rejects)?;
        self.connection.query_drop("COMMIT")?;
        self.ledger.finish(self.shard)
    }

    fn load(&mut self, batch: &Arc<Batch>, rows: Range<usize>, outcome: &mut Outcome) -> Result<()> {
        match self.answer(batch, &rows)? {
            Answer::Taken(counts) => outcome.counts.add(counts),
            Answer::Refused(reason) if rows.len() == 1 => {
                outcome.rejects.push(self.reject(batch, rows.start, reason));
                outcome.counts.rejected += 1;
                self.ledger.check_rejects(&outcome.rejects)?;
            }
            Answer::Refused(_) => {
                let middle = rows.start + rows.len() / 2;
                self.load(batch, rows.start..middle, outcome)?;
                self.load(batch, middle..rows.end, outcome)?;
            }
        }
        Ok(())
    }

    /// Loads these rows, all of them or none.
    fn answer(&mut self, batch: &Arc<Batch>, rows: &Range<usize>) -> Result<Answer> {
        self.connection.query_drop("SAVEPOINT spindle_load")?;
        let (source, bytes) = (Arc::clone(batch), batch.bytes_of(rows));
        let send = LocalInfileHandler::new(move |_, stream| stream.write_all(&source.bytes[bytes.clone()]));
        self.connection.set_local_infile_handler(Some(send));
        let info = self.connection.query_iter(self.statement).map(|result| Info::of(&result.info_str()));
        self.connection.set_local_infile_handler(None);
        let refusal = match info {
            Ok(None) => bail!("{} does not tell how many rows it has loaded", self.server),
            Ok(Some(info)) => {
                let warnings = self.warnings(&info)?;
                if self.is_fine(&info, &warnings) {
                    return self.taken(batch, rows, &info);
                }
                reason(&warnings)
            }
            Err(mysql::Error::MySqlError(error)) if is_of_a_row(&error) => {
                without_row(&error.message).to_owned()
            }
            Err(error) => return Err(error.into()),
        };
        self.connection.query_drop("ROLLBACK TO SAVEPOINT spindle_load")?;
        Ok(Answer::Refused(refusal))
    }

    fn warnings(&mut self, info: &Info) -> Result<Vec<(u32, String)>> {
        if info.warnings == 0 {
            return Ok(Vec::new());
        }
        let told: Vec<(String, u32, String)> = self.connection.query("SHOW WARNINGS")?;
        Ok(told.into_iter().map(|(_, code, message)| (code, message)).collect())
    }

    /// Whether each row of a statement is in the table, or left out as the user wants it.
    fn is_fine(&self, info: &Info, warnings: &[(u32, String)]) -> bool {
        match self.on_duplicate {
            OnDuplicate::Ignore => {
                let is_duplicate = |(code, _): &(u32, String)| DUPLICATES.contains(code);
                warnings.len() as u64 == info.warnings && warnings.iter().all(is_duplicate)
            }
            OnDuplicate::Error | OnDuplicate::Replace => info.warnings == 0 && info.skipped == 0,
        }
    }

    fn taken(&self, batch: &Batch, rows: &Range<usize>, info: &Info) -> Result<Answer> {
        if info.records != rows.len() as u64 {
            let line = |index: usize| batch.rows[index].line;
            bail!(
                "{} reads {} rows where {} has {}, from line {} to line {}: the options do not describe the file",
                self.server,
                info.records,
                self.files[batch.rows[rows.start].file],
                rows.len(),
                line(rows.start),
                line(rows.end - 1)
            );
        }
        let loaded = info.records - info.skipped;
        Ok(Answer::Taken(Counts { loaded, replaced: info.deleted, ignored: info.skipped, rejected: 0 }))
    }

    fn reject(&self, batch: &Batch, index: usize, reason: String) -> Reject {
        let row = batch.rows[index];
        Reject {
            file: self.files[row.file].clone(),
            line: row.line,
            server: self.server.clone(),
            reason,
            record: batch.bytes[batch.bytes_of(&(index..index + 1))].to_vec(),
        }
    }
}

/// Values that do not fit are told, and the statement means what it says.
fn prepare(connection: &mut Conn) -> Result<()> {
    let mode: Option<String> = connection.query_first("SELECT @@SESSION.sql_mode")?;
    let mode = mode.ok_or_else(|| anyhow!("it has no sql_mode"))?;
    let kept = mode.split(',').filter(|part| !part.is_empty() && !OTHER_GRAMMARS.contains(part));
    let mode: Vec<&str> = kept.chain(["STRICT_ALL_TABLES"]).collect();
    Ok(connection.query_drop(format!(
        "SET SESSION sql_mode = '{}', sql_notes = 0, max_error_count = {WARNINGS_MOST}",
        mode.join(",")
    ))?)
}

fn is_of_a_row(error: &mysql::MySqlError) -> bool {
    ["01", "22", "23", "45"].iter().any(|class| error.state.starts_with(class))
        || ROW_ERRORS.contains(&error.code)
}

fn reason(warnings: &[(u32, String)]) -> String {
    /// One bad value may bring a warning for each column after it.
    const SHOWN_MOST: usize = 3;
    let mut words: Vec<&str> = Vec::new();
    for (_, message) in warnings {
        let message = without_row(message);
        if words.len() < SHOWN_MOST && !words.contains(&message) {
            words.push(message);
        }
    }
    if words.is_empty() { "the server has left it out".to_owned() } else { words.join("; ") }
}

/// The row is the only one of its statement, and its line is told.
fn without_row(message: &str) -> &str {
    message.strip_suffix(" at row 1").unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_read_in_any_language() {
        let info = Info { records: 3, deleted: 0, skipped: 1, warnings: 2 };
        assert_eq!(Info::of("Records: 3  Deleted: 0  Skipped: 1  Warnings: 2"), Some(info));
        assert_eq!(Info::of("Datensätze: 3  Gelöscht: 0  Übersprungen: 1"), None);
        assert_eq!(Info::of(""), None);
    }

    #[test]
    fn a_reason_has_no_row_of_a_statement() {
        let warning = |text: &str| (1366, text.to_owned());
        assert_eq!(
            reason(&[warning("Bad a at row 1"), warning("Bad a at row 1"), warning("Bad b")]),
            "Bad a; Bad b"
        );
        assert_eq!(reason(&[]), "the server has left it out");
    }
}
