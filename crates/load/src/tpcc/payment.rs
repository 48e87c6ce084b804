//! The Payment transaction (clause 2.5).

use mysql::Row;
use mysql::prelude::Queryable;

use super::input::Payment;
use super::terminal::{End, Interruption, Terminal, missing};

impl Terminal {
    pub(super) fn payment(&mut self, payment: &Payment) -> Result<End, Interruption> {
        let Payment { warehouse, district, customer_warehouse, customer_district, customer, amount_cents } =
            payment;
        let customer = self.customer_id(*customer_warehouse, *customer_district, customer)?;
        let head: Option<Row> =
            self.connection.exec_first(&self.statements.payment_head, (warehouse, district))?;
        let head = head.ok_or_else(|| missing(format!("district {district} of warehouse {warehouse}")))?;

        // The row locks of UPDATE come first, so that no value is read that another terminal is about to change.
        self.connection.exec_drop(
            &self.statements.warehouse_and_district_pay,
            (amount_cents, amount_cents, warehouse, district),
        )?;
        let note = format!(
            "{customer} {customer_district} {customer_warehouse} {district} {warehouse} {}.{:02}|",
            amount_cents / 100,
            amount_cents % 100
        );
        let key = (customer_warehouse, customer_district, customer);
        self.connection.exec_drop(
            &self.statements.customer_pay,
            (amount_cents, amount_cents, note, key.0, key.1, key.2),
        )?;
        let paid: Option<Row> = self.connection.exec_first(&self.statements.customer_after_payment, key)?;
        std::hint::black_box(paid.ok_or_else(|| missing(format!("customer {key:?}")))?);

        let mut data: Vec<u8> = head.get(0).unwrap_or_default();
        data.extend_from_slice(b"    ");
        data.extend(head.get::<Vec<u8>, _>(6).unwrap_or_default());
        self.connection.exec_drop(
            &self.statements.history_insert,
            (customer, customer_district, customer_warehouse, district, warehouse, amount_cents, data),
        )?;
        Ok(End::Commit)
    }
}
