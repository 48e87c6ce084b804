//! The local executor: fragments on connections to servers, their rows in a temporary table, and the merge.

mod idle;
mod merge;
mod running;
mod subqueries;
mod workers;
mod writing;

use std::sync::Arc;

use anyhow::{Context, Error, Result};
use mysql::prelude::Queryable;
use mysql::{Column, Conn};
use spindle_base::Mistake;
use sqlparser::ast::Query;

pub use running::Killer;

use self::idle::Idle;
use self::running::Running;
use self::subqueries::Answering;
use self::workers::{Fragment, Workers};
use crate::facts::Facts as _;
use crate::plan::{Plan, Refusal, inlined, is_write, only_server, plan, reads_sharded};
use crate::servers::Server;
use crate::servers::session::{Session, use_database};
use crate::shards::catalog::Catalog;
use crate::shards::{Cluster, check};
use crate::split::{self, Options, Split};
use crate::sql::parse;
use crate::sql::print::explicit;
use crate::sql::statements::first_word;

/// How a query is answered.
#[derive(Debug)]
pub enum Route {
    /// Fragments on several connections.
    Split(Plan, Vec<Assigned>),
    /// As it is, on one connection of this server.
    Passthrough(usize, Refusal),
}

/// The fragments of one block of a plan on one server.
#[derive(Debug)]
pub struct Assigned {
    pub block: usize,
    pub server: usize,
    pub split: Split,
}

/// A result: its columns and its rows as text, with NULL as `None`.
#[derive(Debug)]
pub struct Answer {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    /// Their number, or why there are none.
    pub fragments: Result<usize, Refusal>,
    pub done: Done,
}

/// What a statement that returns no rows has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    pub affected_rows: u64,
    pub last_insert_id: u64,
}

/// Answers queries by the servers of a cluster.
#[derive(Debug)]
pub struct Scatter {
    cluster: Cluster,
    options: Options,
    /// A connection to each server, for what is not split. The first one's session is everybody's.
    homes: Vec<Conn>,
    /// The database of the first one when it was new; those of the others may have other names.
    first_database: Option<String>,
    /// Something that only its connection sees, such as a temporary table.
    is_private: bool,
    /// On each server.
    is_in_transaction: bool,
    catalog: Catalog,
    running: Arc<Running>,
    /// For fragments.
    idle: Idle,
    /// For merging.
    idle_merging: Idle,
}

impl Scatter {
    /// # Errors
    /// A server does not answer, or has settings by which a query means something else than on the first.
    pub fn connect(cluster: Cluster, options: Options) -> Result<Scatter> {
        let mut homes = cluster.servers.iter().map(Server::connect).collect::<Result<Vec<_>>>()?;
        check::sessions(&cluster.servers, &mut homes)?;
        Ok(Scatter {
            first_database: Session::of(&mut homes[0])?.database,
            catalog: Catalog::connect(&cluster)?,
            running: Arc::new(Running::new(cluster.servers.clone())),
            cluster,
            options,
            homes,
            is_private: false,
            is_in_transaction: false,
            idle: Idle::default(),
            idle_merging: Idle::default(),
        })
    }

    /// Ends what runs from another thread.
    pub fn killer(&self) -> Killer {
        Killer(Arc::clone(&self.running))
    }

    /// Decides how a query is answered, without running it.
    ///
    /// # Errors
    /// No server has all that it reads, and it cannot be split; or a server does not answer.
    pub fn route(&mut self, text: &str) -> Result<Route> {
        let session = self.session()?;
        self.route_in(&session, text)
    }

    fn session(&mut self) -> Result<Session> {
        let mut session = Session::of(&mut self.homes[0])?;
        // Each connection has its own without being told.
        session.database = session.database.filter(|database| Some(database) != self.first_database.as_ref());
        Ok(session)
    }

    fn route_in(&mut self, session: &Session, text: &str) -> Result<Route> {
        self.catalog.follow(session)?;
        if let Some(refusal) = self.private() {
            return Ok(Route::Passthrough(0, refusal));
        }
        let query = match parse(text) {
            Ok(query) => query,
            Err(error) => return self.not_understood(text, &error),
        };
        let planned = match session.check() {
            Ok(()) => self.plan(session, text, &query)?,
            Err(refusal) => Err(refusal),
        };
        let route = match planned {
            Ok(plan) if plan.blocks.iter().all(|block| block.ships_rows()) && !self.is_sharded(&query) => {
                let words = "its fragments would return all their rows";
                Ok(Route::Passthrough(0, Refusal(words.to_owned())))
            }
            Ok(plan) => self.assigned(plan),
            Err(refusal) => self.whole(&query, refusal),
        };
        self.catalog.check()?;
        route
    }

