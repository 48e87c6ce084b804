//! The figures in what was found about a claim, from the records of the study's own scenarios.

use std::collections::BTreeMap;

use itertools::{Itertools as _, MinMaxResult};
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use spindle_base::text::thousands;
use spindle_stats::{Sample, mean};

use super::BLOCKS_OF_A_RUN;
use super::trial_figure::{self, Quantity};
use crate::claims::estimate::Figure;
use crate::claims::study::{Finding, FoundCells, FoundFigure};
use crate::record::Cell;
use crate::report::Records;
use crate::report::format::number;

/// Stands for a figure that the runs lack.
const MISSING: &str = "[not measured]";

/// The text with its figures.
pub(super) fn told(finding: &Finding, runs: &[(String, Records)]) -> String {
    let word = |figure: &FoundFigure| {
        words(values(figure, runs), if figure.over.is_some() { number } else { short })
    };
    let words: BTreeMap<&String, String> =
        finding.figures.iter().map(|(name, figure)| (name, word(figure))).collect();
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.render_str(&finding.text, Serde(words)).expect("a test renders the text of every finding")
}

/// `12,300`, or `0.45 to 0.52` if they differ.
fn words(values: Option<Vec<f64>>, shown: fn(f64) -> String) -> String {
    match values.into_iter().flatten().map(rounded).minmax() {
        MinMaxResult::MinMax(low, high) if low < high => format!("{} to {}", shown(low), shown(high)),
        MinMaxResult::MinMax(value, _) | MinMaxResult::OneElement(value) => shown(value),
        MinMaxResult::NoElements => MISSING.to_owned(),
    }
}

/// A whole number without decimals: four writes, not 4.00.
fn short(value: f64) -> String {
    if value.fract() == 0.0 { thousands(&value.to_string()) } else { number(value) }
}

/// To three significant digits, also of the whole part: a reader compares figures of a finding by eye.
fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().expect("a number reads back")
}

/// `None` if a cell has no trial or no such figure.
fn values(figure: &FoundFigure, runs: &[(String, Records)]) -> Option<Vec<f64>> {
    let quantity = Quantity::of(figure);
    let of = samples(&figure.of, &quantity, runs)?;
    let values = |samples: Vec<Sample>| samples.into_iter().map(|sample| sample.value).collect_vec();
    match &figure.over {
        None if figure.each_trial => Some(of.into_iter().flat_map(values).collect()),
        None => of.into_iter().map(|samples| mean(&values(samples))).collect(),
        Some(over) => {
            let over = samples(over, &quantity, runs)?;
            let ratio = |(of, over)| Some(Figure::Measured(of).over(&Figure::Measured(over))?.value);
            of.into_iter().zip_eq(over).map(ratio).collect()
        }
    }
}

/// The trials of each cell.
fn samples(cells: &FoundCells, quantity: &Quantity, runs: &[(String, Records)]) -> Option<Vec<Vec<Sample>>> {
    let is_it =
        |(_, (_, records)): &(u32, &(String, Records))| records.header.scenario.name == cells.scenario;
    let (index, (_, records)) = (0..).zip(runs).find(is_it)?;
    let cell_of = |name: &String| records.header.cells.iter().find(|cell| cell.name == *name);
    let all = || Some(records.header.cells.iter().collect_vec());
    let named = if cells.cells.is_empty() { all() } else { cells.cells.iter().map(cell_of).collect() };
    let of_run = |sample: Sample| Sample { block: sample.block + index * BLOCKS_OF_A_RUN, ..sample };
    let of_cell =
        |cell: &Cell| Some(trial_figure::of_cell(records, cell, quantity)?.into_iter().map(of_run).collect());
    named?.into_iter().map(of_cell).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::claims::folders;
    use crate::claims::study::Reading;

    #[test]
    fn figures_have_three_digits_and_a_range_where_they_differ() {
        let check = |values: &[f64], expect: &str| assert_eq!(words(Some(values.to_vec()), short), expect);
        check(&[12_345.6], "12,300");
        check(&[0.451_2, 0.522_9, 0.5], "0.451 to 0.523");
        check(&[99.96, 100.04], "100");
        check(&[4.0, 30.2], "4 to 30.2");
        check(&[0.0, 0.0], "0");
        assert_eq!(words(Some(vec![1.0]), number), "1.00");
        assert_eq!(words(None, number), MISSING);
    }

    #[test]
    fn a_text_has_the_figures_of_the_run() {
        let text = include_str!("../../../../../records/quickstart/records.jsonl");
        let runs = [("x".to_owned(), crate::record::input::parse(text, "quickstart").unwrap())];
        let header = &runs[0].1.header;
        let (name, cell) = (&header.scenario.name, &header.cells[0].name);
        let told = |figure: &str| {
            let text = "claims = []\ncause = \"model\"\ntext = \"{{ n }} of them\"\n[figures.n]\n";
            told(&toml::from_str(&format!("{text}{figure}")).unwrap(), &runs)
        };
        let of = format!("{{ scenario = \"{name}\", cells = [\"{cell}\"] }}");
        let alone = told(&format!("of = {of}"));
        assert!(alone.starts_with(|first: char| first.is_ascii_digit()) && !alone.contains("to"), "{alone}");
        assert!(told(&format!("of = {of}\neach_trial = true")).contains(" to "));
        assert!(told(&format!("of = {{ scenario = \"{name}\" }}")).contains(" to "));
        assert_eq!(told(&format!("of = {of}\nover = {of}")), "1.00 of them");
        let missing = "[not measured] of them";
        assert_eq!(told("of = { scenario = \"another\" }"), missing);
        assert_eq!(told(&format!("of = {{ scenario = \"{name}\", cells = [\"another\"] }}")), missing);
        assert_eq!(told(&format!("of = {of}\nfigure = \"another\"")), missing);
    }

    #[test]
    fn every_figure_of_a_finding_is_in_its_text() {
        let environment = Environment::new();
        for finding in folders().iter().flat_map(|folder| &Reading::of(folder.study).findings) {
            let named = environment.template_from_str(&finding.text).unwrap().undeclared_variables(false);
            assert_eq!(
                named,
                finding.figures.keys().cloned().collect::<HashSet<_>>(),
                "{:?}",
                finding.claims
            );
        }
    }
}
