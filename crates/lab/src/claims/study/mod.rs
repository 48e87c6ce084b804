//! A published study as its file has it: bibliography, setups, tables, claims, errata. The files are
//! `published/studies/*.toml`; the head of each describes the schema.

mod folder;
mod reading;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use spindle_base::Mistake;
use spindle_base::explain::read_toml;

use super::check::Check;
use crate::record::{Mark, Selector};
pub use folder::{Folder, folder, folders};
pub(super) use reading::Reading;
pub use reading::{Because, Cause, Finding, FoundCells, FoundFigure, Untestable};

const SCHEMA: &str = "published-figures/1";
/// The column of a row's own figure.
pub(in crate::claims) const VALUE: &str = "value";
/// Keys that any row may have besides its dimensions and columns.
const ROW_KEYS: [&str; 4] = ["approximate", "note", "bound", "unit"];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    schema: String,
    pub source: Source,
    #[serde(default, rename = "setup")]
    pub setups: Vec<Setup>,
    /// Statements that the study ran.
    #[serde(default, rename = "query")]
    pub queries: Vec<toml::Table>,
    #[serde(rename = "table")]
    pub tables: Vec<Table>,
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
    #[serde(default, rename = "erratum")]
    pub errata: Vec<Erratum>,
    #[serde(default)]
    pub missing: Vec<Missing>,
}

/// Bibliographic data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    pub slug: String,
    pub title: String,
    /// A translation of the title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title_en: Option<String>,
    pub author: String,
    pub year: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publisher: Option<String>,
    pub language: String,
    /// What each study alone has.
    #[serde(flatten)]
    pub more: toml::Table,
}

/// Hardware, software, settings and workload of a part of the study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    pub id: String,
    pub location: String,
    /// The setup whose facts hold here too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
    #[serde(flatten)]
    pub facts: toml::Table,
}

/// One metric, by its dimensions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    pub id: String,
    pub name: String,
    pub metric: String,
    pub unit: String,
    pub better: Better,
    pub dimensions: Vec<String>,
    pub setup: String,
    pub location: String,
    pub origin: Origin,
    /// The figures were read off an "about" or an axis.
    #[serde(default)]
    pub approximate: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(default)]
    pub extra_columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// What all rows have in common.
    #[serde(flatten)]
    pub conditions: toml::Table,
}

/// A column besides a row's dimensions and value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    pub key: String,
    pub unit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<String>,
}

/// Dimensions, value and further columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Row(BTreeMap<String, Mark>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    Higher,
    Lower,
    /// A fact that is no score.
    None,
}

/// Where the study has its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    Printed,
    Prose,
    FigureLabel,
    Log,
    Config,
    Spec,
    /// Our own arithmetic.
    Derived,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub id: String,
    pub text: String,
    pub kind: ClaimKind,
    pub location: String,
    /// A rule often has none.
    #[serde(default, rename = "check")]
    pub checks: Vec<Check>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClaimKind {
    Ratio,
    Ordering,
    Rule,
}

/// A mistake or a trap in the source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erratum {
    pub id: String,
    pub severity: Severity,
    pub location: String,
    pub stated: String,
    pub finding: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrected: Option<f64>,
    /// The claims that it concerns.
    #[serde(default)]
    pub claims: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    High,
    Medium,
    Low,
    /// Checked and found right.
    None,
}

/// What the text of the source has lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Missing {
    pub id: String,
    pub what: String,
    pub location: String,
    pub status: String,
    /// What is left of a chart.
    #[serde(flatten)]
    pub remains: toml::Table,
}

impl Study {
    /// # Errors
    /// A sentence with the key that is missing, unknown or of a wrong type.
    pub(in crate::claims) fn parse(text: &str) -> Result<Study, Mistake> {
        let study: Study = read_toml(text)?;
        if study.schema != SCHEMA {
            return Err(Mistake::at("schema", format!("is `{}`, must be `{SCHEMA}`", study.schema)));
        }
        study.tables.iter().try_for_each(Table::check_rows)?;
        Ok(study)
    }

    pub fn slug(&self) -> &str {
        &self.source.slug
    }

    pub fn table(&self, id: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.id == id)
    }

    pub fn checks(&self) -> impl Iterator<Item = (&Claim, &Check)> {
        self.claims.iter().flat_map(|claim| claim.checks.iter().map(move |check| (claim, check)))
    }

    /// The errata that concern a claim.
    pub fn errata_of(&self, claim: &str) -> impl Iterator<Item = &Erratum> {
        self.errata.iter().filter(move |erratum| erratum.claims.iter().any(|id| id == claim))
    }
}

impl Table {
    /// Every row has each dimension and a value, and no key that the table does not declare.
    fn check_rows(&self) -> Result<(), Mistake> {
        let is_declared = |key: &str| {
            key == VALUE
                || self.dimensions.iter().any(|dimension| dimension == key)
                || self.extra_columns.iter().any(|column| column.key == key)
                || ROW_KEYS.contains(&key)
        };
        for (index, row) in self.rows.iter().enumerate() {
            let place = |key: &str| format!("table {}, row {}, {key}", self.id, index + 1);
            let mut needed = self.dimensions.iter().map(String::as_str).chain([VALUE]);
            if let Some(key) = needed.find(|key| !row.0.contains_key(*key)) {
                return Err(Mistake::at(place(key), "is missing"));
            }
            if let Some(key) = row.0.keys().find(|key| !is_declared(key)) {
                return Err(Mistake::at(place(key), "unknown key"));
            }
        }
        Ok(())
    }

    /// The row whose dimensions have exactly these values.
    pub fn row(&self, selector: &Selector) -> Option<&Row> {
        let is_whole = selector.len() == self.dimensions.len();
        let is_it = |row: &&Row| selector.iter().all(|(key, mark)| row.0.get(key) == Some(mark));
        let names_dimensions = selector.keys().all(|key| self.dimensions.contains(key));
        self.rows.iter().find(is_it).filter(|_| is_whole && names_dimensions)
    }
}

impl Row {
    pub fn number(&self, column: &str) -> Option<f64> {
        match self.0.get(column)? {
            Mark::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub fn get(&self, key: &str) -> Option<&Mark> {
        self.0.get(key)
    }
}
