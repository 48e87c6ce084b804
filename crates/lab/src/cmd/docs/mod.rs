//! `spindle docs`: reference pages in Markdown and the schema of records, made from declarations. A copy of each is in `docs/`, and a
//! test keeps it up to date. A page is a function and a line of [`PAGES`].

mod profiles;
mod servers;

use anyhow::Result;
use clap::Args;
use spindle_base::{Mistake, near};

use crate::cmd::output::{columns, print};
use crate::record::schema;
use crate::scenario;
use crate::stack::reference;

/// A generated page.
struct Page {
    name: &'static str,
    /// Its copy in `docs/`.
    file: &'static str,
    about: &'static str,
    text: fn() -> String,
}

const PAGES: &[Page] = &[
    Page {
        name: "scenario",
        file: "scenario.md",
        about: "keys of a scenario and of its workloads",
        text: scenario::form::reference::page,
    },
    Page {
        name: "profiles",
        file: "profiles.md",
        about: "devices and ready-made stacks, with their known deviations",
        text: profiles::page,
    },
    Page {
        name: "parameters",
        file: "parameters.md",
        about: "keys of devices, layers and pools: units, bounds, defaults",
        text: reference::page,
    },
    Page {
        name: "servers",
        file: "server-kinds.md",
        about: "kinds of servers: programs, versions, workloads, settings",
        text: servers::page,
    },
    Page {
        name: "records",
        file: "records.schema.json",
        about: "JSON Schema of a line of records.jsonl",
        text: schema::text,
    },
];

#[derive(Debug, Args)]
pub struct DocsArguments {
    /// Name of the page [default: the list of pages].
    page: Option<String>,
}

/// # Errors
/// There is no page of this name.
pub fn run(arguments: &DocsArguments) -> Result<()> {
    let Some(name) = &arguments.page else {
        let row = |page: &Page| [page.name.to_owned(), page.about.to_owned()];
        return print(&columns(PAGES.iter().map(row)));
    };
    match PAGES.iter().find(|page| page.name == name || page.file.strip_suffix(".md") == Some(name)) {
        Some(page) => print(&(page.text)()),
        None => {
            let names: Vec<&str> = PAGES.iter().map(|page| page.name).collect();
            Err(Mistake::new(format!("there is no page `{name}`{}", near::hint(name, &names))).into())
        }
    }
}

/// A table of Markdown.
fn table<const N: usize>(heads: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |fields: Vec<String>| format!("| {} |\n", fields.join(" | "));
    let mut text = line(heads.map(str::to_owned).to_vec()) + "|" + &"---|".repeat(N) + "\n";
    text.extend(rows.into_iter().map(|row| line(row.map(|field| field.replace('|', "\\|")).to_vec())));
    text
}

/// `` `a`, `b` ``, or a dash.
fn quoted<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{}`", name.as_ref())).collect();
    if quoted.is_empty() { "-".to_owned() } else { quoted.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_page_is_up_to_date() {
        for Page { name, file, text, .. } in PAGES {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
            let copy = std::fs::read_to_string(path).unwrap_or_default();
            assert!(copy == text(), "run `spindle docs {name} > docs/{file}`");
        }
    }

    #[test]
    fn a_misspelt_page_is_refused_with_the_nearest() {
        let refused =
            |name: &str| run(&DocsArguments { page: Some(name.to_owned()) }).unwrap_err().to_string();
        assert_eq!(refused("profile"), "there is no page `profile`; did you mean `profiles`?");
    }
}
