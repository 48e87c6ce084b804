//! What the consistency conditions need to know about one warehouse, read in one pass over each table.
//!
//! The server aggregates, the client compares: twelve independent SQL queries would read the order lines five times,
//! which a small buffer pool turns into minutes.

use std::collections::BTreeMap;

use mysql::prelude::{FromRow, Queryable};
use mysql::{Conn, FromRowError, Row};

/// Amounts are in cents.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Warehouse {
    pub(super) id: u32,
    /// False when the row is missing.
    pub(super) exists: bool,
    pub(super) stock_count: u64,
    pub(super) year_to_date: i64,
    /// Sum of the payments made at this warehouse.
    pub(super) history: i64,
    pub(super) districts: Vec<District>,
    /// Order lines whose order does not exist, as (district, order).
    pub(super) lines_without_order: Vec<(u32, u32)>,
    /// New orders whose order does not exist.
    pub(super) new_orders_without_order: Vec<(u32, u32)>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct District {
    pub(super) id: u32,
    pub(super) year_to_date: i64,
    pub(super) history: i64,
    pub(super) next_order: u32,
    pub(super) orders: BTreeMap<u32, Order>,
    /// All numbers in the new-order table.
    pub(super) new_orders: Vec<u32>,
    pub(super) line_count: u64,
    pub(super) customers: BTreeMap<u32, Customer>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Order {
    pub(super) customer: u32,
    pub(super) has_carrier: bool,
    /// O_OL_CNT.
    pub(super) declared_lines: u32,
    pub(super) lines: u32,
    pub(super) delivered_lines: u32,
    /// Sum of OL_AMOUNT of the delivered lines.
    pub(super) delivered_amount: i64,
    pub(super) in_new_orders: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Customer {
    pub(super) balance: i64,
    pub(super) year_to_date: i64,
    pub(super) deliveries: u32,
    /// Sum of the payments of this customer, at whichever warehouse.
    pub(super) history: i64,
}

/// The history table, which has no key: one pass for all warehouses.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct History {
    by_district: BTreeMap<(u32, u32), i64>,
    by_customer: BTreeMap<(u32, u32, u32), i64>,
}

pub(super) fn read_history(connection: &mut Conn) -> mysql::Result<History> {
    let mut history = History::default();
    let statement = connection.prep(
        "SELECT h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, CAST(h_amount * 100 AS SIGNED) FROM history",
    )?;
    for row in connection.exec_iter(&statement, ())? {
        let (warehouse, district, customer_warehouse, customer_district, customer, amount): (
            u32,
            u32,
            u32,
            u32,
            u32,
            i64,
        ) = columns(row)?;
        *history.by_district.entry((warehouse, district)).or_default() += amount;
        *history.by_customer.entry((customer_warehouse, customer_district, customer)).or_default() += amount;
    }
    Ok(history)
}

/// Everything but the history; see [`add_history`].
pub(super) fn read_warehouse(connection: &mut Conn, id: u32) -> mysql::Result<Warehouse> {
    let mut warehouse = Warehouse { id, ..Warehouse::default() };
    let year_to_date: Option<i64> =
        connection.exec_first("SELECT CAST(w_ytd * 100 AS SIGNED) FROM warehouse WHERE w_id = ?", (id,))?;
    warehouse.exists = year_to_date.is_some();
    warehouse.year_to_date = year_to_date.unwrap_or(0);
    let stock_count: Option<u64> =
        connection.exec_first("SELECT COUNT(*) FROM stock WHERE s_w_id = ?", (id,))?;
    warehouse.stock_count = stock_count.unwrap_or(0);
    warehouse.districts = connection.exec_map(
        "SELECT d_id, CAST(d_ytd * 100 AS SIGNED), d_next_o_id FROM district WHERE d_w_id = ? ORDER BY d_id",
        (id,),
        |(id, year_to_date, next_order)| District { id, year_to_date, next_order, ..District::default() },
    )?;
    read_customers(connection, &mut warehouse)?;
    read_orders(connection, &mut warehouse)?;
    Ok(warehouse)
}

fn read_customers(connection: &mut Conn, warehouse: &mut Warehouse) -> mysql::Result<()> {
    let statement = connection.prep(
        "SELECT c_d_id, c_id, CAST(c_balance * 100 AS SIGNED), CAST(c_ytd_payment * 100 AS SIGNED), c_delivery_cnt \
         FROM customer WHERE c_w_id = ?",
    )?;
    for row in connection.exec_iter(&statement, (warehouse.id,))? {
        let (district, id, balance, year_to_date, deliveries): (u32, u32, i64, i64, u32) = columns(row)?;
        if let Some(district) = warehouse.districts.iter_mut().find(|candidate| candidate.id == district) {
            district.customers.insert(id, Customer { balance, year_to_date, deliveries, history: 0 });
        }
    }
    Ok(())
}

fn read_orders(connection: &mut Conn, warehouse: &mut Warehouse) -> mysql::Result<()> {
    let statement = connection.prep(
        "SELECT o_d_id, o_id, o_c_id, o_carrier_id IS NOT NULL, o_ol_cnt FROM orders WHERE o_w_id = ?",
    )?;
    for row in connection.exec_iter(&statement, (warehouse.id,))? {
        let (district, id, customer, has_carrier, declared_lines): (u32, u32, u32, bool, u32) = columns(row)?;
        if let Some(district) = warehouse.districts.iter_mut().find(|candidate| candidate.id == district) {
            district.orders.insert(id, Order { customer, has_carrier, declared_lines, ..Order::default() });
        }
    }

    let new_orders: Vec<(u32, u32)> =
        connection.exec("SELECT no_d_id, no_o_id FROM new_orders WHERE no_w_id = ?", (warehouse.id,))?;
    for (district_id, order) in new_orders {
        let district = warehouse.districts.iter_mut().find(|candidate| candidate.id == district_id);
        if let Some(district) = district {
            district.new_orders.push(order);
            match district.orders.get_mut(&order) {
                Some(order) => order.in_new_orders = true,
                None => warehouse.new_orders_without_order.push((district_id, order)),
            }
        }
    }

    // The key's order serves the grouping, so that the server needs no temporary table.
    let statement = connection.prep(
        "SELECT ol_d_id, ol_o_id, COUNT(*), COUNT(ol_delivery_d), \
         CAST(SUM(IF(ol_delivery_d IS NULL, 0, ol_amount)) * 100 AS SIGNED) \
         FROM order_line WHERE ol_w_id = ? GROUP BY ol_w_id, ol_d_id, ol_o_id",
    )?;
    for row in connection.exec_iter(&statement, (warehouse.id,))? {
        let (district_id, id, lines, delivered_lines, delivered_amount): (u32, u32, u32, u32, i64) =
            columns(row)?;
        let district = warehouse.districts.iter_mut().find(|candidate| candidate.id == district_id);
        if let Some(district) = district {
            district.line_count += u64::from(lines);
            match district.orders.get_mut(&id) {
                Some(order) => {
                    order.lines = lines;
                    order.delivered_lines = delivered_lines;
                    order.delivered_amount = delivered_amount;
                }
                None => warehouse.lines_without_order.push((district_id, id)),
            }
        }
    }
    Ok(())
}

/// Fills the sums of payments in.
pub(super) fn add_history(warehouse: &mut Warehouse, history: &History) {
    for ((_, district), amount) in history.by_district.range((warehouse.id, 0)..=(warehouse.id, u32::MAX)) {
        warehouse.history += amount;
        if let Some(district) = warehouse.districts.iter_mut().find(|candidate| candidate.id == *district) {
            district.history = *amount;
        }
    }
    let own = (warehouse.id, 0, 0)..=(warehouse.id, u32::MAX, u32::MAX);
    for ((_, district, customer), amount) in history.by_customer.range(own) {
        let district = warehouse.districts.iter_mut().find(|candidate| candidate.id == *district);
        if let Some(customer) = district.and_then(|district| district.customers.get_mut(customer)) {
            customer.history = *amount;
        }
    }
}

/// A row that is not what the query promises is an error, not a panic: the database may be damaged.
fn columns<T: FromRow>(row: mysql::Result<Row>) -> mysql::Result<T> {
    mysql::from_row_opt(row?).map_err(|FromRowError(row)| mysql::Error::FromRowError(row))
}
