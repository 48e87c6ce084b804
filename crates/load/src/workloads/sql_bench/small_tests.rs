//! The tests test-alter-table, test-big-tables, test-connect, test-create and test-transactions of sql-bench.

use super::list::{Action, Leaves, List, drop_if_exists};
use crate::sql::Dialect;

/// Column definitions of one type.
fn columns(count: u64, kind: &str) -> String {
    let column = |number| format!("i{number} {kind}");
    (1..=count).map(column).collect::<Vec<_>>().join(", ")
}

fn values(count: u64) -> String {
    (1..=count).map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
}

/// A table of 8 columns and 1,000 rows that grows by ten columns at a time up to 1,000.
pub(super) fn alter_table(list: &mut List) {
    const FIRST: u64 = 8;
    const AT_A_TIME: u64 = 10;
    let dialect = list.dialect;
    list.table("bench1", &columns(FIRST, "INTEGER"));
    let rows = list.scaled(1_000);
    list.changes("insert", rows, |_, _| format!("INSERT INTO bench1 VALUES ({})", values(FIRST)));
    // SQLite adds or drops one column per statement.
    let altered = move |step: u64, word: &'static str, kind: &'static str| {
        let first = FIRST + step * AT_A_TIME + 1;
        let change = move |number| format!("{word} COLUMN i{number}{kind}");
        let all = (first..first + AT_A_TIME).map(change);
        let alter = |change: String| Action::Execute(format!("ALTER TABLE bench1 {change}"));
        match dialect {
            Dialect::Sqlite => Action::Several(all.map(alter).collect()),
            Dialect::Mysql | Dialect::Postgres => alter(all.collect::<Vec<_>>().join(", ")),
        }
    };
    let steps = list.scaled(100);
    list.timed("alter_table_add", Leaves::Durable, steps, move |step, _| altered(step, "ADD", " INTEGER"));
    list.changes("create_index", FIRST, |index, _| {
        format!("CREATE INDEX bench1_{index} ON bench1 (i{})", index + 1)
    });
    list.changes("drop_index", FIRST, move |index, _| match dialect {
        Dialect::Mysql => format!("DROP INDEX bench1_{index} ON bench1"),
        Dialect::Postgres | Dialect::Sqlite => format!("DROP INDEX bench1_{index}"),
    });
    let dropped = list.scaled(91).min(steps);
    list.timed("alter_table_drop", Leaves::Durable, dropped, move |step, _| altered(step, "DROP", ""));
    list.check("SELECT COUNT(*) FROM bench1", rows);
    list.quietly(Action::execute("DROP TABLE bench1"));
}

/// A table of 1,000 columns.
pub(super) fn big_tables(list: &mut List) {
    const FIELDS: u64 = 1_000;
    list.table("bench1", &columns(FIELDS, "SMALLINT"));
    list.quietly(Action::Execute(format!("INSERT INTO bench1 VALUES ({})", values(FIELDS))));
    let names = columns(FIELDS, "").replace(' ', "");
    let count = list.scaled(1_000);
    list.reads("select_many_fields", count, |_, _| "SELECT * FROM bench1".to_owned());
    let select = format!("SELECT {names} FROM bench1");
    list.reads("select_many_fields", count, move |_, _| select.clone());
    list.quietly(Action::execute("DELETE FROM bench1"));
    list.changes("insert_many_fields", count, |_, _| {
        format!("INSERT INTO bench1 VALUES ({})", values(FIELDS))
    });
    let insert = format!("INSERT INTO bench1 ({names}) VALUES ({})", values(FIELDS));
    list.changes("insert_many_fields", count, move |_, _| insert.clone());
    list.check("SELECT COUNT(*) FROM bench1 WHERE i1000 = 1000", 2 * count);
    list.quietly(Action::execute("DROP TABLE bench1"));
}

pub(super) fn connect(list: &mut List) {
    const TEXT_LENGTH: usize = 65_000;
    let text = if list.dialect == Dialect::Mysql { "MEDIUMTEXT" } else { "TEXT" };
    let (many, few) = (list.scaled(100_000), list.scaled(10_000));
    let one_row = || "SELECT a, i, s, 1 FROM bench1".to_owned();
    list.table("bench1", "a INTEGER, i INTEGER, s CHAR(10)");
    list.table("bench2", &format!("b {text}"));
    list.quietly(Action::execute("INSERT INTO bench1 VALUES (1, 100, 'AAA')"));
    list.quietly(Action::Execute(format!("INSERT INTO bench2 VALUES ('{}')", "a".repeat(TEXT_LENGTH))));
    let then = |action: Action| Action::Several(vec![Action::Connect, action]);
    list.timed("connect", Leaves::Nothing, few, |_, _| Action::Connect);
    list.timed("connect+select_simple", Leaves::Nothing, few, move |_, _| then(Action::read("SELECT 1")));
    list.reads("select_simple", many, |index, _| format!("SELECT {index}"));
    list.reads("select_simple_cache", many, |_, _| "SELECT 10000".to_owned());
    list.timed("connect+select_1_row", Leaves::Nothing, few, move |_, _| then(Action::Read(one_row())));
    list.reads("select_1_row", many, |index, _| format!("SELECT a, i, s, {index} FROM bench1"));
    list.reads("select_1_row_cache", many, move |_, _| one_row());
    list.quietly(Action::execute("INSERT INTO bench1 VALUES (2, 200, 'BBB')"));
    list.check("SELECT COUNT(*) FROM bench1", 2);
    list.reads("select_2_rows", many, |index, _| format!("SELECT a, i, s, {index} FROM bench1"));
    list.reads("select_column+column", many, |index, _| format!("SELECT i + i, {index} FROM bench1"));
    list.check(&format!("SELECT COUNT(*) FROM bench2 WHERE LENGTH(b) = {TEXT_LENGTH}"), 1);
    list.reads("select_big_str", few, |_, _| "SELECT b FROM bench2".to_owned());
    list.quietly(Action::execute("DROP TABLE bench1"));
    list.quietly(Action::execute("DROP TABLE bench2"));
}

