//! A comparison as text, and as a table for documents and programs.

use std::fmt::Write as _;

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
        let mut notes: Vec<String> = Vec::new();
        let experiment =
            self.experiment.iter().map(|difference| format!("different experiments: {difference}"));
        let of_runs = self.warnings.iter().chain(&self.differences).cloned();
        for note in of_pairs.chain(experiment).chain(of_runs) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes.into_iter()
    }

    fn markdown(&self) -> String {
        let mut page = "| cell | baseline | metric | ratio | 95 % interval | verdict | trials |\n\
                        |---|---|---|--:|---|---|--:|\n"
            .to_owned();
        for pair in &self.pairs {
            let ratio = pair.ratio.as_ref();
            let row = [
                markdown::escaped(&shown(&pair.candidate)),
                markdown::escaped(&shown(&pair.baseline)),
                pair.metric.as_deref().map_or_else(|| "-".to_owned(), markdown::escaped),
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
            let notes = pair.reason.iter().chain(&pair.notes).cloned().collect::<Vec<_>>().join("; ");
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
    let head = match (shown(&pair.candidate), shown(&pair.baseline)) {
        (candidate, baseline) if candidate == baseline => {
            format!("{candidate} ({}) to {baseline} ({})", pair.candidate.file, pair.baseline.file)
        }
        (candidate, baseline) => format!("{candidate} to {baseline}"),
    };
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

fn shown(name: &Name) -> String {
    name.shown.clone()
}

/// `3 trials each`, `3 and 2 trials`.
fn trials(pair: &Pair) -> String {
    match (pair.candidate.trials, pair.baseline.trials) {
        (candidate, baseline) if candidate == baseline => format!("{} each", plural(candidate, "trial")),
        (candidate, baseline) => format!("{candidate} and {}", plural(baseline, "trial")),
    }
}
