//! A file of prices as written. The structures declare the keys, and their schema drives the sentences about
//! mistakes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use spindle_base::Mistake;
use spindle_base::explain::{parse_toml, read_toml};
use spindle_base::form;

use super::formula::{Cost, Monthly};
use super::{Entry, Exchange, Origin, Prices};
use crate::stack::{built_in_names, suggestion};

/// Size limit of a file of prices.
const TEXT_BYTES_MOST: u64 = 1 << 20;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PricesFile {
    /// Prices of drives, volumes and whole stacks, by their names.
    #[serde(default)]
    prices: BTreeMap<String, PriceTable>,
    /// Price of memory.
    memory: Option<MemoryTable>,
    /// Exchange rates, by the currency of which one unit is exchanged.
    #[serde(default)]
    exchange: BTreeMap<String, ExchangeTable>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    /// What one drive costs when it is bought.
    #[schemars(example = 225.0)]
    once: Option<f64>,
    /// A fixed price a month.
    #[schemars(example = 19.71)]
    per_month: Option<f64>,
    /// Price of a GiB a month.
    #[schemars(example = 0.08)]
    per_gib_month: Option<f64>,
    /// Price of a provisioned IOPS a month.
    #[schemars(example = 0.005)]
    per_iops_month: Option<f64>,
    /// IOPS that cost nothing.
    #[schemars(example = 3000)]
    iops_included: Option<u64>,
    /// IOPS up to which the price holds.
    #[schemars(example = 32000)]
    iops_most: Option<u64>,
    /// Price of a provisioned MiB/s a month.
    #[schemars(example = 0.04)]
    per_mib_s_month: Option<f64>,
    /// MiB/s that cost nothing.
    #[schemars(example = 125)]
    mib_s_included: Option<u64>,
    /// Three letters of ISO 4217.
    #[schemars(example = &"USD")]
    currency: String,
    /// A year, a month or a day.
    #[schemars(example = &"2009-07-21")]
    date: String,
    /// The text that has the price.
    #[schemars(example = &"a shop's page")]
    source: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemoryTable {
    /// Price of a GiB.
    #[schemars(example = 4.7)]
    per_gib: f64,
    /// Three letters of ISO 4217.
    #[schemars(example = &"USD")]
    currency: String,
    /// A year, a month or a day.
    #[schemars(example = &"2009-07-21")]
    date: String,
    /// The text that has the price.
    #[schemars(example = &"a shop's page")]
    source: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ExchangeTable {
    /// A year, a month or a day.
    #[schemars(example = &"2009-07-21")]
    date: String,
    /// The text that has the rate.
    #[schemars(example = &"a bank's page")]
    source: String,
    /// Units of each other currency for one unit.
    #[serde(flatten)]
    rates: BTreeMap<String, f64>,
}

/// # Errors
/// The file cannot be read, or is far too long, as `/dev/zero` is.
pub(super) fn text_of(path: &Path) -> Result<String, Mistake> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(TEXT_BYTES_MOST + 1).read_to_string(&mut text));
    match read {
        Err(error) => Err(Mistake::new(format!("cannot be read: {error}"))),
        Ok(_) if text.len() as u64 > TEXT_BYTES_MOST => {
            Err(Mistake::new(format!("has more than {TEXT_BYTES_MOST} bytes")))
        }
        Ok(_) => Ok(text),
    }
}

impl PricesFile {
    /// # Errors
    /// The text is not TOML; or keys and values do not have the declared form, all of them at once.
    pub(super) fn parse(text: &str) -> Result<PricesFile, Mistake> {
        let table = toml::Table::deserialize(parse_toml(text)?)
            .map_err(|error| Mistake::new(error.message().to_owned()))?;
        match Mistake::all(form::mistakes(&schema(), &table)) {
            Some(mistakes) => Err(mistakes),
            None => read_toml(text),
        }
    }

    /// # Errors
    /// Every price of an unknown name, and every value without a meaning.
    pub(super) fn prices(self, own_names: &[&str]) -> Result<Prices, Mistake> {
        let mut mistakes = Vec::new();
        let mut prices = Prices::default();
        for (name, table) in self.prices {
            let entry = known(&name, own_names).and_then(|()| table.entry());
            match entry {
                Ok(entry) => _ = prices.entries.insert(name, entry),
                Err(mistake) => mistakes.push(mistake.under(&name).under("prices")),
            }
        }
        match self.memory.map(MemoryTable::entry).transpose() {
            Ok(memory) => prices.memory = memory,
            Err(mistake) => mistakes.push(mistake.under("memory")),
        }
        for (currency, table) in self.exchange {
            match table.exchange(&currency) {
                Ok(exchange) => _ = prices.exchange.insert(currency, exchange),
                Err(mistake) => mistakes.push(mistake.under(&currency).under("exchange")),
            }
        }
        Mistake::all(mistakes).map_or(Ok(prices), Err)
    }
}

