//! The parts of the view that are text.

use itertools::Itertools as _;
use ratatui::style::Color;
use ratatui::text::{Line, Span};

use super::{Part, Shown};
use crate::record::{SeriesUnit, StorageSeries};
use crate::report::format::{bytes, number, percent};
use crate::watch::line::{Operation, operations, phase_words};
use crate::watch::state::{CpuShares, State, StorageState, TrialState};

/// From the width of its bar to that of the line.
const BESIDE_BAR: usize = 50;
const BAR_MOST: usize = 40;
/// Below this, the users of the cores have one line.
const NARROW: usize = 60;
/// Columns of a storage's figures with their widths, the first ones most important. `MB/s` are both ways.
const COLUMNS: [(&str, usize); 8] = [
    ("reads/s", 8),
    ("ms", 7),
    ("writes/s", 9),
    ("ms", 7),
    ("flushes/s", 10),
    ("ms", 7),
    ("MB/s", 7),
    ("queue", 7),
];
const NAME_LEAST: usize = 8;
const NAME_MOST: usize = 28;
/// Seconds of the trial's time after which silence is told.
const SILENCE_S: f64 = 5.0;

/// What stands above the charts.
pub(super) fn above(shown: &Shown<'_>, width: usize) -> Vec<Part> {
    let Shown { state, now_ms, paint } = *shown;
    let standing = state.standing_at(now_ms);
    let title = Line::styled(cut(&state.title, width), paint.bold());
    let done = format!("{} of {} trials", standing.trials_done, standing.trials_total);
    let share = standing.trials_done as f64 / standing.trials_total.max(1) as f64;
    let bar_width = width.saturating_sub(BESIDE_BAR).min(BAR_MOST);
    let progress = Line::from(vec![
        Span::styled(bar(share, bar_width), paint.style(Color::Cyan)),
        Span::raw(if bar_width > 0 { " " } else { "" }),
        Span::raw(cut(&format!("{done}, {}", standing.left_words()), width)),
    ]);
    let activity = match &state.trial {
        Some(trial) => format!("{}: {}", trial.title, phase_words(trial, now_ms)),
        None => standing.activity,
    };
    vec![
        Part { lines: vec![title], rank: 0 },
        Part { lines: vec![progress], rank: 0 },
        Part { lines: vec![Line::raw(cut(&activity, width))], rank: 0 },
    ]
}

/// What stands below them, with the rank of each.
pub(super) fn below(shown: &Shown<'_>, width: usize) -> Vec<Part> {
    let Shown { state, now_ms, paint } = *shown;
    let mut parts = Vec::new();
    if let Some(trial) = &state.trial {
        let mut table = storage(&trial.storage, width).into_iter();
        parts
            .extend(table.next().map(|head| Part { lines: vec![Line::styled(head, paint.bold())], rank: 2 }));
        let rows: Vec<String> = table.collect();
        parts.extend(rows.into_iter().enumerate().map(|(index, row)| {
            // The data's mount stays longest.
            Part { lines: vec![Line::raw(row)], rank: if index == 0 { 1 } else { 4 } }
        }));
        let cpu_lines = if width < NARROW { 1 } else { 2 };
        parts.extend(trial.cpu.map(|cpu| Part {
            lines: wrapped(&cpu_words(&cpu, trial.cpu_count), width, cpu_lines),
            rank: 3,
        }));
        let counters = counters(trial);
        if !counters.is_empty() {
            parts.push(Part { lines: wrapped(&format!("server: {counters}"), width, 3), rank: 6 });
        }
        if let Some(bottleneck) = &trial.bottleneck {
            let kind = format!("bottleneck so far: {}", bottleneck.kind.name());
            parts.push(Part { lines: vec![Line::styled(cut(&kind, width), paint.bold())], rank: 2 });
            parts.push(Part { lines: wrapped(&bottleneck.sentences(), width, 4), rank: 5 });
        }
    }
    let result = state.standing.last_result.as_ref();
    parts.extend(result.map(|result| Part { lines: wrapped(&format!("last: {result}"), width, 2), rank: 7 }));
    let foot = silence(state, now_ms).unwrap_or_else(|| "q leaves, and the run goes on".to_owned());
    parts.push(Part { lines: vec![Line::styled(cut(&foot, width), paint.style(Color::DarkGray))], rank: 8 });
    parts
}

