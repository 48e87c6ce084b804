//! Statements that write, over several servers: each row of a sharded table goes to the server of its key, and each server
//! changes its copy of a reference table.

use std::collections::{BTreeMap, BTreeSet};

use sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, Insert, ObjectName, OnInsert, Query, SetExpr,
    Statement, TableFactor, TableObject, TableWithJoins, Update,
};

use super::Refusal;
use super::check::{check_expressions, columns_in};
use super::conditions::Literal;
use super::placement::servers_with_rows;
use super::scope::table_name;
use crate::facts::{Facts, Kind, TableFacts};
use crate::mapping::Mapping;
use crate::sql::statements::{Rows, first_word, rows};
use crate::sql::{parse, parse_statement};

/// What each server does for a statement that writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Servers with their statements.
    pub texts: Vec<(usize, String)>,
    /// Each of them changes the same rows.
    pub are_copies: bool,
    /// Each of them commits by itself: definitions.
    pub commits: bool,
}

/// Statements whose effect is the same on each server. They end a transaction.
const DEFINITIONS: [&str; 7] = ["ALTER", "ANALYZE", "CREATE", "DROP", "OPTIMIZE", "RENAME", "TRUNCATE"];

/// Whether a statement with this first word may be one that writes rows or defines tables.
pub fn is_write(first: &str) -> bool {
    matches!(first, "INSERT" | "REPLACE" | "UPDATE" | "DELETE") || is_definition(first)
}

/// Whether a statement with this first word commits what was before it.
pub fn is_definition(first: &str) -> bool {
    DEFINITIONS.contains(&first)
}

/// What each of so many servers does.
///
/// # Errors
/// Why nobody can say.
pub fn plan_write(text: &str, facts: &dyn Facts, mapping: &Mapping, count: usize) -> Result<Write, Refusal> {
    if is_definition(&first_word(text)) {
        return definition(text, count);
    }
    let statement = parse_statement(text);
    let statement = statement.map_err(|why| Refusal(format!("it is not understood here: {why}")))?;
    let servers = Servers { text, facts, mapping, count };
    match &statement {
        Statement::Insert(insert) => servers.insert(insert, &statement),
        Statement::Update(update) => servers.update(update, &statement),
        Statement::Delete(delete) => servers.delete(delete, &statement),
        _ => refused("it is neither INSERT, REPLACE, UPDATE nor DELETE"),
    }
}

fn refused<T>(why: &str) -> Result<T, Refusal> {
    Err(Refusal(why.to_owned()))
}

fn definition(text: &str, count: usize) -> Result<Write, Refusal> {
    let has = |word: &str| {
        text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .any(|found| found.eq_ignore_ascii_case(word))
    };
    if has("TEMPORARY") {
        return refused("a temporary table is seen by one connection only");
    }
    if has("SELECT") {
        return refused("it fills a table or defines a view by a query");
    }
    let texts = (0..count).map(|server| (server, text.to_owned())).collect();
    Ok(Write { texts, are_copies: true, commits: true })
}

struct Servers<'a> {
    text: &'a str,
    facts: &'a dyn Facts,
    mapping: &'a Mapping,
    count: usize,
}

