//! The figure of a trial that stands for a published one, by its name.

use itertools::Itertools as _;
use spindle_base::{Mistake, near};
use spindle_stats::Sample;

use crate::claims::study::FoundFigure;
use crate::record::{Cell, EmulatorSummary, FigureName, Measurement, Per, PublishedTag, Trial};
use crate::report::{self, Records};

/// Figures that the CSV has in parts only.
const OF_ALL_MOUNTS: [&str; 6] = [
    report::CPU_BUSY_PERCENT,
    "reads_per_s",
    "writes_per_s",
    "reads_and_writes_per_s",
    "read_kib",
    "write_kib",
];
/// How the names of the CSV begin.
const BEGINNINGS: [&str; 21] = [
    "latency_",
    "per_transaction_",
    "cpu_",
    "server_mean_",
    "server_lowest_",
    "server_highest_",
    "server_variation_",
    "machine_",
    "emulator_",
    "kernel_",
    "layer_",
    "swept_",
    "phase_",
    "settling_",
    "behind_",
    "catch_up_",
    "window_",
    "client_cpu_",
    "committed",
    "recovery_s",
    "cache_turnovers",
];
/// The value of the axis on which the best cell was looked for.
const SWEPT: &str = "swept_";

/// A figure of a trial, and what it is divided by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quantity<'a> {
    pub(super) figure: &'a FigureName,
    transaction: Option<&'a str>,
    part: Option<&'a str>,
    per: Option<Per>,
    divide_by: Option<f64>,
    seconds_for: Option<f64>,
    event: Option<report::EventSide>,
}

impl<'a> Quantity<'a> {
    fn of_tag(tag: &'a PublishedTag) -> Quantity<'a> {
        Quantity {
            figure: &tag.figure,
            transaction: tag.transaction.as_deref(),
            part: tag.part.as_deref(),
            per: tag.per,
            divide_by: tag.divide_by,
            seconds_for: tag.seconds_for,
            event: None,
        }
    }

    pub(super) fn of(figure: &'a FoundFigure) -> Quantity<'a> {
        Quantity {
            figure: &figure.figure,
            transaction: figure.transaction.as_deref(),
            part: figure.part.as_deref(),
            per: figure.per,
            divide_by: figure.divide_by,
            seconds_for: None,
            event: figure.event,
        }
    }
}

/// # Errors
/// No trial can have a figure of this name: a sentence with the nearest one.
pub(in crate::claims) fn check(figure: &FigureName) -> Result<(), Mistake> {
    let FigureName(name) = figure;
    let is_known = figure.is_metric()
        || OF_ALL_MOUNTS.contains(&name.as_str())
        || name.ends_with("_share")
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
    if is_known {
        return Ok(());
    }
    let hint = near::hint(name, &[&["metric"][..], &OF_ALL_MOUNTS].concat());
    let words = format!("`{name}` is not known{hint}; docs/records.md lists the figures of a trial");
    Err(Mistake::at("figure", words))
}

/// One value for each trial of the cells that a tag names, or why there is none.
pub(super) fn samples(
    records: &Records,
    cells: &[&Cell],
    tag: &PublishedTag,
) -> Result<(String, Vec<Sample>), String> {
    let best = best(records, cells).ok_or_else(|| {
        let names = cells.iter().map(|cell| cell.name.as_str()).join(", ");
        format!("cell {names} has no measured trial")
    })?;
    let is_axis = tag.best_over.as_ref().is_some_and(|axis| tag.figure.0 == format!("{SWEPT}{axis}"));
    let samples = match &tag.over {
        _ if is_axis => best_of_blocks(records, cells, tag),
        None => of_cell(records, best, &Quantity::of_tag(tag)),
        Some(stack) => over(records, best, stack, tag)?,
    };
    let samples = samples.ok_or_else(|| format!("cell {} has no `{}`", best.name, tag.figure.0))?;
    Ok((best.name.clone(), samples))
}

/// The cell with the best mean metric, of those that were measured.
fn best<'a>(records: &Records, cells: &[&'a Cell]) -> Option<&'a Cell> {
    let mean = |cell: &Cell| {
        let trials = report::measured(records, &cell.name);
        spindle_stats::mean(&trials.iter().map(|(_, measurement)| signed(measurement)).collect_vec())
    };
    let known = cells.iter().filter_map(|cell| Some((*cell, mean(cell)?)));
    known.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(cell, _)| cell)
}

