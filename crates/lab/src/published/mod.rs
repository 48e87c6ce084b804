//! Published raw I/O figures beside measured ones: data in `published/raw-*.toml`, compared as ratios.

use std::path::Path;

use itertools::Itertools as _;
use serde::{Deserialize, Serialize};

use crate::bench::{Bench, Place, Question};
use crate::stack::{StackSpec, built_in_stack, known_deviations_of};
pub use figure::{Cache, Figure, Operation, Over, State, Zone, built_in, parse};
use spindle_base::{Mistake, near, parallel};
pub use unit::Unit;

mod ask;
pub mod bench_file;
mod figure;
mod unit;

/// A figure is met when the measured one differs by at most this share of it.
const TOLERANCE: f64 = 0.25;

/// A figure and its measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub figure: Figure,
    /// Measured value, in the figure's unit.
    pub measured: Option<f64>,
    /// Measured value divided by the published one.
    pub ratio: Option<f64>,
    /// Why there is no measurement.
    pub missing: Option<String>,
    /// Reason of a missed figure, from its profile or stack.
    #[serde(default)]
    pub reason: Option<String>,
}

/// The figures to compare with.
#[derive(Debug, Clone, PartialEq)]
pub struct Against {
    figures: Vec<Figure>,
    /// Whether to compare every figure that has a profile, besides those of the target.
    pub all: bool,
}

impl Against {
    /// Finds the figures of `all`, of a profile (its built-in figures), or of a file by its path.
    pub fn find(name: &str) -> Result<Against, Mistake> {
        if name.contains('/') || name.ends_with(".toml") {
            let text = std::fs::read_to_string(Path::new(name))
                .map_err(|error| Mistake::new(format!("--against: {name} cannot be read: {error}")))?;
            let figures =
                parse(name, &text).map_err(|mistake| Mistake::new(format!("--against: {mistake}")))?;
            return Ok(Against { figures, all: false });
        }
        let mut figures = built_in();
        if name == "all" {
            return Ok(Against { figures, all: true });
        }
        let known = figures.iter().map(|figure| figure.profile.clone()).sorted().dedup().collect_vec();
        figures.retain(|figure| figure.profile == name);
        if figures.is_empty() {
            let near = near::did_you_mean_one_of(name, known.iter().map(|known| (known.as_str(), "")));
            let hint =
                if near.is_empty() { format!("; there are figures of {}", known.join(", ")) } else { near };
            return Err(Mistake::new(format!(
                "--against: there are no published figures of `{name}`{hint}; or write `all`, or give the path of a .toml file",
            )));
        }
        Ok(Against { figures, all: false })
    }

    /// The questions of the figures for a bench of `profile`. The raw device represents every file system.
    pub fn questions(&self, profile: &str) -> Vec<Question> {
        let mine = self.figures.iter().filter(|figure| !self.all || figure.profile == profile);
        mine.filter_map(Figure::question).collect()
    }

    /// Compares every figure. In virtual time each figure has its own device, so all of them can be asked.
    pub fn compare_virtual(&self, target: &StackSpec, seed: u64) -> Vec<Comparison> {
        let compare = |figure: &Figure| match self.ask(figure, target, seed) {
            Ok(measured) => compared(figure, Some(measured)),
            Err(missing) => without(figure, missing),
        };
        parallel::map(&self.in_order(&target.head().name), |figure| compare(figure))
    }

    /// Compares with existing rows of a bench. Figures with special conditions stay without a measurement.
    pub fn compare_measured(&self, profile: &str, bench: &Bench) -> Vec<Comparison> {
        let figures =
            self.in_order(profile).into_iter().filter(|figure| !self.all || figure.profile == profile);
        let compare = |figure: &Figure| {
            let Some(question) = figure.question() else {
                let missing = "needs a preconditioned device; use --virtual";
                return without(figure, missing);
            };
            let in_files = Question { place: Place::FileSystem, ..question };
            let row = bench.find(&question).or_else(|| bench.find(&in_files));
            compared(figure, row.and_then(|row| figure.unit.of_row(row)))
        };
        figures.map(compare).collect()
    }

    /// The figures, with those of the target first.
    fn in_order(&self, profile: &str) -> Vec<&Figure> {
        let (mut first, rest): (Vec<&Figure>, Vec<&Figure>) =
            self.figures.iter().partition(|figure| figure.profile == profile);
        first.extend(rest);
        first
    }

