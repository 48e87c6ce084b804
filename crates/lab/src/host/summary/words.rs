//! The summary in words: sections of lines with a name and a value.

use serde::Serialize;
use spindle_base::text::{plural, size};
use spindle_base::units::format_size_bytes;

use super::block_device::{Alignment, BlockDevice};
use super::{FileSystem, Memory, Platform, Processor, Raid, Summary};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    pub title: String,
    /// Name and value. A device that lies on another one is indented below it.
    pub lines: Vec<(String, String)>,
}

pub(super) fn sections(summary: &Summary) -> Vec<Section> {
    let section = |title: &str, lines| Section { title: title.to_owned(), lines };
    let mut sections = vec![
        section("Platform", platform(&summary.platform)),
        section("Processor", processor(&summary.processor)),
        section("Memory", memory(&summary.memory)),
        section("Block devices", devices(&summary.block_devices)),
        section("Queues", queues(&summary.block_devices)),
        section("File systems", file_systems(&summary.file_systems)),
    ];
    sections.retain(|section| !section.lines.is_empty());
    sections
}

/// Lines with a value.
fn lines<const N: usize>(lines: [(&str, Option<String>); N]) -> Vec<(String, String)> {
    let told = lines.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    told.filter(|(_, value)| !value.is_empty()).collect()
}

