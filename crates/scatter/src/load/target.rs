//! The table on its servers: whether it can be loaded, and into which columns.

use anyhow::{Context, Result};
use mysql::Conn;
use mysql::prelude::Queryable;
use spindle_base::Mistake;

use super::route::{Key, Route};
use super::{Destination, OnDuplicate, Request};
use crate::facts::{Kind, TableFacts, TableName};
use crate::mapping::Mapping;
use crate::servers::Server;
use crate::servers::tables::table_facts;
use crate::sql::print::{quoted, text_literal};

#[derive(Debug)]
pub(super) struct Target {
    /// One for each field, as the statement has them.
    pub(super) columns: Vec<String>,
    pub(super) route: Route,
}

impl Target {
    /// Asks all servers.
    pub(super) fn of(request: &Request) -> Result<Target> {
        let loads = matches!(request.destination, Destination::Servers { .. });
        let servers = &request.cluster.servers;
        let mut first: Option<TableFacts> = None;
        for server in servers {
            let seen = see(server, &request.table, loads)?;
            check_columns(request, server, first.as_ref(), &seen)?;
            first.get_or_insert(seen);
        }
        let seen = first.ok_or_else(|| Mistake::new("there is no server"))?;
        let columns = match &request.columns {
            Some(columns) => columns.clone(),
            None => seen.columns.iter().map(|column| column.name.clone()).collect(),
        };
        let route = route(request, &seen, &columns)?;
        Ok(Target { columns, route })
    }

    /// The statement that loads a file of this name, on the side of the client.
    pub(super) fn statement(&self, request: &Request, file: &str) -> String {
        let duplicates = match request.on_duplicate {
            OnDuplicate::Error => "",
            OnDuplicate::Replace => "REPLACE ",
            OnDuplicate::Ignore => "IGNORE ",
        };
        let column = |name: &String| if name.starts_with('@') { name.clone() } else { quoted(name) };
        let columns: Vec<String> = self.columns.iter().map(column).collect();
        format!(
            "LOAD DATA LOCAL INFILE {} {duplicates}INTO TABLE {} {} ({})",
            text_literal(file),
            request.table.quoted(),
            request.format.clauses(),
            columns.join(", ")
        )
    }
}

fn see(server: &Server, table: &TableName, loads: bool) -> Result<TableFacts> {
    let name = &server.name;
    let asking = || format!("asking {name} for the table {}", table.name);
    let schema = table.schema.as_deref().map_or_else(|| "DATABASE()".to_owned(), text_literal);
    let which = format!("x.table_schema = {schema} AND x.table_name = {}", text_literal(&table.name));

    let mut connection = server.connect()?;
    check_table(&mut connection, table, name, &which, loads)?;
    let facts = table_facts(&mut connection, table)?;
    facts.with_context(asking)
}

/// The table is there, and if it `loads`, the server can load it.
fn check_table(connection: &mut Conn, table: &TableName, name: &str, which: &str, loads: bool) -> Result<()> {
    let asking = || format!("asking {name} for the table {}", table.name);
    let unfit = |words: String| Err(Mistake::of_flag("table", words).into());
    let kind: Option<(String, Option<String>, Option<String>)> = connection
        .query_first(format!(
            "SELECT x.table_type, x.engine, e.transactions FROM information_schema.tables x \
             LEFT JOIN information_schema.engines e ON e.engine = x.engine WHERE {which}"
        ))
        .with_context(asking)?;
    let Some((kind, engine, transactions)) = kind else {
        return unfit(format!("{name} has no table {}", table.quoted()));
    };
    if kind != "BASE TABLE" {
        return unfit(format!("{} of {name} is a view", table.quoted()));
    }
    if loads && transactions.as_deref() != Some("YES") {
        let words = format!(
            "{} of {name} is of the engine {}, which cannot take back a batch that fails; \
             --split-into makes files for LOAD DATA",
            table.quoted(),
            engine.unwrap_or_default()
        );
        return unfit(words);
    }
    let takes_files: Option<u8> =
        connection.query_first("SELECT @@GLOBAL.local_infile").with_context(asking)?;
    if loads && takes_files != Some(1) {
        let words = format!(
            "{name} takes no files of its clients: SET GLOBAL local_infile = 1 there, or use --split-into"
        );
        return Err(Mistake::new(words).into());
    }
    Ok(())
}

/// Each server has the columns of the fields.
fn check_columns(
    request: &Request,
    server: &Server,
    first: Option<&TableFacts>,
    seen: &TableFacts,
) -> Result<(), Mistake> {
    let names = |seen: &TableFacts| -> Vec<String> {
        seen.columns.iter().map(|column| column.name.to_ascii_lowercase()).collect()
    };
    let Some(columns) = &request.columns else {
        return match first.is_none_or(|first| names(first) == names(seen)) {
            true => Ok(()),
            false => {
                let words = format!(
                    "{} has other columns than the first server: name those of the file",
                    server.name
                );
                Err(Mistake::of_flag("columns", words))
            }
        };
    };
    for column in columns {
        let is_known = match column.strip_prefix('@') {
            Some(variable) => {
                !variable.is_empty()
                    && variable.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            }
            None => seen.column(column).is_some(),
        };
        if !is_known {
            let words = format!("`{column}` is no column of {} on {}", request.table.quoted(), server.name);
            return Err(Mistake::of_flag("columns", words));
        }
    }
    Ok(())
}

fn route(request: &Request, seen: &TableFacts, columns: &[String]) -> Result<Route, Mistake> {
    let shards = request.cluster.servers.len();
    let mapping = request.cluster.mapping.as_ref().filter(|_| shards > 1);
    let Some(mapping) = mapping else { return Ok(Route::Every) };
    let name = request.table.name.to_ascii_lowercase();
    if let Some(column) = mapping.columns.get(&name).filter(|column| seen.column(column).is_none()) {
        let words = format!("has no column `{column}`, by which the configuration shards it");
        return Err(Mistake::of_flag("table", words));
    }
    match mapping.column_of(&request.table.name, |column| seen.column(column).is_some()) {
        None => Ok(Route::Every),
        Some(column) => key(request, mapping, seen, columns, column, shards).map(Route::By),
    }
}

fn key(
    request: &Request,
    mapping: &Mapping,
    seen: &TableFacts,
    columns: &[String],
    column: &str,
    shards: usize,
) -> Result<Key, Mistake> {
    let is_it = |name: &str| name.eq_ignore_ascii_case(column);
    let Some(field) = columns.iter().position(|name| is_it(name)) else {
        let words = format!("`{column}` is missing, by which the table is sharded");
        return Err(Mistake::of_flag("columns", words));
    };
    let known = seen.column(column);
    let kind = known.map(|column| column.kind).unwrap_or_default();
    if kind == Kind::Other {
        let declared = known.map_or("", |column| &column.declared);
        let words = format!(
            "is sharded by `{column}` of the type {declared}: a key is an integer, a date, a CHAR or a VARCHAR"
        );
        return Err(Mistake::of_flag("table", words));
    }
    Ok(Key {
        column: column.to_owned(),
        field,
        kind,
        mapper: mapping.mapper.clone(),
        shards,
        is_utf8: request.format.is_utf8(),
    })
}
