//! Memory by NUMA node, swap, huge pages, and the kernel's settings for writing back.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spindle_base::proc::field;
use spindle_mount::unescape;

use super::tree::Tree;

/// Files of `/proc/sys/vm`. A limit in bytes takes the place of its ratio unless it is zero.
const SETTINGS: [&str; 10] = [
    "swappiness",
    "dirty_ratio",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_background_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
    "overcommit_memory",
    "vfs_cache_pressure",
    "zone_reclaim_mode",
];

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
#[serde(default)]
pub struct Memory {
    /// Of the machine, without the limits of control groups.
    pub total_bytes: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<MemoryNode>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub swaps: Vec<Swap>,
    /// In the order of their size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub huge_pages: Vec<HugePages>,
    /// `always`, `madvise` or `never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transparent_huge_pages: Option<String>,
    /// Settings of the kernel's virtual memory by their own names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, u64>,
}

/// A NUMA node.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
pub struct MemoryNode {
    pub node: u32,
    pub size_bytes: u64,
    /// As the kernel lists them: `0-3,8-11`.
    pub cpus: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
pub struct Swap {
    /// `partition` or `file`; the kernel calls every block device a partition.
    pub kind: String,
    pub size_bytes: u64,
}

/// Pages that are set aside.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
pub struct HugePages {
    pub size_bytes: u64,
    pub count: u64,
}

impl Memory {
    pub(super) fn read(tree: Tree) -> Memory {
        let setting = |name: &str| Some((name.to_owned(), tree.number(&format!("proc/sys/vm/{name}"))?));
        Memory {
            total_bytes: tree.text("proc/meminfo").and_then(|text| kib(&text, "MemTotal")).unwrap_or(0),
            nodes: nodes(tree),
            swaps: swaps(&tree.text("proc/swaps").unwrap_or_default()),
            huge_pages: huge_pages(tree),
            transparent_huge_pages: tree.choice("sys/kernel/mm/transparent_hugepage/enabled"),
            settings: SETTINGS.into_iter().filter_map(setting).collect(),
        }
    }
}

/// Bytes of a line that ends with kB.
fn kib(text: &str, key: &str) -> Option<u64> {
    Some(field(text, key, ':')?.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

fn nodes(tree: Tree) -> Vec<MemoryNode> {
    const NODES: &str = "sys/devices/system/node";
    let node = |name: String| {
        let node = name.strip_prefix("node")?.parse().ok()?;
        let text = tree.text(&format!("{NODES}/{name}/meminfo"))?;
        let size_bytes = kib(&text, &format!("Node {node} MemTotal"))?;
        let cpus = tree.text(&format!("{NODES}/{name}/cpulist")).unwrap_or_default();
        Some(MemoryNode { node, size_bytes, cpus })
    };
    tree.numbered(NODES, "node").into_iter().filter_map(node).collect()
}

/// Names of swap files and devices stay out: they are paths.
fn swaps(text: &str) -> Vec<Swap> {
    let swap = |line: &str| {
        let mut words = line.split_whitespace().map(unescape).skip(1);
        let (kind, kib) = (words.next()?, words.next()?.parse::<u64>().ok()?);
        Some(Swap { kind, size_bytes: kib << 10 })
    };
    text.lines().skip(1).filter_map(swap).collect()
}

fn huge_pages(tree: Tree) -> Vec<HugePages> {
    const POOLS: &str = "sys/kernel/mm/hugepages";
    let pool = |name: String| {
        let size_kib: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        let count = tree.number(&format!("{POOLS}/{name}/nr_hugepages"))?;
        Some(HugePages { size_bytes: size_kib << 10, count })
    };
    let mut pools: Vec<HugePages> = tree.names(POOLS).into_iter().filter_map(pool).collect();
    pools.sort_by_key(|pool| pool.size_bytes);
    pools
}