impl Servers<'_> {
    fn table(&self, name: &ObjectName) -> Result<TableFacts, Refusal> {
        let found = self.facts.table(&table_name(name)?);
        found.ok_or_else(|| Refusal(format!("no server has a table {name}")))
    }

    /// The whole statement for these servers.
    fn of_parts(&self, servers: BTreeSet<usize>) -> Write {
        let texts = servers.into_iter().map(|server| (server, self.text.to_owned())).collect();
        Write { texts, are_copies: false, commits: false }
    }

    /// The whole statement for each server's copy.
    fn of_copies(&self, statement: &Statement) -> Result<Write, Refusal> {
        check_expressions(statement)?;
        Ok(Write { are_copies: true, ..self.of_parts((0..self.count).collect()) })
    }

    fn insert(&self, insert: &Insert, statement: &Statement) -> Result<Write, Refusal> {
        let TableObject::TableName(name) = &insert.table else { return refused("it names no table") };
        if insert.returning.is_some() {
            return refused("it returns rows of several servers");
        }
        let table = self.table(name)?;
        let values_of_rows: Vec<Vec<&Expr>> = match &insert.source {
            Some(source) => {
                let SetExpr::Values(values) = &*source.body else {
                    return refused("its rows come from a query");
                };
                values.rows.iter().map(|row| row.content.iter().collect()).collect()
            }
            None => vec![insert.assignments.iter().map(|assignment| &assignment.value).collect()],
        };
        let updated: &[Assignment] = match &insert.on {
            Some(OnInsert::DuplicateKeyUpdate(assignments)) => assignments,
            Some(_) => return refused("it has a clause of an unknown kind"),
            None => &[],
        };
        let values = values_of_rows
            .iter()
            .flatten()
            .copied()
            .chain(updated.iter().map(|assignment| &assignment.value));
        check_no_queries(values)?;
        let Some(key) = &table.key else { return self.of_copies(statement) };
        check_key_stays(updated, key)?;
        let asks_for_others = insert.replace_into || insert.ignore || insert.on.is_some();
        let has_key = |columns: &Vec<String>| columns.iter().any(|column| column.eq_ignore_ascii_case(key));
        if asks_for_others && !table.unique.iter().all(has_key) {
            return Err(Refusal(format!(
                "a unique key without {key} is known to each server for its own rows only"
            )));
        }

        let names: Vec<String> = match (&insert.source, insert.columns.as_slice()) {
            (None, _) => insert.assignments.iter().filter_map(assigned).collect(),
            (_, []) => table.columns.iter().map(|column| column.name.clone()).collect(),
            (_, columns) => columns.iter().filter_map(last).collect(),
        };
        let Some(index) = names.iter().position(|name| name.eq_ignore_ascii_case(key)) else {
            return Err(Refusal(format!("it gives no value of {key}, by which the rows are sharded")));
        };
        let kind = table.column(key).map(|column| column.kind).unwrap_or_default();
        let shards = values_of_rows.iter().map(|row| self.shard_of(row.get(index).copied(), key, kind));
        let shards = shards.collect::<Result<Vec<usize>, _>>()?;
        if insert.source.is_none() {
            return Ok(self.of_parts(shards.into_iter().collect()));
        }
        let Some(Rows { before, rows, after }) =
            rows(self.text).filter(|found| found.rows.len() == shards.len())
        else {
            return refused("its rows are not understood here");
        };
        let mut by_server: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for (row, server) in rows.into_iter().zip(shards) {
            by_server.entry(server).or_default().push(row);
        }
        let text = |rows: Vec<&str>| format!("{before}{}{after}", rows.join(", "));
        let texts = by_server.into_iter().map(|(server, rows)| (server, text(rows))).collect();
        Ok(Write { texts, are_copies: false, commits: false })
    }

    fn shard_of(&self, value: Option<&Expr>, key: &str, kind: Kind) -> Result<usize, Refusal> {
        let not_told = || Refusal(format!("a value of {key}, by which the rows are sharded, is no literal"));
        let literal = value.and_then(Literal::of).ok_or_else(not_told)?;
        let value = literal.inserted(kind).ok_or_else(not_told)?;
        let shard = self.mapping.mapper.shard_of(&value, self.count);
        shard.ok_or_else(|| Refusal(format!("no server is for a value of {key}")))
    }

    fn update(&self, update: &Update, statement: &Statement) -> Result<Write, Refusal> {
        if update.from.is_some() || update.returning.is_some() {
            return refused("it has a clause of an unknown kind");
        }
        check_no_queries(update.assignments.iter().map(|assignment| &assignment.value))?;
        let has_limit = update.limit.is_some();
        let (write, table) = self.of_rows(&update.table, update.selection.as_ref(), has_limit, statement)?;
        if let Some(key) = &table.key {
            check_key_stays(&update.assignments, key)?;
        }
        Ok(write)
    }

    fn delete(&self, delete: &Delete, statement: &Statement) -> Result<Write, Refusal> {
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let [from] = from.as_slice() else { return refused("it names several tables") };
        if !delete.tables.is_empty() || delete.using.is_some() || delete.returning.is_some() {
            return refused("it has a clause of an unknown kind");
        }
        let (write, _) = self.of_rows(from, delete.selection.as_ref(), delete.limit.is_some(), statement)?;
        Ok(write)
    }

    /// A statement about the rows of one table for which a condition holds.
    fn of_rows(
        &self,
        from: &TableWithJoins,
        selection: Option<&Expr>,
        has_limit: bool,
        statement: &Statement,
    ) -> Result<(Write, TableFacts), Refusal> {
        let TableFactor::Table { name, .. } = &from.relation else { return refused("it names no table") };
        if !from.joins.is_empty() {
            return refused("it joins tables");
        }
        let table = self.table(name)?;
        if table.key.is_none() {
            if has_limit {
                return refused("each server may take other rows for its LIMIT");
            }
            check_no_queries(selection.into_iter())?;
            return Ok((self.of_copies(statement)?, table));
        }
        let servers = servers_with_rows(&reading(from, selection)?, self.facts, self.mapping, self.count)?;
        if has_limit && servers.len() > 1 {
            return refused("a LIMIT is of all servers together");
        }
        // Where no server can have such a row, one says so.
        let servers = if servers.is_empty() { BTreeSet::from([0]) } else { servers };
        Ok((self.of_parts(servers), table))
    }
}

