//! A comparison with published claims as one self-contained page, in the style of the report.

use anyhow::Context as _;
use minijinja::{Value, context};

use super::{Comparisons, detail, details};
use crate::claims::reproduction::Comparison;
use crate::claims::verdict::{CheckOutcome, ClaimOutcome};
use crate::record::{spelling, words};
use crate::report::{STYLE, filled};

const TEMPLATE: &str = include_str!("page.html");

pub(super) fn page(comparisons: &Comparisons) -> anyhow::Result<String> {
    let content = context! {
        style => Value::from_safe_string(STYLE.to_owned()),
        studies => comparisons.studies.iter().map(study).collect::<Vec<_>>(),
        notes => &comparisons.notes,
    };
    filled(TEMPLATE, content).context("laying out the claims")
}

fn study(comparison: &Comparison) -> Value {
    context! {
        study => &comparison.study,
        title => &comparison.title,
        year => comparison.year,
        counts => comparison.counts(),
        claims => comparison.claims.iter().map(claim).collect::<Vec<_>>(),
    }
}

fn claim(claim: &ClaimOutcome) -> Value {
    context! {
        id => &claim.id,
        text => &claim.text,
        verdict => words(&claim.verdict),
        class => spelling(&claim.verdict),
        tested => claim.tested,
        own_data => claim.own_data.words(),
        details => details(claim),
        checks => claim.checks.iter().map(check).collect::<Vec<_>>(),
    }
}

fn check(outcome: &CheckOutcome) -> Value {
    let figures = detail(outcome, false);
    context! {
        words => outcome.check.words(),
        verdict => words(&outcome.verdict),
        figures => if figures.is_empty() { &outcome.reason } else { &figures },
    }
}
