//! From the price of one drive or one GiB to an amount, with the formula in words.

use spindle_model::VolumeParameters;

use super::{Entry, Unpriced};
use crate::report::format::count;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// What is charged.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cost {
    /// For each drive, once; of memory, for each GiB.
    Once(f64),
    Monthly(Monthly),
}

/// What is charged a month, in addition to each other. An amount that is not charged is zero.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Monthly {
    pub fixed: f64,
    pub per_gib: f64,
    pub per_iops: f64,
    pub iops_included: u64,
    pub iops_most: Option<u64>,
    pub per_mib_s: f64,
    pub mib_s_included: u64,
}

/// Equal drives, as they are charged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit<'a> {
    pub count: u64,
    /// Room on each.
    pub bytes: u64,
    /// `None` for what is no cloud volume.
    pub volume: Option<&'a VolumeParameters>,
}

/// A part of a price.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub amount: f64,
    pub words: String,
    pub entry: &'a Entry,
}

impl Entry {
    /// The price of these drives over some months.
    pub(super) fn over(&self, name: &str, unit: &Unit<'_>, months: u64) -> Result<Part<'_>, Unpriced> {
        let currency = &self.currency;
        let (each, words) = match &self.cost {
            Cost::Once(amount) => (*amount, format!("{amount} {currency}")),
            Cost::Monthly(monthly) => {
                let terms = monthly.terms(name, unit, currency)?;
                let sum: f64 = terms.iter().map(|(amount, _)| amount).sum();
                let words = terms.into_iter().map(|(_, words)| words).collect::<Vec<_>>();
                let words = match words.as_slice() {
                    [only] => only.clone(),
                    several => format!("({})", several.join(" + ")),
                };
                (sum * months as f64, format!("{words} x {months} months"))
            }
        };
        let times = if unit.count > 1 { format!("{} x ", unit.count) } else { String::new() };
        Ok(Part { amount: each * unit.count as f64, words: times + &words, entry: self })
    }

    /// The price of memory.
    pub(super) fn memory(&self, size_bytes: u64) -> Part<'_> {
        let per_gib = match self.cost {
            Cost::Once(amount) => amount,
            Cost::Monthly(_) => unreachable!("memory is bought"),
        };
        let gib = size_bytes as f64 / GIB as f64;
        let words = format!("{} GiB x {per_gib} {}", (gib * 100.0).round() / 100.0, self.currency);
        Part { amount: gib * per_gib, words, entry: self }
    }
}

impl Unit<'_> {
    /// A volume whose rate grows with its size has at least the size of that rate. Any other has the size
    /// that is asked for.
    fn charged_bytes(&self) -> u64 {
        match self.volume {
            Some(volume) if volume.iops_per_gib > 0 => volume.capacity_bytes.max(self.bytes),
            _ => self.bytes,
        }
    }
}

impl Monthly {
    /// Amounts a month with their words, at least one.
    fn terms(&self, name: &str, unit: &Unit<'_>, currency: &str) -> Result<Vec<(f64, String)>, Unpriced> {
        let mut terms = Vec::new();
        let mut add = |number: f64, what: &str, amount: f64| {
            if number > 0.0 && amount > 0.0 {
                terms.push((number * amount, format!("{what}{amount} {currency}")));
            }
        };
        add(1.0, "", self.fixed);
        let gib = unit.charged_bytes().div_ceil(GIB);
        add(gib as f64, &format!("{} GiB x ", count(gib)), self.per_gib);
        if self.per_iops > 0.0 || self.per_mib_s > 0.0 {
            let volume = unit.volume.ok_or_else(|| Unpriced::Rate(name.to_owned()))?;
            let iops = self.charged_iops(name, volume)?;
            add(iops as f64, &words_above(iops, "IOPS", self.iops_included), self.per_iops);
            // A rate is whole MiB/s where it is sold.
            let mib_s = (volume.bytes_per_s / MIB).saturating_sub(self.mib_s_included);
            add(mib_s as f64, &words_above(mib_s, "MiB/s", self.mib_s_included), self.per_mib_s);
        }
        if terms.is_empty() {
            terms.push((0.0, format!("0 {currency}")));
        }
        Ok(terms)
    }

    /// Provisioned IOPS above the included ones.
    fn charged_iops(&self, name: &str, volume: &VolumeParameters) -> Result<u64, Unpriced> {
        let iops = volume.baseline_iops();
        match self.iops_most.filter(|most| iops > *most) {
            Some(most) => Err(Unpriced::Iops { name: name.to_owned(), iops, most }),
            None => Ok(iops.saturating_sub(self.iops_included)),
        }
    }
}

/// `1,000 IOPS above 3,000 x `
fn words_above(number: u64, unit: &str, included: u64) -> String {
    let above = if included > 0 { format!(" above {}", count(included)) } else { String::new() };
    format!("{} {unit}{above} x ", count(number))
}
