//! What servers say of tables and results, each asked once.

use std::cell::RefCell;
use std::collections::BTreeMap;

use anyhow::{Error, Result};
use mysql::Conn;
use mysql::consts::ColumnType;
use mysql::prelude::Queryable;

use super::{Cluster, check};
use crate::facts::{Facts, ResultColumn, TableFacts, TableName};
use crate::servers::session::{Session, use_database};
use crate::servers::tables::{group_count, table_facts};
use crate::servers::{Server, words};

/// A table and some of its columns.
type Groups = (TableName, Vec<String>);

/// Asks each question once. Of several servers, all are asked of a table, and the first one of results.
#[derive(Debug)]
pub struct Catalog {
    cluster: Cluster,
    connections: RefCell<Vec<Conn>>,
    database: Option<String>,
    known: RefCell<BTreeMap<TableName, Option<TableFacts>>>,
    groups: RefCell<BTreeMap<Groups, Option<u64>>>,
    /// What was found wrong since the last [`Catalog::check`].
    wrong: RefCell<Option<Error>>,
}

impl Catalog {
    pub fn connect(cluster: &Cluster) -> Result<Catalog> {
        Ok(Catalog {
            connections: RefCell::new(connect_all(cluster)?),
            cluster: cluster.clone(),
            database: None,
            known: RefCell::default(),
            groups: RefCell::default(),
            wrong: RefCell::default(),
        })
    }

    /// Uses the database of a session.
    pub fn follow(&mut self, session: &Session) -> Result<()> {
        if self.database == session.database {
            return Ok(());
        }
        let connections = self.connections.get_mut();
        match &session.database {
            Some(database) => {
                connections.iter_mut().try_for_each(|connection| use_database(connection, database))?;
            }
            None => *connections = connect_all(&self.cluster)?,
        }
        self.database.clone_from(&session.database);
        self.forget();
        Ok(())
    }

    /// A statement may have changed the tables.
    pub fn forget(&mut self) {
        self.known.get_mut().clear();
        self.groups.get_mut().clear();
    }

    /// # Errors
    /// A table is not on all servers as it should be, or a server did not answer.
    pub fn check(&self) -> Result<()> {
        self.wrong.borrow_mut().take().map_or(Ok(()), Err)
    }

    fn ask(&self, name: &TableName) -> Result<Option<TableFacts>> {
        let mut connections = self.connections.borrow_mut();
        match &self.cluster.mapping {
            None => table_facts(&mut connections[0], name),
            Some(mapping) => {
                let facts = connections.iter_mut().map(|connection| table_facts(connection, name));
                let facts = facts.collect::<Result<Vec<_>>>()?;
                check::table(name, facts, &self.cluster.servers, &mut connections, mapping)
            }
        }
    }
}

fn connect_all(cluster: &Cluster) -> Result<Vec<Conn>> {
    cluster.servers.iter().map(Server::connect).collect()
}

impl Facts for Catalog {
    fn table(&self, name: &TableName) -> Option<TableFacts> {
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        let found = self.ask(name).unwrap_or_else(|error| {
            self.wrong.borrow_mut().get_or_insert(error);
            None
        });
        self.known.borrow_mut().insert(name.clone(), found.clone());
        found
    }

    fn groups(&self, table: &TableName, columns: &[(&str, u64)]) -> Option<u64> {
        let key = (table.clone(), columns.iter().map(|(name, _)| (*name).to_owned()).collect());
        if let Some(known) = self.groups.borrow().get(&key) {
            return *known;
        }
        // Each shard has rows of its own, but of the same kind.
        let found =
            group_count(&mut self.connections.borrow_mut()[0], table, columns).unwrap_or_else(|error| {
                self.wrong.borrow_mut().get_or_insert(error);
                None
            });
        self.groups.borrow_mut().insert(key, found);
        found
    }

    fn result(&self, query: &str) -> Result<Vec<ResultColumn>, String> {
        let connection = &mut self.connections.borrow_mut()[0];
        let statement = connection.prep(query).map_err(|error| words(&error))?;
        let columns = statement.columns().iter().map(result_column).collect();
        connection.close(statement).map_err(|error| words(&error))?;
        Ok(columns)
    }
}

fn result_column(column: &mysql::Column) -> ResultColumn {
    /// The number of digits of a value that has as many as it needs (`NOT_FIXED_DEC`).
    const AS_MANY: u8 = 31;
    let is_floating =
        matches!(column.column_type(), ColumnType::MYSQL_TYPE_DOUBLE | ColumnType::MYSQL_TYPE_FLOAT);
    let digits = Some(column.decimals()).filter(|digits| is_floating && *digits < AS_MANY);
    ResultColumn { name: column.name_str().into_owned(), digits }
}