/// The metric, so that more is better.
fn signed(measurement: &Measurement) -> f64 {
    let metric = &measurement.metric;
    if metric.lower_is_better { -metric.value } else { metric.value }
}

/// One value for each trial; `None` if one of them lacks the figure.
pub(super) fn of_cell(records: &Records, cell: &Cell, quantity: &Quantity) -> Option<Vec<Sample>> {
    let sample = |(trial, measurement): &(&Trial, &Measurement)| {
        Some(Sample { block: trial.block, value: value(trial, measurement, cell, quantity)? })
    };
    report::measured(records, &cell.name).iter().map(sample).collect()
}

/// The figures of a cell, divided in each block by those of the same cell on another stack.
///
/// # Errors
/// There is no such cell.
fn over(
    records: &Records,
    cell: &Cell,
    stack: &str,
    tag: &PublishedTag,
) -> Result<Option<Vec<Sample>>, String> {
    let is_it = |other: &&Cell| {
        other.layout_name() == stack && (&other.server, &other.workload) == (&cell.server, &cell.workload)
    };
    let other = records.header.cells.iter().find(is_it);
    let other = other.ok_or_else(|| format!("cell {} has no like on `{stack}`", cell.name))?;
    let quantity = Quantity::of_tag(tag);
    let Some((ours, theirs)) = of_cell(records, cell, &quantity).zip(of_cell(records, other, &quantity))
    else {
        return Ok(None);
    };
    let ratio = |sample: &Sample| {
        let of_block = theirs.iter().find(|other| other.block == sample.block)?;
        Some(Sample { value: sample.value / of_block.value, ..*sample })
    };
    Ok(Some(ours.iter().filter_map(ratio).collect()))
}

/// In each block, the value of the axis at its best cell.
fn best_of_blocks(records: &Records, cells: &[&Cell], tag: &PublishedTag) -> Option<Vec<Sample>> {
    let of_cell = |cell: &&Cell| -> Vec<(u32, f64, Option<f64>)> {
        let value = cell.sweep.iter().find(|value| Some(&value.key) == tag.best_over.as_ref());
        let value = value.and_then(|value| value.number);
        let trials = report::measured(records, &cell.name);
        trials.iter().map(|(trial, measurement)| (trial.block, signed(measurement), value)).collect()
    };
    let by_block = cells.iter().flat_map(of_cell).into_group_map_by(|(block, ..)| *block);
    let sample = |(block, trials): (u32, Vec<(u32, f64, Option<f64>)>)| {
        let (_, _, value) = trials.into_iter().max_by(|(_, one, _), (_, other, _)| one.total_cmp(other))?;
        Some(Sample { block, value: value? })
    };
    by_block.into_iter().sorted_by_key(|(block, _)| *block).map(sample).collect()
}

fn value(trial: &Trial, measurement: &Measurement, cell: &Cell, quantity: &Quantity) -> Option<f64> {
    let FigureName(name) = quantity.figure;
    let of_window = |name: &str| match name {
        _ if quantity.figure.is_metric() => Some(measurement.metric.value),
        name if OF_ALL_MOUNTS.contains(&name) && quantity.part.is_none() => of_all_mounts(name, measurement),
        name => report::figure_of(trial, cell, quantity.transaction, quantity.part, name),
    };
    let value = match quantity.event {
        Some(side) => report::figure_beside_event(measurement, side, name),
        None => of_window(name),
    };
    let divisor = match quantity.per {
        None => 1.0,
        Some(Per::Second) => measurement.duration_s,
        Some(Per::Transaction) => measurement.ended() as f64,
    };
    let value = value? / divisor / quantity.divide_by.unwrap_or(1.0);
    let value = quantity.seconds_for.map_or(value, |count| count / value);
    value.is_finite().then_some(value)
}

