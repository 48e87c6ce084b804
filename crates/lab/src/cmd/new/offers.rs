//! What a new scenario can have: servers, storages, workloads. All of it comes from their declarations.

use std::path::Path;

use spindle_base::{Mistake, near};
use spindle_load::{WorkloadSpec, Written};

use super::ask::Offer;
use crate::cmd::disk::list::{self, Group, Listed};
use crate::cmd::server;
use crate::scenario::draft::DraftStack;
use crate::server::catalog::KINDS;
use crate::server::package::{self, PACKAGES, Package};
use crate::server::{Kind, SourceForm, catalog};
use crate::stack::StackSpec;

/// A server by the name of its option: its kind, or the name of a fetched one (`mysql-5.6`).
#[derive(Debug, Clone)]
pub(super) struct ServerChoice {
    pub name: String,
    pub kind: &'static Kind,
    pub version: Option<String>,
}

impl ServerChoice {
    /// # Errors
    /// There is none of this name, or it needs keys that only its user knows.
    pub(super) fn of_name(name: &str) -> Result<ServerChoice, Mistake> {
        if let Some(package) = package::by_name(name) {
            let kind = catalog::find(&package.kind).expect("a package is of a known kind");
            return Ok(ServerChoice { name: name.to_owned(), kind, version: Some(package.version.clone()) });
        }
        let names = catalog::names_where(is_offered);
        match catalog::find(name) {
            Some(kind) if is_offered(kind) => Ok(ServerChoice { name: name.to_owned(), kind, version: None }),
            Some(_) => Err(Mistake::of_flag(
                "server",
                format!("`{name}` needs more than a name; docs/servers.md has an example to copy"),
            )),
            None => {
                let packages: Vec<String> = PACKAGES.iter().map(Package::name).collect();
                let packages = packages.iter().map(String::as_str);
                let names: Vec<&str> = names.into_iter().chain(packages).collect();
                Err(Mistake::of_flag("server", format!("`{name}` is not known{}", near::hint(name, &names))))
            }
        }
    }

    /// The workloads that it runs and that have an example.
    pub(super) fn workloads(&self) -> Vec<&'static str> {
        let offered = WorkloadSpec::kinds_that(|facts| facts.example.is_some());
        let accepted = self.kind.accepted_workloads();
        offered.into_iter().filter(|kind| accepted.contains(kind)).collect()
    }

    /// # Errors
    /// It cannot run the workload, or the workload cannot have a database of that size.
    pub(super) fn workload(&self, kind: &str, bytes: u64) -> Result<Written, Mistake> {
        let name = &self.name;
        if !self.workloads().contains(&kind) {
            let words = match WorkloadSpec::facts_of(kind) {
                Some(facts) if facts.example.is_none() => {
                    "needs a file of your own; docs/custom-workloads.md has an example to copy".to_owned()
                }
                Some(_) => format!("does not run on {name}, which runs {}", near::list(&self.workloads())),
                None => format!("is not known{}", near::hint(kind, &self.workloads())),
            };
            return Err(Mistake::of_flag("workload", format!("`{kind}` {words}")));
        }
        let example = WorkloadSpec::example(kind, bytes).expect("its example was looked for");
        example
            .map_err(|words| Mistake::of_flag("data", format!("{} {words}", spindle_base::text::size(bytes))))
    }
}

fn is_offered(kind: &Kind) -> bool {
    matches!(kind.source, SourceForm::Installed | SourceForm::Program) && !kind.is_for_tests
}

/// Every server, those of this machine first.
pub(super) fn servers() -> Vec<(Offer, bool)> {
    let offer = |entry: server::Entry| {
        let name = match entry.scenario_version {
            Some(version) => format!("{}-{version}", entry.kind),
            None => entry.kind.to_owned(),
        };
        let get = entry.problem.or(entry.get).unwrap_or_default();
        let here = entry.version.is_some();
        let about = entry.version.unwrap_or_else(|| format!("not here: {get}"));
        (Offer { group: "", name, about }, here)
    };
    let mut entries = server::entries();
    let place = |entry: &server::Entry| KINDS.iter().position(|kind| kind.name == entry.kind);
    entries.sort_by_key(|entry| (entry.version.is_none(), place(entry)));
    entries.into_iter().map(offer).collect()
}

/// Every profile and ready-made stack, current devices first.
pub(super) fn storages() -> Vec<Offer> {
    let offer = |listed: Listed| {
        let about = built_in(listed.name).map_or_else(|mistake| mistake.message, |stack| about(&stack));
        let about = listed.year.map_or_else(|| about.clone(), |year| format!("{year}  {about}"));
        Offer { group: listed.group.title(), name: listed.name.to_owned(), about }
    };
    let listed = list::listed().expect("a test reads every profile").into_iter();
    listed.filter(|listed| listed.group != Group::TestDevices).map(offer).collect()
}

fn built_in(name: &str) -> Result<StackSpec, Mistake> {
    StackSpec::of_name(name, None, StackSpec::usual_file_system(name))
}

/// Its label if it has one, because the summary of a ready-made stack tells all of its parts.
fn about(stack: &StackSpec) -> String {
    let (label, head) = (stack.label(), stack.head());
    if label == head.name { head.summary.clone() } else { label.to_owned() }
}

/// One storage: a profile or ready-made stack by its name, a profile by its path, or a real disk by the path
/// of a directory on it or of its block device.
///
/// # Errors
/// There is none of this name.
pub(super) fn storage(given: &str) -> Result<DraftStack, Mistake> {
    let path = Path::new(given);
    if !given.contains('/') && !given.ends_with(".toml") {
        let stack = built_in(given).map_err(|mistake| Mistake::of_flag("storage", mistake.message))?;
        let value = given.to_owned();
        return Ok(DraftStack { name: value.clone(), key: "profile", value, about: about(&stack) });
    }
    let stem = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let name: String = stem.chars().map(|letter| if fits(letter) { letter } else { '-' }).collect();
    let name = if name.chars().any(fits) && name != "-" { name } else { "disk".to_owned() };
    let (key, about) = match given.ends_with(".toml") {
        true => ("profile", "A profile of your own"),
        false => ("path", "A disk of this machine, not emulated: a directory on it, or its block device"),
    };
    Ok(DraftStack { name, key, value: given.to_owned(), about: about.to_owned() })
}

/// Storages separated by commas.
///
/// # Errors
/// One of them is unknown, or is named twice.
pub(super) fn storage_list(given: &str) -> Result<Vec<DraftStack>, Mistake> {
    let parts = given.split(',').map(str::trim).filter(|part| !part.is_empty());
    let stacks = parts.map(storage).collect::<Result<Vec<_>, _>>()?;
    for (index, stack) in stacks.iter().enumerate() {
        if stacks[..index].iter().any(|earlier| earlier.name == stack.name) {
            return Err(Mistake::of_flag("storage", format!("`{}` is named twice", stack.name)));
        }
    }
    match stacks.as_slice() {
        [] => Err(Mistake::of_flag("storage", "is empty; name at least one, better two to compare")),
        _ => Ok(stacks),
    }
}
