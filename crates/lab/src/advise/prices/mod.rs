//! Prices of storage, and what a stack costs over years.
//!
//! Prices are data: `prices/*.toml`, each with its currency, date and source (docs/prices.md). Nothing is
//! fetched. Amounts in different currencies are neither added nor compared, unless the user's own file gives
//! a rate. What is unknown stays unknown. Must not know what the storage does.

mod file;
mod formula;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use itertools::Itertools as _;
use serde::Serialize;
use spindle_base::Mistake;
use spindle_base::text::thousands;
use spindle_model::{Layer, Parameters, StackSpec as Tree};

use crate::stack::{Drives, PROFILES, StackSpec};
use formula::{Cost, Part, Unit};

/// The prices in the binary, by the names of their files: every file in `prices/`, collected by `build.rs`.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/prices.rs"));

static BUILT_IN: LazyLock<Prices> = LazyLock::new(|| {
    let mut all = Prices::default();
    for (name, text) in FILES {
        let prices = Prices::parse(text, &[]);
        all.replace_with(prices.unwrap_or_else(|mistake| panic!("prices/{name}.toml: {mistake}")));
    }
    all
});

/// Where a price or a rate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    /// `2009`, `2009-07` or `2009-07-21`.
    date: String,
    source: String,
}

/// The price of a drive, a volume, or a whole stack.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    cost: Cost,
    currency: String,
    origin: Origin,
}

/// Units of each currency for one unit of another.
#[derive(Debug, Clone, PartialEq)]
struct Exchange {
    rates: BTreeMap<String, f64>,
    origin: Origin,
}

/// Known prices.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prices {
    /// By the name of a profile or a stack.
    entries: BTreeMap<String, Entry>,
    /// Of a GiB of memory.
    memory: Option<Entry>,
    exchange: BTreeMap<String, Exchange>,
}

/// What a stack costs over some years.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Price {
    /// In the currency, over all years.
    pub total: f64,
    /// Three letters of ISO 4217.
    pub currency: String,
    /// The oldest date of its parts: `2009`, `2009-07` or `2009-07-21`.
    pub date: String,
    /// The sources of its parts, each once.
    pub source: String,
    /// `4 x 60 USD`, `100 GiB x 0.08 USD x 60 months`
    pub formula: String,
    /// Parts without a price that the total does not contain: `the controller`.
    pub left_out: Vec<&'static str>,
}

/// Why a stack has no price.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unpriced {
    #[error("no price of `{0}` is known")]
    Unknown(String),
    #[error("the price of `{name}` is known up to {most} IOPS, and {iops} are provisioned")]
    Iops { name: String, iops: u64, most: u64 },
    #[error("the price of `{0}` depends on IOPS or MiB/s, which only the profile of a cloud volume states")]
    Rate(String),
    #[error("its parts are priced in {0} and {1}, and no exchange rate is given")]
    Currencies(String, String),
}

impl Prices {
    /// The prices in the binary.
    pub fn built_in() -> Prices {
        BUILT_IN.clone()
    }

    /// The prices in the binary, with those of a user's file in their place. `own_names` are further names
    /// that may be priced: of the user's own stacks and profiles.
    ///
    /// # Errors
    /// The file cannot be read or is not a file of prices; a price has no date or no source, or the name of
    /// no profile or stack.
    pub fn read(path: &Path, own_names: &[&str]) -> Result<Prices, Mistake> {
        let prices = file::text_of(path).and_then(|text| Prices::parse(&text, own_names));
        let mut all = Prices::built_in();
        all.replace_with(prices.map_err(|mistake| mistake.in_file(path.display()))?);
        Ok(all)
    }

    fn parse(text: &str, own_names: &[&str]) -> Result<Prices, Mistake> {
        file::PricesFile::parse(text)?.prices(own_names)
    }

    fn replace_with(&mut self, newer: Prices) {
        self.entries.extend(newer.entries);
        self.exchange.extend(newer.exchange);
        self.memory = newer.memory.or(self.memory.take());
    }

    /// What the stack costs over the years, with as much room as is asked for. Drives are bought and volumes
    /// rented; a price of the stack's own name is that of the whole.
    ///
    /// # Errors
    /// The price of a part is unknown, or the parts are priced in currencies without a rate between them.
    pub fn price_of(&self, stack: &StackSpec, capacity_bytes: u64, years: u64) -> Result<Price, Unpriced> {
        let (parts, left_out) = self.parts_of(stack, capacity_bytes, years)?;
        self.sum(&parts, left_out)
    }

    /// As [`Prices::price_of`], of stacks together, each with the size that it is sold with.
    ///
    /// # Errors
    /// As [`Prices::price_of`].
    pub fn price_of_all(&self, stacks: &[StackSpec], years: u64) -> Result<Price, Unpriced> {
        let (mut parts, mut left_out) = (Vec::new(), Vec::new());
        for stack in stacks {
            let (of_stack, without) = self.parts_of(stack, stack.natural_bytes(), years)?;
            parts.extend(of_stack);
            left_out.extend(without);
        }
        self.sum(&parts, left_out.into_iter().unique().collect())
    }

