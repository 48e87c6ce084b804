//! The rows of a fresh database (clause 4.3.3.1), as lines for LOAD DATA: tab between columns, newline after
//! a row.
//!
//! Every (table, warehouse) has its own stream of random numbers. So tables and warehouses can be generated
//! in any order and in parallel, and one seed still gives one database.

use std::io::{Result, Write};

use super::super::random::{Constants, last_name, push_data, push_digits, push_letters, push_zip};
use super::super::{CUSTOMERS_PER_DISTRICT, DISTRICTS, FIRST_NEW_ORDER, ITEMS, ORDERS_PER_DISTRICT};
use spindle_base::random::Random;

/// The date of all initial rows.
const DATE: &str = "2026-01-01 00:00:00";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Warehouse,
    District,
    Customer,
    History,
    Item,
    Stock,
    Orders,
    NewOrders,
    OrderLine,
}

impl Table {
    pub(super) const ALL: [Table; 9] = [
        Table::Warehouse,
        Table::District,
        Table::Customer,
        Table::History,
        Table::Item,
        Table::Stock,
        Table::Orders,
        Table::NewOrders,
        Table::OrderLine,
    ];

    pub(super) fn name(self) -> &'static str {
        super::schema::TABLES[self as usize]
    }

    /// Rows of one warehouse; for the item table, of all.
    pub(super) fn row_count(self, seed: u64, warehouse: u32) -> u64 {
        let per_district = |count: u32| u64::from(DISTRICTS * count);
        match self {
            Table::Warehouse => 1,
            Table::District => u64::from(DISTRICTS),
            Table::Customer | Table::History => per_district(CUSTOMERS_PER_DISTRICT),
            Table::Orders => per_district(ORDERS_PER_DISTRICT),
            Table::NewOrders => per_district(ORDERS_PER_DISTRICT - FIRST_NEW_ORDER + 1),
            Table::OrderLine => (1..=DISTRICTS)
                .flat_map(|district| line_counts(seed, warehouse, district))
                .map(u64::from)
                .sum(),
            Table::Item | Table::Stock => u64::from(ITEMS),
        }
    }
}

