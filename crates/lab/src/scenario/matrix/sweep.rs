//! Axes of the matrix that are values of a workload's key or of a server's setting.
//!
//! Each value makes a variant of every workload or server of the matrix, with a name of its own such as
//! `tpcc/terminals=16`. The rooms after this one know variants as further workloads and servers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use spindle_base::{Mistake, form, near, units};
use spindle_load::WorkloadSpec;

use crate::record::{SweptPart, SweptValue};
use crate::scenario::file::{ScenarioFile, ServerTable, SettingValue, SizeText};
use crate::scenario::{Scenario, ServerSpec};
use crate::server::{plain_name, reserved};

/// The keys of a server's table that an axis can have besides its settings.
const MEMORY: &str = "memory";
const CORES: &str = "cores";
/// More would be a matrix that nobody reads.
const SWEEPS_MOST: usize = 2;
const CELLS_MOST: usize = 64;

/// A workload or a server with values of the swept axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Name of its table in the scenario.
    pub base: String,
    pub values: Vec<SweptValue>,
}

/// Variants by their names.
pub type Variants = BTreeMap<String, Variant>;

/// One swept axis, as written.
struct Sweep<'a> {
    key: &'a str,
    part: SweptPart,
    values: &'a [SettingValue],
}

/// Replaces the workloads and servers of the matrix by their variants. `server` reads a server's table.
pub(in crate::scenario) fn expand(
    file: &mut ScenarioFile,
    servers: &mut BTreeMap<String, ServerSpec>,
    server: impl Fn(&ScenarioFile, &str, &ServerTable) -> Result<ServerSpec, Mistake>,
) -> Result<Variants, Mistake> {
    let written = file.matrix.sweeps.clone();
    if let Some((key, _)) = written.iter().nth(SWEEPS_MOST) {
        let words = format!("is one axis too many; a matrix has at most {SWEEPS_MOST} axes of values");
        return Err(at(key, words));
    }
    let mut variants = Variants::new();
    for (key, values) in &written {
        let sweep = Sweep { key, part: part_of(key, file, servers)?, values };
        sweep.check_values()?;
        match sweep.part {
            SweptPart::Workload => sweep.expand_workloads(file, &mut variants)?,
            SweptPart::Server => sweep.expand_servers(file, servers, &mut variants, &server)?,
        }
    }
    Ok(variants)
}

/// Checks the size of a matrix with swept axes.
pub(in crate::scenario) fn check_count(scenario: &Scenario) -> Result<(), Mistake> {
    let matrix = &scenario.matrix;
    let count = scenario.layouts.len() * matrix.server.len() * matrix.workload.len();
    match matrix.sweeps.keys().next() {
        Some(key) if count > CELLS_MOST => Err(at(
            key,
            format!("the matrix has {count} cells; with axes of values it has at most {CELLS_MOST}"),
        )),
        _ => Ok(()),
    }
}

/// The place of a mistake that a server found in its settings: the axis, if the sentence names its key.
pub fn place_of_setting(scenario: &Scenario, server: &str, table: &str, sentence: &str) -> String {
    let variant = scenario.variants.get(server);
    let is_named = |value: &&SweptValue| sentence.contains(&format!("`{}`", value.key));
    match variant.and_then(|variant| variant.values.iter().find(is_named)) {
        Some(value) => format!("matrix.{}", value.key),
        None => format!("servers.{}.{table}", scenario.table_of(server)),
    }
}

fn at(key: &str, words: impl Into<String>) -> Mistake {
    Mistake::at(format!("matrix.{key}"), words)
}

/// The schema of a key of a kind of workload.
fn property(kind: &str, key: &str) -> Option<Value> {
    Value::from(WorkloadSpec::schema_of(kind)?).get("properties")?.get(key).cloned()
}

