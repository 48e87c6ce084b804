//! How Spindle reads a study: checks of its own for rules that the study gives in words, why a claim cannot be
//! tested, and what was found about claims that a reproduction contradicts. The files are
//! `studies/ID/claims.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use spindle_base::Mistake;
use spindle_base::explain::read_toml;

use super::folder::{Folder, folders};
use crate::claims::check::Check;
use crate::record::{FigureName, Per};
use crate::report::EventSide;

static READINGS: LazyLock<Vec<(&str, Reading)>> = LazyLock::new(|| {
    let parse = |folder: &Folder| {
        let reading = Reading::parse(folder.claims).map_err(|mistake| mistake.in_file(folder.study));
        (folder.study, reading.unwrap_or_else(|error| panic!("{error}")))
    };
    folders().iter().map(parse).collect()
});

/// Of one study.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::claims) struct Reading {
    #[serde(default, rename = "check")]
    pub(in crate::claims) checks: Vec<OwnCheck>,
    #[serde(default)]
    pub(in crate::claims) untestable: Vec<Untestable>,
    #[serde(default, rename = "finding")]
    pub(in crate::claims) findings: Vec<Finding>,
}

/// A check that states a rule of the study in figures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "toml::Table")]
pub(in crate::claims) struct OwnCheck {
    pub claim: String,
    pub check: Check,
}

/// Claims that no run can test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Untestable {
    pub claims: Vec<String>,
    pub because: Because,
    /// One sentence.
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Because {
    /// Advice, a definition, a price, a fact about hardware: no measurement of a database is for or against it.
    NoMeasurement,
    /// About a product that cannot be had.
    NotToBeHad,
    /// Further work on Spindle would make it testable.
    NotBuilt,
}

/// Why a reproduction comes out otherwise than the study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    pub claims: Vec<String>,
    pub cause: Cause,
    /// `{{ NAME }}` stands for a figure.
    pub text: String,
    #[serde(default, skip_serializing)]
    pub figures: BTreeMap<String, FoundFigure>,
}

/// A figure of the study's own runs: the mean of a cell's trials; of several cells, the lowest and the highest
/// mean.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundFigure {
    pub of: FoundCells,
    /// As many cells, one for each of `of`: the figure is their ratio.
    pub over: Option<FoundCells>,
    /// The lowest and the highest trial, not cell. A ratio has no trials of its own.
    #[serde(default)]
    pub each_trial: bool,
    #[serde(default)]
    pub figure: FigureName,
    pub part: Option<String>,
    pub transaction: Option<String>,
    pub per: Option<Per>,
    pub divide_by: Option<f64>,
    /// Of a series, the seconds on this side of the window's first event.
    pub event: Option<EventSide>,
}

/// Cells of a scenario of the study, by their names; without any, all.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundCells {
    pub scenario: String,
    #[serde(default)]
    pub cells: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    Model,
    Workload,
    Scaling,
    Study,
}

impl TryFrom<toml::Table> for OwnCheck {
    type Error = toml::de::Error;

    fn try_from(mut table: toml::Table) -> Result<OwnCheck, Self::Error> {
        let missing = || serde::de::Error::missing_field("claim");
        let claim = table.remove("claim").ok_or_else(missing)?.try_into()?;
        Ok(OwnCheck { claim, check: table.try_into()? })
    }
}

impl Reading {
    fn parse(text: &str) -> Result<Reading, Mistake> {
        read_toml(text)
    }

    /// Without a file, nothing.
    pub(in crate::claims) fn of(study: &str) -> &'static Reading {
        static NOTHING: Reading =
            Reading { checks: Vec::new(), untestable: Vec::new(), findings: Vec::new() };
        READINGS.iter().find(|(name, _)| *name == study).map_or(&NOTHING, |(_, reading)| reading)
    }

    pub(in crate::claims) fn checks_of(&self, claim: &str) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |own| own.claim == claim).map(|own| &own.check)
    }

    pub(in crate::claims) fn untestable(&self, claim: &str) -> Option<&Untestable> {
        self.untestable.iter().find(|untestable| untestable.claims.iter().any(|id| id == claim))
    }

    pub(in crate::claims) fn finding(&self, claim: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.claims.iter().any(|id| id == claim))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::studies;

    #[test]
    fn every_reading_is_of_claims_that_there_are() {
        for (name, reading) in READINGS.iter() {
            let study =
                studies().iter().find(|study| study.slug() == *name).unwrap_or_else(|| panic!("{name}"));
            let claims = reading.checks.iter().map(|own| &own.claim);
            let claims = claims.chain(reading.untestable.iter().flat_map(|of| &of.claims));
            let mut claims = claims.chain(reading.findings.iter().flat_map(|of| &of.claims));
            let is_unknown = |id: &&String| !study.claims.iter().any(|claim| claim.id == **id);
            assert_eq!(claims.find(is_unknown), None, "{name}");
        }
    }

    #[test]
    fn a_claim_has_a_check_or_a_reason_why_it_has_none() {
        for study in studies() {
            let reading = Reading::of(study.slug());
            for claim in &study.claims {
                let has_check = !claim.checks.is_empty() || reading.checks_of(&claim.id).next().is_some();
                assert!(has_check || reading.untestable(&claim.id).is_some(), "{}", claim.id);
            }
        }
    }
}
