//! test-wisconsin: the tables of the Wisconsin benchmark (Bitton, DeWitt and Turbyfill, 1983) and its
//! selections, joins and changes.
//!
//! Every column is derived from two numbers: `unique2` counts the rows, `unique1` has the same numbers in
//! random order.

use super::list::{Action, List, drop_if_exists};
use spindle_base::random::Random;

const SMALL_ROWS: u64 = 1_000;
const LARGE_ROWS: u64 = 10_000;
const SEED: u64 = 1983;
const TABLES: [(&str, u64); 4] =
    [("onek", SMALL_ROWS), ("tenk1", LARGE_ROWS), ("tenk2", LARGE_ROWS), ("bprime", LARGE_ROWS)];
const COLUMNS: &str = "unique1 INTEGER NOT NULL, unique2 INTEGER NOT NULL, two INTEGER, four INTEGER, ten INTEGER, twenty INTEGER, \
    hundred INTEGER NOT NULL, thousand INTEGER, twothousand INTEGER, fivethous INTEGER, tenthous INTEGER, odd INTEGER, even INTEGER, \
    stringu1 CHAR(16), stringu2 CHAR(16), string4 CHAR(16), UNIQUE (unique1), UNIQUE (unique2)";

/// Six letters, least significant first.
fn letters(mut number: u64) -> String {
    let letter = |_| {
        let letter = char::from(b'A' + (number % 26) as u8);
        number /= 26;
        letter
    };
    (0..6).map(letter).collect()
}

/// The small table has a tenth of the rows, and its wide columns a tenth of the values.
fn rows(count: u64) -> Vec<String> {
    let mut order: Vec<u64> = (0..count).collect();
    Random::seeded(&[SEED, count]).shuffle(&mut order);
    let row = |(unique2, unique1): (usize, &u64)| {
        let unique2 = unique2 as u64;
        let narrow = [2, 4, 10, 20].map(|values| unique1 % values);
        let wide = [100, 1_000, 2_000, 5_000, 10_000].map(|values| unique1 % (values * count / LARGE_ROWS));
        let (odd, even) = (2 * wide[0], 2 * wide[0] + 1);
        let numbers: Vec<String> = [*unique1, unique2]
            .iter()
            .chain(&narrow)
            .chain(&wide)
            .chain(&[odd, even])
            .map(u64::to_string)
            .collect();
        let four = ["AAAAxx", "HHHHxx", "OOOOxx", "VVVVxx"][(unique2 % 4) as usize];
        format!("{}, '{}', '{}', '{four}'", numbers.join(", "), letters(*unique1), letters(unique2))
    };
    order.iter().enumerate().map(row).collect()
}

/// Selections with their number of result rows.
fn selections() -> [(&'static str, u64); 10] {
    let narrow = "SELECT * FROM tenk1 WHERE unique2 > 301 AND unique2 < 402";
    [
        (narrow, 100),
        ("SELECT * FROM tenk1 WHERE unique1 > 647 AND unique1 < 1648", 1_000),
        ("SELECT * FROM tenk1 WHERE unique2 = 2001", 1),
        (narrow, 100),
        ("SELECT a.*, b.* FROM tenk1 a, tenk1 b WHERE a.unique2 = b.unique2 AND b.unique2 < 1000", 1_000),
        ("SELECT a.*, b.* FROM tenk1 a, bprime b WHERE a.unique2 = b.unique2", 1_000),
        (
            "SELECT a.*, o.* FROM onek o, tenk1 a, tenk1 b WHERE o.unique2 = a.unique2 AND a.unique2 = b.unique2 \
             AND a.unique2 < 1000 AND b.unique2 < 1000",
            1_000,
        ),
        ("SELECT two, four, ten, twenty, hundred, string4 FROM tenk1", LARGE_ROWS),
        ("SELECT * FROM onek", SMALL_ROWS),
        ("SELECT MIN(unique2) AS lowest FROM tenk1", 1),
    ]
}

fn changes() -> Vec<String> {
    let insert = |unique1: u64, unique2: u64| {
        format!(
            "INSERT INTO tenk1 VALUES ({unique1}, {unique2}, 0, 2, 0, 10, 50, 688, 1950, 4950, 9950, 1, 100, \
             'a new row', 'of sixteen cols', 'AAAAxx')"
        )
    };
    let delete = |unique2: u64| format!("DELETE FROM tenk1 WHERE unique2 = {unique2}");
    let update = |from: u64, to: u64| format!("UPDATE tenk1 SET unique2 = {to} WHERE unique2 = {from}");
    vec![
        insert(10_001, 74_001),
        insert(19_991, 60_001),
        delete(877),
        delete(876),
        update(1_491, 10_001),
        update(1_480, 10_023),
        insert(20_002, 70_002),
        insert(50_002, 40_002),
        delete(10_001),
        delete(900),
        update(187, 10_088),
        update(2_000, 10_003),
        update(1_974, 10_020),
        update(1_140, 16_001),
    ]
}

pub(super) fn wisconsin(list: &mut List) {
    for (table, _) in TABLES {
        list.quietly(Action::execute(drop_if_exists(table)));
    }
    let index = |table: &str| format!("hundred_{table}");
    let create: Vec<Action> = TABLES
        .iter()
        .map(|(table, _)| list.create_indexed(table, COLUMNS, &[(&index(table), "hundred")]))
        .collect();
    list.creates(create);
    for (table, count) in TABLES {
        list.fill(table, rows(count));
    }
    list.changes("delete_big", 1, |_, _| format!("DELETE FROM bprime WHERE unique2 >= {SMALL_ROWS}"));
    list.check("SELECT COUNT(*) FROM bprime", SMALL_ROWS);
    let loops = list.scaled(10);
    for (query, rows) in selections() {
        list.queries("wisc_benchmark", loops, vec![(query.to_owned(), rows)]);
    }
    let changes = changes();
    list.changes("wisc_benchmark", changes.len() as u64, move |index, _| changes[index as usize].clone());
    // Four rows were added and four deleted. Nine rows lie beyond LARGE_ROWS: four new ones, and five that
    // were moved there.
    list.check("SELECT COUNT(*) FROM tenk1", LARGE_ROWS);
    list.check(&format!("SELECT COUNT(*) FROM tenk1 WHERE unique2 >= {LARGE_ROWS}"), 4 + 5);
    for (table, _) in TABLES {
        list.quietly(Action::Execute(format!("DROP TABLE {table}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_follow_from_the_row_and_from_a_number_that_no_other_row_has() {
        for count in [SMALL_ROWS, LARGE_ROWS] {
            let mut seen = vec![false; count as usize];
            for (unique2, row) in rows(count).iter().enumerate() {
                let columns: Vec<&str> = row.split(", ").collect();
                let number = |column: usize| columns[column].parse::<u64>().unwrap();
                assert_eq!(columns.len(), 16);
                assert_eq!((number(1), number(6)), (unique2 as u64, number(0) % (count / 100)));
                assert_eq!((number(10), number(11) + 1), (number(0), number(12)));
                assert!(!std::mem::replace(&mut seen[number(0) as usize], true), "{row}");
            }
        }
        // 147 = 5 * 26 + 17.
        assert_eq!(letters(147), "RFAAAA");
    }
}
