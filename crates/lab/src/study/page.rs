//! All studies as one self-contained page: every claim with its verdict, published beside measured, and filters.

use anyhow::Context as _;
use itertools::Itertools as _;
use minijinja::{Value, context};
use spindle_base::text::plural;

use super::Summary;
use super::answer::{Answer, NOT_RUN, verdict};
use super::summary::Counts;
use crate::claims::{CheckOutcome, ClaimOutcome, Form, Relation};
use crate::record::{spelling, words};
use crate::report::format::number;
use crate::report::{STYLE, filled};

const TEMPLATE: &str = include_str!("page.html");

/// # Errors
/// The template does not fit the data, which is a bug.
pub fn page(answers: &[Answer]) -> anyhow::Result<String> {
    let summary = Summary { answers };
    let total = summary.total();
    let content = context! {
        style => Value::from_safe_string(STYLE.to_owned()),
        sentence => summary.sentence(),
        reasons => summary.reasons(),
        counts => counts(&total),
        all => total.all(),
        studies => answers.iter().map(study).collect::<Vec<_>>(),
    };
    filled(TEMPLATE, content).context("laying out the studies")
}

/// The number of claims by verdict, in the order of the filters.
fn counts(counts: &Counts) -> Value {
    counts.named().map(|(words, count)| context! { class => words.replace(' ', "-"), words, count }).collect()
}

fn study(answer: &Answer) -> Value {
    let comparison = answer.comparison();
    context! {
        id => answer.folder.study,
        title => &comparison.title,
        author => &answer.study.source.author,
        year => comparison.year,
        counts => counts(&Counts::of(answer)),
        count => plural(comparison.claims.len(), "claim"),
        reports => answer.folder.scenarios.iter().map(|(name, _)| report(answer, name)).collect::<Vec<_>>(),
        claims => comparison.claims.iter().map(|of| claim(answer, of)).collect::<Vec<_>>(),
    }
}

/// A scenario, with the reason where it was not run, and whether its report is there to link to.
fn report(answer: &Answer, name: &str) -> Value {
    let reason = answer.not_run.iter().find(|(other, _)| *other == name).map(|(_, reason)| reason);
    context! { name, reason, has_report => answer.reported.contains(&name) }
}

fn claim(answer: &Answer, claim: &ClaimOutcome) -> Value {
    let class = if claim.is_not_run() { "not-run".to_owned() } else { spelling(&claim.verdict) };
    context! {
        id => &claim.id,
        text => &claim.text,
        class,
        verdict => verdict(claim),
        own_data => claim.own_data.words(),
        figures => claim.figures(),
        remarks => answer.remarks(claim),
        charts => claim.checks.iter().filter_map(chart).collect::<Vec<_>>(),
        checks => claim.checks.iter().map(check).collect::<Vec<_>>(),
    }
}

fn check(outcome: &CheckOutcome) -> Value {
    let verdict =
        if outcome.reason.starts_with(NOT_RUN) { NOT_RUN.to_owned() } else { words(&outcome.verdict) };
    context! { words => outcome.check.words(), verdict, is_ours => outcome.is_ours }
}

/// Published and measured on one axis, as shares of its width in percent. Ratios are on a logarithmic axis.
fn chart(outcome: &CheckOutcome) -> Option<Value> {
    let measured = outcome.measured?;
    let interval = measured.interval?;
    let (published, is_ratio) = match &outcome.check.form {
        Form::Ratio(ratio) => {
            let low = if ratio.relation == Relation::About && outcome.check.ground.holds == Some(true) {
                ratio.ratio
            } else {
                ratio.stated
            };
            ([low, ratio.stated_max.unwrap_or(low)], true)
        }
        Form::Difference { stated, .. } | Form::Threshold { stated, .. } => ([*stated; 2], false),
        _ => return None,
    };
    let zero = if is_ratio { 1.0 } else { 0.0 };
    let values = [published[0], published[1], interval.low, interval.high, measured.value, zero];
    if is_ratio && values.iter().any(|value| *value <= 0.0) {
        return None;
    }
    let place = |value: f64| if is_ratio { value.ln() } else { value };
    let (low, high) = values.into_iter().map(place).minmax().into_option()?;
    let width = if high > low { high - low } else { 1.0 };
    // A margin, so that nothing lies on the edge.
    let percent = |value: f64| 4.0 + 92.0 * (place(value) - low) / width;
    Some(context! {
        zero => percent(zero),
        published => percent(published[0]),
        published_width => percent(published[1]) - percent(published[0]),
        low => percent(interval.low),
        width => percent(interval.high) - percent(interval.low),
        value => percent(measured.value),
        words => format!("published {}, measured {} ({interval})", published.iter().dedup().map(|value| number(*value)).join(" to "), number(measured.value)),
    })
}