pub(super) fn create(list: &mut List) {
    const COLUMNS: &str = "i INTEGER NOT NULL, d REAL, f REAL, s CHAR(10), v VARCHAR(100), PRIMARY KEY (i)";
    const KEYS: u64 = 16;
    let count = list.scaled(10_000);
    let dialect = list.dialect;
    let created = list.create("NAME", COLUMNS);
    let create = move |index: u64| created.replacen("NAME", &format!("bench_{index}"), 1);
    // Drops tables that an unfinished pass left.
    for index in 0..count {
        list.quietly(Action::Execute(drop_if_exists(&format!("bench_{index}"))));
    }
    let one = create.clone();
    list.changes("create_MANY_tables", count, move |index, _| one(index));
    list.reads("select_group_when_MANY_tables", count, |index, _| {
        format!("SELECT i, COUNT(*) FROM bench_{index} GROUP BY i")
    });
    list.changes("drop_table_when_MANY_tables", count, |index, _| format!("DROP TABLE bench_{index}"));
    list.timed("create+drop", Leaves::Durable, count, move |index, _| {
        Action::Several(vec![
            Action::Execute(create(index)),
            Action::Execute(format!("DROP TABLE bench_{index}")),
        ])
    });
    let parts = (1..=KEYS).map(|number| format!("i{number}")).collect::<Vec<_>>().join(", ");
    let mut keyed = format!("{}, PRIMARY KEY ({parts})", columns(KEYS, "INTEGER NOT NULL"));
    if dialect == Dialect::Mysql {
        (2..=KEYS).for_each(|number| keyed.push_str(&format!(", INDEX index_i{number} (i{number})")));
    }
    let keyed = list.create("NAME", &keyed);
    list.timed("create_key+drop", Leaves::Durable, count, move |index, _| {
        let name = format!("bench_{index}");
        let mut actions = vec![Action::Execute(keyed.replacen("NAME", &name, 1))];
        if dialect != Dialect::Mysql {
            let index = |number| format!("CREATE INDEX index_{name}_{number} ON {name} (i{number})");
            actions.extend((2..=KEYS).map(|number| Action::Execute(index(number))));
        }
        actions.push(Action::Execute(format!("DROP TABLE {name}")));
        Action::Several(actions)
    });
}

/// Needs an engine with transactions.
pub(super) fn transactions(list: &mut List) {
    const AT_A_TIME: u64 = 100;
    let (rows, rollbacks) = (list.scaled(10_000), list.scaled(100));
    list.table(
        "bench1",
        "id INTEGER NOT NULL, grp INTEGER NOT NULL, updated INTEGER NOT NULL, PRIMARY KEY (id)",
    );
    let count = "SELECT COUNT(*) FROM bench1";
    let insert = |id: u64| format!("INSERT INTO bench1 VALUES ({id}, {}, 0)", id % 100);
    let update = |id: u64| format!("UPDATE bench1 SET updated = 1 WHERE id = {id}");
    let delete = |id: u64| format!("DELETE FROM bench1 WHERE id = {id}");
    // The last statement is the COMMIT, which counts for the same operation.
    let committed = move |list: &mut List, name: &'static str, statement: fn(u64) -> String| {
        list.quietly(Action::Begin);
        list.timed(name, Leaves::Nothing, rows, move |id, _| Action::Execute(statement(id)));
        list.timed(name, Leaves::Nothing, 1, |_, _| Action::Commit);
    };
    let rolled_back =
        move |list: &mut List, name: &'static str, statement: fn(u64) -> String, offset: u64| {
            list.timed(name, Leaves::Nothing, rollbacks, move |index, _| {
                let first = (index * AT_A_TIME) % rows + offset;
                let statements = (first..first + AT_A_TIME).map(|id| Action::Execute(statement(id)));
                let all = std::iter::once(Action::Begin).chain(statements).chain([Action::Rollback]);
                Action::Several(all.collect())
            });
        };
    committed(list, "insert_commit", insert);
    list.check(count, rows);
    list.changes("insert_autocommit", rows, move |id, _| insert(rows + id));
    list.check(count, 2 * rows);
    rolled_back(list, "insert_rollback", insert, 2 * rows);
    list.check(count, 2 * rows);
    rolled_back(list, "update_rollback", update, 0);
    list.check("SELECT COUNT(*) FROM bench1 WHERE updated = 1", 0);
    rolled_back(list, "delete_rollback", delete, 0);
    list.check(count, 2 * rows);
    committed(list, "update_commit", update);
    list.changes("update_autocommit", rows, move |id, _| update(rows + id));
    list.check("SELECT COUNT(*) FROM bench1 WHERE updated = 1", 2 * rows);
    committed(list, "delete_commit", delete);
    list.check(count, rows);
    list.changes("delete_autocommit", rows, move |id, _| delete(rows + id));
    list.check(count, 0);
    list.quietly(Action::execute("DROP TABLE bench1"));
}
