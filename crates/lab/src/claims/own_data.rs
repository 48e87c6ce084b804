//! Whether a study's own figures support its claims.
//!
//! The tolerances are those of the print: a ratio of 13.4 is not the "14x" of the text if 3 % are allowed. A
//! reproduction has the wider ones of [`super::target`].

use itertools::Itertools as _;
use serde::Serialize;

use super::check::{Check, Form, Rank, Ratio, Relation};
use super::estimate::Figure;
use super::rows::{Place, Rows, in_order, ties};
use super::study::{Claim, Study};
use crate::record::{Mark, Selector};

/// Differences of binary fractions.
const ROUNDING: f64 = 1e-9;

/// What a study's own rows say about a check.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Support {
    pub holds: bool,
    /// The ratio, the difference, the spread, the count or the value that the rows give.
    pub quantity: Option<f64>,
}

/// What they say about a whole claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OwnData {
    Yes,
    InPart,
    No,
    /// The study prints no figures behind it.
    None,
}

impl OwnData {
    pub fn of(study: &Study, claim: &Claim) -> OwnData {
        let supports: Vec<bool> =
            claim.checks.iter().filter_map(|check| Some(support(study, check)?.holds)).collect();
        match (supports.iter().any(|holds| *holds), supports.iter().all(|holds| *holds)) {
            _ if supports.is_empty() => OwnData::None,
            (_, true) => OwnData::Yes,
            (true, false) => OwnData::InPart,
            (false, false) => OwnData::No,
        }
    }
}

/// `None` if the study prints no figures behind the check.
pub fn support(study: &Study, check: &Check) -> Option<Support> {
    let lookup = |place: &Place| study.figure(place);
    let rows = Rows::new(study, check, &lookup).ok()?;
    let value = |row: &Selector, table: Option<&str>| number(&rows.figure(row, table).ok()?);
    match &check.form {
        Form::Ratio(ratio) => {
            let numerator = value(&ratio.numerator, ratio.table_numerator.as_deref())?;
            let quotient = numerator / value(&ratio.denominator, ratio.table_denominator.as_deref())?;
            Some(Support { holds: is_as_stated(ratio, quotient), quantity: Some(quotient) })
        }
        Form::Difference { minuend, subtrahend, stated, within_abs } => {
            let difference = value(minuend, None)? - value(subtrahend, None)?;
            let holds = (difference - stated).abs() <= within_abs + ROUNDING;
            Some(Support { holds, quantity: Some(difference) })
        }
        Form::Ordering { key, order, place, tie_within } => {
            ordering(&rows, key, order, place, *tie_within).map(|holds| Support { holds, quantity: None })
        }
        Form::Similar { key, members, within, place } => {
            let values = values(&rows, key, members, place)?;
            let spread = spread(values.iter().map(|(_, value)| *value))?;
            Some(Support { holds: spread <= within + ROUNDING, quantity: Some(spread) })
        }
        Form::CountWithin { over, over_values, a, b, within, stated } => {
            let (one, other) = (values(&rows, over, over_values, a)?, values(&rows, over, over_values, b)?);
            let pairs = one.iter().zip(&other).filter_map(|((_, one), (_, other))| spread([*one, *other]));
            let count = pairs.filter(|spread| *spread <= within + ROUNDING).count();
            Some(Support { holds: count >= *stated, quantity: Some(count as f64) })
        }
        Form::Threshold { row, op, stated } => {
            let value = value(row, None)?;
            Some(Support { holds: op.allows(value, *stated), quantity: Some(value) })
        }
    }
}

fn number(figure: &Figure) -> Option<f64> {
    figure.estimate().map(|estimate| estimate.value)
}

fn is_as_stated(ratio: &Ratio, quotient: f64) -> bool {
    let within = ratio.within.unwrap_or(0.0);
    let is_at_least = quotient >= ratio.stated * (1.0 - within) - ROUNDING;
    let is_at_most = |stated: f64| quotient <= stated * (1.0 + within) + ROUNDING;
    match (ratio.relation, ratio.within_pp) {
        (Relation::AtLeast, _) => is_at_least,
        (Relation::AtMost, _) => is_at_most(ratio.stated),
        (Relation::Range, _) => is_at_least && is_at_most(ratio.stated_max.unwrap_or(ratio.stated)),
        (Relation::About, Some(points)) => (quotient - ratio.stated).abs() * 100.0 <= points + ROUNDING,
        (Relation::About, None) => (quotient / ratio.stated - 1.0).abs() <= within + ROUNDING,
    }
}

fn values<'a>(
    rows: &Rows,
    key: &str,
    members: impl IntoIterator<Item = &'a Mark>,
    place: &Selector,
) -> Option<Vec<(&'a Mark, f64)>> {
    let (figures, missing) = rows.of_members(key, members, place);
    let value = |(mark, figure): (&'a Mark, Figure)| Some((mark, number(&figure)?));
    figures.into_iter().map(value).collect::<Option<Vec<_>>>().filter(|_| missing.is_empty())
}

fn ordering(
    rows: &Rows,
    key: &str,
    order: &[Rank],
    place: &Selector,
    tie_within: Option<f64>,
) -> Option<bool> {
    let values = values(rows, key, order.iter().flat_map(Rank::members), place)?;
    let value =
        |mark: &Mark| values.iter().find(|(other, _)| *other == mark).map_or(f64::NAN, |(_, value)| *value);
    let is_better = |(one, other): (&Mark, &Mark)| match rows.is_higher_better() {
        true => value(one) > value(other),
        false => value(one) < value(other),
    };
    let is_tied = |(one, other): (&Mark, &Mark)| {
        let spread = spread([value(one), value(other)]).unwrap_or(f64::INFINITY);
        tie_within.is_none_or(|within| spread <= within + ROUNDING)
    };
    Some(in_order(order).all(is_better) && ties(order).all(is_tied))
}

/// The largest divided by the smallest, less one.
fn spread(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (low, high) = values.into_iter().minmax_by(f64::total_cmp).into_option()?;
    Some(high / low - 1.0)
}
