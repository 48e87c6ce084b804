//! One connection, its prepared statements, and the events of sysbench's `oltp_*.lua`.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::distribution::Rows;
use super::{Script, Spec, table};
use crate::protocol::Endpoint;
use crate::sql::{Class, Session, SqlError, Statement, connect, describe};
use crate::values;
use crate::workload::retrying::retry;
use crate::workload::{Client, Failure, Outcome};
use spindle_base::random::Random;

/// Statements of one table, as far as the script needs them.
#[derive(Debug, Default)]
struct Statements {
    point: Option<Statement>,
    /// Simple, sum, ordered, distinct.
    ranges: Vec<Statement>,
    update_index: Option<Statement>,
    update_other: Option<Statement>,
    delete: Option<Statement>,
    insert: Option<Statement>,
}

impl Statements {
    fn prepare(session: &mut dyn Session, script: Script, number: u32) -> Result<Statements, SqlError> {
        let name = table::name(number);
        let mut prepare =
            |wanted: bool, text: String| if wanted { session.prepare(&text).map(Some) } else { Ok(None) };
        let range = "WHERE id BETWEEN ? AND ?";
        let mut statements = Statements {
            point: prepare(script.has_points(), format!("SELECT c FROM {name} WHERE id=?"))?,
            update_index: prepare(script.has_index_updates(), format!("UPDATE {name} SET k=k+1 WHERE id=?"))?,
            update_other: prepare(script.has_other_updates(), format!("UPDATE {name} SET c=? WHERE id=?"))?,
            delete: prepare(script.has_deletes(), format!("DELETE FROM {name} WHERE id=?"))?,
            insert: prepare(
                script.has_replacements(),
                format!("INSERT INTO {name} (id, k, c, pad) VALUES (?, ?, ?, ?)"),
            )?,
            ranges: Vec::new(),
        };
        for text in [
            format!("SELECT c FROM {name} {range}"),
            format!("SELECT SUM(k) FROM {name} {range}"),
            format!("SELECT c FROM {name} {range} ORDER BY c"),
            format!("SELECT DISTINCT c FROM {name} {range} ORDER BY c"),
        ] {
            statements.ranges.extend(prepare(script.has_ranges(), text)?);
        }
        Ok(statements)
    }
}

#[derive(Debug)]
pub(super) struct OltpClient {
    session: Box<dyn Session>,
    spec: Spec,
    rows: Rows,
    /// Statements of each table.
    statements: Vec<Statements>,
    random: Random,
}

impl OltpClient {
    pub(super) fn connect(endpoint: &Endpoint, spec: &Spec, terminal: u32, seed: u64) -> Result<OltpClient> {
        let mut session = connect(endpoint)?;
        let prepared: Result<Vec<Statements>, SqlError> =
            (1..=spec.tables).map(|table| Statements::prepare(&mut *session, spec.script, table)).collect();
        let statements = prepared.with_context(|| {
            format!("preparing the statements on {}; is the database loaded?", describe(endpoint))
        })?;
        let random = Random::seeded(&[seed, u64::MAX, terminal.into()]);
        Ok(OltpClient { session, spec: spec.clone(), rows: spec.drawn_rows(), statements, random })
    }

    fn id(&mut self) -> u32 {
        self.rows.draw(&mut self.random)
    }

    /// Draws a table. As in the tool, each group of statements draws its own.
    fn table(&mut self) -> usize {
        self.random.between(1, self.spec.tables) as usize - 1
    }

    /// Result rows are read and dropped.
    fn select(&mut self, statement: Statement, first: u32, last: Option<u32>) -> Result<(), SqlError> {
        let parameters = [first.into(), last.unwrap_or(first).into()];
        let count = if last.is_some() { 2 } else { 1 };
        self.session.visit(statement, &parameters[..count], &mut |_| Ok(()))
    }

    fn event(&mut self) -> Result<Outcome, SqlError> {
        let script = self.spec.script;
        let in_transaction = script.is_transaction() && !self.spec.autocommit;
        if in_transaction {
            self.session.begin_now(script.writes())?;
        }
        if script.has_points() {
            self.points()?;
        }
        for index in 0..if script.has_ranges() { 4 } else { 0 } {
            self.range(index)?;
        }
        if script.has_index_updates() {
            let (table, id) = (self.table(), self.id());
            self.run(table, |statements| statements.update_index, values![id])?;
        }
        if script.has_other_updates() {
            let (table, text, id) = (self.table(), table::c(&mut self.random), self.id());
            self.run(table, |statements| statements.update_other, values![text, id])?;
        }
        if script.has_replacements() {
            let (table, id, k) = (self.table(), self.id(), self.id());
            let (c, pad) = (table::c(&mut self.random), table::pad(&mut self.random));
            self.run(table, |statements| statements.delete, values![id])?;
            self.run(table, |statements| statements.insert, values![id, k, c, pad]).map_err(lost_race)?;
        } else if script.has_deletes() {
            let (table, id) = (self.table(), self.id());
            self.run(table, |statements| statements.delete, values![id])?;
        }
        if script == Script::Insert {
            self.insert()?;
        }
        if !in_transaction {
            let commit_wait = (!script.writes()).then_some(Duration::ZERO);
            return Ok(Outcome { commit_wait, ..Outcome::default() });
        }
        let before = Instant::now();
        self.session.commit()?;
        Ok(Outcome { commit_wait: Some(before.elapsed()), ..Outcome::default() })
    }

    fn points(&mut self) -> Result<(), SqlError> {
        let table = self.table();
        let statement = self.statements[table].point.expect("the script has point selects");
        let count = if self.spec.script == Script::PointSelect { 1 } else { self.spec.point_selects };
        for _ in 0..count {
            let id = self.id();
            self.select(statement, id, None)?;
        }
        Ok(())
    }

    fn range(&mut self, index: usize) -> Result<(), SqlError> {
        let (table, first) = (self.table(), self.id());
        let statement = self.statements[table].ranges[index];
        self.select(statement, first, Some(first + self.spec.range_size - 1))
    }

    fn run(
        &mut self,
        table: usize,
        statement: impl Fn(&Statements) -> Option<Statement>,
        parameters: &[crate::sql::Value],
    ) -> Result<(), SqlError> {
        let statement = statement(&self.statements[table]).expect("the script has it");
        self.session.run(statement, parameters).map(drop)
    }

    /// Not prepared, as in the tool. The server assigns the key.
    fn insert(&mut self) -> Result<(), SqlError> {
        let name = table::name(self.table() as u32 + 1);
        let k = self.id();
        let (c, pad) = (table::c(&mut self.random), table::pad(&mut self.random));
        self.session.execute(&format!("INSERT INTO {name} (k, c, pad) VALUES ({k}, '{c}', '{pad}')"))
    }
}

/// At READ COMMITTED another terminal may insert the same row between our DELETE, which then finds none, and
/// our INSERT. The tool treats this like a deadlock and retries.
fn lost_race(error: SqlError) -> SqlError {
    let class = if error.class == Class::Duplicate { Class::Retry } else { error.class };
    SqlError { class, ..error }
}

impl Client for OltpClient {
    fn choose(&mut self) -> usize {
        0
    }

    fn execute(&mut self) -> Result<Outcome, Failure> {
        let before = self.random.clone();
        retry(
            self,
            |client| &mut *client.session,
            |client| {
                // A retried event accesses the same rows.
                client.random = before.clone();
                client.event()
            },
        )
    }
}
