//! `spindle advise RECORDS`: which storage to buy, from one measured cell.

mod confirm;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::advise::answer::{self, Question};
use crate::advise::calibration::with_locks;
use crate::advise::candidates::{ALL, candidates};
use crate::advise::facts::facts;
use crate::advise::format::Format;
use crate::advise::memory::Memory;
use crate::advise::need::Need;
use crate::advise::prediction::Storage;
use crate::advise::prices::Prices;
use crate::advise::source::{Source, scenario_of};
use crate::advise::validation::{
    self, Comparison, Errors, PoolComparison, RATE_TRANSACTIONS, Speed, Validation, measured_storage,
};
use crate::cmd::output::{columns, print, print_answer};
use crate::observe::machine::own_cpu_s;
use crate::record::Cell;
use crate::record::input::{self, Records};
use crate::scenario::Scenario;
use spindle_base::units::parse_size_bytes;
use spindle_base::{Mistake, near, text};
use spindle_twin::Facts;

use confirm::Load;

#[derive(Debug, Args)]
pub struct AdviseArguments {
    /// A records file or the directory of a run.
    records: PathBuf,
    /// Least rate and longest latency, such as `5000 new orders a minute, p95 50 ms`.
    #[arg(long, conflicts_with = "validate")]
    need: Option<String>,
    /// Storages to predict: `all`, names of profiles and stacks with commas between them, or a file of stacks.
    #[arg(long, value_name = "NAMES", default_value = ALL, conflicts_with = "validate")]
    on: String,
    /// The measured cell to start from. Without it, the cell with the most transactions.
    #[arg(long, conflicts_with = "validate")]
    cell: Option<String>,
    /// Predict every cell from each other one of the same server and workload, and print the errors.
    #[arg(long)]
    validate: bool,
    /// Seed of the simulations.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The storage under a server that was observed in production, by the name of its profile or stack.
    #[arg(long, value_name = "NAME", conflicts_with = "validate")]
    today: Option<String>,
    /// Predict for a machine with that many cores of the measured kind.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1024), conflicts_with = "validate")]
    cores: Option<u64>,
    /// Predict for a buffer pool of that size, at least the measured one. Needs a run with `--trace`.
    #[arg(long, value_name = "SIZE", value_parser = parse_size_bytes, conflicts_with = "validate")]
    buffer_pool: Option<u64>,
    /// A file of prices in place of the built-in ones (docs/prices.md).
    #[arg(long, value_name = "FILE", conflicts_with = "validate")]
    prices: Option<PathBuf>,
    /// Years over which prices are added up.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=50))]
    years: u64,
    /// Measure the best so many storages as the answer ranks them, and print predictions beside measurements.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=10), conflicts_with = "validate")]
    confirm: Option<u8>,
    /// The scenario whose server and load stand for those of a server in production, with `--confirm`.
    #[arg(long, value_name = "FILE", requires = "confirm")]
    load: Option<PathBuf>,
    /// Layout of the answer.
    #[arg(long, value_enum, default_value = "text", conflicts_with = "validate")]
    format: Format,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// Fails with a [`spindle_base::Mistake`] of the user.
pub fn run(arguments: &AdviseArguments) -> Result<()> {
    let path = input::records_path(&arguments.records);
    let records = input::read(&arguments.records)?;
    let directory = path.parent().unwrap_or(Path::new(""));
    if arguments.validate {
        validate(arguments, &records, directory)
    } else {
        advise(arguments, &records, directory)
    }
}

fn advise(arguments: &AdviseArguments, records: &Records, directory: &Path) -> Result<()> {
    let is_production = records.header.source.is_some();
    let scenario = (!is_production).then(|| scenario_of(records)).transpose()?;
    let (cell, why) = chosen(records, arguments.cell.as_deref())?;
    let source = Source::of_cell(records, scenario.as_ref(), cell, directory)?;
    let need = need(arguments, &source)?;
    let today = today(arguments, scenario.as_ref(), cell)?;
    let size_bytes = today.as_ref().map_or(cell.data().size_bytes, |today| today.stacks[0].size_bytes());
    let (storages, left_out) = candidates(&arguments.on, size_bytes)?;
    let prices = match &arguments.prices {
        Some(path) => Prices::read(path, &[])?,
        None => Prices::built_in(),
    };
    let load = load(arguments, records, cell)?;
    let facts = facts(&source, today.as_ref())?;
    let facts = match &today {
        Some(today) => with_locks(facts, &source, today),
        None => facts,
    };
    let memory = Memory::of(&source);
    let facts = asked_for(facts, arguments, &memory)?;
    let AdviseArguments { years, seed, .. } = *arguments;
    let memory = memory.as_ref().ok().filter(|_| arguments.buffer_pool.is_none());
    let question = Question { need: need.as_ref(), prices: &prices, memory, why_this_cell: why, years, seed };
    let answer = answer::answer(&source, &facts, today.as_ref(), (&storages, left_out), &question);
    print(&answer.lay_out(if arguments.json { Format::Json } else { arguments.format })?)?;
    match load {
        Some((count, load)) => {
            let predict =
                |storage: &Storage, dilation| answer::predicted_at(&source, &facts, storage, dilation, seed);
            print(&confirm::confirm(&answer, &storages, usize::from(count), &load, &predict)?)
        }
        None => Ok(()),
    }
}

/// How many storages to measure, and under which load; `None` if none is to be measured.
fn load(arguments: &AdviseArguments, records: &Records, cell: &Cell) -> Result<Option<(u8, Load)>, Mistake> {
    let Some(count) = arguments.confirm else { return Ok(None) };
    let load = match &arguments.load {
        Some(path) => Load::of_file(path)?,
        None if records.header.source.is_some() => {
            let words = "is missing: a record of a server in production has no load that could be run again";
            return Err(Mistake::at("--load", words));
        }
        None => Load::of_record(records, cell),
    };
    Ok(Some((count, load)))
}

/// The need of the options; for a server in production, the rate that its clients offer.
fn need(arguments: &AdviseArguments, source: &Source<'_>) -> Result<Option<Need>, Mistake> {
    let metric = &source.measurement.metric;
    match &arguments.need {
        Some(text) => Need::parse(text, &metric.name).map(Some),
        None if source.measurement.production.is_some() => {
            Ok(Some(Need::offered(source.per_second(), &metric.name)))
        }
        None => Ok(None),
    }
}

/// The storage of the record's cell; for a server in production, the one that the options name.
fn today(
    arguments: &AdviseArguments,
    scenario: Option<&Scenario>,
    cell: &Cell,
) -> Result<Option<Storage>, Mistake> {
    let today = match (scenario, &arguments.today) {
        (Some(_), Some(_)) => {
            let words = "is for the record of a server in production; this one names its storage itself";
            return Err(Mistake::at("--today", words));
        }
        (Some(scenario), None) => Some(measured_storage(scenario, cell)),
        (None, Some(name)) => {
            let (storages, left_out) = candidates(name, cell.data().size_bytes)?;
            let reason = || left_out.first().cloned().unwrap_or_else(|| "names no storage".to_owned());
            Some(storages.into_iter().next().ok_or_else(|| Mistake::at("--today", reason()))?)
        }
        (None, None) => None,
    };
    today.iter().try_for_each(Storage::check)?;
    Ok(today)
}

/// The facts for the cores and the buffer pool of the options.
fn asked_for(facts: Facts, arguments: &AdviseArguments, memory: &Result<Memory, Mistake>) -> Result<Facts> {
    let facts = match arguments.buffer_pool {
        None => facts,
        Some(pool_bytes) => {
            let memory =
                memory.as_ref().map_err(|mistake| Mistake::at("--buffer-pool", mistake.message.clone()))?;
            if pool_bytes < memory.pool_bytes() {
                let least = text::size(memory.pool_bytes());
                return Err(Mistake::at(
                    "--buffer-pool",
                    format!("is smaller than the measured one, {least}"),
                )
                .into());
            }
            memory.with_pool(&facts, memory.larger(pool_bytes))
        }
    };
    Ok(Facts { core_count: arguments.cores.unwrap_or(facts.core_count), ..facts })
}

/// The cell with that name, or the one whose counts are the most certain; and why it is taken.
fn chosen<'a>(records: &'a Records, name: Option<&str>) -> Result<(&'a Cell, &'static str), Mistake> {
    let cells = &records.header.cells;
    if let Some(name) = name {
        let names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
        let found = cells.iter().find(|cell| cell.name == name);
        let unknown = || format!("the record has no cell `{name}`{}", near::did_you_mean(name, &names));
        return found.map(|cell| (cell, "as asked")).ok_or_else(|| Mistake::at("--cell", unknown()));
    }
    let transactions = |cell: &&Cell| {
        let trials = records.trials.iter().filter(|trial| trial.cell == cell.name);
        trials.filter_map(|trial| Some(trial.measurement.as_ref()?.ended())).max()
    };
    let most = cells.iter().max_by_key(transactions);
    most.map(|cell| (cell, "the most transactions")).ok_or_else(|| Mistake::new("the record has no cell"))
}

