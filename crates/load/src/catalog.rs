//! The list of workloads, one line each, and the code that is generated from it.
//!
//! Belongs here: names, and rules that hold for all workloads alike. Must not know the behaviour of any
//! single one; a `match` over all of them is generated here or is a method of [`Declared`].

mod example;

use std::ops::{Deref, DerefMut};

use anyhow::{Result, bail};
use clap::{Command, Subcommand};
use serde::{Deserialize, Deserializer, Serialize};

use crate::foreign::Tool;
use crate::workload::{Declared, Facts, Target, Workload};
pub use example::{Written, WrittenKey};
use spindle_base::child::RunAs;

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

            /// The error, with its path, in a table (without its `kind`) that is read as a workload of this
            /// kind. Serde's reader of tagged enumerations drops the path.
            pub fn mistake_in<'de, D: Deserializer<'de>>(
                kind: &str,
                table: D,
            ) -> Option<serde_path_to_error::Error<D::Error>> {
                match kind {
                    $($name => serde_path_to_error::deserialize::<D, crate::workloads::$module::Spec>(table).err(),)+
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

    /// The option of `spindle load` that sets a key, for example `--rows`. `None` if the value is positional.
    pub fn option(&self, key: &str) -> Option<String> {
        let command = WorkloadSpec::augment_subcommands(Command::new("load"));
        let mut arguments = command.find_subcommand(self.kind())?.get_arguments();
        let long = arguments.find(|argument| argument.get_id() == key)?.get_long()?;
        Some(format!("--{long}"))
    }

    /// The version of the foreign tool; `None` for native workloads.
    ///
    /// # Errors
    /// The tool is missing.
    pub fn tool_version(&self, run_as: RunAs) -> Result<Option<String>> {
        self.build_with_tools(run_as)?.tool().map(Tool::version).transpose()
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
