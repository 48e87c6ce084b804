//! The Order-Status transaction (clause 2.6): reads a customer's last order.

use mysql::Row;
use mysql::prelude::Queryable;

use super::input::OrderStatus;
use super::terminal::{End, Interruption, Terminal, missing};

impl Terminal {
    pub(super) fn order_status(&mut self, status: &OrderStatus) -> Result<End, Interruption> {
        let OrderStatus { warehouse, district, customer } = status;
        let customer = self.customer_id(*warehouse, *district, customer)?;
        let balance: Option<Row> =
            self.connection.exec_first(&self.statements.customer_balance, (warehouse, district, customer))?;
        std::hint::black_box(balance.ok_or_else(|| missing(format!("customer {customer}")))?);
        let order: Option<Row> =
            self.connection.exec_first(&self.statements.last_order, (warehouse, district, customer))?;
        let order = order.ok_or_else(|| missing(format!("an order of customer {customer}")))?;
        let order_id: u32 = order.get(0).unwrap_or_default();
        let lines: Vec<Row> =
            self.connection.exec(&self.statements.order_lines, (warehouse, district, order_id))?;
        std::hint::black_box(lines);
        Ok(End::Commit)
    }
}
