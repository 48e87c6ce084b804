//! A comparison as text, and as a table for documents and programs.

use std::fmt::Write as _;

use itertools::Itertools as _;

use super::super::{comma, markdown};
use super::{Comparisons, Name, Pair};
use crate::report::format::{number, optional};
use crate::report::verdict::{Bound, Verdict};
use crate::report::{Ratio, wrapped};
use spindle_base::text::plural;

/// How a comparison is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// One sentence per pair.
    Text,
    /// A table for a document.
    Md,
    /// One row per pair, with all numbers.
    Csv,
    /// Everything, as data.
    Json,
}

impl Comparisons {
    /// # Errors
    /// None is known; the writers of CSV and JSON may fail in principle.
    pub fn lay_out(&self, format: Format) -> anyhow::Result<String> {
        Ok(match format {
            Format::Text => self.text(),
            Format::Md => self.markdown(),
            Format::Csv => self.csv()?,
            Format::Json => spindle_base::text::json(self)? + "\n",
        })
    }

    /// One sentence per pair.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |words: &str| {
            let _ = writeln!(text, "{}", wrapped(words, "  "));
        };
        for pair in &self.pairs {
            line(&sentence(pair));
        }
        self.notes().for_each(|note| line(&format!("note: {note}")));
        text
    }

    /// Reservations about the pairs, and differences between the runs; each once.
    fn notes(&self) -> impl Iterator<Item = String> {
        let of_pairs = self.pairs.iter().flat_map(|pair| &pair.notes).cloned();
        let of_runs = self.warnings.iter().chain(&self.differences).cloned();
        of_pairs.chain(self.experiments()).chain(of_runs).unique()
    }

    fn experiments(&self) -> impl Iterator<Item = String> {
        self.experiment.iter().map(|difference| format!("different experiments: {difference}"))
    }

    /// The notes that concern one pair.
    fn notes_of(&self, pair: &Pair) -> Vec<String> {
        let of_pair = pair.notes.iter().cloned();
        let warned = [&pair.baseline, &pair.candidate].into_iter().filter_map(Name::warned);
        let of_runs = self.differences.iter().cloned();
        of_pair.chain(self.experiments()).chain(warned).chain(of_runs).unique().collect()
    }

    fn markdown(&self) -> String {
        let mut page =
            "| cell | baseline | metric | cell's mean | baseline's mean | ratio | 95 % interval | verdict | reason | trials |\n\
             |---|---|---|--:|--:|--:|---|---|---|--:|\n"
                .to_owned();
        for pair in &self.pairs {
            let ratio = pair.ratio.as_ref();
            let [candidate, baseline] = shown(pair);
            let row = [
                markdown::escaped(&candidate),
                markdown::escaped(&baseline),
                pair.metric.as_deref().map_or_else(|| "-".to_owned(), markdown::escaped),
                optional(pair.candidate.mean),
                optional(pair.baseline.mean),
                ratio.map_or_else(|| "-".to_owned(), |ratio| bounded(pair, ratio)),
                ratio
                    .and_then(|ratio| ratio.interval)
                    .map_or_else(|| "-".to_owned(), |range| range.to_string()),
                pair.verdict.words(),
                markdown::escaped(&pair.verdict.reason),
                match (pair.candidate.trials, pair.baseline.trials) {
                    (candidate, baseline) if candidate == baseline => candidate.to_string(),
                    (candidate, baseline) => format!("{candidate}, {baseline}"),
                },
            ];
            let _ = writeln!(page, "| {} |", row.join(" | "));
        }
        let notes: Vec<String> =
            self.notes().map(|note| format!("* {}\n", markdown::escaped(&note))).collect();
        if !notes.is_empty() {
            page += &format!("\n{}", notes.concat());
        }
        page
    }

    fn csv(&self) -> anyhow::Result<String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record([
            "baseline_file",
            "baseline",
            "baseline_label",
            "baseline_trials",
            "baseline_mean",
            "candidate_file",
            "candidate",
            "candidate_label",
            "candidate_trials",
            "candidate_mean",
            "metric",
            "ratio",
            "interval_low",
            "interval_high",
            "confidence",
            "verdict",
            "reason",
            "bound",
            "within",
            "more_trials",
            "method",
            "notes",
        ])?;
        for pair in &self.pairs {
            let ratio = pair.ratio.as_ref();
            let interval = ratio.and_then(|ratio| ratio.interval);
            let value = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
            let Verdict { word, reason, bound, within, more_trials, .. } = &pair.verdict;
            let notes = self.notes_of(pair).join("; ");
            let of_pair = [
                pair.metric.clone().unwrap_or_default(),
                value(ratio.map(|ratio| ratio.ratio)),
                value(interval.map(|interval| interval.low)),
                value(interval.map(|interval| interval.high)),
                value(interval.map(|_| spindle_stats::CONFIDENCE)),
                word.name().to_owned(),
                reason.clone(),
                bound.map(Bound::words).unwrap_or_default().to_owned(),
                within.to_string(),
                more_trials.map(|more| more.to_string()).unwrap_or_default(),
                ratio.map(|ratio| ratio.method.clone()).unwrap_or_default(),
                notes,
            ];
            let of_cells = [&pair.baseline, &pair.candidate].into_iter().flat_map(|name| {
                let numbers = [name.trials.to_string(), value(name.mean)];
                [name.file.clone(), name.cell.clone(), name.label.clone()].into_iter().chain(numbers)
            });
            writer.write_record(of_cells.chain(of_pair).map(|field| comma::safe(&field)))?;
        }
        Ok(String::from_utf8(writer.into_inner()?)?)
    }
}

fn sentence(pair: &Pair) -> String {
    let head = shown(pair).join(" to ");
    let (verdict, reason) = (pair.verdict.words(), &pair.verdict.reason);
    let Some(ratio) = &pair.ratio else {
        return format!("{head}: {verdict}: {reason}");
    };
    let means = [&pair.candidate, &pair.baseline].map(|name| optional(name.mean)).join(" to ");
    let (metric, trials) = (pair.metric.as_deref().unwrap_or_default(), trials(pair));
    let ratio_words = ratio.bounded(pair.verdict.bound);
    format!("{head}: {verdict}, ratio {ratio_words}: {reason}; {means} {metric}, {trials}, {}", ratio.method)
}

/// The ratio without its interval: `at least 9.81`.
fn bounded(pair: &Pair, ratio: &Ratio) -> String {
    let bound = pair.verdict.bound.map_or_else(String::new, |bound| format!("{} ", bound.words()));
    format!("{bound}{}", number(ratio.ratio))
}

/// Candidate and baseline, with their files where the names are equal.
fn shown(pair: &Pair) -> [String; 2] {
    let names = [&pair.candidate, &pair.baseline];
    let is_equal = pair.candidate.shown == pair.baseline.shown;
    names.map(|name| if is_equal { format!("{} ({})", name.shown, name.file) } else { name.shown.clone() })
}

/// `3 trials each`, `3 and 2 trials`.
fn trials(pair: &Pair) -> String {
    match (pair.candidate.trials, pair.baseline.trials) {
        (candidate, baseline) if candidate == baseline => format!("{} each", plural(candidate, "trial")),
        (candidate, baseline) => format!("{candidate} and {}", plural(baseline, "trial")),
    }
}