    /// At least one part of the price of a stack, and what has none.
    fn parts_of(
        &self,
        stack: &StackSpec,
        capacity_bytes: u64,
        years: u64,
    ) -> Result<(Vec<Part<'_>>, Vec<&'static str>), Unpriced> {
        let months = 12 * years;
        let name = stack.head().name.as_str();
        let is_profile = PROFILES.iter().any(|(known, _)| *known == name);
        if let Some(whole) = self.entries.get(name).filter(|_| !is_profile) {
            let unit = Unit { count: 1, bytes: capacity_bytes, volume: None };
            return Ok((vec![whole.over(name, &unit, months)?], Vec::new()));
        }
        let mut parts = Vec::new();
        for drives in stack.drives() {
            let profile = drives.facts.profile.as_str();
            let entry = self.entries.get(profile).ok_or_else(|| Unpriced::Unknown(profile.to_owned()))?;
            parts.push(entry.over(profile, &unit(&drives, capacity_bytes, stack.size_bytes()), months)?);
        }
        if parts.is_empty() {
            return Err(Unpriced::Unknown(name.to_owned()));
        }
        let mut left_out = Vec::new();
        add_left_out(stack.tree(), &mut left_out);
        Ok((parts, left_out))
    }

    /// What memory of this size costs, if a price of memory is known.
    pub fn price_of_memory(&self, size_bytes: u64) -> Option<Price> {
        let entry = self.memory.as_ref()?;
        self.sum(&[entry.memory(size_bytes)], Vec::new()).ok()
    }

    /// The price in another currency, if the user's file gives a rate between the two.
    pub fn in_currency(&self, price: &Price, currency: &str) -> Option<Price> {
        if price.currency == currency {
            return Some(price.clone());
        }
        let (rate, origin) = self.rate(&price.currency, currency)?;
        Some(Price {
            total: price.total * rate,
            currency: currency.to_owned(),
            date: price.date.clone().min(origin.date.clone()),
            source: [&price.source, &origin.source].into_iter().unique().join("; "),
            formula: at_rate(&price.formula, rate, &price.currency, currency),
            left_out: price.left_out.clone(),
        })
    }

    /// Units of `to` for one of `from`.
    fn rate(&self, from: &str, to: &str) -> Option<(f64, &Origin)> {
        let given = |from: &str, to: &str| {
            let exchange = self.exchange.get(from)?;
            Some((*exchange.rates.get(to)?, &exchange.origin))
        };
        given(from, to).or_else(|| given(to, from).map(|(rate, origin)| (1.0 / rate, origin)))
    }

    /// The sum of at least one part, in the currency of the first.
    fn sum(&self, parts: &[Part<'_>], left_out: Vec<&'static str>) -> Result<Price, Unpriced> {
        let currency = &parts[0].entry.currency;
        let (mut total, mut formulas, mut origins) = (0.0_f64, Vec::new(), Vec::new());
        for Part { amount, words, entry } in parts {
            origins.push(&entry.origin);
            if entry.currency == *currency {
                total += amount;
                formulas.push(words.clone());
                continue;
            }
            let Some((rate, origin)) = self.rate(&entry.currency, currency) else {
                return Err(Unpriced::Currencies(currency.clone(), entry.currency.clone()));
            };
            total += amount * rate;
            formulas.push(at_rate(words, rate, &entry.currency, currency));
            origins.push(origin);
        }
        Ok(Price {
            total,
            currency: currency.clone(),
            date: origins.iter().map(|origin| origin.date.as_str()).min().unwrap_or_default().to_owned(),
            source: origins.iter().map(|origin| origin.source.as_str()).unique().join("; "),
            formula: formulas.join(" + "),
            left_out,
        })
    }
}

impl Price {
    /// `12,800 USD`, `451.20 USD`; what is left out is not part of it.
    pub fn words(&self) -> String {
        let decimals = if self.total < 1_000.0 && self.total.fract() != 0.0 { 2 } else { 0 };
        format!("{} {}", thousands(&format!("{:.decimals$}", self.total)), self.currency)
    }

    /// The cheaper one first; `None` for prices in different currencies.
    pub fn compare(&self, other: &Price) -> Option<Ordering> {
        (self.currency == other.currency).then(|| self.total.total_cmp(&other.total))
    }
}

/// The drives as they are charged: each for its part of the room.
fn unit<'a>(drives: &Drives<'a>, capacity_bytes: u64, stack_bytes: u64) -> Unit<'a> {
    let bytes = u128::from(capacity_bytes) * u128::from(drives.size_bytes) / u128::from(stack_bytes.max(1));
    let volume = match drives.parameters {
        Parameters::Volume(volume) => Some(volume),
        _ => None,
    };
    Unit { count: drives.count, bytes: bytes as u64, volume }
}

fn at_rate(words: &str, rate: f64, from: &str, to: &str) -> String {
    format!("{words}, at {} {to} for 1 {from}", (rate * 1e4).round() / 1e4)
}

/// Adds the parts of a stack besides its drives that have to be paid, each once.
fn add_left_out(tree: &Tree, left_out: &mut Vec<&'static str>) {
    let Tree::Layer(layer, below) = tree else { return };
    let part = match layer {
        Layer::Cache(_) => Some("the controller"),
        Layer::Replicated(_) => Some("the second server and its link"),
        _ => None,
    };
    if let Some(part) = part.filter(|part| !left_out.contains(part)) {
        left_out.push(part);
    }
    below.iter().for_each(|branch| add_left_out(&branch.stack, left_out));
}
