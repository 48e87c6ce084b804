//! A short report for an issue or a wiki.

use std::fmt::Write as _;

use itertools::Itertools as _;
use spindle_base::text::{one_line, plural};

use super::verdict::Verdict;
use super::view::LAYER_HEADS;
use super::{StorageView, View, format, text::bottleneck};

pub(super) fn page(view: &View) -> String {
    let scenario = &view.header.scenario;
    let question: Vec<String> = scenario.question.trim().lines().map(escaped).collect();
    let mut page = format!("# {}\n\n{}\n\n", escaped(&scenario.title), question.join("\n"));
    let sentences = view.verdict.sentences.iter().map(|sentence| format!("**{}**", escaped(sentence)));
    section(&mut page, &sentences.collect::<Vec<_>>().join("\n\n"), &view.verdict.details);
    page += &table(view);
    let footnotes = view.footnotes.iter().map(|note| format!("{}\n", escaped(note)));
    page.extend(std::iter::once("\n".to_owned()).chain(footnotes.map(|note| note + "\n")));
    page += &costs(view);
    page += &super::matrix::markdown(view);
    page += &super::events::markdown(view);
    let warnings: Vec<String> = view
        .warnings
        .iter()
        .map(|w| format!("{} ({}): {}", w.title, plural(w.trial_count, "trial"), w.sentence))
        .collect();
    titled(&mut page, "Storage", &view.storages);
    titled(&mut page, "Storage activity", &activity(view));
    page += &layers(view);
    page += &operations(view);
    titled(&mut page, "Replication", &view.replication);
    titled(&mut page, "Warnings", &warnings);
    let failures: Vec<String> = view
        .failures
        .iter()
        .map(|f| {
            let again = if f.repeated { " It was run again." } else { "" };
            format!("{}, trial {}: {}{again}", f.title, f.trial, f.error)
        })
        .collect();
    titled(&mut page, "Failed trials", &failures);
    titled(&mut page, "About these records", &view.notes);
    let assumptions = view.assumptions.iter().flat_map(|of| of.lines()).collect_vec();
    titled(&mut page, "Errata of the method since these records", &view.errata);
    titled(&mut page, "Assumptions of the profiles", &assumptions);
    titled(&mut page, "Deviations of the workload from its specification", &view.header.deviations);
    let mut origins = vec![format!("start: {}", view.start)];
    let settings = view.provenance.iter().chain(&view.settings);
    origins.extend(settings.map(|setting| format!("{}: {}", setting.name, setting.value)));
    titled(&mut page, "How it was measured", &origins);
    let _ = writeln!(page, "Printed by {}.", code(&one_line(&view.header.report_command)));
    page
}

/// The storage of cells with several mounts or devices. For a single one the table suffices.
fn activity(view: &View) -> Vec<String> {
    let cells = view.cells.iter().filter(|cell| cell.storages.len() > 1);
    let storages = cells.flat_map(|cell| &cell.storages);
    let sentence = |storage: &StorageView| {
        let a = storage.activity?;
        let rate = |per_s: f64, ms: Option<f64>, what: &str| match ms {
            Some(ms) => format!("{} {what}/s of {} ms", format::number(per_s), format::number(ms)),
            None => format!("no {what}"),
        };
        Some(format!(
            "{}: {}, {}, {}, queue depth {}",
            storage.name,
            rate(a.reads_per_s, a.read_ms, "reads"),
            rate(a.writes_per_s, a.write_ms, "writes"),
            rate(a.flushes_per_s, a.flush_ms, "flushes"),
            format::number(a.queue_depth),
        ))
    };
    storages.filter_map(sentence).collect()
}

/// The inside of each emulated stack that is more than a drive.
fn layers(view: &View) -> String {
    let storages = view.cells.iter().flat_map(|cell| &cell.storages);
    let stacks = storages.filter(|storage| !storage.layers.is_empty());
    let table = |storage: &StorageView| {
        let line =
            |fields: &[String]| format!("| {} |\n", fields.iter().map(|field| escaped(field)).join(" | "));
        let rows = storage.layers.iter().map(|layer| line(&layer.fields())).join("");
        let heads = line(&LAYER_HEADS.map(str::to_owned));
        format!("Inside {}:\n\n{heads}|---|{}\n{rows}\n", escaped(&storage.name), "--:|".repeat(5))
    };
    stacks.map(table).collect()
}

fn costs(view: &View) -> String {
    let Some(rows) = super::view::costs::rows(view) else { return String::new() };
    let line = |fields: &[String]| format!("| {} |\n", fields.iter().map(|field| escaped(field)).join(" | "));
    let rule = format!("|---|{}\n", "--:|".repeat(rows[0].len() - 1));
    let body: String = rows[1..].iter().map(|row| line(row)).collect();
    format!("{}:\n\n{}{rule}{body}\n", super::view::costs::CAPTION, line(&rows[0]))
}