/// A query of the rows that a statement changes.
fn reading(from: &TableWithJoins, selection: Option<&Expr>) -> Result<Query, Refusal> {
    let mut query = parse("SELECT 1 FROM t").map_err(Refusal)?;
    let SetExpr::Select(select) = &mut *query.body else { return refused("it is no single SELECT") };
    select.from = vec![from.clone()];
    select.selection = selection.cloned();
    Ok(query)
}

/// A query in a value reads what one server has.
fn check_no_queries<'a>(mut values: impl Iterator<Item = &'a Expr>) -> Result<(), Refusal> {
    match values.any(|value| columns_in(value).is_none()) {
        true => refused("it has a query in a value"),
        false => Ok(()),
    }
}

fn check_key_stays(assignments: &[Assignment], key: &str) -> Result<(), Refusal> {
    let is_key = |assignment: &Assignment| match &assignment.target {
        AssignmentTarget::ColumnName(_) => {
            assigned(assignment).is_none_or(|name| name.eq_ignore_ascii_case(key))
        }
        AssignmentTarget::Tuple(_) => true,
    };
    match assignments.iter().any(is_key) {
        true => Err(Refusal(format!("rows whose {key} changes would be on another server"))),
        false => Ok(()),
    }
}

fn assigned(assignment: &Assignment) -> Option<String> {
    match &assignment.target {
        AssignmentTarget::ColumnName(name) => last(name),
        AssignmentTarget::Tuple(_) => None,
    }
}

