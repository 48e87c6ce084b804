//! The Delivery transaction (clause 2.7): the oldest undelivered order of each of ten districts, in one
//! transaction.

use super::super::DISTRICTS;
use super::input::Delivery;
use super::new_order::pad;
use super::{End, Terminal, missing};
use crate::sql::{SqlError, Value};
use crate::values;

impl Terminal {
    pub(super) fn delivery(&mut self, delivery: &Delivery) -> Result<End, SqlError> {
        let Delivery { warehouse, carrier } = delivery;
        let mut orders: Vec<Value> = Vec::with_capacity(2 * DISTRICTS as usize);
        for district in 1..=DISTRICTS {
            // A district without an undelivered order is skipped (2.7.4.2).
            if let Some((order,)) = self.oldest_new_order(*warehouse, district)? {
                orders.extend([Value::from(district), order.into()]);
            }
        }
        if orders.is_empty() {
            return Ok(End::Commit);
        }
        let order_count = orders.len() / 2;
        pad(&mut orders, 2, 2 * DISTRICTS as usize);
        let with_orders = |first: &[Value]| -> Vec<Value> { first.iter().chain(&orders).cloned().collect() };
        let of_warehouse = with_orders(values![warehouse]);

        let statements = &self.statements;
        self.session.run(statements.new_orders_delete, &of_warehouse)?;
        let customers: Vec<(u32, u32)> = self.session.rows(statements.delivered_customers, &of_warehouse)?;
        self.session.run(statements.delivered_orders_update, &with_orders(values![carrier, warehouse]))?;
        let amounts: Vec<(u32, i64)> = self.session.rows(statements.delivered_amounts, &of_warehouse)?;
        self.session.run(statements.delivered_lines_update, &of_warehouse)?;
        if customers.len() != order_count || amounts.len() != order_count {
            return Err(missing(format!("order or order lines of a new order of warehouse {warehouse}")));
        }

        let mut cases: Vec<Value> =
            amounts.iter().flat_map(|(district, cents)| [Value::from(*district), (*cents).into()]).collect();
        let mut keys: Vec<Value> = customers
            .iter()
            .flat_map(|(district, customer)| [Value::from(*district), (*customer).into()])
            .collect();
        pad(&mut cases, 2, 2 * DISTRICTS as usize);
        pad(&mut keys, 2, 2 * DISTRICTS as usize);
        cases.push((*warehouse).into());
        cases.append(&mut keys);
        self.session.run(self.statements.delivered_customers_update, &cases)?;
        Ok(End::Commit)
    }

    /// Locks the row.
    fn oldest_new_order(&mut self, warehouse: u32, district: u32) -> Result<Option<(u32,)>, SqlError> {
        let key = values![warehouse, district];
        loop {
            let oldest: Option<(u32,)> = self.session.first(self.statements.oldest_new_order, key)?;
            let Some(unlocked) = self.statements.oldest_new_order_unlocked.filter(|_| oldest.is_none())
            else {
                return Ok(oldest);
            };
            if self.session.first::<(u32,)>(unlocked, key)?.is_none() {
                return Ok(None);
            }
        }
    }
}
