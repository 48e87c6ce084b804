//! `[run] dilation`: how many times slower time passes in the trials of a cell, or how that number is found.

use std::borrow::Cow;

use itertools::Itertools as _;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use spindle_base::Mistake;
use spindle_base::dilation::Dilation;

use crate::host::provenance::cpu_count;
use crate::scenario::file::RunTable;
use crate::scenario::matrix::place_of_setting;
use crate::scenario::{Scenario, ServerSpec};
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
    Cores(Cores),
    /// A pilot of each cell raises the dilation until neither the cores nor the emulator limit it.
    AsNeeded {
        at_most: Dilation,
    },
}

/// Cores as fast as so many of this machine's. The dilation follows from the number that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cores {
    pub cores: u32,
    pub dilation: Dilation,
}

impl Cores {
    /// # Errors
    /// Out of range, as a sentence for after the key.
    pub(in crate::scenario) fn new(cores: u32, run: &RunTable) -> Result<Cores, String> {
        let own = run.cpu_affinity.unwrap_or_else(cpu_count);
        let dilation = Dilation::new(f64::from(cores) / f64::from(own)).map_err(|_| {
            let [least, most] = [Dilation::LEAST, Dilation::MOST].map(|factor| f64::from(own) * factor);
            let least = least.ceil();
            format!("{cores} is out of range; with {own} cores it can be {least} to {most}")
        })?;
        Ok(Cores { cores, dilation })
    }
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
            DilationRule::Fixed(dilation) | DilationRule::Cores(Cores { dilation, .. }) => Some(dilation),
            DilationRule::AsNeeded { .. } => None,
        }
    }

    /// The largest dilation that a trial may have.
    pub fn most(self) -> Dilation {
        match self {
            DilationRule::Fixed(dilation) | DilationRule::Cores(Cores { dilation, .. }) => dilation,
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
            let cores = Cores::new(cores, run).map_err(|words| Mistake::at("run.cores", words))?;
            Ok(DilationRule::Cores(cores))
        }
    }
}

impl Scenario {
    /// The dilation of a server's trials; `None` if pilots find it.
    pub fn dilation_of(&self, server: &str) -> Option<Dilation> {
        self.servers[server].cores.map(|cores| cores.dilation).or(self.run.dilation.fixed())
    }

    /// The dilation of all trials; `None` if they have several, or if pilots find it.
    pub fn dilation(&self) -> Option<Dilation> {
        self.matrix.server.iter().map(|server| self.dilation_of(server)).all_equal_value().ok().flatten()
    }

    /// The largest dilation that a trial may have.
    pub fn dilation_at_most(&self) -> Dilation {
        let of_servers = self.matrix.server.iter().map(|server| self.dilation_at_most_of(server));
        of_servers.max_by(|one, other| one.factor().total_cmp(&other.factor())).unwrap_or_default()
    }

    /// The largest that a server's trial may have.
    pub fn dilation_at_most_of(&self, server: &str) -> Dilation {
        self.dilation_of(server).unwrap_or(self.run.dilation.most())
    }

    /// Whether a trial may have another time than the real one.
    pub fn is_dilated(&self) -> bool {
        self.matrix.server.iter().any(|server| self.is_dilated_with(server))
    }

    /// The same of the trials of a server.
    pub fn is_dilated_with(&self, server: &str) -> bool {
        self.dilation_of(server).map_or(!self.run.dilation.is_none(), |known| !known.is_none())
    }
}

/// Checks that everything in the trials can be dilated.
pub(in crate::scenario) fn check(scenario: &Scenario) -> Result<(), Mistake> {
    let servers = || scenario.matrix.server.iter().map(|name| (name, &scenario.servers[name]));
    let with_cores = servers().find(|(_, spec)| spec.cores.is_some());
    if let Some((name, _)) = with_cores.filter(|_| scenario.run.dilation.fixed().is_none()) {
        let words = "means a dilation too; leave out either `cores` or `dilation = \"as needed\"`";
        return Err(Mistake::at(place_of_setting(scenario, name, "cores", words), words));
    }
    let key = if with_cores.is_some() { "cores" } else { "dilation" };
    let refused = |place: String, words: &str| Err(Mistake::at(place, format!("{words}; leave `{key}` out")));
    let is_running = |name: &str, spec: &ServerSpec| {
        scenario.is_dilated_with(name) && matches!(spec.source, Source::Url(_))
    };
    if let Some((name, _)) = servers().find(|(name, spec)| is_running(name, spec)) {
        let place = format!("servers.{}.url", scenario.table_of(name));
        return refused(place, "is of a server that runs already, whose clock cannot be dilated");
    }
    let mut stacks = scenario.stacks_in_use().into_iter();
    match stacks.find(|name| scenario.stacks[*name].real().is_some()).filter(|_| scenario.is_dilated()) {
        Some(name) => refused(format!("stacks.{name}"), "is real storage, which cannot be dilated"),
        None => Ok(()),
    }
}
