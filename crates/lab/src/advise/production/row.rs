//! The record of a server in production: the header and the only trial, in the format of a run.
//!
//! The figures are made by the code that makes those of a trial ([`crate::observe::measurement`]). In the place
//! of the clients' own account stands what counters tell: the number of transactions, and as terminals the
//! sessions at work. No transaction was timed, so there are no latencies. The record has no address, host name
//! or directory of the server.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use spindle_base::dilation::Dilation;
use spindle_base::text::{self, plural};
use spindle_base::{Mistake, units};
use spindle_load::{KindSummary, Metric, Second, Summary};

use super::Options;
use super::checkpoint::{Cycle, cycle};
use super::place::{Device, Host};
use super::sampler::{Samples, moved};
use crate::host::provenance::{self, Machine};
use crate::observe::Sample;
use crate::observe::measurement::{self, Window};
use crate::observe::warmth::cache_bytes;
use crate::record::{
    Cell, FORMAT, FileClass, Header, Measurement, MountHead, ProductionView, Provenance, RecordSource,
    SampledTrace, ScenarioHead, Series, StackHead, StartState, Trial, Warning,
};
use crate::report::rounded;
use crate::scenario::content_hash;
use crate::server::Settings;
use crate::server::telemetry::production::{Counting, Production, Release};
use crate::server::telemetry::{Durability, Readings, Telemetry};
use crate::stack::layout::LayoutMount;

/// Fewer transactions tell nothing about a server.
const TRANSACTIONS_LEAST: f64 = 50.0;
/// Name of the workload, and first part of the cell's name.
const PRODUCTION: &str = "production";

/// Everything besides the samples.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub options: &'a Options,
    pub host: &'a Host,
    pub release: &'a Release,
    pub production: &'static Production,
    pub telemetry: &'static dyn Telemetry,
    /// Of [`Production::settings`].
    pub settings: Settings,
    pub durability: Durability,
    pub trace: Option<SampledTrace>,
    /// UTC, RFC 3339.
    pub started_at: String,
}

/// The transactions of a window.
#[derive(Debug)]
struct Transactions {
    counting: Counting,
    committed: f64,
    rolled_back: f64,
    duration_s: f64,
}

impl Transactions {
    /// # Errors
    /// [`Mistake`]: the server was idle.
    fn count(production: &Production, samples: &Samples) -> Result<Transactions, Mistake> {
        let (first, last) = (&samples.first, &samples.last);
        let duration = last.at - first.at;
        let moved = moved(&first.counters, &last.counters);
        let duration_s = duration.as_secs_f64();
        let readings = Readings { moved: &moved, looks: vec![&last.counters], duration_s };
        let counting = (production.counting)(&readings);
        let own = production.own_transactions * samples.later.len() as f64;
        let committed = (counting.committed(&moved) - own).max(0.0);
        let rolled_back = counting.rolled_back(&moved);
        if committed + rolled_back < TRANSACTIONS_LEAST {
            let ended = plural((committed + rolled_back) as usize, "transaction");
            let window = text::duration(Duration::from_secs(duration.as_secs()));
            return Err(Mistake::new(format!(
                "the server was idle: {ended} ended in {window}, and nothing was recorded; observe it while its \
                 clients work"
            )));
        }
        Ok(Transactions { counting, committed, rolled_back, duration_s })
    }

    fn per_s(&self) -> f64 {
        (self.committed + self.rolled_back) / self.duration_s
    }

    /// Between two samples.
    fn rate_between(&self, production: &Production, [earlier, later]: [&Sample; 2]) -> f64 {
        let moved = moved(&earlier.counters, &later.counters);
        let ended = self.counting.committed(&moved) + self.counting.rolled_back(&moved);
        let elapsed_s = (later.at - earlier.at).as_secs_f64();
        (ended - production.own_transactions).max(0.0) / elapsed_s.max(1e-9)
    }
}

