//! `spindle disk bench`: raw figures of an emulated or a real disk.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use serde::Serialize;

use super::{print, print_json};
use crate::bench::deterioration::{self, Limits};
use crate::bench::plan::{self, Abilities};
use crate::bench::raw;
use crate::bench::target::{Name, Target};
use crate::bench::{Arm, Bench, Row, chart, fio, real, table};
use crate::cmd::output::check_output_directory;
use crate::host::interrupt::Interrupt;
use crate::host::provenance;
use crate::published::bench_file::{self, BenchFile, Header, Line};
use crate::published::{self, Against, Comparison};
use crate::stack::StackSpec;
use spindle_base::Mistake;
use spindle_base::units::parse_size_bytes;

const SECONDS_QUICK: u64 = 2;
const SECONDS_FULL: u64 = 10;
/// A file in a directory holds the largest block size at least a few times.
const FILE_LOW_BYTES: u64 = 16 << 20;

#[derive(Debug, Args)]
pub(super) struct BenchArguments {
    /// A profile (name, or path of a .toml), a disk that is up, a block device, a directory, or a file.
    target: String,
    /// In virtual time, by the model alone: no root, no fio, seconds; profiles and stacks only.
    #[arg(long = "virtual")]
    virtual_time: bool,
    /// More depths, more block sizes, longer rows; without it a few minutes at most.
    #[arg(long)]
    full: bool,
    /// Requests under way, 1 to 200, with commas between them: fio's iodepth of a sequential row, its jobs of
    /// a random one.
    #[arg(long, alias = "threads", value_name = "1,4,16,...")]
    iodepth: Option<String>,
    /// Sizes of random requests, with commas between them.
    #[arg(long, alias = "units", value_name = "4K,16K,...")]
    block_sizes: Option<String>,
    /// Seconds per row of fio; without it 2, with --full 10.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,
    /// Hours of random writes in virtual time, to see what they leave of the rate; 0 for none. Without it 3,
    /// with --full 8.
    #[arg(long, requires = "virtual_time", value_parser = clap::value_parser!(u64).range(0..=1000))]
    hours: Option<u64>,
    /// Size of a profile's disk, or of the file in a directory.
    #[arg(long)]
    size: Option<String>,
    /// Take TARGET from the [stacks.NAME] tables of this file; a scenario will do.
    #[arg(long, value_name = "FILE")]
    stacks: Option<PathBuf>,
    /// Set published figures beside the measured ones: a profile whose figures to take, a .toml file, or
    /// `all`.
    #[arg(long, value_name = "PROFILE-FIGURES")]
    against: Option<String>,
    /// Also write on a block device, file or raw disk of yours; what is on it is lost.
    #[arg(long)]
    destructive: bool,
    /// Of the random choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where records and chart go; without it spindle-results/bench-TARGET-TIME.
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
    /// As one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    bench: &'a Bench,
    against: &'a [Comparison],
    records: PathBuf,
    chart: PathBuf,
}

/// # Errors
/// A mistake in the arguments, a disk that does not come up, or a failure of fio.
pub(super) fn run(arguments: &BenchArguments) -> Result<()> {
    let target = Target::find(Name {
        text: &arguments.target,
        stacks_file: arguments.stacks.as_deref(),
        size: arguments.size.as_deref(),
        virtual_time: arguments.virtual_time,
    })?;
    let wishes = plan::Wishes {
        full: arguments.full,
        iodepth: arguments.iodepth.as_deref().map(plan::parse_iodepths).transpose()?,
        block_sizes: arguments.block_sizes.as_deref().map(plan::parse_block_sizes).transpose()?,
    };
    let against = arguments.against.as_deref().map(Against::find).transpose()?;
    arguments.output.as_deref().map_or(Ok(()), check_output_directory)?;
    if arguments.destructive {
        target.check_destructive()?;
    }
    eprintln!("seed {}", arguments.seed);
    match (&target, arguments.virtual_time) {
        (Target::Stack(stack), true) => in_virtual_time(arguments, stack, &wishes, against.as_ref()),
        _ => with_fio(arguments, &target, &wishes, against.as_ref()),
    }
}

fn in_virtual_time(
    arguments: &BenchArguments,
    stack: &StackSpec,
    wishes: &plan::Wishes,
    against: Option<&Against>,
) -> Result<()> {
    let seed = arguments.seed;
    let mut bench = empty(arguments, &stack.head().summary, Arm::Virtual, stack.size_bytes());
    let header = header(arguments, &bench, Some(stack), String::new());
    let mut file = BenchFile::create(&directory(arguments), header.clone())?;
    let abilities = Abilities { raw: true, raw_writes: true, file: false, file_writes: false };
    for question in plan::questions(wishes, abilities) {
        if let Some(row) = raw::answer(stack.build(seed), seed, &question) {
            file.append(&Line::Row(row))?;
            bench.rows.push(row);
        }
    }
    let mut limits = if arguments.full { Limits::FULL } else { Limits::QUICK };
    if let Some(hours) = arguments.hours {
        limits.duration_ns = hours * deterioration::HOUR_NS;
    }
    if limits.duration_ns > 0 {
        bench.deterioration = deterioration::measure(stack.build(seed), seed, limits);
    }
    if let Some(curve) = &bench.deterioration {
        file.append(&Line::Deterioration(curve.clone()))?;
    }
    bench.notes.push("the model alone: no host, no file system".to_owned());
    let comparisons = against.map_or_else(Vec::new, |against| against.compare_virtual(stack, seed));
    finish(arguments, &bench, &header, file, &comparisons)
}

