//! The Delivery transaction (clause 2.7): the oldest undelivered order of each of ten districts, in one transaction.

use mysql::prelude::Queryable;
use mysql::{Params, Value};

use super::DISTRICTS;
use super::input::Delivery;
use super::new_order::pad;
use super::terminal::{End, Interruption, Terminal, missing};

impl Terminal {
    pub(super) fn delivery(&mut self, delivery: &Delivery) -> Result<End, Interruption> {
        let Delivery { warehouse, carrier } = delivery;
        let mut orders: Vec<Value> = Vec::with_capacity(2 * DISTRICTS as usize);
        for district in 1..=DISTRICTS {
            let oldest: Option<u32> =
                self.connection.exec_first(&self.statements.oldest_new_order, (warehouse, district))?;
            // A district without an undelivered order is skipped (2.7.4.2).
            if let Some(order) = oldest {
                orders.extend([Value::from(district), order.into()]);
            }
        }
        if orders.is_empty() {
            return Ok(End::Commit);
        }
        let order_count = orders.len() / 2;
        pad(&mut orders, 2, 2 * DISTRICTS as usize);
        let with_orders = |first: &[u32]| {
            let first = first.iter().map(|value| Value::from(*value));
            Params::Positional(first.chain(orders.iter().cloned()).collect())
        };

        self.connection.exec_drop(&self.statements.new_orders_delete, with_orders(&[*warehouse]))?;
        let customers: Vec<(u32, u32)> =
            self.connection.exec(&self.statements.delivered_customers, with_orders(&[*warehouse]))?;
        self.connection
            .exec_drop(&self.statements.delivered_orders_update, with_orders(&[*carrier, *warehouse]))?;
        let amounts: Vec<(u32, i64)> =
            self.connection.exec(&self.statements.delivered_amounts, with_orders(&[*warehouse]))?;
        self.connection.exec_drop(&self.statements.delivered_lines_update, with_orders(&[*warehouse]))?;
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
        self.connection.exec_drop(&self.statements.delivered_customers_update, Params::Positional(cases))?;
        Ok(End::Commit)
    }
}