/// The record's two lines.
///
/// # Errors
/// [`Mistake`] for an idle server.
pub(super) fn record(facts: Facts<'_>, samples: Samples) -> Result<(Header, Trial)> {
    let transactions = Transactions::count(facts.production, &samples)?;
    let header = header(&facts, &transactions);
    let sessions = spindle_stats::mean(&samples.sessions);
    let of_checkpoint = cycle(&samples.checkpoints, transactions.duration_s);
    let mut warnings = of_place(facts.host);
    match of_checkpoint {
        Some(Cycle::Whole) => {}
        Some(Cycle::Partial { needed_s }) => warnings.push(Warning::NoWholeCheckpoint { needed_s }),
        None => warnings.push(Warning::NoWholeCheckpoint { needed_s: None }),
    }
    if let Some([least, most]) = transactions.counting.open {
        let per_s = |count: f64| count / transactions.duration_s;
        let (least_per_s, most_per_s) = (per_s(least), per_s(most));
        warnings.push(Warning::TransactionsUncertain { least_per_s, most_per_s });
    }
    let view = ProductionView {
        every_s: facts.options.every.as_secs_f64(),
        sample_count: samples.later.len() as u32,
        counted_by: transactions.counting.words.to_owned(),
        sessions_at_work: sessions,
        transaction_at_work_ms: sessions.map(|sessions| sessions / transactions.per_s() * 1e3),
        has_whole_checkpoint: of_checkpoint.map(|cycle| cycle == Cycle::Whole),
        trace: facts.trace.clone(),
    };
    let phases_s = BTreeMap::from([("measure".to_owned(), transactions.duration_s)]);
    let mut measurement = measured(&facts, samples, &transactions, sessions, &mut warnings)?;
    measurement.production = Some(view);
    let provenance = Provenance {
        stack_hash: content_hash(&header.cells[0].mounts),
        server_version: facts.release.version.clone(),
        settings: facts.settings,
        ..header.provenance.clone()
    };
    let trial = Trial {
        cell: header.cells[0].name.clone(),
        trial: 1,
        block: 1,
        provenance,
        started_at: facts.started_at,
        phases_s,
        error: None,
        measurement: Some(measurement),
        warnings,
        pilot: Vec::new(),
    };
    Ok((header, trial))
}

/// What this machine does not tell.
fn of_place(host: &Host) -> Vec<Warning> {
    if !host.is_local {
        return vec![Warning::ServerElsewhere];
    }
    let process = host.process_id.is_none().then_some(Warning::ServerProcessUnknown);
    let storage = host.devices.is_empty().then_some(Warning::StorageUnknown);
    process.into_iter().chain(storage).collect()
}

/// The figures of a trial with these samples. Its warnings are added, but for those about a load that a scenario
/// could have let settle.
fn measured(
    facts: &Facts<'_>,
    samples: Samples,
    transactions: &Transactions,
    sessions: Option<f64>,
    warnings: &mut Vec<Warning>,
) -> Result<Measurement> {
    let pairs = std::iter::once(&samples.first).chain(&samples.later).zip(&samples.later);
    let rates: Vec<f64> =
        pairs.map(|(earlier, later)| transactions.rate_between(facts.production, [earlier, later])).collect();
    let window = window(facts, samples, transactions, sessions, &rates);
    let (mut measurement, found) = measurement::measurement(&window, Vec::new())?;
    let found = found.into_iter().filter(|warning| !warning.is_of_steadiness());
    warnings.extend(found.map(Warning::in_production));
    measurement.series.transactions_per_s = rates.iter().map(|rate| rounded(*rate)).collect();
    // A level, whose difference means nothing.
    measurement.server_counters.remove(facts.production.sessions);
    if !facts.host.is_local {
        forget_machine(&mut measurement);
    }
    for (mount, device) in measurement.mounts.iter_mut().zip(&facts.host.devices) {
        let of_device = facts.trace.iter().find(|trace| trace.device == device.name);
        mount.trace = of_device.map(|trace| trace.trace.clone());
    }
    Ok(measurement)
}

/// The machine that was sampled is not the server's.
fn forget_machine(measurement: &mut Measurement) {
    measurement.machine = None;
    measurement.bottleneck.shares.remove("cpu");
    let Series { cpu_busy, machine, server, charts, .. } = &mut measurement.series;
    cpu_busy.clear();
    machine.clear();
    charts.retain(|chart| chart.lines.iter().any(|line| server.contains_key(line)));
}

