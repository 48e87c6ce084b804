//! `spindle disk profile`: the parameters of a profile or a stack, and their origins.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use spindle_base::Mistake;

use super::{print, print_json};
use crate::bench::target;
use crate::stack::{Explained, StackSpec, known_deviations_of, reference};

#[derive(Debug, Args)]
pub(super) struct ProfileArguments {
    /// A built-in profile, a ready-made stack (`stacks/*.toml`), or the path of a profile (TOML).
    #[arg(required_unless_present = "reference")]
    name: Option<String>,
    /// Size of the disk; without it the stack's own.
    #[arg(long)]
    size: Option<String>,
    /// Take NAME from the [stacks.NAME] tables of this file; a scenario will do.
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    stacks: Option<PathBuf>,
    /// All keys of profiles and stack tables instead, with units, bounds and defaults, as a page of Markdown.
    #[arg(long, conflicts_with_all = ["name", "size", "stacks", "json"])]
    reference: bool,
    /// As one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Answer<'a> {
    summary: &'a str,
    #[serde(flatten)]
    explained: &'a Explained,
    hash: String,
    known_deviations: Vec<crate::stack::KnownDeviation>,
}

/// # Errors
/// The profile or stack does not exist, or its file is invalid.
pub(super) fn run(arguments: &ProfileArguments) -> Result<()> {
    let Some(name) = &arguments.name else { return print(&reference::page()) };
    let stack = find(arguments, name)?;
    let known_deviations = if arguments.stacks.is_none() { known_deviations_of(name) } else { Vec::new() };
    if arguments.json {
        return print_json(&Answer {
            summary: &stack.head().summary,
            explained: stack.explained(),
            hash: stack.hash(),
            known_deviations,
        });
    }
    let mut text = format!("{}\n\n{}", stack.head().summary, stack.explained().table());
    for deviation in known_deviations {
        text.push_str(&format!("known deviation, {}: {}\n", deviation.operation, deviation.reason));
    }
    print(&text)
}

fn find(arguments: &ProfileArguments, name: &str) -> Result<StackSpec, Mistake> {
    match &arguments.stacks {
        Some(file) => target::stack_of_file(file, name),
        None => StackSpec::of_name(name, arguments.size.as_deref(), StackSpec::usual_file_system(name)),
    }
}
