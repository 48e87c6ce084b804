//! Checks capacity: servers in this machine's memory, databases on their stacks.

pub mod fill;

use super::{Bounds, Scenario, ServerSpec};
use crate::record::FileClass;
use fill::{APART_BYTES, ServerFiles};
use spindle_base::Mistake;
use spindle_base::near;
use spindle_base::text;
use spindle_base::units::format_size_bytes;

use crate::server::{MemorySetting, Settings, catalog, reserved};

/// The least limit of a server's memory. Its program, its threads and the kernel's structures for them take
/// tens of MB before it has read anything.
const LIMIT_BYTES_LEAST: u64 = 64_000_000;

/// Checks the memory of a server and its replicas, which share this machine.
pub(super) fn check_memory(name: &str, spec: &ServerSpec, bounds: &Bounds) -> Result<(), Mistake> {
    let known = spec.server().memory_settings();
    for setting in reserved(&spec.settings, &known) {
        let (text, example) = (setting.value, setting.example);
        let path = format!("servers.{name}.settings.{}", setting.name);
        let bytes = setting.bytes.ok_or_else(|| {
            Mistake::at(&path, format!("`{text}` is not a size; write for example \"{example}\""))
        })?;
        if bytes > bounds.memory_bytes {
            let machine = bounds.memory_bytes >> 20;
            let message = format!("{text} is more than this machine's memory ({machine} MiB)");
            return Err(Mistake::at(path, message));
        }
    }
    let Some(replication) = &spec.replication else { return Ok(()) };
    let of_replicas = reserved_bytes(&replication.settings, &known);
    let count = replication.replicas.len() as u64;
    let bytes = reserved_bytes(&spec.settings, &known).saturating_add(of_replicas.saturating_mul(count));
    if bytes > bounds.memory_bytes {
        let message = format!(
            "the primary and its replicas reserve {} MiB of memory, more than this machine's {} MiB",
            bytes >> 20,
            bounds.memory_bytes >> 20
        );
        return Err(Mistake::at(format!("servers.{name}.replication"), message));
    }
    Ok(())
}

pub(super) fn reserved_bytes(settings: &Settings, known: &[MemorySetting]) -> u64 {
    reserved(settings, known).iter().filter_map(|setting| setting.bytes).sum()
}

/// Checks a limit of the memory of a server and of each of its replicas. It is enforced in a trial.
pub(super) fn check_limit(name: &str, spec: &ServerSpec, bounds: &Bounds) -> Result<(), Mistake> {
    let Some(limit_bytes) = spec.memory_bytes else { return Ok(()) };
    let known = spec.server().memory_settings();
    let of_replicas = spec.replication.as_ref().map(|replication| &replication.settings);
    let of_each = std::iter::once(&spec.settings).chain(of_replicas);
    let most_reserved_bytes = of_each.map(|settings| reserved_bytes(settings, &known)).max().unwrap_or(0);
    let limit = format_size_bytes(limit_bytes);
    let words = if !spec.facts().starts_processes {
        let kinds = near::list(&catalog::names_where(|kind| kind.starts_processes));
        format!("has no meaning for kind = \"{}\"; servers that have it are {kinds}", spec.kind)
    } else if limit_bytes < LIMIT_BYTES_LEAST {
        format!("{limit} is too little for a server; it can be {} or more", text::size(LIMIT_BYTES_LEAST))
    } else if limit_bytes > bounds.memory_bytes {
        format!("{limit} is more than this machine's memory ({} MiB)", bounds.memory_bytes >> 20)
    } else if limit_bytes <= most_reserved_bytes {
        let reserved = format_size_bytes(most_reserved_bytes);
        format!("{limit} is no more than the {reserved} that the server's settings reserve; raise it")
    } else {
        return Ok(());
    };
    Err(Mistake::at(format!("servers.{name}.memory"), words))
}

/// Checks that every data set of the matrix fits on every data disk of the matrix, and that every disk is
/// suitable for a database.
pub(super) fn check_storage(scenario: &Scenario) -> Result<(), Mistake> {
    for workload in &scenario.matrix.workload {
        let spec = &scenario.workloads[workload];
        let Some(data) = spec.data() else { continue };
        for name in scenario.stacks_in_use() {
            if scenario.stacks[name].head().file_system == "none" {
                let message =
                    format!("is `none`, but workload `{workload}` runs a database, which needs one");
                return Err(Mistake::at(format!("stacks.{name}.file_system"), message));
            }
        }
        let files = ServerFiles::of(scenario);
        let (redo_bytes, more_redo_bytes) = (files.redo_bytes, files.more_redo_bytes());
        for layout in scenario.layouts.iter().chain(scenario.replica_layouts()) {
            let log_is_apart = layout.mount_of(FileClass::Redo) > 0;
            let more_bytes = if log_is_apart { 0 } else { more_redo_bytes };
            let redo = match more_bytes {
                0 => String::new(),
                _ => format!(" and a redo log of {}", text::size(redo_bytes)),
            };
            let stack = layout.stack_of(FileClass::Data);
            let needed_bytes = scenario.least_bytes(stack, data.bytes + files.empty_bytes + more_bytes);
            check_size(scenario, stack, needed_bytes, |needed| {
                let needed = enough(needed);
                format!("workload `{workload}`: {}{redo} need at least {needed} to be loaded", data.words)
            })?;
            // A separate mount does not hold the data, but needs room for files that grow there.
            for (class, name) in layout.apart() {
                let more_bytes = if class == FileClass::Redo { more_redo_bytes } else { 0 };
                check_size(scenario, name, APART_BYTES + more_bytes, |needed| {
                    let (class, layout, needed) = (class.key(), &layout.name, text::size(needed));
                    format!("the class `{class}` of layout `{layout}`, which needs about {needed}")
                })?;
            }
        }
    }
    Ok(())
}

/// A size in words, rounded up, so that it suffices as it is written here.
fn enough(bytes: u64) -> String {
    let step_bytes = if bytes < 1_000_000_000 { 10_000_000 } else { 100_000_000 };
    text::size(bytes.next_multiple_of(step_bytes))
}

/// `user` continues the sentence about a stack that is too small.
fn check_size(
    scenario: &Scenario,
    stack: &str,
    needed_bytes: u64,
    user: impl FnOnce(u64) -> String,
) -> Result<(), Mistake> {
    let size_bytes = scenario.stacks[stack].head().size_bytes;
    if size_bytes < needed_bytes {
        let (size, user) = (text::size(size_bytes), user(needed_bytes));
        let is_real = scenario.stacks[stack].real().is_some();
        let key = if is_real { "path" } else { "size" };
        // Without a size, the drive itself is too small.
        let is_written = !is_real && !scenario.stacks[stack].has_usual_size();
        let remedy = if is_written { "; leave `size` out" } else { "" };
        let words = format!("{size} is too small for {user}{remedy}");
        return Err(Mistake::at(format!("stacks.{stack}.{key}"), words));
    }
    Ok(())
}
