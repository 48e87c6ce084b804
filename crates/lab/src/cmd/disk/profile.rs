//! `spindle disk profile`: the parameters of a profile or a stack, and their origins.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use spindle_base::Mistake;

use super::set::Set;
use crate::bench::target;
use crate::cmd::output::{print, print_answer};
use crate::stack::{Explained, StackSpec, known_deviations_of, reference};

#[derive(Debug, Args)]
pub(super) struct ProfileArguments {
    /// A built-in profile, a ready-made stack (`stacks/*.toml`), or the path of a profile (TOML).
    #[arg(required_unless_present = "reference")]
    name: Option<String>,
    /// Size of the disk [default: the stack's own].
    #[arg(long)]
    size: Option<String>,
    #[command(flatten)]
    set: Set,
    /// File with the [stacks.NAME] table, for example a scenario.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["size", "set"])]
    stacks: Option<PathBuf>,
    /// Print all keys of profiles and stack tables as Markdown, with units, bounds and defaults.
    #[arg(long, conflicts_with_all = ["name", "size", "set", "stacks", "json"])]
    reference: bool,
    /// Print one JSON object.
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
    let (summary, explained) = (&stack.head().summary, stack.explained());
    let answer = Answer { summary, explained, hash: stack.hash(), known_deviations };
    print_answer(arguments.json, &answer, || {
        let deviations = answer.known_deviations.iter();
        let deviations = deviations
            .map(|deviation| format!("known deviation, {}: {}\n", deviation.operation, deviation.reason));
        format!("{summary}\n\n{}{}", explained.table(), deviations.collect::<String>())
    })
}

fn find(arguments: &ProfileArguments, name: &str) -> Result<StackSpec, Mistake> {
    match &arguments.stacks {
        Some(file) => target::stack_of_file(file, name),
        None => {
            let file_system = StackSpec::usual_file_system(name);
            StackSpec::of_name_with(name, arguments.size.as_deref(), file_system, &arguments.set.table())
        }
    }
}
