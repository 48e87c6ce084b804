//! What a server's `information_schema` says of tables.

use std::cell::RefCell;
use std::collections::BTreeMap;

use anyhow::{Context, Result};
use mysql::Conn;
use mysql::consts::ColumnType;
use mysql::prelude::Queryable;

use super::session::{Session, use_database};
use crate::facts::{Column, Facts, Kind, ResultColumn, TableFacts, TableName};

/// Asks each question once.
#[derive(Debug)]
pub struct Catalog {
    connection: RefCell<Conn>,
    database: Option<String>,
    known: RefCell<BTreeMap<TableName, Option<TableFacts>>>,
}

impl Catalog {
    pub fn new(connection: Conn) -> Catalog {
        Catalog { connection: RefCell::new(connection), database: None, known: RefCell::default() }
    }

    /// Uses the database of a session.
    pub fn follow(&mut self, session: &Session) -> Result<()> {
        if self.database == session.database {
            return Ok(());
        }
        if let Some(database) = &session.database {
            use_database(self.connection.get_mut(), database)?;
        }
        self.database.clone_from(&session.database);
        self.forget();
        Ok(())
    }

    /// A statement may have changed the tables.
    pub fn forget(&mut self) {
        self.known.get_mut().clear();
    }
}

impl Facts for Catalog {
    fn table(&self, name: &TableName) -> Option<TableFacts> {
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        let found = ask(&mut self.connection.borrow_mut(), name).ok().flatten();
        self.known.borrow_mut().insert(name.clone(), found.clone());
        found
    }

    fn result(&self, query: &str) -> Result<Vec<ResultColumn>, String> {
        let mut connection = self.connection.borrow_mut();
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

/// The server's own words of an error, where it has some.
pub fn words(error: &mysql::Error) -> String {
    match error {
        mysql::Error::MySqlError(error) => error.message.clone(),
        other => other.to_string(),
    }
}

fn ask(connection: &mut Conn, name: &TableName) -> Result<Option<TableFacts>> {
    let schema = match &name.schema {
        Some(schema) => format!("'{}'", schema.replace('\\', "\\\\").replace('\'', "''")),
        None => "DATABASE()".to_owned(),
    };
    let table = name.name.replace('\\', "\\\\").replace('\'', "''");
    let which = format!("table_schema = {schema} AND table_name = '{table}'");
    let of = |what: &str, from: &str, rest: &str| {
        format!("SELECT {what} FROM information_schema.{from} WHERE {which} {rest}")
    };
    let asking = || format!("asking for the table {}", name.name);

    let found: Option<(String, Option<u64>)> =
        connection.query_first(of("table_type, table_rows", "tables", "")).with_context(asking)?;
    let Some((kind, rows)) = found else { return Ok(None) };
    let columns: Vec<(String, String, String)> = connection
        .query(of("column_name, data_type, is_nullable", "columns", "ORDER BY ordinal_position"))
        .with_context(asking)?;
    let partitions: Vec<(Option<String>, u64)> = connection
        .query(of(
            "partition_name, MIN(partition_ordinal_position)",
            "partitions",
            "AND partition_name IS NOT NULL GROUP BY partition_name ORDER BY 2",
        ))
        .with_context(asking)?;
    let keys: Vec<(String, String)> = connection
        .query(of(
            "index_name, column_name",
            "statistics",
            "ORDER BY index_name <> 'PRIMARY', index_name, seq_in_index",
        ))
        .with_context(asking)?;
    let mut indexes: Vec<(String, Vec<String>)> = Vec::new();
    for (index, column) in keys {
        match indexes.last_mut() {
            Some((last, columns)) if *last == index => columns.push(column),
            _ => indexes.push((index, vec![column])),
        }
    }
    Ok(Some(TableFacts {
        columns: columns.into_iter().map(column).collect(),
        rows: rows.unwrap_or(0),
        partitions: partitions.into_iter().filter_map(|(name, _)| name).collect(),
        indexes: indexes.into_iter().map(|(_, columns)| columns).collect(),
        is_base_table: kind == "BASE TABLE",
    }))
}

fn column((name, kind, nullable): (String, String, String)) -> Column {
    let kind = match kind.as_str() {
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year" => Kind::Integer,
        "date" => Kind::Date,
        _ => Kind::Other,
    };
    Column { name, kind, nullable: nullable == "YES" }
}