fn validate(arguments: &AdviseArguments, records: &Records, directory: &Path) -> Result<()> {
    let validation = validation::validate(records, directory, &own_cpu_s)?;
    print_answer(arguments.json, &validation, || table(&validation))
}

fn table(validation: &Validation) -> String {
    let mut text = String::new();
    if validation.comparisons.iter().any(Comparison::is_of_another) {
        text += &of_storages(validation);
    }
    if let Some(errors) = &validation.errors {
        text += &format!("\n{}", of_errors(validation, errors));
    }
    if !validation.pools.is_empty() {
        text += &format!("{}\n", of_pools(&validation.pools));
    }
    if !validation.left_out.is_empty() {
        text += &format!(
            "left out, with fewer than {RATE_TRANSACTIONS} transactions, which do not tell a rate to 20 %: {}\n",
            validation.left_out.join(", ")
        );
    }
    if !validation.limited.is_empty() {
        text += &format!(
            "counted in no error, because the cores of this machine or its emulator limited them, not the storage: {}\n",
            validation.limited.join(", ")
        );
    }
    text
}

fn signed_percent(error: f64) -> String {
    format!("{:+.0} %", error * 100.0)
}

fn of_storages(validation: &Validation) -> String {
    let head = ["from", "of", "predicted", "measured", "error", "p99 error"].map(str::to_owned);
    let rows = validation.comparisons.iter().map(|one| {
        [
            one.from.clone(),
            one.of.clone(),
            format!("{:.0}", one.predicted),
            format!("{:.0}", one.measured),
            signed_percent(one.error()),
            one.p99_error().map_or("-".to_owned(), signed_percent),
        ]
    });
    columns(std::iter::once(head).chain(rows))
}

