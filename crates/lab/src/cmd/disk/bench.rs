//! `spindle disk bench`: raw figures of an emulated or a real disk.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use itertools::Itertools as _;
use serde::Serialize;

use super::set::Set;
use crate::bench::deterioration::{self, Limits};
use crate::bench::plan::{self, Abilities};
use crate::bench::raw;
use crate::bench::target::{Name, Target};
use crate::bench::{Arm, Bench, Question, Row, chart, fio, real, table};
use crate::cmd::output::{check_output_directory, print_answer};
use crate::host::interrupt::Interrupt;
use crate::host::provenance;
use crate::published::bench_file::{self, BenchFile, Header, Line};
use crate::published::{self, Against, Comparison};
use crate::stack::StackSpec;
use spindle_base::Mistake;
use spindle_base::text::causes;
use spindle_base::units::{format_size_bytes, parse_size_bytes};

const SECONDS_QUICK: u64 = 2;
const SECONDS_FULL: u64 = 10;
/// A file in a directory holds the largest block size at least a few times.
const FILE_LOW_BYTES: u64 = 16 << 20;

#[derive(Debug, Args)]
pub(super) struct BenchArguments {
    /// A profile (name, or path of a TOML file), a disk that is up, a block device, a directory, or a file.
    target: String,
    /// Run the model alone, in virtual time. It needs no root and no fio, and takes seconds. For profiles and
    /// stacks only.
    #[arg(long = "virtual")]
    virtual_time: bool,
    /// More iodepths, more block sizes, and longer measurements. Without it, a bench takes a few minutes at
    /// most.
    #[arg(long)]
    full: bool,
    /// Requests in flight, 1 to 200, separated by commas. This is fio's `iodepth` for sequential access, and
    /// its `numjobs` for random access.
    #[arg(long, alias = "threads", value_name = "1,4,16,...", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=plan::IODEPTH_HIGH))]
    iodepth: Option<Vec<u64>>,
    /// Block sizes of random access, separated by commas.
    #[arg(long, alias = "units", value_name = "4K,16K,...", value_delimiter = ',')]
    #[arg(value_parser = plan::parse_block_size)]
    block_sizes: Option<Vec<u64>>,
    /// Seconds per measurement with fio [default: 2, with --full 10].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,
    /// Hours of random writes in virtual time, to measure how the rate deteriorates; 0 for none [default: 3,
    /// with --full 8].
    #[arg(long, requires = "virtual_time", value_parser = clap::value_parser!(u64).range(0..=1000))]
    hours: Option<u64>,
    /// Size of the emulated disk, or of the file in a directory.
    #[arg(long)]
    size: Option<String>,
    #[command(flatten)]
    set: Set,
    /// File with the [stacks.NAME] table of TARGET, for example a scenario.
    #[arg(long, value_name = "FILE", conflicts_with = "set")]
    stacks: Option<PathBuf>,
    /// Compare with published figures: those of a profile, those of a TOML file, or `all`.
    #[arg(long, value_name = "FIGURES")]
    against: Option<String>,
    /// Also write to your block device, file or raw disk. Its contents are lost.
    #[arg(long)]
    destructive: bool,
    /// Seed of the random choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Directory for records and chart [default: spindle-results/bench-TARGET-TIME].
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Answer {
    #[serde(flatten)]
    bench: Bench,
    against: Vec<Comparison>,
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
        set: Some(&arguments.set.table()),
        virtual_time: arguments.virtual_time,
    })?;
    let figures = arguments.against.as_deref().map(Against::find).transpose()?;
    arguments.output.as_deref().map_or(Ok(()), check_output_directory)?;
    if arguments.destructive {
        target.check_destructive()?;
    }
    eprintln!("seed {}", arguments.seed);
    let stack = match &target {
        Target::Stack(stack) => Some(&**stack),
        _ => None,
    };
    let arm = if arguments.virtual_time { Arm::Virtual } else { Arm::Fio };
    let fio_version = if arm == Arm::Fio { fio::version()? } else { String::new() };
    let file_bytes = file_bytes(arguments)?;
    let mut bench = Bench {
        target: arguments.target.clone(),
        summary: target.summary(),
        arm,
        seed: arguments.seed,
        size_bytes: target.size_bytes().unwrap_or_default(),
        rows: Vec::new(),
        deterioration: None,
        notes: Vec::new(),
    };
    let header = header(&bench, stack, fio_version);
    let mut file = BenchFile::create(&directory(arguments), header.clone())?;
    let against = match stack.filter(|_| arguments.virtual_time) {
        Some(stack) => {
            in_virtual_time(arguments, stack, &mut bench, &mut file)?;
            figures.map(|figures| figures.compare_virtual(stack, arguments.seed))
        }
        None => {
            let profile = stack.map_or("", |stack| &stack.head().name);
            let asked = figures.as_ref().map_or_else(Vec::new, |figures| figures.questions(profile));
            with_fio(arguments, &target, file_bytes, asked, &mut bench, &mut file)?;
            figures.map(|figures| figures.compare_measured(profile, &bench))
        }
    };
    finish(arguments, bench, &header, file, against)
}

