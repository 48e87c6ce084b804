//! `[run] dilation`: how many times slower time passes in the trials of a cell, or how that number is found.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use spindle_base::Mistake;
use spindle_base::dilation::Dilation;

use crate::host::provenance::cpu_count;
use crate::scenario::Scenario;
use crate::scenario::file::RunTable;
use crate::server::Source;

/// The most that a run chooses by itself.
const AT_MOST: f64 = 16.0;

/// The value of `dilation` as written.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub(in crate::scenario) enum Written {
    Factor(f64),
    Word(Word),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(in crate::scenario) enum Word {
    #[serde(rename = "as needed")]
    AsNeeded,
}

impl JsonSchema for Written {
    fn schema_name() -> Cow<'static, str> {
        "Dilation".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "number", "minimum": Dilation::LEAST, "maximum": Dilation::MOST },
            { "const": "as needed" },
        ] })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum DilationRule {
    Fixed(Dilation),
    /// Cores as fast as so many of this machine's. The dilation follows from the number that it has.
    Cores {
        cores: u32,
        dilation: Dilation,
    },
    /// A pilot of each cell raises the dilation until neither the cores nor the emulator limit it.
    AsNeeded {
        at_most: Dilation,
    },
}

impl Default for DilationRule {
    fn default() -> DilationRule {
        DilationRule::Fixed(Dilation::NONE)
    }
}

impl DilationRule {
    /// Nothing is dilated.
    pub fn is_none(&self) -> bool {
        self.most().is_none()
    }

    /// The dilation if it is known before the run.
    pub fn fixed(self) -> Option<Dilation> {
        match self {
            DilationRule::Fixed(dilation) | DilationRule::Cores { dilation, .. } => Some(dilation),
            DilationRule::AsNeeded { .. } => None,
        }
    }

    /// The largest dilation that a trial may have.
    pub fn most(self) -> Dilation {
        match self {
            DilationRule::Fixed(dilation) | DilationRule::Cores { dilation, .. } => dilation,
            DilationRule::AsNeeded { at_most } => at_most,
        }
    }
}

pub(in crate::scenario) fn rule(run: &RunTable) -> Result<DilationRule, Mistake> {
    if run.dilation_at_most.is_some() && run.dilation != Some(Written::Word(Word::AsNeeded)) {
        let message = "has no meaning unless dilation = \"as needed\"; leave it out";
        return Err(Mistake::at("run.dilation_at_most", message));
    }
    match (run.dilation, run.cores) {
        (Some(_), Some(_)) => {
            Err(Mistake::at("run.cores", "means a dilation too; leave out either `cores` or `dilation`"))
        }
        (None, None) => Ok(DilationRule::default()),
        (Some(Written::Factor(factor)), None) => {
            let dilation = Dilation::new(factor).map_err(|message| Mistake::at("run.dilation", message))?;
            Ok(DilationRule::Fixed(dilation))
        }
        (Some(Written::Word(Word::AsNeeded)), None) => {
            // A pilot begins in real time.
            let at_most = run.dilation_at_most.unwrap_or(AT_MOST);
            let known = Dilation::new(at_most).ok().filter(|known| *known >= Dilation::NONE);
            let known = known.ok_or_else(|| {
                let message = format!("{at_most} is out of range; it can be 1 to {}", Dilation::MOST);
                Mistake::at("run.dilation_at_most", message)
            })?;
            Ok(DilationRule::AsNeeded { at_most: known })
        }
        (None, Some(cores)) => {
            let own = cpu_count();
            let dilation = Dilation::new(f64::from(cores) / f64::from(own)).map_err(|_| {
                let [least, most] = [Dilation::LEAST, Dilation::MOST].map(|factor| f64::from(own) * factor);
                let least = least.ceil();
                let message =
                    format!("{cores} is out of range; with {own} cores it can be {least} to {most}");
                Mistake::at("run.cores", message)
            })?;
            Ok(DilationRule::Cores { cores, dilation })
        }
    }
}

/// Checks that everything in the trials can be dilated.
pub(in crate::scenario) fn check(scenario: &Scenario) -> Result<(), Mistake> {
    if scenario.run.dilation.is_none() {
        return Ok(());
    }
    let refused = |key: String, words: &str| Err(Mistake::at(key, words.to_owned()));
    for name in &scenario.matrix.server {
        if matches!(scenario.servers[name].source, Source::Url(_)) {
            let key = format!("servers.{name}.url");
            return refused(
                key,
                "is of a server that runs already, whose clock cannot be dilated; leave `dilation` out",
            );
        }
    }
    for name in scenario.stacks_in_use() {
        if scenario.stacks[name].real().is_some() {
            let words = "is real storage, which cannot be dilated; leave `dilation` out";
            return refused(format!("stacks.{name}"), words);
        }
    }
    Ok(())
}
