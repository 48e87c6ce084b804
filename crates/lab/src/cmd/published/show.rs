//! A study, or one of its claims.

use std::fmt::Write as _;

use serde::Serialize;
use spindle_base::text::{self, plural};

use crate::claims::{Claim, Erratum, Format, Named, OwnData, Source, Study, Support, support};
use crate::report::{escaped, wrapped};

/// The answer as data.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    source: &'a Source,
    claims: Vec<ShownClaim<'a>>,
    errata: Vec<&'a Erratum>,
}

#[derive(Debug, Serialize)]
struct ShownClaim<'a> {
    #[serde(flatten)]
    claim: &'a Claim,
    own_data: OwnData,
    /// In the order of the checks.
    support: Vec<Option<Support>>,
}

pub(super) fn page(named: Named, format: Format) -> anyhow::Result<String> {
    let shown = Shown::new(named);
    Ok(match format {
        Format::Json => text::json(&shown)? + "\n",
        Format::Text => shown.lines(),
        Format::Md => shown.markdown(),
    })
}

impl<'a> Shown<'a> {
    fn new(named: Named<'a>) -> Shown<'a> {
        let Named { study, claim } = named;
        let claims: Vec<&Claim> = claim.map_or_else(|| study.claims.iter().collect(), |claim| vec![claim]);
        let errata = match claim {
            Some(claim) => study.errata_of(&claim.id).collect(),
            None => study.errata.iter().collect(),
        };
        let claims = claims.into_iter().map(|claim| ShownClaim::new(study, claim)).collect();
        Shown { source: &study.source, claims, errata }
    }

    fn head(&self) -> String {
        let Source { slug, title, title_en, author, year, .. } = self.source;
        let translation = title_en.as_ref().map_or(String::new(), |title| format!(" ({title})"));
        format!("{slug}: {title}{translation}; {author}, {year}")
    }

    fn lines(&self) -> String {
        let mut page = format!("{}\n", wrapped(&self.head(), "  "));
        for shown in &self.claims {
            let _ = writeln!(page, "\n{}", wrapped(&shown.head(), "  "));
            for check in shown.checks() {
                let _ = writeln!(page, "  {}", wrapped(&check, "    "));
            }
        }
        if !self.errata.is_empty() {
            let _ = writeln!(page, "\n{}", plural_errata(self.errata.len()));
        }
        for erratum in &self.errata {
            let _ = writeln!(page, "{}", wrapped(&words(erratum), "  "));
        }
        page
    }

    fn markdown(&self) -> String {
        let mut page = format!("# {}\n", escaped(&self.head()));
        for shown in &self.claims {
            let _ = writeln!(page, "\n* {}", escaped(&shown.head()));
            for check in shown.checks() {
                let _ = writeln!(page, "    * {}", escaped(&check));
            }
        }
        if !self.errata.is_empty() {
            page += "\n## Errata\n\n";
        }
        for erratum in &self.errata {
            let _ = writeln!(page, "* {}", escaped(&words(erratum)));
        }
        page
    }
}

impl<'a> ShownClaim<'a> {
    fn new(study: &'a Study, claim: &'a Claim) -> ShownClaim<'a> {
        let support = claim.checks.iter().map(|check| support(study, check)).collect();
        ShownClaim { claim, own_data: OwnData::of(study, claim), support }
    }

    fn head(&self) -> String {
        let Claim { id, text, location, checks, .. } = self.claim;
        let checks = if checks.is_empty() { "no check".to_owned() } else { plural(checks.len(), "check") };
        format!("{id} ({location}; {checks}, own data: {}): {text}", self.own_data.words())
    }

    fn checks(&self) -> impl Iterator<Item = String> {
        let with_support = self.claim.checks.iter().zip(&self.support);
        with_support.map(|(check, support)| format!("{}. {}", check.words(), Support::words(*support)))
    }
}

fn plural_errata(count: usize) -> String {
    if count == 1 { "1 erratum".to_owned() } else { format!("{count} errata") }
}

/// An erratum in one sentence, with the claims that it concerns.
fn words(erratum: &Erratum) -> String {
    let Erratum { id, severity, location, stated, finding, claims, .. } = erratum;
    let severity = crate::record::spelling(severity);
    let claims = if claims.is_empty() { String::new() } else { format!("; {}", claims.join(", ")) };
    format!("{id} ({severity}, {location}{claims}): stated: {stated}. Finding: {finding}")
}
