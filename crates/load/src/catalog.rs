//! The list of workloads, one line each, and the code that is generated from it.
//!
//! Belongs here: names, and rules that hold for all workloads alike. Must not know the behaviour of any
//! single one; a `match` over all of them is generated here or is a method of [`Declared`].

mod example;

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Command, Subcommand};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::workload::{Declared, Facts, Target, Workload};
pub use example::{Written, WrittenKey};
use spindle_base::child::{RunAs, find_program};

/// Passes the list to a macro. Each line has a name in scenarios and on the command line, a variant, and a
/// module of [`crate::workloads`]. The module has a `Spec` ([`Declared`]) and its [`Facts`].
macro_rules! for_each_workload {
    ($generate:ident) => {
        $generate! {
            "tpcc" => Tpcc(tpcc),
            "oltp" => Oltp(oltp),
            "wide-tables" => WideTables(wide_tables),
            "insert-growth" => InsertGrowth(insert_growth),
            "bulk" => Bulk(bulk),
            "scan" => Scan(scan),
            "slap" => Slap(slap),
            "fsync-loop" => FsyncLoop(fsync_loop),
            "custom" => Custom(custom),
            "sql-bench" => SqlBench(sql_bench),
            "ontime" => Ontime(ontime),
            "ssb" => Ssb(ssb),
            "sysbench" => Sysbench(sysbench),
            "mysqlslap" => Mysqlslap(mysqlslap),
            "fileio" => Fileio(fileio),
            #[command(hide = true)]
            "mock" => Mock(mock),
        }
    };
}