/// Whether a key is one of the workloads' or one of the servers'.
fn part_of(
    key: &str,
    file: &ScenarioFile,
    servers: &BTreeMap<String, ServerSpec>,
) -> Result<SweptPart, Mistake> {
    if [MEMORY, CORES].contains(&key) {
        return Ok(SweptPart::Server);
    }
    let workloads = file.matrix.workload.iter().map(|name| (name, file.workloads[name].kind()));
    let (with, without): (Vec<_>, Vec<_>) = workloads.partition(|(_, kind)| property(kind, key).is_some());
    let knows = |spec: &&ServerSpec| {
        let is_set = spec.settings.keys().any(|name| plain_name(name) == plain_name(key));
        let alone = BTreeMap::from([(key.to_owned(), String::new())]);
        is_set || !reserved(&alone, &spec.server().memory_settings()).is_empty()
    };
    let server = file.matrix.server.iter().find(|name| knows(&&servers[*name]));
    match (with.first(), without.first(), server) {
        (Some((workload, _)), _, Some(server)) => Err(at(
            key,
            format!(
                "is a key of workload `{workload}` and a setting of server `{server}`; give each value a table of its own"
            ),
        )),
        (Some((workload, _)), Some((other, kind)), None) => Err(at(
            key,
            format!("is a key of workload `{workload}`, and `{other}` of kind `{kind}` has no such key"),
        )),
        (Some(_), None, None) => Ok(SweptPart::Workload),
        (None, _, Some(_)) => Ok(SweptPart::Server),
        (None, _, None) => {
            let of_kind = |(_, kind): &(&String, &'static str)| {
                let schema = WorkloadSpec::schema_of(kind).map(Value::from).unwrap_or_default();
                schema["properties"]
                    .as_object()
                    .into_iter()
                    .flat_map(|keys| keys.keys().cloned())
                    .collect::<Vec<_>>()
            };
            let known: BTreeSet<String> = without.iter().flat_map(of_kind).collect();
            let known = known.iter().map(String::as_str).chain(["stack", "layout", "server", "workload"]);
            match near::nearest(key, known) {
                Some(meant) => Err(at(key, format!("unknown key; did you mean `{meant}`?"))),
                // The server itself judges its settings before the first trial.
                None => Ok(SweptPart::Server),
            }
        }
    }
}

