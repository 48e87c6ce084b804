//! TPC-H's rows as the crate `tpchgen` makes them, with the columns that the benchmark takes.

use std::sync::LazyLock;

use tpchgen::distribution::Distributions;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, OrderGenerator, PartGenerator, SupplierGenerator,
};
use tpchgen::text::TextPool;

/// Only comments come from it, which the benchmark has not. The default takes seconds and 300 MB.
static TEXTS: LazyLock<TextPool> = LazyLock::new(|| TextPool::new(1 << 20, Distributions::static_default()));

/// The scale factor, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scale {
    pub(super) percent: u32,
}

impl Scale {
    fn factor(self) -> f64 {
        f64::from(self.percent) / 100.0
    }

    /// The benchmark's `200,000 (1 + log2 SF)`, and in proportion below a scale of one.
    pub(super) fn parts(self) -> u64 {
        match u64::from(self.percent) / 100 {
            0 => u64::from(self.percent) * 2_000,
            whole => 200_000 * (1 + u64::from(whole.ilog2())),
        }
    }

    /// Orders, of four lines on average.
    pub(super) fn orders(self) -> u64 {
        u64::from(self.percent) * 15_000
    }
}

/// A customer or a supplier.
#[derive(Debug)]
pub(super) struct Party {
    pub(super) address: String,
    pub(super) nation: u8,
    pub(super) phone: String,
    /// Customers have one.
    pub(super) segment: Option<String>,
}

#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: String,
    /// Digits of the manufacturer and of its brand.
    pub(super) brand: u8,
    pub(super) kind: String,
    pub(super) size: i32,
    pub(super) container: String,
}

/// A line of an order, with amounts in cents and shares in percent.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) order_key: i64,
    pub(super) number: i32,
    pub(super) customer_key: i64,
    pub(super) part_key: i64,
    pub(super) supplier_key: i64,
    /// As in [`super::calendar::Day::key`].
    pub(super) order_date: u32,
    pub(super) priority: &'static str,
    pub(super) quantity: i64,
    pub(super) extended_price: i64,
    pub(super) order_total: i64,
    pub(super) discount: i64,
    pub(super) tax: i64,
    pub(super) commit_date: u32,
    pub(super) ship_mode: &'static str,
}