    fn plan(&mut self, session: &Session, text: &str, query: &Query) -> Result<Result<Plan, Refusal>> {
        let result = match self.catalog.result(text) {
            Ok(result) => result,
            Err(words) => return Ok(Err(Refusal(words))),
        };
        let mut query = match inlined(query) {
            Ok(query) => query,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if self.is_sharded(&query) {
            subqueries::answer_all(&mut query, &mut First { scatter: self, session })?;
        } else {
            subqueries::answer_having(&mut query, &mut First { scatter: self, session })?;
        }
        Ok(plan(&query, &result, &self.catalog))
    }

    fn is_sharded(&self, query: &Query) -> bool {
        self.cluster.mapping.is_some() && reads_sharded(query, &self.catalog)
    }

    fn private(&self) -> Option<Refusal> {
        let words = "an earlier statement may have changed what only its connection sees";
        let is_private = self.is_private || self.is_in_transaction;
        (is_private && self.cluster.mapping.is_none()).then(|| Refusal(words.to_owned()))
    }

    /// A query that is not split.
    fn whole(&self, query: &Query, refusal: Refusal) -> Result<Route> {
        let Some(mapping) = self.cluster.mapping.as_ref().filter(|_| self.is_sharded(query)) else {
            return Ok(Route::Passthrough(0, refusal));
        };
        match only_server(query, &self.catalog, mapping, self.cluster.servers.len()) {
            Some(server) => {
                let words = "its conditions leave one server";
                Ok(Route::Passthrough(server, Refusal(words.to_owned())))
            }
            None => Err(not_over_several(&refusal)),
        }
    }

    /// What is no query, or none that the parser knows.
    fn not_understood(&self, text: &str, error: &str) -> Result<Route> {
        let refusal = Refusal(format!("it is not understood here: {error}"));
        match self.cluster.mapping {
            Some(_) if !is_of_any_server(text) => Err(not_over_several(&refusal)),
            _ => Ok(Route::Passthrough(0, refusal)),
        }
    }

    fn assigned(&mut self, plan: Plan) -> Result<Route> {
        let (mut all, mut refused) = (Vec::new(), None);
        let count = self.cluster.servers.len();
        for (index, block) in plan.blocks.iter().enumerate() {
            for server in block.servers(self.cluster.mapping.as_ref(), count) {
                let split = match split::choose(block, &mut self.homes[server], &self.options)? {
                    Ok(split) => split,
                    Err(refusal) => {
                        refused = Some(refusal);
                        Split::whole()
                    }
                };
                all.push(Assigned { block: index, server, split });
            }
        }
        // One connection can answer what one server has.
        let is_of_one = all.iter().all(|assigned| assigned.server == all[0].server);
        let is_split = all.iter().any(|assigned| assigned.split.parts.len() > 1);
        if is_of_one && !is_split {
            let alone = || Refusal("there is one connection for its fragments".to_owned());
            return Ok(Route::Passthrough(all[0].server, refused.unwrap_or_else(alone)));
        }
        Ok(Route::Split(plan, all))
    }

    /// Runs a statement.
    ///
    /// # Errors
    /// A server's words about a fragment, or about the statement.
    pub fn run(&mut self, text: &str) -> Result<Answer> {
        let session = self.session()?;
        self.run_in(&session, text)
    }

    fn run_in(&mut self, session: &Session, text: &str) -> Result<Answer> {
        let first = first_word(text);
        if self.cluster.mapping.is_some() && is_write(&first) {
            return self.write(session, text);
        }
        if self.cluster.mapping.is_some() && writing::is_of_transaction(&first) {
            return self.transact(text);
        }
        match self.route_in(session, text)? {
            Route::Split(..) if self.is_in_transaction => Err(not_over_several(&Refusal(
                "each server has a part of the transaction, and rows of one server alone are read in it"
                    .to_owned(),
            ))),
            Route::Split(plan, assigned) => self.run_split(session, &plan, &assigned),
            Route::Passthrough(server, refusal) => {
                self.is_in_transaction = writing::is_in_transaction_after(text, self.is_in_transaction);
                self.is_private |= is_private(text) && !writing::is_of_transaction(&first);
                if !reads(text) {
                    self.catalog.forget();
                }
                let home = &mut self.homes[server];
                let _running = self.running.add(server, home)?;
                if server != 0 {
                    session.apply(home)?;
                }
                answer(home, text, Err(refusal))
            }
        }
    }

    fn run_split(&self, session: &Session, plan: &Plan, assigned: &[Assigned]) -> Result<Answer> {
        let mut merging = self.idle_merging.connection(
            0,
            session,
            |connection| session.apply_to_merge(connection),
            || self.cluster.servers[0].connect(),
        )?;
        let schema = plan.blocks.iter().find_map(|block| block.schema.as_deref());
        if let (None, None, Some(schema)) = (&self.first_database, &session.database, schema) {
            use_database(&mut merging, schema)?;
        }
        let running = self.running.add(0, &merging)?;
        let mut tables = Vec::new();
        for block in &plan.blocks {
            tables.push(merge::Table::create(&mut merging, &block.table, &block.shape())?);
        }
        let fragments: Vec<Fragment> = assigned
            .iter()
            .flat_map(|Assigned { block, server, split }| {
                let text = |part| plan.blocks[*block].fragment(part);
                split.parts.iter().map(move |part| Fragment {
                    table: *block,
                    server: *server,
                    text: text(part),
                })
            })
            .collect();
        let workers = Workers { session, options: &self.options, running: &self.running, idle: &self.idle };
        workers.run(&fragments, |index, rows| tables[index].take(&mut merging, rows))?;
        for table in tables {
            table.finish(&mut merging)?;
        }
        for statement in plan.blocks.iter().flat_map(|block| block.before_merge()) {
            merging.query_drop(statement).with_context(|| format!("merging: {statement}"))?;
        }
        let answer = answer(&mut merging, &plan.merge, Ok(fragments.len()))?;
        drop(running);
        // One whose tables are not gone is closed.
        if self.options.keeps_connections && merging.reset().is_ok() {
            self.idle_merging.keep([(0, merging)]);
        }
        Ok(answer)
    }
}

/// Answers the subqueries of a query before it.
struct First<'a> {
    scatter: &'a mut Scatter,
    session: &'a Session,
}

