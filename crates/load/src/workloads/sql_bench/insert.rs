//! test-insert: inserts and deletes, and queries by key, by index and by neither.
//!
//! The table has `id` (0 to three times the loop count), `id2` and `id3` equal to it, and a text. Its keys
//! are (id, id2) and id3.

use super::list::{Action, Leaves, List, ROWS_AT_ONCE};
use spindle_base::random::Random;

const COLUMNS: &str =
    "id INTEGER NOT NULL, id2 INTEGER NOT NULL, id3 INTEGER NOT NULL, dummy1 CHAR(30), PRIMARY KEY (id, id2)";
/// Rows in a narrow range.
const RANGE: u64 = 500;

fn insert(id: u64, text: &str) -> String {
    format!("INSERT INTO bench1 (id, id2, id3, dummy1) VALUES ({id}, {id}, {id}, '{text}')")
}

/// A whole number below the limit.
fn below(random: &mut Random, limit: u64) -> u64 {
    u64::from(random.between(0, (limit - 1) as u32))
}

/// The start and end of a random range within the rows.
fn range(random: &mut Random, rows: u64) -> (u64, u64) {
    let length = RANGE.min(rows);
    let first = below(random, rows - length + 1);
    (first, first + length - 1)
}

pub(super) fn insert_test(list: &mut List) {
    let each = list.scaled(100_000);
    let rows = 3 * each;
    list.table("bench1", COLUMNS);
    list.quietly(Action::execute("CREATE INDEX index_id3 ON bench1 (id3)"));
    list.changes("insert", each, |index, _| insert(index, "ABCDEFGHIJ"));
    list.changes("insert", each, move |index, _| insert(2 * each - 1 - index, "BCDEFGHIJK"));
    // Each number once, in a scattered order: the step is a prime that does not divide the count.
    let step = if each.is_multiple_of(7_919) { 7_907 } else { 7_919 };
    list.changes("insert", each, move |index, _| insert(2 * each + index * step % each, "CDEFGHIJKL"));
    list.check("SELECT COUNT(*) FROM bench1", rows);
    list.timed("insert_duplicates", Leaves::Nothing, each, |index, _| Action::Refused(insert(index, "D")));
    list.check("SELECT COUNT(*) FROM bench1", rows);
    ordered_reads(list, rows);
    reads_by_key(list, each, rows);
    sums(list, rows);
    updates(list, each, rows);
    joins(list, rows);
    copies_and_deletes(list, rows);
    many_keys(list);
}

fn ordered_reads(list: &mut List, rows: u64) {
    let few = list.scaled(10);
    list.reads("select_big", few, |_, _| "SELECT dummy1, id3 FROM bench1".to_owned());
    for (name, order) in [
        ("order_by_big_key", "id, id2"),
        ("order_by_big_key_desc", "id DESC, id2 DESC"),
        ("order_by_big_key_prefix", "id"),
        ("order_by_big_key2", "id3"),
        ("order_by_big_key_diff", "id, id3"),
        ("order_by_big", "dummy1, id3"),
    ] {
        list.reads(name, few, move |_, _| format!("SELECT * FROM bench1 ORDER BY {order}"));
    }
    let count = list.scaled(500);
    for (name, order) in
        [("order_by_range", "id3"), ("order_by_key_prefix", "id"), ("order_by_key2_diff", "id, id3")]
    {
        list.reads(name, count, move |_, random| {
            let (first, last) = range(random, rows);
            let column = if name == "order_by_key2_diff" { "id3" } else { "id" };
            format!("SELECT * FROM bench1 WHERE {column} >= {first} AND {column} <= {last} ORDER BY {order}")
        });
    }
    list.reads("select_diff_key", count, move |_, random| {
        let (one, other) = (below(random, rows), below(random, rows));
        format!("SELECT * FROM bench1 WHERE id = {one} OR id3 = {other}")
    });
}