macro_rules! catalog {
    ($($(#[$attribute:meta])* $name:literal => $variant:ident($module:ident),)+) => {
        /// A workload with its parameters, as scenarios and options name them.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Subcommand)]
        #[serde(tag = "kind")]
        pub enum WorkloadSpec {
            $($(#[$attribute])* #[serde(rename = $name)] #[command(name = $name)] $variant(crate::workloads::$module::Spec),)+
        }

        const CATALOG: &[(&str, Facts)] = &[$(($name, crate::workloads::$module::FACTS),)+];

        impl WorkloadSpec {
            /// The kind's name in scenarios.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(WorkloadSpec::$variant(_) => $name,)+
                }
            }

            /// The JSON schema of a kind's table without its `kind`. `None` if there is no such kind.
            pub fn schema_of(kind: &str) -> Option<Schema> {
                match kind {
                    $($name => Some(schema::<crate::workloads::$module::Spec>($name)),)+
                    _ => None,
                }
            }
        }

        impl Deref for WorkloadSpec {
            type Target = dyn Declared;

            fn deref(&self) -> &(dyn Declared + 'static) {
                match self {
                    $(WorkloadSpec::$variant(spec) => spec,)+
                }
            }
        }

        impl DerefMut for WorkloadSpec {
            fn deref_mut(&mut self) -> &mut (dyn Declared + 'static) {
                match self {
                    $(WorkloadSpec::$variant(spec) => spec,)+
                }
            }
        }
    };
}

for_each_workload!(catalog);

/// Without references, so that each property is read where it stands. A required key has the option's default
/// as its example.
fn schema<T: JsonSchema>(kind: &str) -> Schema {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    let command = WorkloadSpec::augment_subcommands(Command::new("load"));
    let options = command.find_subcommand(kind).into_iter().flat_map(Command::get_arguments);
    let Some(properties) = schema.get_mut("properties") else { return schema };
    for option in options {
        if let [default] = option.get_default_values()
            && properties[option.get_id().as_str()].get("default").is_none()
        {
            let text = default.to_string_lossy();
            let value = text.parse::<u64>().map_or_else(|_| Value::from(text), Value::from);
            properties[option.get_id().as_str()]["examples"] = Value::from(vec![value]);
        }
    }
    schema
}

impl WorkloadSpec {
    /// The facts of a kind, for any parameters. `None` if there is no such kind.
    pub fn facts_of(kind: &str) -> Option<&'static Facts> {
        CATALOG.iter().find(|(name, _)| *name == kind).map(|(_, facts)| facts)
    }

    /// Names of the kinds whose facts satisfy the predicate.
    pub fn kinds_that(is_true: impl Fn(&Facts) -> bool) -> Vec<&'static str> {
        CATALOG.iter().filter(|(_, facts)| is_true(facts)).map(|(name, _)| *name).collect()
    }

    /// Names of the kinds that run on all of these targets.
    pub fn kinds_on(targets: &[Target]) -> Vec<&'static str> {
        WorkloadSpec::kinds_that(|facts| targets.iter().all(|target| facts.runs_on.contains(target)))
    }

    pub fn facts(&self) -> &'static Facts {
        WorkloadSpec::facts_of(self.kind()).expect("every variant has its line")
    }

    /// The first mistake in the parameters, if any: its key, and a sentence without the key.
    pub fn complaint(&self) -> Option<(String, String)> {
        let contradiction = || self.contradiction().map(|(key, words)| (key.to_owned(), words));
        self.out_of_range().or_else(contradiction)
    }

    /// A parameter outside the range that its field declares.
    fn out_of_range(&self) -> Option<(String, String)> {
        let schema = WorkloadSpec::schema_of(self.kind()).expect("every variant has a schema");
        let values = serde_json::to_value(self).expect("a workload is a table of plain values");
        let complain = |(key, property): (&String, &Value)| {
            let value = values[key].as_u64().or_else(|| Some(values[key].as_array()?.len() as u64))?;
            let bound =
                |of_number: &str, of_list: &str| property[of_number].as_u64().or(property[of_list].as_u64());
            let (least, most) = (bound("minimum", "minItems")?, bound("maximum", "maxItems")?);
            let words = || format!("{value} is out of range; it can be {least} to {most}");
            (!(least..=most).contains(&value)).then(|| (key.clone(), words()))
        };
        schema.get("properties")?.as_object()?.iter().find_map(complain)
    }

    /// The option of `spindle load` that sets a key, for example `--rows`. `None` if the value is positional.
    pub fn option(&self, key: &str) -> Option<String> {
        let command = WorkloadSpec::augment_subcommands(Command::new("load"));
        let mut arguments = command.find_subcommand(self.kind())?.get_arguments();
        let long = arguments.find(|argument| argument.get_id() == key)?.get_long()?;
        Some(format!("--{long}"))
    }

    /// The version of the foreign tool; `None` for native workloads. Unless `runs_named`, a program that the
    /// parameters name only has to be there, and reports no version.
    ///
    /// # Errors
    /// The tool is missing.
    pub fn tool_version(&self, run_as: RunAs, runs_named: bool) -> Result<Option<String>> {
        let workload = self.build_with_tools(run_as)?;
        let Some(tool) = workload.tool() else { return Ok(None) };
        match runs_named || tool.program().is_usual() {
            true => tool.version().map(Some),
            false => tool.program().find().map(|()| None),
        }
    }

    /// The path of the foreign tool that is the client; `None` without one, or if it is missing.
    pub fn tool_path(&self) -> Option<PathBuf> {
        find_program(self.build().ok()?.tool()?.program().path)
    }

    /// The workload with these parameters, or an error that names the wrong parameter.
    pub fn build(&self) -> Result<Box<dyn Workload>> {
        self.build_with_tools(RunAs::Caller)
    }

    /// As [`WorkloadSpec::build`]; a foreign tool runs as `run_as`.
    pub fn build_with_tools(&self, run_as: RunAs) -> Result<Box<dyn Workload>> {
        if let Some((key, complaint)) = self.complaint() {
            bail!("workload {}: {key}: {complaint}", self.kind());
        }
        self.workload(run_as)
    }
}

#[cfg(test)]
mod tests;
