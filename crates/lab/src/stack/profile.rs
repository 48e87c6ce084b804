//! Profiles: one TOML file describes a device, and every parameter has its origin.
//!
//! Each parameter is `key = { value = "8.5 ms", source = "..." }`, or has `assumption = "..."` if no text was
//! found; exactly one of the two. An unverifiable number must not pass for a fact, so a source marked
//! `[UNVERIFIED]` is refused.

pub(super) mod deviations;
pub(super) mod endurance;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde::Deserialize;
use spindle_base::Mistake;
use spindle_base::explain::read_toml;
use spindle_base::near;
use spindle_model::parameter::Declared as _;
use spindle_model::{Field, Parameters, declare};

use super::built_in::{PROFILES, built_in_stack, unknown};
use super::explained::{Explanation, explanations};
use super::values::{self, Entries, Form};
use deviations::KnownDeviation;
use endurance::Endurance;

/// Size limit of a profile's file.
const TEXT_BYTES_MOST: u64 = 1 << 20;

declare! {
    /// Facts about the device that its behaviour does not depend on.
    #[derive(Debug, Clone, PartialEq)]
    pub(super) struct About {
        /// Year in which the device came to market; of a cloud volume, the year of the terms that the profile
        /// describes. A device for tests has none.
        pub year: Option<u64> = Count "year" in 1956..=2100;
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub name: String,
    /// The emulated device in one sentence.
    pub summary: String,
    /// Year in which the device came to market; of a cloud volume, the year of its terms.
    pub year: Option<u64>,
    /// How much may be written to it, if the profile says so.
    pub endurance: Option<Endurance>,
    /// The year, and what is known of its endurance, with their origins.
    pub about: Vec<Explanation>,
    pub parameters: Parameters,
    /// Parameters without a source, as sentences.
    pub assumptions: Vec<String>,
    /// Published figures that the profile does not meet.
    pub known_deviations: Vec<KnownDeviation>,
    pub(super) entries: Entries,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    kind: String,
    summary: String,
    parameters: toml::Table,
    year: Option<toml::Value>,
    endurance: Option<toml::Table>,
    #[serde(default, alias = "misses")]
    known_deviations: Vec<KnownDeviation>,
}

impl Profile {
    /// A built-in profile by its name, or the user's own by its path (with a `/` or ending in `.toml`).
    pub fn find(name: &str) -> Result<Profile, Mistake> {
        if name.contains('/') || name.ends_with(".toml") {
            let text = read(Path::new(name))
                .map_err(|error| Mistake::at(name, format!("the profile cannot be read: {error}")))?;
            let stem = Path::new(name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
            return Profile::parse(name, &stem.unwrap_or_default(), &text);
        }
        match PROFILES.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Profile::parse(&format!("profiles/{name}.toml"), name, text),
            None => Err(Mistake::new(unknown(name))),
        }
    }

    /// `file` is its name in errors.
    pub fn parse(file: &str, name: &str, text: &str) -> Result<Profile, Mistake> {
        Profile::of_text(name, text).map_err(|mistake| mistake.in_file(file))
    }

    fn of_text(name: &str, text: &str) -> Result<Profile, Mistake> {
        let file: ProfileFile = read_toml(text)?;
        let Some(fields) = Parameters::fields_of(&file.kind) else {
            let hint = near::hint(&file.kind, Parameters::KINDS);
            return Err(Mistake::at("kind", format!("`{}` is not known{hint}", file.kind)));
        };
        let about = file.year.map(|year| ("year".to_owned(), year)).into_iter().collect::<toml::Table>();
        let about = values::read(about, Form::Sourced, &About::fields(), &[])?;
        let About { year } = About::from_values(values::values(&about))?;
        let endurance = file.endurance.map(Endurance::read).transpose();
        let (endurance, facts) = endurance.map_err(|mistake| mistake.under("endurance"))?.unzip();
        let year_told = explanations(&About::fields(), &values::values(&about), &about);
        let under = |mistake: Mistake| mistake.under("parameters");
        let entries = values::read(file.parameters, Form::Sourced, &fields, &[]).map_err(under)?;
        let parameters = Parameters::from_values(&file.kind, values::values(&entries));
        Ok(Profile {
            name: name.to_owned(),
            summary: file.summary,
            year,
            endurance,
            about: year_told.into_iter().chain(facts.unwrap_or_default()).collect(),
            parameters: parameters.map_err(Mistake::from).map_err(under)?,
            assumptions: assumptions(&fields, &entries),
            known_deviations: file.known_deviations,
            entries,
        })
    }
}

/// The values without a source, as sentences.
pub(super) fn assumptions(fields: &[Field], entries: &Entries) -> Vec<String> {
    fields.iter().filter_map(|field| entries.get(field.key.as_ref())?.assumption(&field.key)).collect()
}

/// Known deviations of a ready-made stack or of a built-in profile; none for any other name.
pub fn known_deviations_of(name: &str) -> Vec<KnownDeviation> {
    match built_in_stack(name) {
        None => Vec::new(),
        Some(table) if table.profile.as_deref() == Some(name) => {
            Profile::find(name).map_or_else(|_| Vec::new(), |profile| profile.known_deviations)
        }
        Some(table) => table.known_deviations,
    }
}

/// # Errors
/// The file is far too long for a profile, as `/dev/zero` is.
fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(TEXT_BYTES_MOST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > TEXT_BYTES_MOST {
        let words = format!("it has more than {TEXT_BYTES_MOST} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, words));
    }
    Ok(text)
}