impl Sweep<'_> {
    fn check_values(&self) -> Result<(), Mistake> {
        if self.values.len() < 2 {
            return Err(at(self.key, "an axis has two values or more; a single one belongs into the table"));
        }
        let mut seen = BTreeSet::new();
        for value in self.values {
            let text = value.text();
            let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
            if text.is_empty() || text.len() > 40 || !text.chars().all(fits) {
                let words =
                    format!("{text:?}: a value on an axis has 1 to 40 letters, digits, `-`, `_` or `.`");
                return Err(at(self.key, words));
            }
            if !seen.insert(text.clone()) {
                return Err(at(self.key, format!("`{text}` is there twice")));
            }
        }
        Ok(())
    }

    fn swept(&self, value: &SettingValue, number: Option<f64>, is_memory: bool) -> SweptValue {
        SweptValue { key: self.key.to_owned(), part: self.part, value: value.text(), number, is_memory }
    }

    fn expand_workloads(&self, file: &mut ScenarioFile, variants: &mut Variants) -> Result<(), Mistake> {
        let mut names = Vec::new();
        for base in &file.matrix.workload {
            for value in self.values {
                let spec = self.workload(base, &file.workloads[base], value)?;
                let name = note(variants, base, self.swept(value, value.number(), false));
                file.workloads.insert(name.clone(), spec);
                names.push(name);
            }
        }
        file.matrix.workload = names;
        Ok(())
    }

    /// A workload with one of the values, checked as in its own table.
    fn workload(
        &self,
        name: &str,
        spec: &WorkloadSpec,
        value: &SettingValue,
    ) -> Result<WorkloadSpec, Mistake> {
        let key = self.key;
        let property = property(spec.kind(), key).expect("every workload of the matrix has the key");
        if form::types(&property).contains(&"string") && form::words(&property).is_empty() {
            let words = format!("cannot be an axis: `{key}` of workload `{name}` is a text of any form");
            return Err(at(key, words));
        }
        let schema = json!({ "type": "object", "properties": { key: property } });
        let table = toml::Table::from_iter([(key.to_owned(), value.in_toml())]);
        if let Some(mistake) = Mistake::all(form::mistakes(&schema, &table)) {
            return Err(mistake.under("matrix"));
        }
        let mut whole = serde_json::to_value(spec).expect("a workload is a table of plain values");
        whole[key] = serde_json::to_value(value.in_toml()).expect("a value of TOML is one of JSON");
        let spec: WorkloadSpec =
            serde_json::from_value(whole).map_err(|error| at(key, format!("`{}`: {error}", value.text())))?;
        match spec.complaint() {
            None => Ok(spec),
            Some((of, words)) if of == key => Err(at(key, words)),
            Some((of, words)) => {
                Err(at(key, format!("with {}, workloads.{name}.{of}: {words}", value.text())))
            }
        }
    }

    fn expand_servers(
        &self,
        file: &mut ScenarioFile,
        servers: &mut BTreeMap<String, ServerSpec>,
        variants: &mut Variants,
        server: impl Fn(&ScenarioFile, &str, &ServerTable) -> Result<ServerSpec, Mistake>,
    ) -> Result<(), Mistake> {
        let mut names = Vec::new();
        for base in file.matrix.server.clone() {
            for value in self.values {
                let mut table = file.servers[&base].clone();
                let whole = self.set(&mut table, &base, value)?;
                let spec = server(file, &base, &table).map_err(|mistake| match mistake.place == whole {
                    true => at(self.key, mistake.message),
                    false => at(self.key, format!("with {}, {mistake}", value.text())),
                })?;
                let alone = BTreeMap::from([(self.key.to_owned(), value.text())]);
                let of_setting = || reserved(&alone, &spec.server().memory_settings()).first()?.bytes;
                let bytes = if self.key == MEMORY { spec.memory_bytes } else { of_setting() };
                let number = bytes.map(|bytes| bytes as f64).or_else(|| value.number());
                let name = note(variants, &base, self.swept(value, number, bytes.is_some()));
                file.servers.insert(name.clone(), table);
                servers.insert(name.clone(), spec);
                names.push(name);
            }
        }
        file.matrix.server = names;
        Ok(())
    }

    /// Gives a server's table one of the values, and returns the place of mistakes about it.
    fn set(&self, table: &mut ServerTable, base: &str, value: &SettingValue) -> Result<String, Mistake> {
        if self.key == MEMORY {
            let size = SizeText::try_from(value.text()).map_err(|words| at(self.key, words))?;
            table.memory = Some(size);
            return Ok(format!("servers.{base}.{MEMORY}"));
        }
        if self.key == CORES {
            let words = || format!("`{}` must be a whole number, for example `cores = [4, 8]`", value.text());
            table.cores = Some(value.text().parse().map_err(|_| at(self.key, words()))?);
            return Ok(format!("servers.{base}.{CORES}"));
        }
        table.settings.retain(|name, _| plain_name(name) != plain_name(self.key));
        table.settings.insert(self.key.to_owned(), value.clone());
        Ok(format!("servers.{base}.settings.{}", self.key))
    }
}

/// Lists a variant of a table or of another variant, and returns its name.
fn note(variants: &mut Variants, base: &str, value: SweptValue) -> String {
    let name = format!("{base}/{}", value.assignment());
    let mut variant =
        variants.get(base).cloned().unwrap_or_else(|| Variant { base: base.to_owned(), values: Vec::new() });
    variant.values.push(value);
    variants.insert(name.clone(), variant);
    name
}

impl SettingValue {
    fn in_toml(&self) -> toml::Value {
        match self {
            SettingValue::Switch(on) => (*on).into(),
            SettingValue::Integer(value) => (*value).into(),
            SettingValue::Real(value) => (*value).into(),
            SettingValue::Text(value) => value.clone().into(),
        }
    }

    /// Its place on a numeric axis; bytes for a size.
    fn number(&self) -> Option<f64> {
        match self {
            SettingValue::Switch(_) => None,
            SettingValue::Integer(value) => Some(*value as f64),
            SettingValue::Real(value) => Some(*value),
            SettingValue::Text(text) => {
                let of_size = || units::parse_size_bytes(text).ok().map(|bytes| bytes as f64);
                text.parse().ok().or_else(of_size)
            }
        }
    }
}