fn with_fio(
    arguments: &BenchArguments,
    target: &Target,
    wishes: &plan::Wishes,
    against: Option<&Against>,
) -> Result<()> {
    let fio_version = fio::version()?;
    let interrupt = Interrupt::listen()?;
    let stack = match target {
        Target::Stack(stack) => Some(&**stack),
        _ => None,
    };
    let mut bench = empty(arguments, &target.summary(), Arm::Fio, target.size_bytes().unwrap_or_default());
    let header = header(arguments, &bench, stack, fio_version);
    let abilities = target.abilities(arguments.destructive);
    let mut questions = plan::questions(wishes, abilities);
    let profile = stack.map_or("", |stack| &stack.head().name);
    for question in against.iter().flat_map(|against| against.questions(profile)) {
        let may = if question.access.is_write() { abilities.raw_writes } else { abilities.raw };
        if may && !questions.contains(&question) {
            questions.push(question);
        }
    }
    // Reads before writes, also among the questions of published figures.
    questions.sort_by_key(|question| (question.place, question.access.is_write()));
    let options = real::Options {
        seconds: arguments.seconds.unwrap_or(if arguments.full { SECONDS_FULL } else { SECONDS_QUICK }),
        seed: arguments.seed,
        file_bytes: file_bytes(arguments)?,
    };
    let mut file = BenchFile::create(&directory(arguments), header.clone())?;
    let mut rows = Vec::new();
    let mut on_row = |row: Row| {
        rows.push(row);
        let rate = row.per_second;
        eprintln!("{}/{} {}: {rate:.0} a second", rows.len(), questions.len(), row.question);
        file.append(&Line::Row(row))
    };
    let measured = real::measure(target, &questions, options, &interrupt, &mut on_row);
    if let Err(error) = &measured {
        file.append(&Line::Error { error: format!("{error:#}") })?;
    }
    bench.notes = measured?;
    bench.rows = rows;
    if !abilities.raw_writes && !abilities.file_writes {
        bench.notes.push("read only: writes need --destructive".to_owned());
    }
    let comparisons = against.map_or_else(Vec::new, |against| against.compare_measured(profile, &bench));
    finish(arguments, &bench, &header, file, &comparisons)
}

fn empty(arguments: &BenchArguments, summary: &str, arm: Arm, size_bytes: u64) -> Bench {
    Bench {
        target: arguments.target.clone(),
        summary: summary.to_owned(),
        arm,
        seed: arguments.seed,
        size_bytes,
        rows: Vec::new(),
        deterioration: None,
        notes: Vec::new(),
    }
}

fn header(
    arguments: &BenchArguments,
    bench: &Bench,
    stack: Option<&StackSpec>,
    fio_version: String,
) -> Header {
    Header {
        format: bench_file::FORMAT,
        created_at: provenance::now(),
        spindle_version: provenance::SPINDLE_VERSION.to_owned(),
        git_revision: provenance::GIT_REVISION.to_owned(),
        machine: provenance::machine(),
        target: arguments.target.clone(),
        summary: bench.summary.clone(),
        arm: bench.arm,
        seed: arguments.seed,
        stack_hash: stack.map_or_else(String::new, StackSpec::hash),
        assumptions: stack.map_or_else(Vec::new, |stack| stack.head().assumptions.clone()),
        fio_version,
        command: std::iter::once("spindle".to_owned())
            .chain(std::env::args().skip(1))
            .collect::<Vec<_>>()
            .join(" "),
    }
}

fn directory(arguments: &BenchArguments) -> PathBuf {
    arguments.output.clone().unwrap_or_else(|| {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let name = arguments.target.trim_matches('/').replace(|letter| !is_plain(letter), "-");
        let time = provenance::now().replace(['-', ':'], "");
        PathBuf::from(format!("spindle-results/bench-{name}-{time}"))
    })
}

fn file_bytes(arguments: &BenchArguments) -> Result<Option<u64>, Mistake> {
    let Some(size) = &arguments.size else { return Ok(None) };
    match parse_size_bytes(size) {
        Ok(bytes) if bytes >= FILE_LOW_BYTES => Ok(Some(bytes)),
        Ok(bytes) => {
            Err(Mistake::new(format!("--size: is {bytes} bytes, must be at least {FILE_LOW_BYTES}")))
        }
        Err(problem) => Err(Mistake::new(format!("--size: {problem}"))),
    }
}

fn finish(
    arguments: &BenchArguments,
    bench: &Bench,
    header: &Header,
    mut file: BenchFile,
    comparisons: &[Comparison],
) -> Result<()> {
    for comparison in comparisons {
        file.append(&Line::Against(comparison.clone()))?;
    }
    let mut text = table::render(bench);
    if arguments.against.is_some() {
        text.push_str(&published::table(comparisons));
    }
    let chart = file.path().with_file_name(bench_file::CHART_NAME);
    std::fs::write(&chart, chart::page(bench, &header.origin(), &text)?)
        .with_context(|| format!("writing the chart to {}", chart.display()))?;
    eprintln!("records: {}\nchart: {}", file.path().display(), chart.display());
    match arguments.json {
        true => print_json(&Answer { bench, against: comparisons, records: file.path().to_owned(), chart }),
        false => print(&text),
    }
}