fn reads_by_key(list: &mut List, each: u64, rows: u64) {
    list.reads("prepared_select", each, |index, _| format!("SELECT * FROM bench1 WHERE id = {index}"));
    list.timed("once_prepared_select", Leaves::Nothing, each, |index, _| {
        Action::Prepared("SELECT * FROM bench1 WHERE id = ?", index)
    });
    // Up to 48 terms of OR and of IN.
    let terms = move |column: &'static str, index: u64, random: &mut Random| {
        let count = (index / 2 % 49).max(1);
        let numbers: Vec<String> = (0..count).map(|_| below(random, rows).to_string()).collect();
        if index.is_multiple_of(2) {
            return format!("SELECT * FROM bench1 WHERE {column} IN ({})", numbers.join(", "));
        }
        let equal: Vec<String> = numbers.iter().map(|number| format!("{column} = {number}")).collect();
        format!("SELECT * FROM bench1 WHERE {}", equal.join(" OR "))
    };
    let count = list.scaled(5_010);
    list.reads("select_range_prefix", count, move |index, random| terms("id", index, random));
    list.reads("select_range_key2", count, move |index, random| terms("id3", index, random));
    let count = list.scaled(10_000);
    for (name, column) in [("select_range_prefix", "id"), ("select_range_key2", "id3")] {
        list.reads(name, count, move |index, random| {
            let (first, last) = (below(random, rows), index % 20);
            format!("SELECT * FROM bench1 WHERE {column} >= {first} AND {column} <= {}", first + last)
        });
    }
    // Half of the numbers match no row.
    for (name, columns, condition) in [
        ("select_key_prefix", "*", "id = #"),
        ("select_key", "*", "id = # AND id2 = #"),
        ("select_key_return_key", "id, id2", "id = # AND id2 = #"),
        ("select_key2", "*", "id3 = #"),
        ("select_key2_return_key", "id3", "id3 = #"),
        ("select_key2_return_prim", "id", "id3 = #"),
    ] {
        list.reads(name, 2 * each, move |index, _| {
            let number = index / 2 + if index.is_multiple_of(2) { 0 } else { rows };
            format!("SELECT {columns} FROM bench1 WHERE {}", condition.replace('#', &number.to_string()))
        });
    }
}

fn sums(list: &mut List, rows: u64) {
    list.reads("select_group", list.scaled(111), |index, _| {
        let sums = [
            "COUNT(*)",
            "COUNT(id)",
            "SUM(id)",
            "AVG(id3)",
            "MIN(id)",
            "MAX(id3)",
            "MIN(dummy1)",
            "MAX(dummy1)",
        ];
        format!("SELECT {}, dummy1 FROM bench1 GROUP BY dummy1", sums[(index % 8) as usize])
    });
    list.reads("min_max_on_key", list.scaled(15_000), move |index, random| {
        let (first, last) = range(random, rows);
        let column = if index.is_multiple_of(2) { "id" } else { "id3" };
        format!("SELECT MIN({column}), MAX({column}) FROM bench1 WHERE {column} BETWEEN {first} AND {last}")
    });
    list.reads("min_max", list.scaled(60), |_, _| "SELECT MIN(dummy1), MAX(dummy1) FROM bench1".to_owned());
    list.reads("count_on_key", list.scaled(100), move |_, random| {
        let first = below(random, rows);
        format!("SELECT COUNT(*) FROM bench1 WHERE id >= {first}")
    });
    list.reads("count", list.scaled(100), |_, _| {
        "SELECT COUNT(*) FROM bench1 WHERE dummy1 <> 'X'".to_owned()
    });
    list.reads("count_distinct_big", list.scaled(20), |_, _| {
        "SELECT COUNT(DISTINCT id3) FROM bench1".to_owned()
    });
}

fn updates(list: &mut List, each: u64, rows: u64) {
    // Moves the secondary key beyond all others.
    let moved = list.scaled(50_000).min(each);
    list.changes("update_of_key", moved, move |index, _| {
        format!("UPDATE bench1 SET id3 = {} WHERE id = {index}", index + 2 * rows)
    });
    list.check(&format!("SELECT COUNT(*) FROM bench1 WHERE id3 >= {}", 2 * rows), moved);
    let big = list.scaled(501);
    list.changes("update_of_key_big", big, move |index, _| {
        let (first, sign) = ((index / 2 * RANGE) % rows, if index.is_multiple_of(2) { "+" } else { "-" });
        format!("UPDATE bench1 SET id3 = id3 {sign} 1 WHERE id >= {first} AND id < {}", first + RANGE)
    });
    list.changes("update_with_key", 3 * each, |index, _| {
        format!("UPDATE bench1 SET dummy1 = 'updated' WHERE id = {index} AND id2 = {index}")
    });
    list.check("SELECT COUNT(*) FROM bench1 WHERE dummy1 = 'updated'", rows);
    list.changes("update_with_key_prefix", each, |index, _| {
        format!("UPDATE bench1 SET dummy1 = 'prefix' WHERE id = {index}")
    });
    list.check("SELECT COUNT(*) FROM bench1 WHERE dummy1 = 'prefix'", each);
    list.changes("update_big", list.scaled(10), |index, _| {
        format!("UPDATE bench1 SET dummy1 = 'big {index}'")
    });
}