/// Sums over the emulators of all mounts. `None` for a request of a storage without an emulator, and for the
/// size of no request.
fn of_all_mounts(name: &str, measurement: &Measurement) -> Option<f64> {
    let sum = |count: fn(&EmulatorSummary) -> u64| -> Option<f64> {
        let counts = measurement.mounts.iter().map(|mount| mount.emulator.as_ref().map(count));
        counts.sum::<Option<u64>>().map(|sum| sum as f64)
    };
    let per_s = |count: Option<f64>| Some(count? / measurement.duration_s);
    let kib = |bytes: Option<f64>, count: Option<f64>| Some(bytes? / count? / 1024.0);
    match name {
        report::CPU_BUSY_PERCENT => Some(measurement.cpu.busy * 100.0),
        "reads_per_s" => per_s(sum(|of| of.reads)),
        "writes_per_s" => per_s(sum(|of| of.writes)),
        "reads_and_writes_per_s" => per_s(sum(|of| of.reads + of.writes)),
        "read_kib" => kib(sum(|of| of.read_bytes), sum(|of| of.reads)),
        _ => kib(sum(|of| of.write_bytes), sum(|of| of.writes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PartView;

    fn tag(figure: &str) -> PublishedTag {
        let text = format!("study = \"x\"\ntable = \"t\"\nrow = {{}}\nfigure = \"{figure}\"");
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn a_figure_of_a_trial_goes_by_its_name_in_the_csv() {
        let text = include_str!("../../../../../records/quickstart/records.jsonl");
        let records = crate::record::input::parse(text, "quickstart").unwrap();
        let cell = &records.header.cells[0];
        let means = |tag: &PublishedTag| {
            let (_, samples) = samples(&records, &[cell], tag)?;
            Ok::<f64, String>(samples.iter().map(|sample| sample.value).sum::<f64>() / samples.len() as f64)
        };
        let metric = means(&tag("metric")).unwrap();
        assert!((metric / means(&tag("metric")).unwrap() - 1.0).abs() < 1e-12);
        assert!((4.0..1024.0).contains(&means(&tag("read_kib")).unwrap()));
        let reads = means(&tag("reads_per_s")).unwrap();
        let of_part =
            PublishedTag { part: Some("data".into()), per: Some(Per::Second), ..tag("emulator_reads") };
        assert!((means(&of_part).unwrap() / reads - 1.0).abs() < 1e-9);
        let sum = reads + means(&tag("writes_per_s")).unwrap();
        assert!((means(&tag("reads_and_writes_per_s")).unwrap() / sum - 1.0).abs() < 1e-9);
        assert!(means(&tag("latency_mean_ms")).unwrap() > 0.0);
        assert_eq!(
            means(&tag("server_mean_nothing")),
            Err(format!("cell {} has no `server_mean_nothing`", cell.name))
        );
    }

    #[test]
    fn a_figure_beside_an_event_is_of_the_seconds_on_its_side() {
        let text = include_str!("../../../../../records/quickstart/records.jsonl");
        let mut records = crate::record::input::parse(text, "quickstart").unwrap();
        let cell = records.header.cells[0].clone();
        for measurement in records.trials.iter_mut().filter_map(|trial| trial.measurement.as_mut()) {
            measurement.duration_s = 4.0;
            let part = |from_s, to_s| PartView { from_s, to_s, ..PartView::default() };
            measurement.parts = vec![part(0.0, 3.0), part(3.0, 4.0)];
            measurement.series.server = [("history_list".to_owned(), vec![10.0, 30.0, 20.0, 7.0])].into();
            measurement.series.cpu_busy = vec![0.25, 0.25, 0.25, 0.5];
        }
        let of = |name: &str, event: &str| {
            let text = format!("of = {{ scenario = \"x\" }}\nfigure = \"{name}\"\nevent = \"{event}\"");
            let figure: FoundFigure = toml::from_str(&text).unwrap();
            Some(of_cell(&records, &cell, &Quantity::of(&figure))?[0].value)
        };
        let sides = |name: &str| [of(name, "before"), of(name, "after")];
        assert_eq!(sides("server_mean_history_list"), [Some(20.0), Some(7.0)]);
        assert_eq!(sides("server_highest_history_list"), [Some(30.0), Some(7.0)]);
        assert_eq!(sides("cpu_busy_percent"), [Some(25.0), Some(50.0)]);
        assert_eq!(sides("recovery_s"), [None, None], "it has no seconds");
    }

    #[test]
    fn a_name_that_no_figure_has_is_refused() {
        let check = |name: &str| check(&FigureName(name.to_owned())).map_err(|mistake| mistake.to_string());
        assert_eq!(check("latency_p95_ms"), Ok(()));
        assert_eq!(
            check("metrik").unwrap_err(),
            "figure: `metrik` is not known; did you mean `metric`?; docs/records.md lists the figures of a trial"
        );
    }
}