/// References are inlined, so that each property is read where it stands.
fn schema() -> serde_json::Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.into_generator().into_root_schema_for::<PricesFile>().into()
}

fn known(name: &str, own_names: &[&str]) -> Result<(), Mistake> {
    if built_in_names().any(|known| known == name) || own_names.contains(&name) {
        return Ok(());
    }
    Err(Mistake::new(format!("there is no profile or stack `{name}`{}", suggestion(name, own_names))))
}

impl PriceTable {
    fn entry(self) -> Result<Entry, Mistake> {
        let monthly = [
            ("per_month", self.per_month),
            ("per_gib_month", self.per_gib_month),
            ("per_iops_month", self.per_iops_month),
            ("per_mib_s_month", self.per_mib_s_month),
        ];
        for (key, amount) in monthly.into_iter().chain([("once", self.once)]) {
            amount.map_or(Ok(()), |amount| above_zero(key, amount))?;
        }
        let needs = [
            ("iops_included", self.iops_included, "per_iops_month", self.per_iops_month),
            ("iops_most", self.iops_most, "per_iops_month", self.per_iops_month),
            ("mib_s_included", self.mib_s_included, "per_mib_s_month", self.per_mib_s_month),
        ];
        for (key, number, needed, amount) in needs {
            if number.is_some() && amount.is_none() {
                return Err(Mistake::at(key, format!("belongs to `{needed}`, which is missing")));
            }
        }
        let cost = match (self.once, monthly.iter().any(|(_, amount)| amount.is_some())) {
            (Some(amount), false) => Cost::Once(amount),
            (None, true) => Cost::Monthly(Monthly {
                fixed: self.per_month.unwrap_or_default(),
                per_gib: self.per_gib_month.unwrap_or_default(),
                per_iops: self.per_iops_month.unwrap_or_default(),
                iops_included: self.iops_included.unwrap_or_default(),
                iops_most: self.iops_most,
                per_mib_s: self.per_mib_s_month.unwrap_or_default(),
                mib_s_included: self.mib_s_included.unwrap_or_default(),
            }),
            (Some(_), true) => {
                let message = "cannot be there together with a price a month: a drive is bought or rented";
                return Err(Mistake::at("once", message));
            }
            (None, false) => {
                let message = "needs an amount: `once` for a drive that is bought, `per_month` or \
                    `per_gib_month` for a volume that is rented";
                return Err(Mistake::new(message));
            }
        };
        check_currency("currency", &self.currency)?;
        Ok(Entry { cost, currency: self.currency, origin: origin(self.date, self.source)? })
    }
}

impl MemoryTable {
    fn entry(self) -> Result<Entry, Mistake> {
        above_zero("per_gib", self.per_gib)?;
        check_currency("currency", &self.currency)?;
        let origin = origin(self.date, self.source)?;
        Ok(Entry { cost: Cost::Once(self.per_gib), currency: self.currency, origin })
    }
}

impl ExchangeTable {
    fn exchange(self, currency: &str) -> Result<Exchange, Mistake> {
        check_currency("", currency)?;
        for (other, rate) in &self.rates {
            check_currency(other, other)?;
            above_zero(other, *rate)?;
        }
        Ok(Exchange { rates: self.rates, origin: origin(self.date, self.source)? })
    }
}

fn above_zero(key: &str, amount: f64) -> Result<(), Mistake> {
    match amount.is_finite() && amount > 0.0 {
        true => Ok(()),
        false => Err(Mistake::at(key, format!("is {amount}, must be above zero"))),
    }
}

fn check_currency(key: &str, currency: &str) -> Result<(), Mistake> {
    match currency.len() == 3 && currency.chars().all(|letter| letter.is_ascii_uppercase()) {
        true => Ok(()),
        false => {
            let message =
                format!("`{currency}` is no currency; write its three letters, for example \"USD\"");
            Err(Mistake::at(key, message))
        }
    }
}

fn origin(date: String, source: String) -> Result<Origin, Mistake> {
    if !is_date(&date) {
        let message =
            format!("`{date}` is not a date; write for example \"2009\", \"2009-07\" or \"2009-07-21\"");
        return Err(Mistake::at("date", message));
    }
    if source.trim().is_empty() {
        return Err(Mistake::at("source", "is empty; name the text that has the price"));
    }
    Ok(Origin { date, source: source.trim().to_owned() })
}

/// A year, a month or a day, so that earlier dates come first in the order of texts.
fn is_date(text: &str) -> bool {
    let bounds = [(4, 1956..=2100), (2, 1..=12), (2, 1..=31)];
    let parts: Vec<&str> = text.split('-').collect();
    let is_part = |(part, (digits, bounds)): (&&str, (usize, std::ops::RangeInclusive<u32>))| {
        let is_number = part.len() == digits && part.bytes().all(|digit| digit.is_ascii_digit());
        is_number && part.parse::<u32>().is_ok_and(|number| bounds.contains(&number))
    };
    parts.len() <= bounds.len() && parts.iter().zip(bounds).all(is_part)
}
