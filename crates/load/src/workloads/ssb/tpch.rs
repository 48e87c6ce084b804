//! TPC-H's rows as the crate `tpchgen` makes them, with the columns that the benchmark takes.

use std::sync::LazyLock;

use tpchgen::dates::TPCHDate;
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

pub(super) fn customers(scale: Scale) -> impl Iterator<Item = Party> {
    let distributions = Distributions::static_default();
    let generator =
        CustomerGenerator::new_with_distributions_and_text_pool(scale.factor(), 1, 1, distributions, &TEXTS);
    generator.iter().map(|row| Party {
        address: row.c_address.to_string(),
        nation: row.c_nationkey as u8,
        phone: row.c_phone.to_string(),
        segment: Some(row.c_mktsegment.to_owned()),
    })
}

pub(super) fn suppliers(scale: Scale) -> impl Iterator<Item = Party> {
    let distributions = Distributions::static_default();
    let generator =
        SupplierGenerator::new_with_distributions_and_text_pool(scale.factor(), 1, 1, distributions, &TEXTS);
    generator.iter().map(|row| Party {
        address: row.s_address.to_string(),
        nation: row.s_nationkey as u8,
        phone: row.s_phone.to_string(),
        segment: None,
    })
}

pub(super) fn parts(scale: Scale) -> impl Iterator<Item = Part> {
    let distributions = Distributions::static_default();
    let generator =
        PartGenerator::new_with_distributions_and_text_pool(scale.factor(), 1, 1, distributions, &TEXTS);
    generator.iter().map(|row| Part {
        name: row.p_name.to_string(),
        brand: row.p_brand.to_string().trim_start_matches("Brand#").parse().expect("a brand is two digits"),
        kind: row.p_type.to_owned(),
        size: row.p_size,
        container: row.p_container.to_owned(),
    })
}

/// The lines of the orders of one of `part_count` parts, which count from one.
pub(super) fn lines(scale: Scale, part: i32, part_count: i32) -> impl Iterator<Item = Line> {
    let (factor, distributions) = (scale.factor(), Distributions::static_default());
    let orders =
        OrderGenerator::new_with_distributions_and_text_pool(factor, part, part_count, distributions, &TEXTS);
    let lines = LineItemGenerator::new_with_distributions_and_text_pool(
        factor,
        part,
        part_count,
        distributions,
        &TEXTS,
    );
    let mut lines = lines.iter().peekable();
    orders.iter().flat_map(move |order| {
        let mut of_order = Vec::new();
        while let Some(line) = lines.next_if(|line| line.l_orderkey == order.o_orderkey) {
            of_order.push(Line {
                order_key: order.o_orderkey,
                number: line.l_linenumber,
                customer_key: order.o_custkey,
                part_key: line.l_partkey,
                supplier_key: line.l_suppkey,
                order_date: date_key(order.o_orderdate),
                priority: order.o_orderpriority,
                quantity: line.l_quantity,
                extended_price: line.l_extendedprice.0,
                order_total: order.o_totalprice.0,
                discount: line.l_discount.0,
                tax: line.l_tax.0,
                commit_date: date_key(line.l_commitdate),
                ship_mode: line.l_shipmode,
            });
        }
        of_order
    })
}

fn date_key(date: TPCHDate) -> u32 {
    let (year, month, day) = date.to_ymd();
    ((1900 + year) * 10_000 + month * 100 + day) as u32
}
