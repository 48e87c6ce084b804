//! Sockets, cores, threads, caches, frequency and idle states.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spindle_base::units::parse_size_bytes;

use super::tree::Tree;

const CPUS: &str = "sys/devices/system/cpu";

/// The model is in [`crate::host::provenance::Machine`].
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
#[serde(default)]
pub struct Processor {
    pub sockets: u32,
    pub cores: u32,
    /// Threads of all cores that are online. A process may be allowed fewer.
    pub threads: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<Cache>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_driver: Option<String>,
    /// Of all threads; several if they differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub governors: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_min_khz: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_max_khz: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_driver: Option<String>,
    /// C-states of the first thread, the shallowest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub idle_states: Vec<IdleState>,
}

/// One kind of cache.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
pub struct Cache {
    pub level: u32,
    /// `data`, `instruction` or `unified`.
    pub kind: String,
    /// Of one of them.
    pub size_bytes: u64,
    pub count: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
pub struct IdleState {
    pub name: String,
    /// Time to leave it.
    pub exit_latency_us: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_disabled: bool,
}

impl Processor {
    pub(super) fn read(tree: Tree) -> Processor {
        let threads: Vec<String> =
            tree.numbered(CPUS, "cpu").into_iter().filter(|cpu| is_online(tree, cpu)).collect();
        let topology = |cpu: &String, name: &str| {
            tree.number::<i64>(&format!("{CPUS}/{cpu}/topology/{name}")).unwrap_or(0)
        };
        let sockets: BTreeSet<i64> = threads.iter().map(|cpu| topology(cpu, "physical_package_id")).collect();
        // Core numbers repeat in each socket, and in each die of a socket.
        let core =
            |cpu: &String| ["physical_package_id", "die_id", "core_id"].map(|name| topology(cpu, name));
        let cores: BTreeSet<_> = threads.iter().map(core).collect();
        let frequency = |name: &str| tree.number(&format!("{CPUS}/cpu0/cpufreq/{name}"));
        let governors: BTreeSet<String> = threads
            .iter()
            .filter_map(|cpu| tree.text(&format!("{CPUS}/{cpu}/cpufreq/scaling_governor")))
            .collect();
        Processor {
            sockets: sockets.len() as u32,
            cores: cores.len() as u32,
            threads: threads.len() as u32,
            caches: caches(tree, &threads),
            frequency_driver: tree.text(&format!("{CPUS}/cpu0/cpufreq/scaling_driver")),
            governors: governors.into_iter().collect(),
            frequency_min_khz: frequency("scaling_min_freq"),
            frequency_max_khz: frequency("scaling_max_freq"),
            idle_driver: tree
                .text(&format!("{CPUS}/cpuidle/current_driver"))
                .filter(|driver| driver != "none"),
            idle_states: idle_states(tree),
        }
    }
}

/// The first thread often has no switch.
fn is_online(tree: Tree, cpu: &str) -> bool {
    tree.text(&format!("{CPUS}/{cpu}/online")).is_none_or(|state| state == "1")
}

/// Two threads see the same cache if they list the same threads as its users.
fn caches(tree: Tree, threads: &[String]) -> Vec<Cache> {
    let mut users: BTreeMap<(u32, String, u64), BTreeSet<String>> = BTreeMap::new();
    for cpu in threads {
        let directory = format!("{CPUS}/{cpu}/cache");
        for index in tree.numbered(&directory, "index") {
            let of = |name: &str| tree.text(&format!("{directory}/{index}/{name}"));
            let kind = || {
                Some((
                    of("level")?.parse().ok()?,
                    of("type")?.to_lowercase(),
                    parse_size_bytes(&of("size")?).ok()?,
                ))
            };
            if let Some(kind) = kind() {
                users.entry(kind).or_default().insert(of("shared_cpu_list").unwrap_or_else(|| cpu.clone()));
            }
        }
    }
    let cache = |((level, kind, size_bytes), users): (_, BTreeSet<String>)| Cache {
        level,
        kind,
        size_bytes,
        count: users.len() as u32,
    };
    users.into_iter().map(cache).collect()
}

fn idle_states(tree: Tree) -> Vec<IdleState> {
    let directory = format!("{CPUS}/cpu0/cpuidle");
    let state = |state: String| {
        Some(IdleState {
            name: tree.text(&format!("{directory}/{state}/name"))?,
            exit_latency_us: tree.number(&format!("{directory}/{state}/latency"))?,
            is_disabled: tree.text(&format!("{directory}/{state}/disable")).is_some_and(|text| text != "0"),
        })
    };
    tree.numbered(&directory, "state").into_iter().filter_map(state).collect()
}