fn window(
    facts: &Facts<'_>,
    samples: Samples,
    transactions: &Transactions,
    sessions: Option<f64>,
    rates: &[f64],
) -> Window {
    let Samples { first, later, last, .. } = samples;
    // How much memory its page cache had is not known.
    let cache_bytes = cache_bytes(facts.telemetry, &facts.settings, &facts.durability, None);
    let read_bytes = facts.telemetry.read_bytes(&first.counters);
    let second = |(sample, rate): (Sample, &f64)| {
        let at_s = sample.at.as_secs_f64();
        (Second { at_s, transactions: rate.round() as u64, measured: true, ..Second::default() }, sample)
    };
    // By Little's law, sessions at work are the time of the transactions in a second.
    let terminals = sessions.map_or(0, |sessions| sessions.round().max(1.0) as u32);
    let summary = Summary {
        duration_s: transactions.duration_s,
        metric: Metric::rate("transactions per second", transactions.per_s()),
        kinds: vec![KindSummary {
            name: "all".to_owned(),
            committed: transactions.committed.round() as u64,
            rolled_back: transactions.rolled_back.round() as u64,
            ..KindSummary::default()
        }],
        terminal_time_s: sessions.unwrap_or(0.0) * transactions.duration_s,
        worker_threads: terminals,
        ..Summary::default()
    };
    Window {
        summary,
        seconds: later.into_iter().zip(rates).map(second).collect(),
        first,
        last,
        cache_turnovers: cache_bytes.zip(read_bytes).map(|(cache, read)| read / cache as f64),
        settling: None,
        recovery_s: None,
        layout: facts.host.layout.clone(),
        replicas: Vec::new(),
        telemetry: facts.telemetry,
        durability: facts.durability.clone(),
        rates: Vec::new(),
        timer_tail_us: None,
        core_work_us: None,
        // Zero stands for cores that are unknown.
        cpu_count: if facts.host.is_local { provenance::cpu_count() } else { 0 },
        dilation: Dilation::NONE,
        events: Vec::new(),
    }
}

fn header(facts: &Facts<'_>, transactions: &Transactions) -> Header {
    let Facts { options, host, release, .. } = facts;
    let window = text::duration(Duration::from_secs_f64(transactions.duration_s.round()));
    let every = units::format_duration_ns(options.every.as_nanos() as u64);
    let created_at = provenance::now();
    let title = format!("{} in production", release.version);
    let mut machine = Machine {
        operating_system: "unknown: the server runs on another machine".to_owned(),
        ..Machine::default()
    };
    if host.is_local {
        machine = provenance::machine();
    }
    Header {
        format: FORMAT,
        provenance: Provenance {
            spindle_version: provenance::SPINDLE_VERSION.to_owned(),
            git_revision: provenance::GIT_REVISION.to_owned(),
            scenario_hash: content_hash(&(PRODUCTION, &title, &created_at)),
            kernel: machine.kernel.clone(),
            ..Provenance::default()
        },
        scenario: ScenarioHead {
            name: PRODUCTION.to_owned(),
            question: format!(
                "What did this server do for {window}? Its clients were its own. Only its counters and those of the \
                 kernel were read, and nothing was put on it."
            ),
            text: format!("# spindle observe --server URL --for \"{window}\" --every \"{every}\"\n"),
            title,
            trials_per_cell: 1,
            until: None,
            start: StartState::Warm,
            seed: 0,
            experiment: None,
            published: Vec::new(),
        },
        created_at,
        cells: vec![cell(host, release)],
        machine,
        deviations: Vec::new(),
        report_command: format!("spindle report {}", options.output.display()),
        source: Some(RecordSource::Production),
    }
}

/// `production/mariadb`.
fn cell(host: &Host, release: &Release) -> Cell {
    let mounts = &host.layout.mounts;
    let head = |(index, mount): (usize, &LayoutMount)| {
        let words = mount.classes.iter().map(|class| class.words().trim_start_matches("its "));
        let words: Vec<&str> = words.collect();
        MountHead {
            files: if mount.classes.contains(&FileClass::Data) { String::new() } else { words.join(" and ") },
            classes: mount.classes.clone(),
            stack: stack(&mount.stack, host.devices.get(index)),
        }
    };
    Cell {
        name: format!("{PRODUCTION}/{}", release.kind),
        label: format!("{PRODUCTION}, {}", release.kind),
        layout: (mounts.len() > 1).then(|| PRODUCTION.to_owned()),
        mounts: mounts.iter().enumerate().map(head).collect(),
        server: release.kind.to_owned(),
        workload: PRODUCTION.to_owned(),
        replication: None,
        sweep: Vec::new(),
        trials: None,
    }
}

fn stack(name: &str, device: Option<&Device>) -> StackHead {
    let summary = match device {
        Some(Device { name, file_system, .. }) => {
            format!("A real disk, not emulated: the block device {name} ({file_system}).")
        }
        None => "Real storage of an unknown kind.".to_owned(),
    };
    StackHead {
        name: name.to_owned(),
        label: String::new(),
        summary,
        size_bytes: device.map_or(0, |device| device.size_bytes),
        file_system: device.map_or_else(|| "unknown".to_owned(), |device| device.file_system.clone()),
        mkfs_options: Vec::new(),
        mount_options: Vec::new(),
        real: true,
        zfs: None,
        assumptions: Vec::new(),
        part: None,
    }
}
