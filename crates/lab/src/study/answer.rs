//! What the records of a repeated study say about its claims, as a page in Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use itertools::Itertools as _;
use spindle_base::Mistake;
use spindle_base::text::{self, plural};

use super::repeat::REFUSED;
use super::summary::Counts;
use super::{directory_of, time_of};
use crate::claims::{
    Because, ClaimOutcome, Comparison, Comparisons, Erratum, Folder, FurtherTrials, Named, Study,
    compare_study, find,
};
use crate::record::records_file::{FILE_NAME, PAGE_NAME};
use crate::record::{PublishedTag, spelling, words};
use crate::report::{self, Records, escaped};

/// The claims of a study, and the scenarios that were not run.
#[derive(Debug)]
pub struct Answer {
    pub folder: &'static Folder,
    pub study: &'static Study,
    comparisons: Comparisons,
    /// Scenarios whose report lies beside their records.
    pub reported: Vec<&'static str>,
    /// Scenarios without records, each with the reason.
    pub not_run: Vec<(&'static str, String)>,
    /// The machine's, by scenario.
    pub processors: BTreeMap<&'static str, String>,
    /// On the clock, for all trials together.
    pub took: Duration,
}

/// Begins the reason of a row whose scenario was not run.
pub(super) const NOT_RUN: &str = "not run here";

impl Answer {
    /// Reads the results of a study from the directory that has those of all studies.
    ///
    /// # Errors
    /// A file is no record, or two cells have the same row.
    pub fn read(folder: &'static Folder, output: &Path) -> Result<Answer, Mistake> {
        let Named { study, .. } = find(folder.study)?;
        let mut runs: Vec<(String, Records)> = Vec::new();
        let (mut reported, mut not_run) = (Vec::new(), Vec::new());
        let mut processors = BTreeMap::new();
        let mut missing_rows: Vec<(PublishedTag, String)> = Vec::new();
        for (name, text) in folder.scenarios {
            let directory = directory_of(output, folder, name);
            if directory.join(FILE_NAME).exists() {
                if directory.join(PAGE_NAME).exists() {
                    reported.push(*name);
                }
                let records = report::read(&directory)?;
                processors.insert(*name, records.header.machine.cpu_model.clone());
                runs.push(((*name).to_owned(), records));
                continue;
            }
            let refused = std::fs::read_to_string(directory.join(REFUSED)).ok();
            let reason = refused.map(|reason| reason.trim().to_owned()).unwrap_or_default();
            let command = || format!("run it with spindle study run {}", folder.study);
            let words = if reason.is_empty() { command() } else { reason };
            missing_rows.extend(tags(text).into_iter().map(|tag| (tag, format!("{NOT_RUN}: {words}"))));
            not_run.push((*name, words));
        }
        let took = runs.iter().map(|(_, records)| time_of(records)).sum();
        let comparisons = compare_study(study, &runs, &missing_rows)?;
        Ok(Answer { folder, study, comparisons, reported, not_run, processors, took })
    }

    pub fn comparison(&self) -> &Comparison {
        &self.comparisons.studies[0]
    }

    pub fn claims(&self) -> &[ClaimOutcome] {
        &self.comparison().claims
    }

    /// The page `claims.md`.
    pub fn markdown(&self) -> String {
        let source = &self.study.source;
        let mut page = format!("# {} ({})\n\n", escaped(&self.comparison().title), source.year);
        let _ = writeln!(
            page,
            "{}. The trials took {}. [study.md](study.md) says what was asked, what was scaled and what differs. \
             `spindle study report {}` prints this page from the records beside it.\n",
            Counts::of(self).words(),
            text::duration(self.took),
            self.folder.study
        );
        for (name, reason) in &self.not_run {
            let _ = writeln!(page, "* `{name}`: {NOT_RUN}: {}", escaped(reason));
        }
        if !self.not_run.is_empty() {
            page.push('\n');
        }
        page += "| claim | what the study says | verdict | published and measured | own data | remarks |\n|---|---|---|---|---|---|\n";
        for claim in self.claims() {
            let fields = [
                claim.id.clone(),
                escaped(&claim.text),
                verdict(claim),
                escaped(&claim.figures()),
                claim.own_data.words().to_owned(),
                escaped(&self.remarks(claim)),
            ];
            let _ = writeln!(page, "| {} |", fields.join(" | "));
        }
        page
    }

    /// What would decide a claim that is not decided.
    fn to_decide(claim: &ClaimOutcome) -> Option<String> {
        let further = &claim.further_trials;
        let most = further.iter().map(|further| further.trials).max()?;
        let time = text::duration(FurtherTrials::time(further));
        Some(format!(
            "{time} of further trials, at most {most} of a cell, would decide it, if figures and their spread stay."
        ))
    }

    /// Stand-ins, the cells that the cores limit or whose writes were put off, the errata of the source, and what was found about a claim that
    /// comes out otherwise.
    pub fn remarks(&self, claim: &ClaimOutcome) -> String {
        let stand_ins = claim.stand_ins.iter().map(|words| format!("{words}."));
        let words = |cells: &[String]| match cells {
            [] => None,
            few @ ([_] | [_, _]) => Some(few.join(" and ")),
            many => Some(format!("{} of its cells", many.len())),
        };
        let limited = words(&claim.limited_by_cores)
            .map(|cells| format!("The cores limit {cells}: another machine gives other figures."));
        let put_off = words(&claim.put_off_writes).map(|cells| {
            format!("Many writes of the windows of {cells} were put off: over a longer time the figures may be lower.")
        });
        let ours = claim.checks.iter().any(|check| check.is_ours);
        let ours = ours.then(|| "The check is Spindle's reading of the words.".to_owned());
        let finding = claim.finding.iter().map(|finding| {
            format!("Found ({}): {}", spelling(&finding.cause), finding.text.split_whitespace().join(" "))
        });
        let erratum = |erratum: &Erratum| format!("Erratum {}: {}", erratum.id, erratum.finding);
        let errata = self.study.errata_of(&claim.id).map(erratum);
        let to_decide = Answer::to_decide(claim);
        stand_ins
            .chain(limited)
            .chain(put_off)
            .chain(ours)
            .chain(to_decide)
            .chain(finding)
            .chain(errata)
            .join(" ")
    }
}

impl ClaimOutcome {
    /// Nothing but a scenario that was not run keeps it from a verdict.
    pub fn is_not_run(&self) -> bool {
        self.tested == 0 && self.checks.iter().any(|check| check.reason.starts_with(NOT_RUN))
    }

    /// Further work on Spindle would make it testable.
    pub fn is_not_built(&self) -> bool {
        self.untestable.as_ref().is_some_and(|untestable| untestable.because == Because::NotBuilt)
    }
}

/// The verdict of a claim in words, with the number of checks that were tested where it is not all.
pub(super) fn verdict(claim: &ClaimOutcome) -> String {
    if claim.is_not_run() {
        return NOT_RUN.to_owned();
    }
    let is_partly = claim.tested > 0 && claim.tested < claim.checks.len();
    let partly = if is_partly {
        format!(" ({} of {})", claim.tested, plural(claim.checks.len(), "check"))
    } else {
        String::new()
    };
    format!("{}{partly}", words(&claim.verdict))
}

/// The rows that the cells of a scenario repeat, also where the scenario cannot be run.
pub(super) fn tags(text: &str) -> Vec<PublishedTag> {
    let table = text.parse::<toml::Table>().unwrap_or_default();
    let tags = table.get("published").cloned().map(toml::Value::try_into::<Vec<PublishedTag>>);
    tags.and_then(Result::ok).unwrap_or_default()
}
