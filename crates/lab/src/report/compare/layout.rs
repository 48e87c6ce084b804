//! A comparison as text, and as a table for documents and programs.

use std::fmt::Write as _;

use itertools::Itertools as _;

use super::super::{comma, markdown};
use super::{Comparisons, Name, Pair};
use crate::report::format::optional;
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

    /// The notes that concern one pair, with the reason if it has no ratio.
    fn notes_of(&self, pair: &Pair) -> Vec<String> {
        let of_pair = pair.reason.iter().chain(&pair.notes).cloned();
        let warned = [&pair.baseline, &pair.candidate].into_iter().filter_map(Name::warned);
        let of_runs = self.differences.iter().cloned();
        of_pair.chain(self.experiments()).chain(warned).chain(of_runs).unique().collect()
    }

    fn markdown(&self) -> String {
        let mut page =
            "| cell | baseline | metric | cell's mean | baseline's mean | ratio | 95 % interval | verdict | trials |\n\
             |---|---|---|--:|--:|--:|---|---|--:|\n"
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
                optional(ratio.map(|ratio| ratio.ratio)),
                ratio
                    .and_then(|ratio| ratio.interval)
                    .map_or_else(|| "-".to_owned(), |range| range.to_string()),
                ratio.map_or_else(
                    || markdown::escaped(&format!("not compared: {}", reason(pair))),
                    |ratio| ratio.verdict.clone(),
                ),
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
            "method",
            "notes",
        ])?;
        for pair in &self.pairs {
            let ratio = pair.ratio.as_ref();
            let interval = ratio.and_then(|ratio| ratio.interval);
            let value = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
            let words = |pick: fn(&Ratio) -> &String| ratio.map(|ratio| pick(ratio).clone());
            let notes = self.notes_of(pair).join("; ");
            let of_pair = [
                pair.metric.clone().unwrap_or_default(),
                value(ratio.map(|ratio| ratio.ratio)),
                value(interval.map(|interval| interval.low)),
                value(interval.map(|interval| interval.high)),
                value(interval.map(|_| spindle_stats::CONFIDENCE)),
                words(|ratio| &ratio.verdict).unwrap_or_else(|| "not compared".to_owned()),
                words(|ratio| &ratio.method).unwrap_or_default(),
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
    let Some(ratio) = &pair.ratio else {
        return format!("{head}: not compared, {}", reason(pair));
    };
    let means = [&pair.candidate, &pair.baseline].map(|name| optional(name.mean)).join(" to ");
    let (metric, trials) = (pair.metric.as_deref().unwrap_or_default(), trials(pair));
    format!("{head}: ratio {}, {}; {means} {metric}, {trials}, {}", ratio.text(), ratio.verdict, ratio.method)
}

fn reason(pair: &Pair) -> &str {
    pair.reason.as_deref().unwrap_or("no reason known")
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
