//! The rows of the fact table: lines of orders with their order.

use std::io::{self, Write};

use super::calendar::Day;
use super::dimensions::folded;
use super::tpch::{self, Scale};

#[derive(Debug)]
pub(super) struct LineOrder {
    line: tpch::Line,
    pub(super) day: Day,
    pub(super) customer_key: i64,
    pub(super) part_key: i64,
    pub(super) supplier_key: i64,
    pub(super) quantity: i64,
    /// In percent.
    pub(super) discount: i64,
    /// In cents, as the two below.
    pub(super) extended_price: i64,
    pub(super) revenue: i64,
    pub(super) supply_cost: i64,
}

impl LineOrder {
    fn new(line: tpch::Line, parts: i64, days: &[Day]) -> LineOrder {
        let day = days.binary_search_by_key(&line.order_date, |day| day.key());
        let day = days[day.expect("orders are of the calendar's years")];
        LineOrder {
            day,
            customer_key: folded(line.customer_key),
            part_key: (line.part_key - 1) % parts + 1,
            supplier_key: folded(line.supplier_key),
            quantity: line.quantity,
            discount: line.discount,
            extended_price: line.extended_price,
            revenue: line.extended_price * (100 - line.discount) / 100,
            // Six tenths of the price of one, as the benchmark's generator has it.
            supply_cost: 6 * (line.extended_price / line.quantity) / 10,
            line,
        }
    }

    pub(super) fn order_key(&self) -> i64 {
        self.line.order_key
    }

    pub(super) fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        let LineOrder { line, customer_key, part_key, supplier_key, quantity, discount, .. } = self;
        writeln!(
            output,
            "{}\t{}\t{customer_key}\t{part_key}\t{supplier_key}\t{}\t{}\t0\t{quantity}\t{}\t{}\t{discount}\t{}\t{}\t{}\t{}\t{}",
            line.order_key,
            line.number,
            line.order_date,
            line.priority,
            self.extended_price,
            line.order_total,
            self.revenue,
            self.supply_cost,
            line.tax,
            line.commit_date,
            line.ship_mode,
        )
    }
}

/// The lines of one of `part_count` parts of all orders; parts count from one.
pub(super) fn lines(
    scale: Scale,
    part: i32,
    part_count: i32,
    days: &[Day],
) -> impl Iterator<Item = LineOrder> {
    let parts = scale.parts() as i64;
    tpch::lines(scale, part, part_count).map(move |line| LineOrder::new(line, parts, days))
}