fn joins(list: &mut List, rows: u64) {
    let few = list.scaled(10);
    for (name, condition) in [
        ("outer_join_on_key", "a.id = b.id AND a.id2 = b.id2"),
        ("outer_join", "a.id3 = b.id3"),
        ("outer_join_found", "a.id = b.id WHERE b.id IS NOT NULL"),
        ("outer_join_not_found", "a.id = b.id WHERE b.id IS NULL"),
    ] {
        list.reads(name, few, move |_, _| {
            format!("SELECT COUNT(*) FROM bench1 a LEFT OUTER JOIN bench1 b ON {condition}")
        });
    }
    let count = list.scaled(500);
    let numbers = move |length: u64, random: &mut Random| {
        let numbers: Vec<String> = (0..length).map(|_| below(random, rows).to_string()).collect();
        numbers.join(", ")
    };
    for length in [10, 100, 1_000] {
        list.reads("select_in", count, move |_, random| {
            format!("SELECT * FROM bench1 WHERE id IN ({})", numbers(length, random))
        });
        list.reads("select_join_in", count, move |_, random| {
            let ids = numbers(length, random);
            format!("SELECT a.id FROM bench1 a, bench1 b WHERE a.id = b.id AND a.id IN ({ids})")
        });
    }
}

fn copies_and_deletes(list: &mut List, rows: u64) {
    list.table("bench2", COLUMNS);
    list.changes("insert_select_1_key", 1, |_, _| "INSERT INTO bench2 SELECT * FROM bench1".to_owned());
    list.check("SELECT COUNT(*) FROM bench2", rows);
    list.table("bench3", COLUMNS);
    list.quietly(Action::execute("CREATE INDEX index_copied ON bench3 (id3)"));
    list.changes("insert_select_2_keys", 1, |_, _| "INSERT INTO bench3 SELECT * FROM bench1".to_owned());
    list.check("SELECT COUNT(*) FROM bench3 WHERE id3 >= 0", rows);
    list.changes("drop table", 2, |index, _| format!("DROP TABLE bench{}", index + 2));
    let single = list.scaled(10_000).min(rows);
    list.changes("delete_key", single, |index, _| {
        format!("DELETE FROM bench1 WHERE id = {index} AND id2 = {index}")
    });
    list.check("SELECT COUNT(*) FROM bench1", rows - single);
    // Twelve ranges; the last deletes all remaining rows.
    list.changes("delete_range", 12, move |index, _| {
        let end = if index == 11 { rows } else { single + (rows - single) * (index + 1) / 12 };
        format!("DELETE FROM bench1 WHERE id < {end}")
    });
    list.check("SELECT COUNT(*) FROM bench1", 0);
    list.quietly(Action::execute("DROP TABLE bench1"));
}

/// A table with sixteen indexes.
fn many_keys(list: &mut List) {
    const KEYS: u64 = 16;
    let rows = list.scaled(100_000);
    let columns: Vec<String> = (1..=KEYS).map(|number| format!("field{number} INTEGER NOT NULL")).collect();
    list.table("bench1", &format!("{}, dummy1 CHAR(30), PRIMARY KEY (field1)", columns.join(", ")));
    for number in 2..=KEYS {
        list.quietly(Action::Execute(format!("CREATE INDEX bench1_key{number} ON bench1 (field{number})")));
    }
    let row = |id: u64| {
        let fields: Vec<String> = (0..KEYS).map(|field| (id + field).to_string()).collect();
        format!("({}, 'X')", fields.join(", "))
    };
    list.changes("insert_key", rows, move |index, _| format!("INSERT INTO bench1 VALUES {}", row(index)));
    list.check("SELECT COUNT(*) FROM bench1 WHERE field16 >= 15", rows);
    let moved = list.scaled(256).min(rows);
    list.changes("update_of_primary_key_many_keys", moved, move |index, _| {
        format!("UPDATE bench1 SET field1 = {} WHERE field1 = {index}", rows + index)
    });
    let deletes = list.scaled(128).min(rows);
    list.changes("delete_big_many_keys", deletes, move |index, _| {
        format!(
            "DELETE FROM bench1 WHERE field2 > {0} AND field2 <= {1}",
            index * rows / deletes / 2,
            (index + 1) * rows / deletes / 2
        )
    });
    list.check("SELECT COUNT(*) FROM bench1", rows - rows / 2);
    list.changes("delete_all_many_keys", 1, |_, _| "DELETE FROM bench1".to_owned());
    let statements = rows.div_ceil(ROWS_AT_ONCE);
    list.changes("multiple_value_insert", statements, move |index, _| {
        let first = index * ROWS_AT_ONCE;
        let values: Vec<String> = (first..rows.min(first + ROWS_AT_ONCE)).map(row).collect();
        format!("INSERT INTO bench1 VALUES {}", values.join(", "))
    });
    list.check("SELECT COUNT(*) FROM bench1", rows);
    list.changes("drop table", 1, |_, _| "DROP TABLE bench1".to_owned());
}

