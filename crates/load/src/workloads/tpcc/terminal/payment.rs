//! The Payment transaction (clause 2.5).

use super::input::Payment;
use super::{End, Terminal, missing};
use crate::sql::{FromValue, Row, SqlError};
use crate::values;

impl Terminal {
    pub(super) fn payment(&mut self, payment: &Payment) -> Result<End, SqlError> {
        let Payment { warehouse, district, customer_warehouse, customer_district, customer, amount_cents } =
            payment;
        let customer = self.customer_id(*customer_warehouse, *customer_district, customer)?;
        let head: Option<Row> =
            self.session.first(self.statements.payment_head, values![warehouse, district])?;
        let mut head =
            head.ok_or_else(|| missing(format!("district {district} of warehouse {warehouse}")))?;

        // The row locks of UPDATE come first, so that no read value is changed by another terminal.
        match self.statements.district_pay {
            None => {
                let parameters = values![amount_cents, amount_cents, warehouse, district];
                self.session.run(self.statements.warehouse_pay, parameters)?;
            }
            Some(district_pay) => {
                self.session.run(self.statements.warehouse_pay, values![amount_cents, warehouse])?;
                self.session.run(district_pay, values![amount_cents, warehouse, district])?;
            }
        }
        let note = format!(
            "{customer} {customer_district} {customer_warehouse} {district} {warehouse} {}.{:02}|",
            amount_cents / 100,
            amount_cents % 100
        );
        self.session.run(
            self.statements.customer_pay,
            values![amount_cents, amount_cents, note, customer_warehouse, customer_district, customer],
        )?;
        let paid: Option<Row> = self.session.first(
            self.statements.customer_after_payment,
            values![customer_warehouse, customer_district, customer],
        )?;
        let who = || missing(format!("customer {customer} of {customer_warehouse}/{customer_district}"));
        std::hint::black_box(paid.ok_or_else(who)?);

        let mut name = |column| Vec::from_value(head.swap_remove(column)).unwrap_or_default();
        // Later columns first, because `swap_remove` moves the last one.
        let (district_name, mut data) = (name(6), name(0));
        data.extend_from_slice(b"    ");
        data.extend(district_name);
        self.session.run(
            self.statements.history_insert,
            values![customer, customer_district, customer_warehouse, district, warehouse, amount_cents, data],
        )?;
        Ok(End::Commit)
    }
}