fn last(name: &ObjectName) -> Option<String> {
    Some(name.0.last()?.as_ident()?.value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Column, ResultColumn, TableName};

    #[derive(Debug)]
    struct Known;

    impl Facts for Known {
        fn table(&self, name: &TableName) -> Option<TableFacts> {
            let column = |name: &str, kind| Column { name: name.to_owned(), kind, ..Column::default() };
            let columns =
                vec![column("id", Kind::Integer), column("day", Kind::Integer), column("note", Kind::Text)];
            let (key, unique) = match name.name.as_str() {
                "flights" => (Some("day"), vec!["id", "day"]),
                "numbered" => (Some("day"), vec!["id"]),
                "days" => (None, vec!["day"]),
                _ => return None,
            };
            Some(TableFacts {
                columns,
                key: key.map(str::to_owned),
                unique: vec![unique.into_iter().map(str::to_owned).collect()],
                is_base_table: true,
                ..TableFacts::default()
            })
        }

        fn result(&self, _: &str) -> Result<Vec<ResultColumn>, String> {
            Err("nobody asks".to_owned())
        }
    }

    #[track_caller]
    fn planned(text: &str) -> Result<Write, String> {
        let mapping = Mapping { column: "day".to_owned(), ..Mapping::default() };
        plan_write(text, &Known, &mapping, 3).map_err(|Refusal(why)| why)
    }

    #[track_caller]
    fn check(text: &str, expect: &[(usize, &str)]) {
        let write = planned(text).unwrap();
        let found: Vec<(usize, &str)> =
            write.texts.iter().map(|(server, text)| (*server, text.as_str())).collect();
        assert_eq!(found, expect);
    }

    #[track_caller]
    fn check_all(text: &str, are_copies: bool) {
        let write = planned(text).unwrap();
        assert_eq!(write.texts, [0, 1, 2].map(|server| (server, text.to_owned())));
        assert_eq!(write.are_copies, are_copies);
    }

    #[track_caller]
    fn check_refused(text: &str, expect: &str) {
        let why = planned(text).unwrap_err();
        assert!(why.contains(expect), "{why}");
    }

    #[test]
    fn rows_go_to_the_servers_of_their_keys() {
        check(
            "INSERT INTO flights (id, day) VALUES (1, 4), (2, -1), (3, 7) ON DUPLICATE KEY UPDATE note = 'x'",
            &[
                (1, "INSERT INTO flights (id, day) VALUES (1, 4), (3, 7) ON DUPLICATE KEY UPDATE note = 'x'"),
                (2, "INSERT INTO flights (id, day) VALUES (2, -1) ON DUPLICATE KEY UPDATE note = 'x'"),
            ],
        );
        check(
            "REPLACE flights VALUES (1, 3, 'a (b), '';'), (2, '5', \"(\")",
            &[
                (0, "REPLACE flights VALUES (1, 3, 'a (b), '';')"),
                (2, "REPLACE flights VALUES (2, '5', \"(\")"),
            ],
        );
        check("INSERT INTO flights SET day = 8, id = 2", &[(2, "INSERT INTO flights SET day = 8, id = 2")]);
    }

    #[test]
    fn conditions_on_the_key_leave_servers_out() {
        check(
            "UPDATE flights SET note = 'a' WHERE day = 4",
            &[(1, "UPDATE flights SET note = 'a' WHERE day = 4")],
        );
        check("DELETE FROM flights WHERE day IN (3, 6)", &[(0, "DELETE FROM flights WHERE day IN (3, 6)")]);
        check_all("DELETE FROM flights WHERE id > 7", false);
        check_all("UPDATE flights SET id = id + 1", false);
    }

    #[test]
    fn a_reference_table_is_changed_on_each_server() {
        check_all("INSERT INTO days VALUES (1, 2, NOW())", true);
        check_all("UPDATE days SET note = UPPER(note) WHERE day = 4", true);
        check_all("DELETE FROM days", true);
        check_all("ALTER TABLE flights ADD COLUMN x INT", true);
        assert!(planned("DROP TABLE days").unwrap().commits);
    }

    #[test]
    fn what_would_not_be_the_same_as_on_one_server_is_refused() {
        check_refused("INSERT INTO flights SELECT * FROM days", "from a query");
        check_refused("INSERT INTO flights (id) VALUES (1)", "no value of day");
        check_refused("INSERT INTO flights VALUES (1, 2 + 2, '')", "is no literal");
        check_refused("INSERT INTO flights VALUES (1, 2, (SELECT 1))", "query in a value");
        check_refused(
            "INSERT INTO flights VALUES (1, 2, '') ON DUPLICATE KEY UPDATE day = 3",
            "another server",
        );
        check_refused("REPLACE numbered VALUES (1, 2, '')", "a unique key without day");
        check_refused("INSERT IGNORE INTO numbered VALUES (1, 2, '')", "a unique key without day");
        check_refused("UPDATE flights SET day = 3 WHERE id = 1", "another server");
        check_refused("UPDATE flights SET note = '' ORDER BY id LIMIT 3", "LIMIT");
        check_refused("DELETE FROM days LIMIT 3", "LIMIT");
        check_refused("UPDATE days SET note = UUID()", "UUID");
        check_refused("UPDATE flights, days SET flights.note = '' WHERE flights.day = days.day", "");
        check_refused("DELETE FROM flights WHERE id IN (SELECT id FROM flights)", "subquery");
        check_refused("CREATE TEMPORARY TABLE t (a INT)", "one connection");
        check_refused("CREATE TABLE t AS SELECT 1", "by a query");
        check_refused("DELETE FROM nothing", "no server has a table");
    }
}