/// Writes the rows of one table of one warehouse (the item table ignores the warehouse); calls `row_done`
/// after each.
pub(super) fn write_rows(
    table: Table,
    seed: u64,
    warehouse: u32,
    output: &mut dyn Write,
    row_done: &mut dyn FnMut(),
) -> Result<()> {
    let mut random = Random::seeded(&[seed, table as u64, u64::from(warehouse)]);
    let mut row = Vec::with_capacity(1024);
    let mut emit = |row: &mut Vec<u8>| {
        // Rows have a tab after every column; the last tab is replaced by the end of the row.
        if let Some(last) = row.last_mut() {
            *last = b'\n';
        }
        output.write_all(row)?;
        row.clear();
        row_done();
        Result::Ok(())
    };
    match table {
        Table::Warehouse => {
            number(&mut row, warehouse);
            name_and_address(&mut row, &mut random);
            text(&mut row, "300000.00");
            emit(&mut row)?;
        }
        Table::District => {
            for district in 1..=DISTRICTS {
                numbers(&mut row, &[warehouse, district]);
                name_and_address(&mut row, &mut random);
                text(&mut row, "30000.00");
                number(&mut row, ORDERS_PER_DISTRICT + 1);
                emit(&mut row)?;
            }
        }
        Table::Customer => {
            for district in 1..=DISTRICTS {
                for customer in 1..=CUSTOMERS_PER_DISTRICT {
                    customer_row(&mut row, &mut random, warehouse, district, customer);
                    emit(&mut row)?;
                }
            }
        }
        Table::History => {
            for district in 1..=DISTRICTS {
                for customer in 1..=CUSTOMERS_PER_DISTRICT {
                    numbers(&mut row, &[customer, district, warehouse, district, warehouse]);
                    text(&mut row, DATE);
                    text(&mut row, "10.00");
                    letters(&mut row, &mut random, 12, 24);
                    emit(&mut row)?;
                }
            }
        }
        Table::NewOrders => {
            for district in 1..=DISTRICTS {
                for order in FIRST_NEW_ORDER..=ORDERS_PER_DISTRICT {
                    numbers(&mut row, &[warehouse, district, order]);
                    emit(&mut row)?;
                }
            }
        }
        Table::Orders => {
            for district in 1..=DISTRICTS {
                let mut customers: Vec<u32> = (1..=CUSTOMERS_PER_DISTRICT).collect();
                random.shuffle(&mut customers);
                let counts = line_counts(seed, warehouse, district);
                for (order, (customer, line_count)) in (1..).zip(customers.iter().zip(counts)) {
                    numbers(&mut row, &[warehouse, district, order, *customer]);
                    text(&mut row, DATE);
                    if order < FIRST_NEW_ORDER {
                        number(&mut row, random.between(1, 10));
                    } else {
                        text(&mut row, "\\N");
                    }
                    numbers(&mut row, &[line_count, 1]);
                    emit(&mut row)?;
                }
            }
        }
        Table::OrderLine => {
            for district in 1..=DISTRICTS {
                for (order, line_count) in (1..).zip(line_counts(seed, warehouse, district)) {
                    for line in 1..=line_count {
                        let item = random.between(1, ITEMS);
                        numbers(&mut row, &[warehouse, district, order, line, item, warehouse]);
                        let delivered = order < FIRST_NEW_ORDER;
                        text(&mut row, if delivered { DATE } else { "\\N" });
                        number(&mut row, 5);
                        cents(&mut row, if delivered { 0 } else { random.between(1, 999_999) });
                        letters(&mut row, &mut random, 24, 24);
                        emit(&mut row)?;
                    }
                }
            }
        }
        Table::Item => {
            for item in 1..=ITEMS {
                numbers(&mut row, &[item, random.between(1, 10_000)]);
                letters(&mut row, &mut random, 14, 24);
                cents(&mut row, random.between(100, 10_000));
                push_data(&mut row, &mut random);
                row.push(b'\t');
                emit(&mut row)?;
            }
        }
        Table::Stock => {
            for item in 1..=ITEMS {
                numbers(&mut row, &[warehouse, item, random.between(10, 100)]);
                for _ in 0..10 {
                    letters(&mut row, &mut random, 24, 24);
                }
                numbers(&mut row, &[0, 0, 0]);
                push_data(&mut row, &mut random);
                row.push(b'\t');
                emit(&mut row)?;
            }
        }
    }
    Ok(())
}

/// O_OL_CNT of a district's orders; the orders and their lines must agree on it.
fn line_counts(seed: u64, warehouse: u32, district: u32) -> Vec<u32> {
    let mut random = Random::seeded(&[seed, u64::MAX, u64::from(warehouse), u64::from(district)]);
    (0..ORDERS_PER_DISTRICT).map(|_| random.between(5, 15)).collect()
}

fn customer_row(row: &mut Vec<u8>, random: &mut Random, warehouse: u32, district: u32, customer: u32) {
    numbers(row, &[warehouse, district, customer]);
    letters(row, random, 8, 16);
    text(row, "OE");
    // The first thousand customers have every last name once, so that each district has every name.
    let name_number = match customer {
        1..=1_000 => customer - 1,
        _ => Constants::for_population().last_name_number(random),
    };
    text(row, &last_name(name_number));
    address(row, random);
    push_digits(row, random, 16);
    row.push(b'\t');
    text(row, DATE);
    text(row, if random.percent(10) { "BC" } else { "GC" });
    text(row, "50000.00");
    fraction(row, random.between(0, 5_000));
    text(row, "-10.00");
    text(row, "10.00");
    numbers(row, &[1, 0]);
    letters(row, random, 300, 500);
}

/// Writes name, address and tax of a warehouse or district.
fn name_and_address(row: &mut Vec<u8>, random: &mut Random) {
    letters(row, random, 6, 10);
    address(row, random);
    fraction(row, random.between(0, 2_000));
}

fn address(row: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..3 {
        letters(row, random, 10, 20);
    }
    row.extend((0..2).map(|_| b'A' + random.between(0, 25) as u8));
    row.push(b'\t');
    push_zip(row, random);
    row.push(b'\t');
}

fn text(row: &mut Vec<u8>, value: &str) {
    row.extend_from_slice(value.as_bytes());
    row.push(b'\t');
}