/// test-select: 10,000 rows of six regions and a hundred groups, with a primary and two unique keys.
pub(super) fn select_test(list: &mut List) {
    const REGIONS: u64 = 6;
    const GROUPS: u64 = 100;
    let rows = list.scaled(10_000);
    let region = |index: u64| char::from(b'A' + (index % REGIONS) as u8);
    list.table(
        "bench1",
        "region CHAR(1) NOT NULL, idn INTEGER NOT NULL, rev_idn INTEGER NOT NULL, grp INTEGER NOT NULL, PRIMARY KEY (region, idn)",
    );
    list.quietly(Action::execute("CREATE UNIQUE INDEX unique_rev ON bench1 (region, rev_idn)"));
    list.quietly(Action::execute("CREATE UNIQUE INDEX unique_grp ON bench1 (region, grp, idn)"));
    list.changes("insert", rows, move |index, _| {
        format!(
            "INSERT INTO bench1 VALUES ('{}', {index}, {}, {})",
            region(index),
            rows - index,
            index % GROUPS
        )
    });
    list.check(&format!("SELECT COUNT(*) FROM bench1 WHERE idn + rev_idn = {rows}"), rows);
    let many = list.scaled(10_000);
    list.reads("select_cache", many, |_, _| "SELECT COUNT(*) FROM bench1 WHERE region = 'A'".to_owned());
    list.reads("select_cache2", many, |index, _| {
        format!("SELECT {index}, COUNT(*) FROM bench1 WHERE region = 'A'")
    });
    list.reads("select_big", list.scaled(70), |index, _| {
        let order =
            ["region, idn", "region, rev_idn", "region, grp, idn", "idn", "rev_idn", "grp, idn", "grp"];
        format!("SELECT * FROM bench1 ORDER BY {}", order[(index % 7) as usize])
    });
    list.reads("select_range", list.scaled(410), move |index, random| {
        let region = region(index);
        let numbers: Vec<String> = (0..RANGE).map(|_| below(random, rows).to_string()).collect();
        if index.is_multiple_of(2) {
            return format!(
                "SELECT * FROM bench1 WHERE region = '{region}' AND idn IN ({})",
                numbers.join(", ")
            );
        }
        let equal: Vec<String> = numbers.iter().map(|number| format!("idn = {number}")).collect();
        format!("SELECT * FROM bench1 WHERE region = '{region}' AND ({})", equal.join(" OR "))
    });
    list.reads("min_max_on_key", list.scaled(70_000), move |index, random| {
        let (region, first) = (region(index), below(random, rows));
        match index % 3 {
            0 => format!("SELECT MAX(idn) FROM bench1 WHERE region = '{region}'"),
            1 => format!("SELECT MIN(idn) FROM bench1 WHERE region = '{region}' AND idn >= {first}"),
            _ => format!("SELECT MAX(rev_idn) FROM bench1 WHERE region = '{region}' AND rev_idn <= {first}"),
        }
    });
    list.reads("count_on_key", list.scaled(50_000), move |index, random| {
        let (region, group) = (region(index), below(random, GROUPS));
        format!("SELECT COUNT(*) FROM bench1 WHERE region = '{region}' AND grp = {group}")
    });
    let medium = list.scaled(1_000);
    for (name, query) in [
        ("count_group_on_key_parts", "SELECT region, grp, COUNT(*) FROM bench1 GROUP BY region, grp"),
        ("count_distinct_key_prefix", "SELECT COUNT(DISTINCT region) FROM bench1"),
        ("count_distinct", "SELECT COUNT(DISTINCT grp) FROM bench1"),
        ("count_distinct_2", "SELECT COUNT(DISTINCT grp), COUNT(DISTINCT rev_idn) FROM bench1"),
        ("count_distinct_group_on_key", "SELECT region, COUNT(DISTINCT idn) FROM bench1 GROUP BY region"),
        (
            "count_distinct_group_on_key_parts",
            "SELECT region, grp, COUNT(DISTINCT idn) FROM bench1 GROUP BY region, grp",
        ),
        ("count_distinct_group", "SELECT grp, COUNT(DISTINCT rev_idn) FROM bench1 GROUP BY grp"),
    ] {
        list.reads(name, medium, move |_, _| query.to_owned());
    }
    list.reads("count_distinct_big", list.scaled(100), |_, _| {
        "SELECT idn, COUNT(DISTINCT region) FROM bench1 GROUP BY idn".to_owned()
    });
    list.quietly(Action::execute("DROP TABLE bench1"));
}
