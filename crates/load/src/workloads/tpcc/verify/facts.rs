//! The data of one warehouse for the consistency conditions, read in one pass over each table.
//!
//! The server aggregates, the client compares. Twelve independent SQL queries would read the order lines five
//! times, which takes minutes with a small buffer pool.

use std::collections::BTreeMap;

use crate::sql::{Session, SqlError};
use crate::values;

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

impl Warehouse {
    fn district(&mut self, id: u32) -> Option<&mut District> {
        self.districts.iter_mut().find(|district| district.id == id)
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct District {
    pub(super) id: u32,
    pub(super) year_to_date: i64,
    pub(super) history: i64,
    pub(super) next_order: u32,
    pub(super) orders: BTreeMap<u32, Order>,
    /// All order numbers in the new-order table.
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
    /// Sum of the payments of this customer at any warehouse.
    pub(super) history: i64,
}

/// The history table. It has no key, so one pass serves all warehouses.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct History {
    by_district: BTreeMap<(u32, u32), i64>,
    by_customer: BTreeMap<(u32, u32, u32), i64>,
}

pub(super) fn read_history(session: &mut dyn Session) -> Result<History, SqlError> {
    let mut history = History::default();
    let statement = session.prepare(&format!(
        "SELECT h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, {} FROM history",
        session.dialect().as_cents("h_amount")
    ))?;
    session.each(statement, &[], |(at, district, of, of_district, customer, amount): Payment| {
        *history.by_district.entry((at, district)).or_default() += amount;
        *history.by_customer.entry((of, of_district, customer)).or_default() += amount;
    })?;
    Ok(history)
}

/// Warehouse and district of the payment; warehouse, district and number of the customer; cents.
type Payment = (u32, u32, u32, u32, u32, i64);

/// Reads everything except the history; see [`add_history`].
pub(super) fn read_warehouse(session: &mut dyn Session, id: u32) -> Result<Warehouse, SqlError> {
    let mut warehouse = Warehouse { id, ..Warehouse::default() };
    let cents = |amount| session.dialect().as_cents(amount);
    let (w_ytd, d_ytd) = (cents("w_ytd"), cents("d_ytd"));
    let statement = session.prepare(&format!("SELECT {w_ytd} FROM warehouse WHERE w_id = ?"))?;
    let year_to_date: Option<(i64,)> = session.first(statement, values![id])?;
    warehouse.exists = year_to_date.is_some();
    warehouse.year_to_date = year_to_date.map_or(0, |(cents,)| cents);
    let statement = session.prepare("SELECT COUNT(*) FROM stock WHERE s_w_id = ?")?;
    let stock_count: Option<(u64,)> = session.first(statement, values![id])?;
    warehouse.stock_count = stock_count.map_or(0, |(count,)| count);
    let statement = session.prepare(&format!(
        "SELECT d_id, {d_ytd}, d_next_o_id FROM district WHERE d_w_id = ? ORDER BY d_id"
    ))?;
    session.each(statement, values![id], |(id, year_to_date, next_order)| {
        warehouse.districts.push(District { id, year_to_date, next_order, ..District::default() });
    })?;
    read_customers(session, &mut warehouse)?;
    read_orders(session, &mut warehouse)?;
    read_lines(session, &mut warehouse)?;
    Ok(warehouse)
}

fn read_customers(session: &mut dyn Session, warehouse: &mut Warehouse) -> Result<(), SqlError> {
    let cents = |amount| session.dialect().as_cents(amount);
    let (balance, year_to_date) = (cents("c_balance"), cents("c_ytd_payment"));
    let statement = session.prepare(&format!(
        "SELECT c_d_id, c_id, {balance}, {year_to_date}, c_delivery_cnt FROM customer WHERE c_w_id = ?"
    ))?;
    session.each(statement, values![warehouse.id], |(district, id, balance, year_to_date, deliveries)| {
        if let Some(district) = warehouse.district(district) {
            district.customers.insert(id, Customer { balance, year_to_date, deliveries, history: 0 });
        }
    })
}

fn read_orders(session: &mut dyn Session, warehouse: &mut Warehouse) -> Result<(), SqlError> {
    let statement = session.prepare(
        "SELECT o_d_id, o_id, o_c_id, o_carrier_id IS NOT NULL, o_ol_cnt FROM orders WHERE o_w_id = ?",
    )?;
    session.each(
        statement,
        values![warehouse.id],
        |(district, id, customer, has_carrier, declared_lines)| {
            if let Some(district) = warehouse.district(district) {
                let order = Order { customer, has_carrier, declared_lines, ..Order::default() };
                district.orders.insert(id, order);
            }
        },
    )?;
    let statement = session.prepare("SELECT no_d_id, no_o_id FROM new_orders WHERE no_w_id = ?")?;
    session.each(statement, values![warehouse.id], |(district_id, id)| {
        let Some(district) = warehouse.district(district_id) else { return };
        district.new_orders.push(id);
        match district.orders.get_mut(&id) {
            Some(order) => order.in_new_orders = true,
            None => warehouse.new_orders_without_order.push((district_id, id)),
        }
    })
}

fn read_lines(session: &mut dyn Session, warehouse: &mut Warehouse) -> Result<(), SqlError> {
    // Grouping follows the order of the key, so that the server needs no temporary table.
    let statement = session.prepare(&format!(
        "SELECT ol_d_id, ol_o_id, COUNT(*), COUNT(ol_delivery_d), {} FROM order_line WHERE ol_w_id = ? \
         GROUP BY ol_w_id, ol_d_id, ol_o_id",
        session.dialect().as_cents("SUM(CASE WHEN ol_delivery_d IS NULL THEN 0 ELSE ol_amount END)")
    ))?;
    session.each(
        statement,
        values![warehouse.id],
        |(district_id, id, lines, delivered_lines, delivered_amount): (u32, u32, u32, u32, i64)| {
            let Some(district) = warehouse.district(district_id) else { return };
            district.line_count += u64::from(lines);
            match district.orders.get_mut(&id) {
                Some(order) => {
                    order.lines = lines;
                    order.delivered_lines = delivered_lines;
                    order.delivered_amount = delivered_amount;
                }
                None => warehouse.lines_without_order.push((district_id, id)),
            }
        },
    )
}

/// Adds the sums of payments.
pub(super) fn add_history(warehouse: &mut Warehouse, history: &History) {
    for ((_, district), amount) in history.by_district.range((warehouse.id, 0)..=(warehouse.id, u32::MAX)) {
        warehouse.history += amount;
        if let Some(district) = warehouse.district(*district) {
            district.history = *amount;
        }
    }
    let own = (warehouse.id, 0, 0)..=(warehouse.id, u32::MAX, u32::MAX);
    for ((_, district, customer), amount) in history.by_customer.range(own) {
        let district = warehouse.district(*district);
        if let Some(customer) = district.and_then(|district| district.customers.get_mut(customer)) {
            customer.history = *amount;
        }
    }
}