fn letters(row: &mut Vec<u8>, random: &mut Random, low: u32, high: u32) {
    push_letters(row, random, low, high);
    row.push(b'\t');
}

fn numbers(row: &mut Vec<u8>, values: &[u32]) {
    for value in values {
        number(row, *value);
    }
}

/// Custom formatting: `write!` takes a third of the loader's CPU time.
fn number(row: &mut Vec<u8>, value: u32) {
    decimal_digits(row, value, 1);
    row.push(b'\t');
}

fn cents(row: &mut Vec<u8>, value: u32) {
    decimal_digits(row, value / 100, 1);
    row.push(b'.');
    decimal_digits(row, value % 100, 2);
    row.push(b'\t');
}

/// A tax or discount in ten-thousandths.
fn fraction(row: &mut Vec<u8>, value: u32) {
    row.extend_from_slice(b"0.");
    decimal_digits(row, value, 4);
    row.push(b'\t');
}

/// Writes at least `width` digits.
fn decimal_digits(row: &mut Vec<u8>, mut value: u32, width: usize) {
    let mut digits = [b'0'; 10];
    let mut start = digits.len();
    while value > 0 {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    row.extend_from_slice(&digits[start.min(digits.len() - width)..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(table: Table, seed: u64, warehouse: u32) -> Vec<Vec<String>> {
        let mut text = Vec::new();
        let mut count = 0;
        write_rows(table, seed, warehouse, &mut text, &mut || count += 1).unwrap();
        let rows: Vec<Vec<String>> = String::from_utf8(text)
            .unwrap()
            .lines()
            .map(|line| line.split('\t').map(str::to_owned).collect())
            .collect();
        assert_eq!(rows.len() as u64, count);
        assert_eq!(count, table.row_count(seed, warehouse), "{table:?}");
        rows
    }

    #[test]
    fn rows_have_the_columns_of_their_table() {
        for (table, create) in Table::ALL.iter().zip(super::super::schema::CREATE) {
            let columns = create.matches(" NULL").count();
            assert!(rows(*table, 1, 2).iter().all(|row| row.len() == columns), "{table:?}");
        }
    }

    #[test]
    fn one_seed_gives_one_database() {
        assert_eq!(rows(Table::Stock, 1, 1), rows(Table::Stock, 1, 1));
        assert_ne!(rows(Table::Stock, 1, 1), rows(Table::Stock, 2, 1));
        assert_ne!(rows(Table::History, 1, 1), rows(Table::History, 1, 2));
    }

    #[test]
    fn orders_and_their_lines_agree() {
        let orders = rows(Table::Orders, 1, 1);
        let lines = rows(Table::OrderLine, 1, 1);
        let total: usize = orders.iter().map(|row| row[6].parse::<usize>().unwrap()).sum();
        assert_eq!(lines.len(), total);
        for order in &orders {
            assert_eq!(order[5] == "\\N", order[2].parse::<u32>().unwrap() >= FIRST_NEW_ORDER);
        }
        for line in &lines {
            assert_eq!(line[6] != "\\N", line[8] == "0.00");
        }
    }

    #[test]
    fn every_customer_of_a_district_has_one_order() {
        let mut customers: Vec<u32> =
            rows(Table::Orders, 1, 1)[..3_000].iter().map(|row| row[3].parse().unwrap()).collect();
        customers.sort_unstable();
        assert_eq!(customers, (1..=3_000).collect::<Vec<_>>());
    }

    #[test]
    fn one_customer_of_ten_has_bad_credit() {
        let customers = rows(Table::Customer, 1, 1);
        let bad = customers.iter().filter(|row| row[13] == "BC").count();
        assert!((2_800..3_200).contains(&bad), "{bad} of {}", customers.len());
        assert_eq!(customers[371][5], "PRICALLYOUGHT", "the first thousand have every name");
    }

    #[test]
    fn numbers_are_padded_where_decimals_need_it() {
        let mut row = Vec::new();
        cents(&mut row, 7);
        cents(&mut row, 1_234);
        fraction(&mut row, 5);
        number(&mut row, 0);
        assert_eq!(row, b"0.07\t12.34\t0.0005\t0\t");
    }
}
