//! The local executor: fragments on several connections, their rows in a temporary table, and the merge.

mod merge;
mod workers;

use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use mysql::{Column, Conn};

use crate::facts::Facts;
use crate::plan::{Part, Plan, Refusal, plan};
use crate::servers::Server;
use crate::servers::catalog::Catalog;
use crate::servers::session::{Session, use_database};
use crate::split::{self, Options, Split};
use crate::sql::parse;

/// How a query is answered.
#[derive(Debug)]
pub enum Route {
    /// Fragments on several connections: those of each block of the plan.
    Split(Plan, Vec<Split>),
    /// As it is, on one connection.
    Passthrough(Refusal),
}

/// A result: its columns and its rows as text, with NULL as `None`.
#[derive(Debug)]
pub struct Answer {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    /// Their number, or why there are none.
    pub fragments: Result<usize, Refusal>,
}

/// Answers queries by one server over several connections.
#[derive(Debug)]
pub struct Scatter {
    server: Server,
    options: Options,
    /// Answers what is not split.
    home: Conn,
    /// Something that only this connection sees: an open transaction, a temporary table.
    is_private: bool,
    catalog: Catalog,
}

impl Scatter {
    pub fn connect(server: Server, options: Options) -> Result<Scatter> {
        let home = server.connect()?;
        let catalog = Catalog::new(server.connect()?);
        Ok(Scatter { server, options, home, is_private: false, catalog })
    }

    /// Decides how a query is answered, without running it.
    pub fn route(&mut self, text: &str) -> Result<Route> {
        let session = Session::of(&mut self.home)?;
        self.route_in(&session, text)
    }

    fn route_in(&mut self, session: &Session, text: &str) -> Result<Route> {
        self.catalog.follow(session)?;
        let planned = session.check().and_then(|()| self.plan(text));
        let plan = match planned {
            Ok(plan) => plan,
            Err(refusal) => return Ok(Route::Passthrough(refusal)),
        };
        if plan.blocks.iter().all(|block| block.ships_rows()) {
            return Ok(Route::Passthrough(Refusal("its fragments would return all their rows".to_owned())));
        }
        let (mut splits, mut refused) = (Vec::new(), None);
        for block in &plan.blocks {
            splits.push(match split::choose(block, &mut self.home, &self.options)? {
                Ok(split) => split,
                Err(refusal) => {
                    refused = Some(refusal);
                    Split { parts: vec![Part::Everything], words: "itself".to_owned() }
                }
            });
        }
        let is_split = splits.iter().any(|split| split.parts.len() > 1);
        Ok(match (is_split, refused) {
            (false, Some(refusal)) => Route::Passthrough(refusal),
            _ => Route::Split(plan, splits),
        })
    }

    fn plan(&self, text: &str) -> Result<Plan, Refusal> {
        if self.is_private {
            return Err(Refusal(
                "an earlier statement may have changed what only its connection sees".to_owned(),
            ));
        }
        let query = parse(text).map_err(|error| Refusal(format!("it is not understood here: {error}")))?;
        let result = self.catalog.result(text).map_err(Refusal)?;
        plan(&query, &result, &self.catalog)
    }

    /// Runs a statement.
    ///
    /// # Errors
    /// A server's words about a fragment, or about the statement.
    pub fn run(&mut self, text: &str) -> Result<Answer> {
        let session = Session::of(&mut self.home)?;
        match self.route_in(&session, text)? {
            Route::Split(plan, splits) => self.run_split(&session, &plan, &splits),
            Route::Passthrough(refusal) => {
                self.is_private |= is_private(text);
                self.catalog.forget();
                answer(&mut self.home, text, Err(refusal))
            }
        }
    }

    fn run_split(&self, session: &Session, plan: &Plan, splits: &[Split]) -> Result<Answer> {
        let mut merging = self.server.connect()?;
        session.apply_to_merge(&mut merging)?;
        let schema = plan.blocks.iter().find_map(|block| block.schema.as_deref());
        if let (None, Some(schema)) = (&session.database, schema) {
            use_database(&mut merging, schema)?;
        }
        let mut tables = Vec::new();
        for block in &plan.blocks {
            tables.push(merge::Table::create(&mut merging, &block.table, &block.shape())?);
        }
        let fragments: Vec<(usize, String)> = plan
            .blocks
            .iter()
            .zip(splits)
            .enumerate()
            .flat_map(|(index, (block, split))| {
                split.parts.iter().map(move |part| (index, block.fragment(part)))
            })
            .collect();
        workers::run(&self.server, session, self.options.connections, &fragments, |index, rows| {
            tables[index].take(&mut merging, rows)
        })?;
        for table in tables {
            table.finish(&mut merging)?;
        }
        for statement in plan.blocks.iter().flat_map(|block| block.before_merge()) {
            merging.query_drop(statement).with_context(|| format!("merging: {statement}"))?;
        }
        answer(&mut merging, &plan.merge, Ok(fragments.len()))
    }
}

/// Whether what a statement does may be seen by its own connection only.
fn is_private(text: &str) -> bool {
    const SEEN_BY_ALL: [&str; 21] = [
        "ALTER", "ANALYZE", "CHECK", "DELETE", "DESC", "DESCRIBE", "DROP", "EXPLAIN", "FLUSH", "INSERT",
        "KILL", "LOAD", "OPTIMIZE", "RENAME", "REPLACE", "SELECT", "SET", "SHOW", "TRUNCATE", "UPDATE",
        "USE",
    ];
    let mut words = text.split(|letter: char| !letter.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default().to_ascii_uppercase();
    match first.as_str() {
        "CREATE" => words.any(|word| word.eq_ignore_ascii_case("temporary")),
        first => !SEEN_BY_ALL.contains(&first),
    }
}

/// All rows of a statement.
fn answer(connection: &mut Conn, text: &str, fragments: Result<usize, Refusal>) -> Result<Answer> {
    let result = connection.query_iter(text)?;
    let columns = result.columns().as_ref().to_vec();
    let rows = result.map(|row| Ok(values(row?))).collect::<Result<_, mysql::Error>>()?;
    Ok(Answer { columns, rows, fragments })
}

fn values(row: mysql::Row) -> Vec<Option<Vec<u8>>> {
    let value = |value: mysql::Value| match value {
        mysql::Value::NULL => None,
        mysql::Value::Bytes(bytes) => Some(bytes),
        other => Some(other.as_sql(true).into_bytes()),
    };
    row.unwrap().into_iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_and_a_temporary_table_are_private() {
        let check = |text: &str, expect: bool| assert_eq!(is_private(text), expect, "{text}");
        check("BEGIN", true);
        check("start transaction", true);
        check("CREATE TEMPORARY TABLE t (a INT)", true);
        check("LOCK TABLES t READ", true);
        check("CREATE TABLE t (a INT)", false);
        check("(SELECT 1) UNION (SELECT 2)", false);
        check("insert INTO t VALUES (1)", false);
    }
}