fn joined(parts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn platform(platform: &Platform) -> Vec<(String, String)> {
    let others =
        platform.clocksources_available.iter().filter(|clock| Some(*clock) != platform.clocksource.as_ref());
    let others: Vec<&str> = others.map(String::as_str).collect();
    let others = (!others.is_empty()).then(|| format!("also available: {}", others.join(" ")));
    lines([
        ("machine", joined([platform.vendor.clone(), platform.product.clone()])),
        ("architecture", Some(platform.architecture.clone())),
        ("hypervisor", Some(platform.hypervisor.clone().unwrap_or_else(|| "none found".to_owned()))),
        ("clock source", joined([platform.clocksource.clone(), others])),
    ])
}

fn processor(processor: &Processor) -> Vec<(String, String)> {
    let count = |count: u32, noun: &str| (count > 0).then(|| plural(count as usize, noun));
    let cache = |cache: &super::Cache| {
        let kind = if cache.kind == "unified" { String::new() } else { format!(" {}", cache.kind) };
        format!("L{}{kind} {} x {}", cache.level, cache.count, format_size_bytes(cache.size_bytes))
    };
    let caches: Vec<String> = processor.caches.iter().map(cache).collect();
    let mhz = |khz: u64| khz / 1000;
    let range = processor.frequency_min_khz.zip(processor.frequency_max_khz);
    let state = |state: &super::IdleState| {
        let off = if state.is_disabled { ", disabled" } else { "" };
        format!("{} ({} us{off})", state.name, state.exit_latency_us)
    };
    let states: Vec<String> = processor.idle_states.iter().map(state).collect();
    lines([
        (
            "threads",
            joined([
                count(processor.sockets, "socket"),
                count(processor.cores, "core"),
                count(processor.threads, "thread"),
            ]),
        ),
        ("caches", Some(caches.join(", "))),
        (
            "frequency",
            joined([
                Some(processor.governors.join(" and ")),
                processor.frequency_driver.clone(),
                range.map(|(least, most)| format!("{} to {} MHz", mhz(least), mhz(most))),
            ]),
        ),
        ("idle states", joined([processor.idle_driver.clone(), Some(states.join(", "))])),
    ])
}

fn memory(memory: &Memory) -> Vec<(String, String)> {
    let nodes = memory
        .nodes
        .iter()
        .map(|node| format!("node {}: {}, cores {}", node.node, size(node.size_bytes), node.cpus));
    let swaps: Vec<String> =
        memory.swaps.iter().map(|swap| format!("{} {}", swap.kind, size(swap.size_bytes))).collect();
    let pages = memory.huge_pages.iter().filter(|pages| pages.count > 0);
    let pages = pages.map(|pages| format!("{} x {}", pages.count, format_size_bytes(pages.size_bytes)));
    let pages: Vec<String> = pages.collect();
    let or_none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
    let settings: Vec<String> =
        memory.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    lines([
        ("total", (memory.total_bytes > 0).then(|| size(memory.total_bytes))),
        ("NUMA", Some(nodes.collect::<Vec<_>>().join("; "))),
        ("swap", Some(or_none(swaps.join(", ")))),
        ("huge pages", Some(or_none(pages.join(", ")))),
        ("transparent huge pages", memory.transparent_huge_pages.clone()),
        ("vm settings", Some(settings.join(", "))),
    ])
}

/// Each device below the first one that it lies on.
fn devices(devices: &[BlockDevice]) -> Vec<(String, String)> {
    let is_known = |name: &String| devices.iter().any(|device| device.name == *name);
    let roots = devices.iter().filter(|device| !device.on.first().is_some_and(is_known));
    let mut lines = Vec::new();
    for root in roots {
        add_with_those_on_it(root, devices, 0, &mut lines);
    }
    lines
}

/// A record from elsewhere may have a circle, so the depth has a bound.
fn add_with_those_on_it(
    device: &BlockDevice,
    all: &[BlockDevice],
    depth: usize,
    lines: &mut Vec<(String, String)>,
) {
    const DEPTH_MOST: usize = 8;
    lines.push((format!("{}{}", "  ".repeat(depth), device.name), description(device)));
    if depth < DEPTH_MOST {
        for other in all.iter().filter(|other| other.on.first() == Some(&device.name)) {
            add_with_those_on_it(other, all, depth + 1, lines);
        }
    }
}

fn description(device: &BlockDevice) -> String {
    let boundary = |bytes: u64, what: &str| {
        (bytes > device.physical_block_bytes).then(|| format!("{what} {}", format_size_bytes(bytes)))
    };
    let is_partition = device.start_bytes.is_some();
    let blocks =
        format!("blocks of {} (physical {})", device.logical_block_bytes, device.physical_block_bytes);
    let several = (device.on.len() > 1).then(|| format!("on {}", device.on.join(" ")));
    let parts = [
        Some(format!("{} {}", device.kind, size(device.size_bytes))),
        device.model.clone(),
        device.controller.as_ref().map(|driver| format!("controller {driver}")),
        several,
        device.raid.as_ref().map(raid),
        (!is_partition && device.logical_block_bytes > 0).then_some(blocks),
        boundary(device.minimum_io_bytes, "chunk").filter(|_| !is_partition),
        boundary(device.optimal_io_bytes, "stripe").filter(|_| !is_partition),
        device.start_bytes.map(|start| format!("starts at {}", format_size_bytes(start))),
        device.alignment().map(|alignment| match alignment {
            Alignment::Aligned => "aligned".to_owned(),
            Alignment::Off { bytes, boundary_bytes } => {
                format!("NOT ALIGNED: {bytes} bytes past a boundary of {boundary_bytes}")
            }
            Alignment::Kernel => "NOT ALIGNED, says the kernel".to_owned(),
        }),
    ];
    joined(parts).unwrap_or_default()
}

fn raid(raid: &Raid) -> String {
    let chunk = (raid.chunk_bytes > 0).then(|| format!("chunk {}", format_size_bytes(raid.chunk_bytes)));
    let parts = [
        Some(format!("{} of {}", raid.level, plural(raid.disks as usize, "disk"))),
        chunk,
        Some(raid.state.clone()),
        (raid.degraded > 0).then(|| format!("DEGRADED by {}", raid.degraded)),
        raid.action.clone(),
        raid.bitmap.then(|| "bitmap".to_owned()),
    ];
    joined(parts).unwrap_or_default()
}

fn queues(devices: &[BlockDevice]) -> Vec<(String, String)> {
    let with_one = devices.iter().filter(|device| !device.queue.is_empty());
    let words = |device: &BlockDevice| {
        let settings = device.queue.iter().map(|(name, value)| format!("{name} {value}"));
        settings.collect::<Vec<_>>().join(", ")
    };
    with_one.map(|device| (device.name.clone(), words(device))).collect()
}

fn file_systems(file_systems: &[FileSystem]) -> Vec<(String, String)> {
    let words = |file_system: &FileSystem| {
        let device = file_system.device.as_ref().map(|device| format!(" on {device}")).unwrap_or_default();
        format!("{}{device}: {}", file_system.kind, file_system.options.join(","))
    };
    file_systems.iter().map(|file_system| (file_system.at.clone(), words(file_system))).collect()
}
