//! `spindle disk show`: a profile or a stack in full.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use spindle_base::Mistake;

use super::list::{latency, rate};
use super::set::Set;
use crate::bench::sheet::{self, Sheet};
use crate::bench::target;
use crate::cmd::output::{columns, print, print_answer};
use crate::published::{self, Figure};
use crate::report::format::number;
use crate::stack::{
    Explained, Explanation, KnownDeviation, Profile, StackSpec, known_deviations_of, reference,
};

#[derive(Debug, Args)]
pub(super) struct ShowArguments {
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
    /// The year of a profile, with its origin.
    about: Vec<Explanation>,
    /// Absent for a real disk or a pool.
    figures: Option<Sheet>,
    #[serde(flatten)]
    explained: &'a Explained,
    hash: String,
    /// The figures that `disk bench NAME --against NAME` compares with.
    published: Vec<Figure>,
    known_deviations: Vec<KnownDeviation>,
}

/// # Errors
/// The profile or stack does not exist, or its file is invalid.
pub(super) fn run(arguments: &ShowArguments) -> Result<()> {
    let Some(name) = &arguments.name else { return print(&reference::page()) };
    let stack = find(arguments, name)?;
    let is_built_in = arguments.stacks.is_none();
    let mut published = published::built_in();
    published.retain(|figure| is_built_in && figure.profile == *name);
    let about = if is_built_in { Profile::find(name).map(|profile| profile.about) } else { Ok(Vec::new()) };
    let answer = Answer {
        summary: &stack.head().summary,
        about: about.unwrap_or_default(),
        figures: sheet::of(&stack),
        explained: stack.explained(),
        hash: stack.hash(),
        published,
        known_deviations: if is_built_in { known_deviations_of(name) } else { Vec::new() },
    };
    print_answer(arguments.json, &answer, || answer.text(name))
}

fn find(arguments: &ShowArguments, name: &str) -> Result<StackSpec, Mistake> {
    match &arguments.stacks {
        Some(file) => target::stack_of_file(file, name),
        None => {
            let file_system = StackSpec::usual_file_system(name);
            StackSpec::of_name_with(name, arguments.size.as_deref(), file_system, &arguments.set.table())
        }
    }
}

impl Answer<'_> {
    fn text(&self, name: &str) -> String {
        let about = self.about.iter().map(|fact| format!("{}: {} ({})\n", fact.key, fact.value, fact.origin));
        let sections = [
            format!("{}\n{}", self.summary, about.collect::<String>()),
            self.figures.as_ref().map(figures).unwrap_or_default(),
            self.published_text(name),
            self.explained.table(),
        ];
        sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
    }

    fn published_text(&self, name: &str) -> String {
        let published = self.published.iter().map(|figure| {
            [
                format!("  {}", figure.words()),
                number(figure.figure),
                figure.unit.to_string(),
                figure.source.clone(),
            ]
        });
        let mut text = columns(published);
        if !text.is_empty() {
            let command = format!("`spindle disk bench {name} --virtual --against {name}`");
            text = format!("Published figures; {command} compares them with the model:\n{text}");
        }
        let deviations = self.known_deviations.iter();
        text.extend(deviations.map(|deviation| {
            format!("known deviation, {} ({}): {}\n", deviation.operation, deviation.source, deviation.reason)
        }));
        text
    }
}

fn figures(sheet: &Sheet) -> String {
    let row = |what: &str, figure: String| [format!("  {what}"), figure];
    let figures = [
        row("random read of 4 KiB", latency(sheet.read_latency_us)),
        row(&format!("random reads of 4 KiB a second, {} in flight", sheet::IODEPTH), rate(sheet)),
        row("write of 4 KiB and flush", latency(sheet.fsync_latency_us)),
        row("a power cut may lose", sheet.loss.words()),
    ];
    format!("Figures of the model in virtual time:\n{}", columns(figures))
}