fn of_errors(validation: &Validation, errors: &Errors) -> String {
    let all = ("all".to_owned(), errors);
    let experiments = validation.experiments.iter().map(|(name, errors)| (name.clone(), errors));
    let head = ["server, workload", "predictions", "median error", "within 20 %", "in order", "p99 error"];
    let rows = experiments.chain([all]).map(|(name, errors)| summary(name, errors));
    let speeds = [("disks", validation.speed_on_disks), ("other storage", validation.speed_on_others)];
    let speeds = speeds.into_iter().filter_map(|(on, speed)| {
        let Speed { median, slowest } = speed?;
        Some(format!("{median:.0} on {on} (the slowest {slowest:.0})"))
    });
    format!(
        "{}\ntimes faster than real time, the middle prediction: {}\n",
        columns(std::iter::once(head.map(str::to_owned)).chain(rows)),
        speeds.collect::<Vec<_>>().join(", ")
    )
}

fn of_pools(pools: &[PoolComparison]) -> String {
    let head =
        ["from", "of", "buffer pool", "reads", "measured", "error", "writes' error", "throughput's error"]
            .map(str::to_owned);
    let rows = pools.iter().map(|one| {
        let short = if one.is_known { "" } else { ", trace too short" };
        [
            one.from.clone(),
            one.of.clone(),
            format!("{:.1} times", one.times),
            format!("{:.2}", one.predicted_reads),
            format!("{:.2}", one.measured_reads),
            signed_percent(one.error_of_reads()),
            signed_percent(one.error_of_writes()),
            format!("{}{short}", signed_percent(one.error())),
        ]
    });
    columns(std::iter::once(head).chain(rows))
}

/// A row about the sizes of errors: their median, the share of small ones, the pairs of storages in the right order.
fn summary(name: String, errors: &Errors) -> [String; 6] {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let in_order = |share: f64| format!("{} of {}", percent(share), errors.pairs);
    [
        name,
        errors.predictions.to_string(),
        percent(errors.median),
        percent(errors.within_fifth),
        errors.in_order.map_or("-".to_owned(), in_order),
        errors.p99_median.map_or("-".to_owned(), percent),
    ]
}
