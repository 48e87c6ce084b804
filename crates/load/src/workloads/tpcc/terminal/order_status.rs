//! The Order-Status transaction (clause 2.6): reads a customer's last order.

use super::input::OrderStatus;
use super::{End, Terminal, missing};
use crate::sql::{Row, SqlError, Value};
use crate::values;

impl Terminal {
    pub(super) fn order_status(&mut self, status: &OrderStatus) -> Result<End, SqlError> {
        let OrderStatus { warehouse, district, customer } = status;
        let customer = self.customer_id(*warehouse, *district, customer)?;
        let key = values![warehouse, district, customer];
        let balance: Option<Row> = self.session.first(self.statements.customer_balance, key)?;
        std::hint::black_box(balance.ok_or_else(|| missing(format!("customer {customer}")))?);
        let order: Option<(u32, Value, Value)> = self.session.first(self.statements.last_order, key)?;
        let order = order.ok_or_else(|| missing(format!("an order of customer {customer}")))?;
        let lines: Vec<Row> =
            self.session.rows(self.statements.order_lines, values![warehouse, district, order.0])?;
        std::hint::black_box(lines);
        Ok(End::Commit)
    }
}
