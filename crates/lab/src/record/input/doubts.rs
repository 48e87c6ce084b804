//! Contradictions inside a records file. Each is repaired or left as it is, and told: nothing is averaged in
//! silence.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use crate::record::{Header, Measurement, Trial};

/// Repairs the trials where that can be done; returns what was found, as sentences.
pub(super) fn examine(header: &Header, trials: &mut [Trial]) -> Vec<String> {
    let mut notes = half_written_series(trials);
    notes.extend(clock_set_back(trials));
    notes.extend(header.cells.iter().flat_map(|cell| mixed_origins(&cell.name, trials)));
    notes
}

fn name(trial: &Trial) -> String {
    format!("Trial {} of `{}`", trial.trial, trial.cell)
}

/// The seconds of a trial whose series have different lengths are left out: nobody knows which second a value
/// belongs to. The figures of the window do not depend on them.
fn half_written_series(trials: &mut [Trial]) -> Vec<String> {
    let mut notes = Vec::new();
    for trial in trials {
        let title = name(trial);
        let Some(measurement) = &mut trial.measurement else { continue };
        let lengths = lengths(measurement);
        if let (Some(least), Some(most)) = (lengths.first(), lengths.last())
            && least < most
        {
            clear_series(measurement);
            notes.push(format!(
                "{title} has series of {least} and of {most} seconds, so its series were half written and are left \
                 out. Its other figures do not depend on them."
            ));
        }
    }
    notes
}

/// The lengths of all series that have values, without the lag of replicas, which are asked apart. The detour through JSON covers fields that are added later.
fn lengths(measurement: &Measurement) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    add(&measurement.series, &mut found);
    let replicas = measurement.replication.iter().flat_map(|replication| &replication.replicas);
    let of_replicas = replicas.flat_map(|replica| &replica.mounts);
    for mount in measurement.mounts.iter().chain(of_replicas) {
        add(&mount.series, &mut found);
        add(&mount.host_series, &mut found);
        for device in &mount.devices {
            add(&device.series, &mut found);
            add(&device.host_series, &mut found);
        }
    }
    found
}

fn add(series: &impl Serialize, found: &mut BTreeSet<usize>) {
    collect(&serde_json::to_value(series).unwrap_or_default(), found);
}

fn collect(series: &Value, found: &mut BTreeSet<usize>) {
    match series {
        // Charts are a list too, of names.
        Value::Array(values) if values.first().is_some_and(|value| !value.is_object()) => {
            _ = found.insert(values.len());
        }
        Value::Object(fields) => fields.values().for_each(|field| collect(field, found)),
        _ => {}
    }
}

fn clear_series(measurement: &mut Measurement) {
    measurement.series = Default::default();
    let replicas = measurement.replication.iter_mut().flat_map(|replication| &mut replication.replicas);
    let mut mounts: Vec<_> = measurement.mounts.iter_mut().collect();
    for replica in replicas {
        replica.series = Default::default();
        mounts.extend(&mut replica.mounts);
    }
    for mount in mounts {
        (mount.series, mount.host_series) = Default::default();
        for device in &mut mount.devices {
            (device.series, device.host_series) = Default::default();
        }
    }
}

/// Trials stand in the order of their ends, and their starts do not go back. A trial that is in the file already
/// may come from a file that was joined with this one.
fn clock_set_back(trials: &[Trial]) -> Vec<String> {
    let mut known = BTreeSet::new();
    let is_new: Vec<bool> = trials.iter().map(|trial| known.insert((&trial.cell, trial.trial))).collect();
    let pairs = trials.iter().zip(trials.iter().skip(1)).zip(is_new.into_iter().skip(1));
    let pairs = pairs.filter_map(|(pair, is_new)| is_new.then_some(pair));
    let back = pairs.filter(|(earlier, later)| later.started_at < earlier.started_at);
    let words = |(earlier, later): (&Trial, &Trial)| {
        format!(
            "{} started at {}, before the one that stands before it ({}): the clock of the machine was set back. No \
             figure depends on it.",
            name(later),
            later.started_at,
            earlier.started_at
        )
    };
    back.map(words).collect()
}

/// A cell whose trials were not all measured by the same programs on the same storage.
fn mixed_origins(cell: &str, trials: &[Trial]) -> Vec<String> {
    type Fact = fn(&Trial) -> String;
    const FACTS: [(&str, Fact); 4] = [
        ("Spindle", |trial| {
            format!("{} ({})", trial.provenance.spindle_version, trial.provenance.git_revision)
        }),
        ("the server", |trial| trial.provenance.server_version.clone()),
        ("the kernel", |trial| trial.provenance.kernel.clone()),
        ("the emulated storage", |trial| trial.provenance.stack_hash.clone()),
    ];
    let measured: Vec<&Trial> =
        trials.iter().filter(|trial| trial.cell == cell && trial.measurement.is_some()).collect();
    let of_fact = |(what, fact): (&str, Fact)| {
        let versions: BTreeSet<String> = measured.iter().map(|trial| fact(trial)).collect();
        (versions.len() > 1).then(|| {
            format!(
                "The trials of `{cell}` are of {} versions of {what} ({}): a difference between them is in its figures. \
                 Measure all of them again with --fresh.",
                versions.len(),
                versions.into_iter().collect::<Vec<_>>().join("; ")
            )
        })
    };
    FACTS.into_iter().filter_map(of_fact).collect()
}