/// `████░░░░`.
fn bar(share: f64, width: usize) -> String {
    let full = (share.clamp(0.0, 1.0) * width as f64).round() as usize;
    "█".repeat(full) + &"░".repeat(width - full)
}

/// The head of the table and a row for each mount. The last columns are left out where there is no room.
fn storage(storages: &[StorageState], width: usize) -> Vec<String> {
    let measured = storages.iter().filter(|storage| !storage.series.read_iops.is_empty()).collect_vec();
    if measured.is_empty() {
        return Vec::new();
    }
    let all_columns: usize = COLUMNS.iter().map(|(_, width)| width).sum();
    let room = width.saturating_sub(all_columns).clamp(NAME_LEAST, NAME_MOST);
    let names = measured.iter().map(|storage| match format!("{} on {}", storage.files, storage.stack) {
        long if long.chars().count() > room => cut(&storage.files, room),
        name => name,
    });
    let names = names.collect_vec();
    let name_width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(NAME_LEAST);
    let row = |name: &str, cells: Vec<String>| {
        let mut row = format!("{name:name_width$}");
        for (cell, (_, column_width)) in cells.iter().zip(COLUMNS) {
            if row.chars().count() + column_width <= width {
                row += &format!("{cell:>column_width$}");
            }
        }
        row
    };
    let head = row("storage", COLUMNS.map(|(name, _)| name.to_owned()).to_vec());
    let rows = measured.iter().zip(&names).map(|(storage, name)| row(name, cells(&storage.series)));
    [head].into_iter().chain(rows).collect()
}

fn cells(series: &StorageSeries) -> Vec<String> {
    let last = |values: &[f64]| values.last().copied().unwrap_or(0.0);
    let pairs = operations(series).into_iter().flat_map(|Operation { per_s, ms, .. }| {
        [number(per_s), if per_s > 0.0 { number(ms) } else { "-".to_owned() }]
    });
    let mb_per_s = last(&series.read_mb_per_s) + last(&series.write_mb_per_s);
    pairs.chain([mb_per_s, last(&series.queue_depth)].map(number)).collect()
}

fn cpu_words(cpu: &CpuShares, cpu_count: u32) -> String {
    let users = [
        ("server", cpu.server),
        ("clients", cpu.client),
        ("emulator", cpu.emulator),
        ("others", cpu.others()),
    ];
    let users = users.map(|(name, share)| format!("{name} {}", percent(share))).join(", ");
    format!("{cpu_count} cores: {} busy; {users}", percent(cpu.busy))
}

/// `checkpoint age 45.2 MiB, fsyncs 120/s`. Their names say their units.
fn counters(trial: &TrialState) -> String {
    let counters = trial.series.server.iter().filter_map(|(name, values)| {
        let value = *values.last()?;
        let (name, unit) = SeriesUnit::split(name);
        let value = match unit {
            SeriesUnit::Bytes => bytes(value.max(0.0) as u64),
            SeriesUnit::MegabytesPerSecond => format!("{} MB/s", number(value)),
            SeriesUnit::PerSecond => format!("{}/s", number(value)),
            SeriesUnit::Share => percent(value),
            SeriesUnit::Cores | SeriesUnit::Milliseconds | SeriesUnit::Count => number(value),
        };
        Some(format!("{name} {value}"))
    });
    counters.collect_vec().join(", ")
}

/// Where news come each second, their absence is news.
fn silence(state: &State, now_ms: u64) -> Option<String> {
    let trial = state.trial.as_ref().filter(|trial| trial.phase.planned_s.is_some())?;
    let since_s = now_ms.saturating_sub(state.changed_at_ms) as f64 / 1e3;
    (trial.dilation.dilated_s(since_s) > SILENCE_S)
        .then(|| format!("the run has been silent for {since_s:.0} s"))
}

/// At most `width` characters.
fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// At most `most` lines, broken between words.
fn wrapped(text: &str, width: usize, most: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    if lines.len() > most {
        let rest = lines.split_off(most - 1).join(" ");
        lines.push(rest);
    }
    lines.iter().map(|line| Line::raw(cut(line, width))).collect()
}
