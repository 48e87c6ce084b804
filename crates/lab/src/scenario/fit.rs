//! Whether what a scenario asks for has room: servers in this machine's memory, databases on their stacks.

use std::collections::BTreeMap;

use super::{Bounds, Scenario, ServerSpec};
use crate::record::FileClass;
use crate::stack::layout::Layout;
use spindle_base::Mistake;
use spindle_base::text;

use crate::server;

/// Settings that reserve memory for as long as the server runs.
const MEMORY_SETTINGS: [&str; 4] =
    ["innodb_buffer_pool_size", "key_buffer_size", "aria_pagecache_buffer_size", SHARED_BUFFERS];
/// PostgreSQL's; the others are MySQL's and MariaDB's.
const SHARED_BUFFERS: &str = "shared_buffers";

/// An empty MySQL 9.7 has 201 MiB (`du`), of which its redo log is 101.
const DATABASE_FIXED_BYTES: u64 = 512 << 20;
/// MariaDB's own choice, which is in every workload's figure; MySQL's is 100 MiB from 8.0.30.
const DEFAULT_REDO_BYTES: u64 = 96 << 20;

pub(super) fn check_memory_settings(
    name: &str,
    settings: &BTreeMap<String, String>,
    bounds: &Bounds,
) -> Result<(), Mistake> {
    for key in MEMORY_SETTINGS {
        let Some(text) = settings.get(key) else { continue };
        let path = format!("servers.{name}.settings.{key}");
        let example = if key == SHARED_BUFFERS { "96MB" } else { "96M" };
        let bytes = setting_bytes(key, text).ok_or_else(|| {
            Mistake::at(&path, format!("`{text}` is not a size; write for example \"{example}\""))
        })?;
        if bytes > bounds.memory_bytes {
            let machine = bounds.memory_bytes >> 20;
            let message = format!("{text} is more than this machine's memory ({machine} MiB)");
            return Err(Mistake::at(path, message));
        }
    }
    Ok(())
}

/// A primary and its replicas are on this machine together.
pub(super) fn check_memory(name: &str, spec: &ServerSpec, bounds: &Bounds) -> Result<(), Mistake> {
    let Some(replication) = &spec.replication else { return Ok(()) };
    let reserved = |settings: &BTreeMap<String, String>| -> u64 {
        MEMORY_SETTINGS.iter().filter_map(|key| setting_bytes(key, settings.get(*key)?)).sum()
    };
    let count = replication.replicas.len() as u64;
    let bytes =
        reserved(&spec.settings).saturating_add(reserved(&replication.settings).saturating_mul(count));
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

/// As the server of that setting reads it.
fn setting_bytes(key: &str, text: &str) -> Option<u64> {
    if key == SHARED_BUFFERS {
        return server::postgres::size_bytes(text, server::postgres::PAGE_BYTES);
    }
    server::memory::parse_size_bytes(text)
}

/// The largest redo log of the matrix; InnoDB's is made in full before anything else, PostgreSQL's grows to it between checkpoints.
fn redo_bytes(scenario: &Scenario) -> u64 {
    let of_server = |name: &String| {
        let ServerSpec { kind, settings, .. } = &scenario.servers[name];
        if kind == "postgresql" {
            return server::postgres::log_bytes(settings);
        }
        server::mysql::redo_bytes(kind == "mariadb", settings).unwrap_or(DEFAULT_REDO_BYTES)
    };
    scenario.matrix.server.iter().map(of_server).max().unwrap_or(DEFAULT_REDO_BYTES)
}

/// Every data set of the matrix must fit on every disk of the matrix that holds data, and every disk is fit for a database.
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
        let redo_bytes = redo_bytes(scenario);
        let more_redo_bytes = redo_bytes.saturating_sub(DEFAULT_REDO_BYTES);
        for layout in scenario.layouts.iter().chain(scenario.replica_layouts()) {
            let log_is_apart = layout.mount_of(FileClass::Redo) > 0;
            let more_bytes = if log_is_apart { 0 } else { more_redo_bytes };
            let needed = data.bytes + DATABASE_FIXED_BYTES + more_bytes;
            let name = layout.stack_of(FileClass::Data);
            let size = scenario.stacks[name].head().size_bytes;
            if size < needed {
                let redo = match more_bytes {
                    0 => String::new(),
                    _ => format!(" and a redo log of {}", text::size(redo_bytes)),
                };
                let message = format!(
                    "{} is too small for workload `{workload}`: {}{redo} need about {}",
                    text::size(size),
                    data.words,
                    text::size(needed),
                );
                return Err(Mistake::at(size_key(scenario, name), message));
            }
            for (class, name) in layout.apart() {
                let more_bytes = if class == FileClass::Redo { more_redo_bytes } else { 0 };
                check_apart(scenario, layout, class, name, DATABASE_FIXED_BYTES + more_bytes)?;
            }
        }
    }
    Ok(())
}

/// A mount of its own need not hold the data, but what grows there needs room.
fn check_apart(
    scenario: &Scenario,
    layout: &Layout,
    class: FileClass,
    stack: &str,
    needed: u64,
) -> Result<(), Mistake> {
    let size = scenario.stacks[stack].head().size_bytes;
    if size < needed {
        let message = format!(
            "{} is too small for the class `{}` of layout `{}`, which needs about {}",
            text::size(size),
            class.key(),
            layout.name,
            text::size(needed),
        );
        return Err(Mistake::at(size_key(scenario, stack), message));
    }
    Ok(())
}

/// Where the size of a stack comes from.
fn size_key(scenario: &Scenario, name: &str) -> String {
    let key = if scenario.stacks[name].real().is_some() { "path" } else { "size" };
    format!("stacks.{name}.{key}")
}