    /// Asks the target or, with `all`, the figure's own profile.
    fn ask(&self, figure: &Figure, target: &StackSpec, seed: u64) -> Result<f64, String> {
        if !self.all || figure.profile == target.head().name {
            return ask::ask(figure, target, seed);
        }
        let names = figure.over.iter().filter_map(|over| over.profile.as_ref()).chain([&figure.profile]);
        if names.into_iter().any(|name| built_in_stack(name).is_none()) {
            return Err(NO_PROFILE.to_owned());
        }
        ask::ask(figure, &ask::built_in(&figure.profile)?, seed)
    }
}

const NO_PROFILE: &str = "there is no such profile";

impl Comparison {
    /// Whether the measured figure is near the published one; `None` without a measurement.
    pub fn is_met(&self) -> Option<bool> {
        self.ratio.map(|ratio| (ratio - 1.0).abs() <= TOLERANCE)
    }
}

fn compared(figure: &Figure, measured: Option<f64>) -> Comparison {
    let Some(measured) = measured else { return without(figure, "was not measured") };
    let ratio = Some(measured / figure.figure);
    let mut comparison = Comparison { measured: Some(measured), ratio, missing: None, ..without(figure, "") };
    let is_missed = comparison.is_met() == Some(false);
    comparison.reason = known_deviations_of(&figure.profile)
        .into_iter()
        .find(|deviation| {
            is_missed
                && deviation.operation == figure.operation.name()
                && figure.source.starts_with(&deviation.source)
        })
        .map(|deviation| deviation.reason);
    comparison
}

fn without(figure: &Figure, missing: impl Into<String>) -> Comparison {
    let missing = Some(missing.into());
    Comparison { figure: figure.clone(), measured: None, ratio: None, missing, reason: None }
}

/// One line per figure with or without a measurement, and the counts at the end.
pub fn table(comparisons: &[Comparison]) -> String {
    let (with_profile, waiting): (Vec<&Comparison>, Vec<&Comparison>) =
        comparisons.iter().partition(|comparison| comparison.missing.as_deref() != Some(NO_PROFILE));
    let mut text = format!(
        "\n{:<22} {:<58} {:>11} {:>11} {:<10} {:>6}  {}\n",
        "profile", "published figure", "published", "measured", "", "ratio", "source"
    );
    text.extend(with_profile.iter().map(|comparison| line(comparison)));
    if !waiting.is_empty() {
        let names = waiting.iter().map(|comparison| &comparison.figure.profile).sorted().dedup().join(", ");
        text.push_str(&format!("{} more figures wait for a profile: {names}\n", waiting.len()));
    }
    let unasked = with_profile.iter().filter(|comparison| comparison.ratio.is_none()).count();
    if unasked > 0 {
        text.push_str(&format!("{unasked} figures have no measurement and are not counted\n"));
    }
    let of = |fitted| count(comparisons.iter().filter(|comparison| comparison.figure.fitted == fitted));
    text + &format!(
        "predicted: {}\na parameter of the profile was set from the figure: {}\n{}\n",
        of(false),
        of(true),
        count(comparisons)
    )
}

fn line(comparison: &Comparison) -> String {
    let figure = &comparison.figure;
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let mut text = format!(
        "{:<22} {:<58} {:>11} {:>11} {:<10} {:>6}  {}{}{}\n",
        figure.profile,
        figure.words(),
        short(figure.figure),
        or_dash(comparison.measured.map(short)),
        figure.unit.to_string(),
        or_dash(comparison.ratio.map(|ratio| format!("{ratio:.2}"))),
        figure.source,
        if figure.fitted { " (the profile was set from it)" } else { "" },
        comparison.missing.as_ref().map_or(String::new(), |missing| format!(": {missing}")),
    );
    if comparison.is_met() == Some(false) {
        let reason = comparison.reason.as_deref().unwrap_or("no reason is known");
        text.push_str(&format!("{:<22} missed: {reason}\n", ""));
    }
    text
}

/// `N of M within 25 %`, where M is the number of measured figures.
pub fn count<'a>(comparisons: impl IntoIterator<Item = &'a Comparison>) -> String {
    let outcomes: Vec<bool> = comparisons.into_iter().filter_map(Comparison::is_met).collect();
    let near = outcomes.iter().filter(|&&is_met| is_met).count();
    format!("{near} of {} within {:.0} %", outcomes.len(), TOLERANCE * 100.0)
}

fn short(value: f64) -> String {
    let decimals = if value < 100.0 { 2 } else { 0 };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests;
