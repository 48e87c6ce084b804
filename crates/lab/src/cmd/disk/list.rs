//! `spindle disk list`: the devices and ready-made stacks in the binary, with the figures by which storage is
//! chosen.

use std::cmp::Reverse;

use anyhow::Result;
use clap::Args;
use itertools::Itertools as _;
use serde::Serialize;
use spindle_base::{Mistake, parallel};
use spindle_model::StackSpec as Tree;

use crate::bench::sheet::{self, Sheet};
use crate::cmd::output::{columns, print_answer};
use crate::report::format::{number, size};
use crate::stack::{PROFILES, Profile, StackSpec, ready_made_names};

/// A device is current for this long, counted back from the newest profile: a list must not depend on the
/// clock.
const CURRENT_YEARS: u64 = 6;

#[derive(Debug, Args)]
pub(super) struct ListArguments {
    /// Print a JSON array.
    #[arg(long)]
    json: bool,
}

/// The parts of the list, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::cmd) enum Group {
    CurrentDevices,
    EarlierDevices,
    ReadyMadeStacks,
    TestDevices,
}

impl Group {
    pub(in crate::cmd) fn title(self) -> &'static str {
        match self {
            Group::CurrentDevices => "Current devices",
            Group::EarlierDevices => "Earlier devices",
            Group::ReadyMadeStacks => "Ready-made stacks",
            Group::TestDevices => "Test devices",
        }
    }
}

/// A device or a ready-made stack, without figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cmd) struct Listed {
    pub name: &'static str,
    pub group: Group,
    pub year: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Entry {
    name: String,
    group: Group,
    /// Kind of a profile, or layer of a stack.
    kind: String,
    year: Option<u64>,
    /// Size when all drives are used whole.
    capacity_bytes: Option<u64>,
    /// Absent for a pool, which has no model.
    #[serde(flatten)]
    sheet: Option<Sheet>,
    summary: String,
}

/// # Errors
/// Standard output is closed.
pub(super) fn run(arguments: &ListArguments) -> Result<()> {
    let entries = entries()?;
    print_answer(arguments.json, &entries, || table(&entries))
}

/// Groups in order; in a group the newest first.
pub(in crate::cmd) fn listed() -> Result<Vec<Listed>, Mistake> {
    let year = |name: &'static str| Profile::find(name).map(|profile| (name, profile.year));
    let profiles: Vec<(&str, Option<u64>)> = PROFILES.iter().map(|(name, _)| year(name)).try_collect()?;
    let newest = profiles.iter().filter_map(|(_, year)| *year).max().unwrap_or_default();
    let group = |year: Option<u64>| match year {
        None => Group::TestDevices,
        Some(year) if year + CURRENT_YEARS >= newest => Group::CurrentDevices,
        Some(_) => Group::EarlierDevices,
    };
    let devices = profiles.into_iter().map(|(name, year)| Listed { name, group: group(year), year });
    let stacks = ready_made_names().map(|name| Listed { name, group: Group::ReadyMadeStacks, year: None });
    Ok(devices.chain(stacks).sorted_by_key(|listed| (listed.group, Reverse(listed.year))).collect())
}

/// Groups in order; in a group the fastest first.
fn entries() -> Result<Vec<Entry>, Mistake> {
    let entries: Result<Vec<Entry>, Mistake> =
        parallel::map(&listed()?, |listed| entry(listed.name, listed.group, listed.year))
            .into_iter()
            .collect();
    let speed =
        |entry: &Entry| Reverse(entry.sheet.map_or(0, |sheet| sheet.reads_per_second.unwrap_or(0.0) as u64));
    Ok(entries?.into_iter().sorted_by_key(|entry| (entry.group, speed(entry))).collect())
}

fn entry(name: &str, group: Group, year: Option<u64>) -> Result<Entry, Mistake> {
    let stack = StackSpec::of_name(name, None, StackSpec::usual_file_system(name))?;
    let kind = match stack.tree() {
        _ if stack.pool().is_some() => "pool",
        Tree::Device(parameters) => parameters.kind(),
        Tree::Layer(..) => &stack.explained().kind,
    };
    Ok(Entry {
        name: name.to_owned(),
        group,
        kind: kind.to_owned(),
        year,
        capacity_bytes: stack.largest_drive().map(|_| stack.natural_bytes()),
        sheet: sheet::of(&stack),
        summary: stack.head().summary.clone(),
    })
}

fn table(entries: &[Entry]) -> String {
    let head = ["", "kind", "year", "capacity", " read 4K", "  reads/s", "   fsync", "a power cut may lose"];
    let rows = entries.iter().map(row).collect_vec();
    let lines = columns(std::iter::once(head.map(str::to_owned)).chain(rows));
    let (head, lines) = lines.split_once('\n').unwrap_or((&lines, ""));
    let mut text = String::new();
    for (group, lines) in &entries.iter().zip(lines.lines()).chunk_by(|(entry, _)| entry.group) {
        let title = group.title();
        text += &format!("{title}{}\n", head.get(title.len()..).unwrap_or(""));
        text.extend(lines.map(|(_, line)| format!("{line}\n")));
        text += "\n";
    }
    text + &format!(
        "Figures of the model: the mean latency of a random read of 4 KiB; random reads per second with {} in flight,\n\
         of a cloud volume while its burst lasts; the mean latency of a write of 4 KiB with its flush.\n\
         `spindle disk show NAME` shows one in full.\n",
        sheet::IODEPTH
    )
}

fn row(entry: &Entry) -> [String; 8] {
    let figure = |of: fn(&Sheet) -> String| entry.sheet.as_ref().map_or("-".to_owned(), of);
    [
        entry.name.clone(),
        entry.kind.clone(),
        entry.year.map_or("-".to_owned(), |year| year.to_string()),
        format!("{:>8}", entry.capacity_bytes.map_or("-".to_owned(), size)),
        format!("{:>8}", figure(|sheet| latency(sheet.read_latency_us))),
        format!("{:>9}", figure(rate)),
        format!("{:>8}", figure(|sheet| latency(sheet.fsync_latency_us))),
        figure(|sheet| sheet.loss.words()),
    ]
}

/// Three digits; a model is no truer.
pub(super) fn rate(sheet: &Sheet) -> String {
    let digits = |rate: f64| 10_f64.powf((rate.log10().floor() - 2.0).max(0.0));
    sheet.reads_per_second.map_or("-".to_owned(), |rate| number((rate / digits(rate)).round() * digits(rate)))
}

/// `77.1 us`, `12.7 ms`.
pub(super) fn latency(us: f64) -> String {
    if us < 1000.0 { format!("{} us", number(us)) } else { format!("{} ms", number(us / 1000.0)) }
}