/// Table of operations, for workloads that report the clients' own CPU.
fn operations(view: &View) -> String {
    let cells = view.cells.iter();
    let operations: Vec<_> = cells
        .flat_map(|cell| cell.transactions.iter().map(move |operation| (cell, operation)))
        .filter(|(_, operation)| operation.client_cpu_us.is_some())
        .collect();
    if operations.is_empty() {
        return String::new();
    }
    let (head, rule) = if view.lower_is_better { (" total s |", "--:|") } else { ("", "") };
    let mut table = format!(
        "## Client CPU per operation\n\n\
         | {} | operation | committed | mean ms | client CPU us |{head}\n|---|---|--:|--:|--:|{rule}\n",
        view.subject
    );
    for (cell, operation) in operations {
        let total_s = if view.lower_is_better {
            format!(" {} |", format::optional(operation.list_s))
        } else {
            String::new()
        };
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} |{total_s}",
            escaped(&cell.title),
            escaped(&operation.name),
            format::count(operation.committed),
            format::optional(operation.latency.as_ref().map(|latency| latency.mean_ms)),
            format::optional(operation.client_cpu_us),
        );
    }
    table + "\n"
}

fn titled(page: &mut String, title: &str, items: &[String]) {
    if !items.is_empty() {
        section(page, &format!("## {title}"), items);
    }
}

fn section(page: &mut String, head: &str, items: &[String]) {
    let _ = writeln!(page, "{head}\n");
    for item in items {
        let _ = writeln!(page, "- {}", escaped(item));
    }
    if !items.is_empty() {
        *page += "\n";
    }
}

fn table(view: &View) -> String {
    let compared = match &view.baseline_title {
        Some(title) => format!("compared with {}", format::the(title)),
        None => "compared with the first of the workload".to_owned(),
    };
    let unit = escaped(view.metric.as_deref().unwrap_or("throughput"));
    let mut table = format!(
        "| {} | {unit} | 95 % interval | p50 ms | p95 ms | p99 ms | {} | verdict | bottleneck | warnings |\n\
         |---|--:|--:|--:|--:|--:|--:|---|---|---|\n",
        view.subject,
        escaped(&compared)
    );
    for cell in &view.cells {
        let Some(throughput) = &cell.throughput else {
            let _ = writeln!(table, "| {} | no measurement | | | | | | | | |", escaped(&cell.title));
            continue;
        };
        let interval = throughput.interval.map_or_else(|| "one trial".to_owned(), |range| range.to_string());
        let latency = |pick: fn(&super::Quantiles) -> Option<f64>| {
            format::optional(cell.latency.as_ref().and_then(pick))
        };
        let ratio = match &cell.ratio {
            Some(ratio) => ratio.bounded(cell.verdict.as_ref().and_then(|verdict| verdict.bound)),
            None if cell.is_baseline() => "1".to_owned(),
            None => "-".to_owned(),
        };
        let verdict = cell.verdict.as_ref().map_or_else(|| "-".to_owned(), Verdict::words);
        let _ = writeln!(
            table,
            "| {} | {} | {interval} | {} | {} | {} | {ratio} | {verdict} | {} | {} |",
            escaped(&cell.title),
            throughput.marked(cell),
            latency(|l| l.p50_ms),
            latency(|l| l.p95_ms),
            latency(|l| l.p99_ms),
            bottleneck(cell),
            cell.warnings.join(", "),
        );
    }
    table
}

/// Inline code, with a fence longer than any inside.
fn code(text: &str) -> String {
    let longest = text.split(|one| one != '`').map(str::len).max().unwrap_or(0);
    let (fence, blank) = ("`".repeat(longest + 1), if longest > 0 { " " } else { "" });
    format!("{fence}{blank}{text}{blank}{fence}")
}

/// Escapes foreign text, so that it contains no link, image, HTML, code, heading or column separator.
pub(crate) fn escaped(text: &str) -> String {
    let line = one_line(text);
    let line = line.trim();
    let mut escaped = String::with_capacity(line.len());
    let mut characters = line.chars().peekable();
    let mut before = None;
    while let Some(one) = characters.next() {
        // An underscore inside a word, as in the name of a setting, is not emphasis.
        let is_in_word = before.is_some_and(char::is_alphanumeric)
            && characters.peek().is_some_and(|next| next.is_alphanumeric());
        if "\\`*[]<|&~".contains(one) || (one == '_' && !is_in_word) {
            escaped.push('\\');
        }
        escaped.push(one);
        before = Some(one);
    }
    // Code forges turn bare addresses into links.
    let escaped = escaped.replace("://", "\\://").replace("www.", "www\\.").replace("WWW.", "WWW\\.");
    // The start of a line could be a heading or a list item.
    let number = escaped.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let digits = escaped.len() - number.len();
    match number.chars().next() {
        Some('.' | ')') if digits > 0 => format!("{}\\{number}", &escaped[..digits]),
        Some('#' | '>' | '+' | '-' | '=') if digits == 0 => format!("\\{escaped}"),
        _ => escaped,
    }
}