fn wishes(arguments: &BenchArguments) -> plan::Wishes {
    plan::Wishes {
        full: arguments.full,
        iodepth: arguments.iodepth.clone(),
        block_sizes: arguments.block_sizes.clone(),
    }
}

fn in_virtual_time(
    arguments: &BenchArguments,
    stack: &StackSpec,
    bench: &mut Bench,
    file: &mut BenchFile,
) -> Result<()> {
    let seed = arguments.seed;
    let abilities = Abilities { raw: true, raw_writes: true, file: false, file_writes: false };
    for question in plan::questions(&wishes(arguments), abilities) {
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
    Ok(())
}

/// `asked` are the questions of published figures.
fn with_fio(
    arguments: &BenchArguments,
    target: &Target,
    file_bytes: Option<u64>,
    asked: Vec<Question>,
    bench: &mut Bench,
    file: &mut BenchFile,
) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let abilities = target.abilities(arguments.destructive);
    let may_ask = |question: &Question| match question.access.is_write() {
        true => abilities.raw_writes,
        false => abilities.raw,
    };
    let mut questions = plan::questions(&wishes(arguments), abilities);
    questions.extend(asked.into_iter().filter(may_ask));
    // Reads before writes, also among the questions of published figures.
    let questions = questions.into_iter().unique();
    let questions =
        questions.sorted_by_key(|question| (question.place, question.access.is_write())).collect_vec();
    let seconds = if arguments.full { SECONDS_FULL } else { SECONDS_QUICK };
    let seconds = arguments.seconds.unwrap_or(seconds);
    let options = real::Options { seconds, seed: arguments.seed, file_bytes };
    let mut on_row = |row: Row| {
        bench.rows.push(row);
        let rate = row.per_second;
        eprintln!("{}/{} {}: {rate:.0} a second", bench.rows.len(), questions.len(), row.question);
        file.append(&Line::Row(row))
    };
    let measured = real::measure(target, &questions, options, &interrupt, &mut on_row);
    if let Err(error) = &measured {
        file.append(&Line::Error { error: causes(error) })?;
    }
    bench.notes = measured?;
    if !abilities.raw_writes && !abilities.file_writes {
        bench.notes.push("read only: writes need --destructive".to_owned());
    }
    Ok(())
}

fn header(bench: &Bench, stack: Option<&StackSpec>, fio_version: String) -> Header {
    Header {
        format: bench_file::FORMAT,
        created_at: provenance::now(),
        spindle_version: provenance::SPINDLE_VERSION.to_owned(),
        git_revision: provenance::GIT_REVISION.to_owned(),
        machine: provenance::machine(),
        target: bench.target.clone(),
        summary: bench.summary.clone(),
        arm: bench.arm,
        seed: bench.seed,
        stack_hash: stack.map_or_else(String::new, StackSpec::hash),
        assumptions: stack.map_or_else(Vec::new, |stack| stack.head().assumptions.clone()),
        fio_version,
        command: std::iter::once("spindle".to_owned()).chain(std::env::args().skip(1)).join(" "),
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
    let bytes = arguments.size.as_deref().map(parse_size_bytes).transpose();
    let bytes = bytes.map_err(|problem| Mistake::of_flag("size", problem))?;
    match bytes.filter(|bytes| *bytes < FILE_LOW_BYTES) {
        Some(bytes) => Err(Mistake::of_flag(
            "size",
            format!(
                "is {}, must be at least {}",
                format_size_bytes(bytes),
                format_size_bytes(FILE_LOW_BYTES)
            ),
        )),
        None => Ok(bytes),
    }
}

fn finish(
    arguments: &BenchArguments,
    bench: Bench,
    header: &Header,
    mut file: BenchFile,
    against: Option<Vec<Comparison>>,
) -> Result<()> {
    let mut text = table::render(&bench);
    text.extend(against.as_deref().map(published::table));
    let against = against.unwrap_or_default();
    against.iter().try_for_each(|comparison| file.append(&Line::Against(comparison.clone())))?;
    let records = file.path().to_owned();
    let chart = records.with_file_name(bench_file::CHART_NAME);
    std::fs::write(&chart, chart::page(&bench, &header.origin(), &text)?)
        .with_context(|| format!("writing the chart to {}", chart.display()))?;
    eprintln!("records: {}\nchart: {}", records.display(), chart.display());
    print_answer(arguments.json, &Answer { bench, against, records, chart }, || text)
}
