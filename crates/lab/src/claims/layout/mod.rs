//! A comparison with published claims as text, and as a page in Markdown or HTML.

mod page;

use std::fmt::Write as _;

use itertools::Itertools as _;
use spindle_base::text::plural;

use super::reproduction::{Comparison, Comparisons, NO_RUN};
use super::verdict::{CheckOutcome, ClaimOutcome, Verdict};
use crate::record::words;
use crate::report::format::number;
use crate::report::{escaped, wrapped};

/// How an answer is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// Lines for a terminal.
    #[default]
    Text,
    /// A page for a document.
    Md,
    /// Everything, as data.
    Json,
}

/// How a comparison is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ComparisonFormat {
    /// Lines for a terminal.
    #[default]
    Text,
    /// A page for a document.
    Md,
    /// A page for a browser, as the report is.
    Html,
    /// Everything, as data.
    Json,
}

impl Comparisons {
    /// # Errors
    /// The template does not fit the data, which is a bug.
    pub fn lay_out(&self, format: ComparisonFormat) -> anyhow::Result<String> {
        Ok(match format {
            ComparisonFormat::Text => self.text(),
            ComparisonFormat::Md => self.markdown(),
            ComparisonFormat::Html => page::page(self)?,
            ComparisonFormat::Json => spindle_base::text::json(self)? + "\n",
        })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for comparison in &self.studies {
            let _ = writeln!(text, "{}", wrapped(&comparison.head(), "  "));
            for claim in comparison.tested() {
                let _ = writeln!(text, "{}", wrapped(&sentence(claim), "  "));
            }
            if let Some(others) = comparison.others() {
                let _ = writeln!(text, "{}", wrapped(&others, "  "));
            }
        }
        for note in &self.notes {
            let _ = writeln!(text, "{}", wrapped(&format!("note: {note}"), "  "));
        }
        text
    }

    fn markdown(&self) -> String {
        let mut page = String::new();
        for comparison in &self.studies {
            let _ = writeln!(page, "## {}\n", escaped(&comparison.head()));
            page += "| claim | text | verdict | tested | own data | figures |\n|---|---|---|---|---|---|\n";
            for claim in &comparison.claims {
                let fields = [
                    claim.id.clone(),
                    escaped(&claim.text),
                    words(&claim.verdict),
                    format!("{} of {}", claim.tested, claim.checks.len()),
                    claim.own_data.words().to_owned(),
                    escaped(&details(claim)),
                ];
                let _ = writeln!(page, "| {} |", fields.join(" | "));
            }
            page.push('\n');
        }
        self.notes.iter().for_each(|note| page += &format!("* {}\n", escaped(note)));
        page
    }
}

impl Comparison {
    /// The study, and the number of claims of each verdict.
    fn head(&self) -> String {
        format!("{} ({}): {}", self.study, self.year, self.counts())
    }

    fn counts(&self) -> String {
        let counts = self.claims.iter().counts_by(|claim| claim.verdict);
        let order = [
            Verdict::Confirmed,
            Verdict::DirectionOnly,
            Verdict::Contradicted,
            Verdict::NotDecided,
            Verdict::NotTestable,
        ];
        let count =
            |verdict: Verdict| counts.get(&verdict).map(|count| format!("{count} {}", words(&verdict)));
        let counts = order.into_iter().filter_map(count).join(", ");
        format!("{}: {counts}", plural(self.claims.len(), "claim"))
    }

    fn tested(&self) -> impl Iterator<Item = &ClaimOutcome> {
        self.claims.iter().filter(|claim| claim.verdict != Verdict::NotTestable)
    }

    /// The claims without a verdict, by the reason.
    fn others(&self) -> Option<String> {
        let others = self.claims.iter().filter(|claim| claim.verdict == Verdict::NotTestable);
        let by_reason = others.map(|claim| (why_not(claim), claim.id.as_str())).into_group_map();
        let line = |(reason, ids): (&String, &Vec<&str>)| {
            format!("{}: {}", reason.trim_end_matches('.'), ids.join(", "))
        };
        let lines = by_reason.iter().sorted_by_key(|(_, ids)| ids[0]).map(line).join("; ");
        (!lines.is_empty()).then(|| format!("not testable: {lines}"))
    }
}

impl ClaimOutcome {
    /// Published and measured figures of the tested checks, or the reason why there are none.
    pub fn figures(&self) -> String {
        details(self)
    }
}

/// Why no check of a claim has a verdict, in the words for many claims.
fn why_not(claim: &ClaimOutcome) -> String {
    if let Some(untestable) = &claim.untestable {
        return untestable.reason.clone();
    }
    match claim.checks.as_slice() {
        [] => "a rule without a figure".to_owned(),
        [first, ..] if first.reason.starts_with(NO_RUN) => format!("{NO_RUN} the rows"),
        [first, ..] => first.reason.clone(),
    }
}

fn sentence(claim: &ClaimOutcome) -> String {
    let mut head = format!("{} {}", claim.id, words(&claim.verdict));
    if claim.tested < claim.checks.len() {
        head += &format!(" ({} of {} checks)", claim.tested, claim.checks.len());
    }
    let details = details(claim);
    let details = if details.is_empty() { details } else { format!(" [{details}]") };
    format!("{head}, own data {}: {}{details}", claim.own_data.words(), claim.text)
}

/// The figures of the tested checks, or the reason why there are none.
fn details(claim: &ClaimOutcome) -> String {
    let tested = claim.checks.iter().filter(|check| check.verdict != Verdict::NotTestable);
    let details = tested.map(|check| detail(check, claim.checks.len() > 1)).filter(|words| !words.is_empty());
    let open = claim.checks.iter().find(|check| check.is_without_a_run()).map(|check| check.reason.clone());
    if claim.tested == 0 { why_not(claim) } else { details.chain(open).unique().join("; ") }
}

/// `ratio 4.6 (4.2 to 5.0) against 4.49`.
fn detail(outcome: &CheckOutcome, is_one_of_many: bool) -> String {
    let verdict = if is_one_of_many { format!("{}, ", words(&outcome.verdict)) } else { String::new() };
    let claimed = outcome.check.claimed().unwrap_or_default();
    let Some(measured) = outcome.measured else {
        return if outcome.reason.is_empty() {
            String::new()
        } else {
            format!("{verdict}{}", outcome.reason)
        };
    };
    let range = measured.interval.map_or_else(|| outcome.reason.clone(), |range| range.to_string());
    let of_rows = match (outcome.verdict_of_rows, outcome.own_data.and_then(|own| own.quantity)) {
        (Some(verdict), Some(quantity)) => {
            format!(", {} by the study's rows, {}", words(&verdict), number(quantity))
        }
        _ => String::new(),
    };
    format!("{verdict}{} ({range}) against {claimed}{of_rows}", number(measured.value))
}
