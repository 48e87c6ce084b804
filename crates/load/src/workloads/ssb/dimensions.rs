//! Customers, suppliers and parts, made of TPC-H's rows as O'Neil et al. describe.
//!
//! The benchmark has a fifth of TPC-H's customers and suppliers, so five keys of TPC-H are one here; and fewer parts
//! at larger scales, so keys start again. Cities and brands, which TPC-H lacks, are drawn once for all.

use std::io::{self, Write};

use super::geography::Place;
use super::tpch::{self, Scale};
use spindle_base::random::Random;

/// Keys of TPC-H that are one customer or supplier.
const FOLDED: usize = 5;
/// Of draws that are the same in every database.
const CITIES: u64 = 250;
const BRANDS: u64 = 1_000;

/// The key of a customer or a supplier of TPC-H.
pub(super) fn folded(key: i64) -> i64 {
    (key - 1) / FOLDED as i64 + 1
}

/// A customer, who has a market segment, or a supplier.
#[derive(Debug)]
pub(super) struct Party {
    key: i64,
    name: String,
    address: String,
    pub(super) place: Place,
    phone: String,
    segment: Option<String>,
}

impl Party {
    fn new(kind: &str, (number, row): (i64, tpch::Party)) -> Party {
        let mut random = Random::seeded(&[CITIES, u64::from(row.segment.is_some()), number as u64]);
        Party {
            key: number,
            name: format!("{kind}#{number:09}"),
            address: row.address,
            place: Place { nation: row.nation, digit: random.between(0, 9) as u8 },
            phone: row.phone,
            segment: row.segment,
        }
    }

    pub(super) fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        let Party { key, name, address, place, phone, segment } = self;
        let (city, nation, region) = (place.city(), place.nation_name(), place.region());
        write!(output, "{key}\t{name}\t{address}\t{city}\t{nation}\t{region}\t{phone}")?;
        segment.iter().try_for_each(|segment| write!(output, "\t{segment}"))?;
        writeln!(output)
    }
}

#[derive(Debug)]
pub(super) struct Part {
    key: i64,
    name: String,
    color: String,
    /// From 1 to 5.
    pub(super) manufacturer: u8,
    /// Of the manufacturer, from 1 to 5.
    pub(super) category: u8,
    /// Of the category, from 1 to 40.
    pub(super) brand: u8,
    kind: String,
    size: i32,
    container: String,
}

impl Part {
    fn new((number, row): (i64, tpch::Part)) -> Part {
        let mut words = row.name.split(' ').map(str::to_owned);
        let mut word = || words.next().unwrap_or_default();
        let (color, first, second) = (word(), word(), word());
        Part {
            key: number,
            name: format!("{first} {second}"),
            color,
            manufacturer: row.brand / 10,
            category: row.brand % 10,
            brand: Random::seeded(&[BRANDS, number as u64]).between(1, 40) as u8,
            kind: row.kind,
            size: row.size,
            container: row.container,
        }
    }

    pub(super) fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        let Part { key, name, color, manufacturer, category, brand, kind, size, container } = self;
        let category = format!("MFGR#{manufacturer}{category}");
        writeln!(
            output,
            "{key}\t{name}\tMFGR#{manufacturer}\t{category}\t{category}{brand}\t{color}\t{kind}\t{size}\t{container}"
        )
    }
}

/// All of a scale, in the order of their keys, which begin at one.
#[derive(Debug)]
pub(super) struct Dimensions {
    pub(super) customers: Vec<Party>,
    pub(super) suppliers: Vec<Party>,
    pub(super) parts: Vec<Part>,
}

impl Dimensions {
    pub(super) fn new(scale: Scale) -> Dimensions {
        let customers = (1..).zip(tpch::customers(scale).step_by(FOLDED));
        let suppliers = (1..).zip(tpch::suppliers(scale).step_by(FOLDED));
        let parts = (1..).zip(tpch::parts(scale).take(scale.parts() as usize));
        Dimensions {
            customers: customers.map(|row| Party::new("Customer", row)).collect(),
            suppliers: suppliers.map(|row| Party::new("Supplier", row)).collect(),
            parts: parts.map(Part::new).collect(),
        }
    }

    pub(super) fn customer(&self, key: i64) -> &Party {
        &self.customers[key as usize - 1]
    }

    pub(super) fn supplier(&self, key: i64) -> &Party {
        &self.suppliers[key as usize - 1]
    }

    pub(super) fn part(&self, key: i64) -> &Part {
        &self.parts[key as usize - 1]
    }
}
