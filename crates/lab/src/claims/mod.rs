//! Published studies of databases on storage: their figures as tables, their claims as checks, and which of
//! the claims a run confirms ([`verdict`] has the rule).
//!
//! These are figures of whole systems. Raw figures of devices are in [`crate::published`].

use std::sync::LazyLock;

use spindle_base::{Mistake, near};

mod check;
mod estimate;
mod layout;
mod own_data;
mod reproduction;
mod rows;
mod study;
mod tag;
mod target;
mod verdict;
mod words;

pub use check::{Bound, Check, Direction, Form, Ground, Rank, Ratio, Relation};
pub use estimate::{Estimate, Figure};
pub use layout::{ComparisonFormat, Format};
pub use own_data::{OwnData, Support, support};
pub use reproduction::{Comparison, Comparisons, RowOfRun, compare, compare_study};
pub use rows::{Lookup, Place};
pub use study::{
    Because, Better, Cause, Claim, ClaimKind, Column, Erratum, Finding, Folder, FoundCells, FoundFigure,
    Missing, Origin, Row, Setup, Severity, Source, Study, Table, Untestable, folder, folders,
};
pub use tag::{check_cells, check_row};
pub use verdict::{CheckOutcome, ClaimOutcome, FurtherTrials, Verdict, outcome, outcomes};

/// The studies in the binary, by name: every file in `published/studies/`, collected by `build.rs`.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/studies.rs"));

static STUDIES: LazyLock<Vec<Study>> = LazyLock::new(|| {
    let parse = |(name, text): &(&str, &str)| Study::parse(text).map_err(|mistake| mistake.in_file(name));
    FILES.iter().map(|file| parse(file).unwrap_or_else(|error| panic!("{error}"))).collect()
});

/// In alphabetical order.
pub fn studies() -> &'static [Study] {
    &STUDIES
}

/// What a user names: a study, or one of its claims.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    pub study: &'a Study,
    pub claim: Option<&'a Claim>,
}

/// The study with that name, or the study that has a claim with that name.
///
/// # Errors
/// There is none: a sentence with the nearest name.
pub fn find(name: &str) -> Result<Named<'static>, Mistake> {
    let of_claim = |study: &'static Study| {
        let claim = study.claims.iter().find(|claim| claim.id.eq_ignore_ascii_case(name))?;
        Some(Named { study, claim: Some(claim) })
    };
    let of_study = studies().iter().find(|study| study.slug() == name);
    let named = of_study.map(|study| Named { study, claim: None });
    named.or_else(|| studies().iter().find_map(of_claim)).ok_or_else(|| {
        let slugs = studies().iter().map(|study| (study.slug(), study.source.title.as_str()));
        let claims = studies().iter().flat_map(|study| &study.claims).map(|claim| (claim.id.as_str(), ""));
        let hint = match near::did_you_mean_one_of(name, slugs.chain(claims)) {
            meant if meant.is_empty() => "; `spindle published list` has the studies".to_owned(),
            meant => meant,
        };
        Mistake::new(format!("there is no published study or claim `{name}`{hint}"))
    })
}

#[cfg(test)]
mod tests;
