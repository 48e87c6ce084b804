//! `spindle clean`: what stands on the disk of Spindle's, and its removal.

mod found;

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use itertools::Itertools as _;
use spindle_base::{Mistake, text, units};

use crate::cmd::output::{columns, print, print_answer};
use crate::run::RESULTS;
use found::{Found, Kind};

#[derive(Debug, Args)]
pub struct CleanArguments {
    /// Directories with results, or the directory of one run [default: spindle-results].
    #[arg(value_name = "DIRECTORY")]
    directories: Vec<PathBuf>,
    /// Remove snapshots of loaded databases. The next run loads them again.
    #[arg(long)]
    snapshots: bool,
    /// Remove fetched servers. `spindle server get` fetches them again.
    #[arg(long)]
    servers: bool,
    /// Remove records and reports, with their snapshots. Nothing brings them back.
    #[arg(long)]
    results: bool,
    /// Remove snapshots and servers, but no results.
    #[arg(long)]
    all: bool,
    /// Only what was not used for this long, for example 7d.
    #[arg(long, value_name = "DURATION", value_parser = parse_age)]
    older_than: Option<Duration>,
    /// Only list what would be removed.
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Remove without a question.
    #[arg(long, short, conflicts_with = "dry_run")]
    yes: bool,
    /// Print the list as a JSON array of objects.
    #[arg(long, conflicts_with_all = ["snapshots", "servers", "results", "all"])]
    json: bool,
}

impl CleanArguments {
    fn chooses(&self, kind: Kind) -> bool {
        match kind {
            Kind::Snapshot => self.all || self.snapshots || self.results,
            Kind::Server => self.all || self.servers,
            Kind::Results => self.results,
        }
    }

    fn removes(&self) -> bool {
        Kind::ALL.into_iter().any(|kind| self.chooses(kind))
    }
}

fn parse_age(text: &str) -> Result<Duration, String> {
    units::parse_duration(text)
        .map_err(|_| format!("`{text}` is not a duration; write for example 7d or 12h (s, min, h, d)"))
}

/// Without a kind it only lists.
///
/// # Errors
/// A [`Mistake`]: a directory that is none, or nobody to ask. Something that could not be removed.
pub fn run(arguments: &CleanArguments) -> Result<()> {
    let asks = arguments.removes() && !arguments.yes && !arguments.dry_run;
    if asks && !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        bail!(Mistake::new(
            "nobody can be asked here: add --yes to remove, or -n to list what would be removed"
        ));
    }
    let default = [PathBuf::from(RESULTS)];
    let directories = if arguments.directories.is_empty() { &default[..] } else { &arguments.directories };
    for directory in &arguments.directories {
        if !directory.is_dir() {
            bail!(Mistake::new(format!("{}: is not a directory", directory.display())));
        }
    }
    let mut all = found::all(directories)?;
    for directory in &arguments.directories {
        if !all.iter().any(|found| found.path.starts_with(directory)) {
            eprintln!("spindle: {} has nothing of Spindle's", shown(directory));
        }
    }
    all.retain(|found| arguments.older_than.is_none_or(|least| found.unused_for() >= least));
    all.sort_by_key(|found| std::cmp::Reverse(found.size_bytes));
    if !arguments.removes() {
        return print_answer(arguments.json, &all, || listing(&all));
    }
    let (chosen, kept): (Vec<Found>, Vec<Found>) =
        all.into_iter().filter(|found| arguments.chooses(found.kind)).partition(|found| found.kept.is_none());
    for found in &kept {
        eprintln!("kept: {}: {}", shown(&found.path), found.kept.as_deref().unwrap_or_default());
    }
    if chosen.is_empty() {
        return print("nothing to remove\n");
    }
    let amount = amount(&chosen);
    if arguments.dry_run {
        return print(&format!("{}would remove {amount}\n", table(&chosen)));
    }
    if asks {
        eprint!("{}Remove {amount}? [y/N] ", table(&chosen));
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if !["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
            return print("nothing was removed\n");
        }
    }
    remove(&chosen)
}

fn remove(chosen: &[Found]) -> Result<()> {
    let (mut freed_bytes, mut failed_count) = (0, 0);
    for found in chosen {
        match found.remove() {
            Ok(()) => {
                freed_bytes += found.size_bytes;
                print(&format!("removed {}\n", shown(&found.path)))?;
            }
            Err(error) => {
                failed_count += 1;
                eprintln!("spindle: {}", text::one_line(&format!("{error:#}")));
            }
        }
    }
    found::remove_empty_runs(chosen);
    print(&format!("freed {}\n", text::size(freed_bytes)))?;
    io::stdout().flush()?;
    match failed_count {
        0 => Ok(()),
        count => bail!("{count} of {} could not be removed", chosen.len()),
    }
}

fn listing(all: &[Found]) -> String {
    if all.is_empty() {
        return "nothing of Spindle's is here\n".to_owned();
    }
    let mut listing = table(all);
    listing += &format!(
        "\n{} in all; --snapshots, --servers or --results removes that kind, --all both snapshots and servers\n",
        text::size(all.iter().map(|found| found.size_bytes).sum())
    );
    listing
}

fn table(all: &[Found]) -> String {
    let head = ["size", "last use", "kind", "path"].map(str::to_owned);
    let rows = all.iter().map(|found| {
        let note = found.kept.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        [
            text::size(found.size_bytes),
            format!("{} ago", text::duration(found.unused_for())),
            found.kind.words().to_owned(),
            format!("{}{note}", found.path.display()),
        ]
    });
    columns(std::iter::once(head).chain(rows))
}

/// `2 snapshots and 1 server, 1.2 GB`.
fn amount(chosen: &[Found]) -> String {
    let kinds = Kind::ALL.into_iter().filter_map(|kind| {
        match chosen.iter().filter(|found| found.kind == kind).count() {
            0 => None,
            count => Some(kind.counted(count)),
        }
    });
    let bytes = chosen.iter().map(|found| found.size_bytes).sum();
    format!("{}, {}", kinds.collect_vec().join(" and "), text::size(bytes))
}

fn shown(path: &Path) -> String {
    text::one_line(&path.display().to_string())
}