impl Answering for First<'_> {
    /// It must mean something alone, and all fragments must read what it read.
    fn is_first(&mut self, query: &Query) -> bool {
        let scatter = &self.scatter;
        let is_one_server = scatter.cluster.mapping.is_none();
        !scatter.options.is_snapshot
            && (is_one_server || scatter.is_sharded(query))
            && scatter.catalog.result(&explicit(query)).is_ok()
    }

    fn answer(&mut self, query: &Query) -> Result<Answer> {
        self.scatter.run_in(self.session, &explicit(query))
    }
}

fn not_over_several(Refusal(why): &Refusal) -> Error {
    Mistake::new(format!("this is not answered over several servers, because {why}")).into()
}

/// Whether a statement leaves all tables as they are.
fn reads(text: &str) -> bool {
    is_of_any_server(text) || matches!(first_word(text).as_str(), "SELECT" | "VALUES" | "WITH")
}

/// Whether one server answers a statement for all: it asks for no rows and changes none.
fn is_of_any_server(text: &str) -> bool {
    const KINDS: [&str; 11] =
        ["BEGIN", "COMMIT", "DESC", "DESCRIBE", "EXPLAIN", "HELP", "ROLLBACK", "SET", "SHOW", "START", "USE"];
    KINDS.contains(&first_word(text).as_str())
}

/// Whether what a statement does may be seen by its own connection only.
fn is_private(text: &str) -> bool {
    const SEEN_BY_ALL: [&str; 24] = [
        "ALTER", "ANALYZE", "CHECK", "DELETE", "DESC", "DESCRIBE", "DROP", "EXPLAIN", "FLUSH", "INSERT",
        "KILL", "LOAD", "OPTIMIZE", "RENAME", "REPLACE", "SELECT", "SET", "SHOW", "TRUNCATE", "UPDATE",
        "USE", "HELP", "VALUES", "WITH",
    ];
    let is_temporary = |word: &str| word.eq_ignore_ascii_case("temporary");
    match first_word(text).as_str() {
        "CREATE" => text.split(|letter: char| !letter.is_ascii_alphabetic()).any(is_temporary),
        first => !SEEN_BY_ALL.contains(&first),
    }
}

/// All rows of a statement.
fn answer(connection: &mut Conn, text: &str, fragments: Result<usize, Refusal>) -> Result<Answer> {
    let result = connection.query_iter(text)?;
    let columns = result.columns().as_ref().to_vec();
    let rows = result.map(|row| Ok(values(row?))).collect::<Result<_, mysql::Error>>()?;
    let done =
        Done { affected_rows: connection.affected_rows(), last_insert_id: connection.last_insert_id() };
    Ok(Answer { columns, rows, fragments, done })
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
        check("WITH t AS (SELECT 1) SELECT * FROM t", false);
        check("/* a hint */ SELECT 1", false);
    }
}
