//! The layers of stack tables: one function reads one layer's keys. What a table leaves out has a default, and defaults that
//! no text gives are told as assumptions.

use std::collections::BTreeMap;

use spindle_model::{
    Ageing, Branch, CacheParameters, CachePolicy, Congestion, Dying, FaultParameters, IntentLogParameters,
    Limit, MICROSECOND, Outage, Promotion, Protocol, RaidLevel, RaidParameters, ReadErrors,
    ReplicatedParameters, Resync, SECOND, Spikes, SsdCacheParameters, StackSpec as Tree, Stalls, Stuck,
    Survivor, ThrottleParameters, WritePolicy,
};
use toml::Value;

use super::data_starts::NAMED_STARTS_BYTES;
use super::keys::Keys;
use super::reader::{boolean, count, duration, rate, size as size_of};
use super::stacks::{Context, On, Parts, StackSpec};
use super::{Complaint, complaint, did_you_mean};
use spindle_base::units::{format_duration_ns, format_rate_bytes_per_s, format_size_bytes, parse_size_bytes};

const LAYERS: [&str; 9] =
    ["aged", "cache", "fault", "intent-log", "mirror", "partition", "raid", "throttle", "tier"];

/// `size_bytes` is what the stack should have, if anything says so.
pub(super) fn layer(
    layer: &str,
    on: Option<&On>,
    keys: &mut Keys<'_>,
    size_bytes: Option<u64>,
    context: &mut Context<'_>,
) -> Result<Parts, Complaint> {
    let on = match on {
        None => return Err(complaint("on", "is missing: which stack is the layer on?")),
        Some(On::One(name)) => std::slice::from_ref(name),
        Some(On::Many(names)) => names.as_slice(),
    };
    if layer == "raid" {
        return raid(on, keys, size_bytes, context);
    }
    let [on] = on else {
        return Err(complaint("on", format!("names {} stacks, must name one", on.len())));
    };
    match layer {
        "partition" => partition(on, keys, size_bytes, context),
        "aged" => aged(context.below("on", on, size_bytes)?, keys, size_bytes),
        "cache" => cache(context.below("on", on, size_bytes)?, keys, size_bytes),
        "throttle" => throttle(context.below("on", on, size_bytes)?, keys, size_bytes),
        "fault" => fault(context.below("on", on, size_bytes)?, keys, size_bytes),
        "mirror" => mirror(on, keys, size_bytes, context),
        "tier" => tier(on, keys, size_bytes, context),
        "intent-log" => intent_log(on, keys, size_bytes, context),
        _ => {
            let near = did_you_mean(layer, &LAYERS);
            Err(complaint("layer", format!("`{layer}` is unknown{near}; known are {}", LAYERS.join(", "))))
        }
    }
}

/// The parts of a layer that is as large as its stacks make it, within `slack_bytes` of what was wanted.
fn natural(
    tree: Tree,
    summary: String,
    below: Vec<StackSpec>,
    wanted_bytes: Option<u64>,
    slack_bytes: u64,
) -> Result<Parts, Complaint> {
    let size_bytes = tree.most_bytes().expect("a layer has a size");
    if let Some(wanted_bytes) = wanted_bytes
        && !(wanted_bytes..=wanted_bytes.saturating_add(slack_bytes)).contains(&size_bytes)
    {
        let message = format!(
            "is {}, but what is below makes it {}; give a size to one of them",
            format_size_bytes(wanted_bytes),
            format_size_bytes(size_bytes)
        );
        return Err(complaint("size", message));
    }
    let mut assumptions: Vec<String> = Vec::new();
    let mut used = BTreeMap::new();
    for stack in below {
        for assumption in stack.assumptions() {
            if !assumptions.contains(assumption) {
                assumptions.push(assumption.clone());
            }
        }
        used.extend(stack.into_tables());
    }
    Ok(Parts { tree, size_bytes, summary, assumptions, used })
}

fn branch(stack: &StackSpec) -> Box<Branch> {
    Box::new(Branch { size_bytes: stack.size_bytes(), stack: stack.tree().clone() })
}

fn partition(
    on: &str,
    keys: &mut Keys<'_>,
    size_bytes: Option<u64>,
    context: &mut Context<'_>,
) -> Result<Parts, Complaint> {
    let offset_bytes = keys.take("offset", |value| match value.as_str() {
        Some(text) => match NAMED_STARTS_BYTES.iter().find(|(name, _)| *name == text) {
            Some((_, offset_bytes)) => Ok(*offset_bytes),
            None => parse_size_bytes(text),
        },
        None => size_of(value),
    })?;
    let offset_bytes = offset_bytes.unwrap_or(0);
    let wanted_below = size_bytes.map(|size_bytes| (size_bytes + offset_bytes).next_multiple_of(4096));
    let below = context.below("on", on, wanted_below)?;
    let room = below.size_bytes();
    let Some(rest) = room.checked_sub(offset_bytes).filter(|&rest| rest > 0) else {
        let bound = format_size_bytes(room);
        let message = format!("is {offset_bytes} bytes, must be below the size of the device below, {bound}");
        return Err(complaint("offset", message));
    };
    let summary = format!("A partition of: {}", below.summary());
    let tree = Tree::Partition { offset_bytes, below: branch(&below) };
    // The store's blocks are 4 KiB.
    let size_bytes = size_bytes.unwrap_or(rest) / 4096 * 4096;
    Ok(Parts { size_bytes, ..natural(tree, summary, vec![below], None, 0)? })
}

fn raid(
    on: &[String],
    keys: &mut Keys<'_>,
    size_bytes: Option<u64>,
    context: &mut Context<'_>,
) -> Result<Parts, Complaint> {
    let level = keys.take("level", |value| match value.as_integer() {
        Some(0) => Ok((0, RaidLevel::Raid0)),
        Some(1) => Ok((1, RaidLevel::Raid1)),
        Some(5) => Ok((5, RaidLevel::Raid5)),
        Some(6) => Ok((6, RaidLevel::Raid6)),
        Some(10) => Ok((10, RaidLevel::Raid10)),
        _ => Err(format!("`{value}` must be one of 0, 1, 5, 6, 10")),
    })?;
    let Some((number, level)) = level else { return Err(complaint("level", "is missing: 0, 1, 5, 6 or 10")) };
    let members = keys.count("members")?;
    let names: Vec<&String> = match (on, members) {
        ([one], Some(members)) => vec![one; members.min(1_000) as usize],
        (_, Some(_)) => {
            return Err(complaint("members", "counts copies of one stack, and `on` names several"));
        }
        (names, None) => names.iter().collect(),
    };
    let mut parameters = RaidParameters::new(level);
    parameters.chunk_bytes = keys.size("chunk")?.unwrap_or(parameters.chunk_bytes);
    let index = |value: &Value| count(value).map(|index| index as usize);
    parameters.missing_members = keys.list("missing_members", index)?;
    parameters.rebuilding_members = keys.list("rebuilding_members", index)?;
    parameters.rebuild_least_bytes_per_s =
        keys.rate("rebuild_least")?.unwrap_or(parameters.rebuild_least_bytes_per_s);
    parameters.rebuild_most_bytes_per_s =
        keys.rate("rebuild_most")?.unwrap_or(parameters.rebuild_most_bytes_per_s);
    parameters.rebuild_idle_ns = keys.duration("rebuild_idle")?.unwrap_or(parameters.rebuild_idle_ns);
    parameters.host_latency_ns = keys.duration("host_latency")?.unwrap_or(0);
    parameters.host_write_ns = keys.duration("host_write")?.unwrap_or(0);
    let bitmap_chunk = keys.size("bitmap_chunk")?;
    parameters.resync = match keys.choice("resync", &["never", "whole", "bitmap"])?.as_deref() {
        // mdadm's own choice for an internal bitmap.
        Some("bitmap") => Resync::Bitmap { region_bytes: bitmap_chunk.unwrap_or(64 << 20) },
        _ if bitmap_chunk.is_some() => {
            return Err(complaint("bitmap_chunk", "belongs to resync = \"bitmap\""));
        }
        Some("whole") => Resync::Whole,
        _ => Resync::Never,
    };
    parameters.validate(names.len()).map_err(|invalid| match invalid.key {
        "members" => complaint("on", format!("the members {}", invalid.problem)),
        key => complaint(key, invalid.problem),
    })?;

    let data_members = match level {
        RaidLevel::Raid0 => names.len() as u64,
        RaidLevel::Raid1 => 1,
        RaidLevel::Raid5 => names.len() as u64 - 1,
        RaidLevel::Raid6 => names.len() as u64 - 2,
        RaidLevel::Raid10 => names.len() as u64 / 2,
    };
    let chunk_bytes = parameters.chunk_bytes;
    let each = size_bytes.map(|size_bytes| size_bytes.div_ceil(data_members).next_multiple_of(chunk_bytes));
    let below: Vec<StackSpec> =
        names.iter().map(|name| context.below("on", name, each)).collect::<Result<_, _>>()?;
    let branches = below.iter().map(|stack| *branch(stack)).collect();
    let summary = format!(
        "RAID {number} of {}, chunk {}, of: {}",
        names.len(),
        format_size_bytes(chunk_bytes),
        below[0].summary()
    );
    let tree = Tree::Raid { parameters, members: branches };
    natural(tree, summary, below, size_bytes, 2 * names.len() as u64 * chunk_bytes)
}

fn cache(below: StackSpec, keys: &mut Keys<'_>, size_bytes: Option<u64>) -> Result<Parts, Complaint> {
    let policies = ["write-back", "write-through", "write-back-always"];
    let policy = match keys.choice("policy", &policies)?.as_deref() {
        None => return Err(complaint("policy", format!("is missing: {}", policies.join(", ")))),
        Some("write-back") => CachePolicy::WriteBack,
        Some("write-through") => CachePolicy::WriteThrough,
        Some(_) => CachePolicy::WriteBackAlways,
    };
    let Some(cache_bytes) = keys.size("cache")? else {
        return Err(complaint("cache", "is missing: how much memory has the controller for writes?"));
    };
    let assumed = CacheParameters::new(policy, cache_bytes);
    let command_ns = keys.duration("command")?;
    let parameters = CacheParameters {
        read_cache_bytes: keys.size("read_cache")?.unwrap_or(assumed.read_cache_bytes),
        read_ahead_bytes: keys.size("read_ahead")?.unwrap_or(assumed.read_ahead_bytes),
        command_ns: command_ns.unwrap_or(assumed.command_ns),
        command_interval_ns: keys.duration("command_interval")?.unwrap_or(assumed.command_interval_ns),
        link_bytes_per_s: keys.rate("link_rate")?.unwrap_or(assumed.link_bytes_per_s),
        destage_queue_depth: keys.count("destage_queue_depth")?.unwrap_or(assumed.destage_queue_depth),
        destage_bytes: keys.size("destage_size")?.unwrap_or(assumed.destage_bytes),
        destage_watermark_percent: keys
            .percent("destage_watermark")?
            .unwrap_or(assumed.destage_watermark_percent),
        destage_idle_ns: keys.duration("destage_idle")?.unwrap_or(assumed.destage_idle_ns),
        battery_out_at_ns: keys.duration("battery_out_at")?,
        battery_back_at_ns: keys.duration("battery_back_at")?,
        ..assumed
    };
    let name = match policy {
        CachePolicy::WriteBack => "write-back",
        CachePolicy::WriteThrough => "write-through",
        CachePolicy::WriteBackAlways => "write-back without regard to the battery",
    };
    let memory = format_size_bytes(cache_bytes);
    let read_ahead = match parameters.read_ahead_bytes {
        0 => String::new(),
        bytes => format!(", reading ahead by stripes of {}", format_size_bytes(bytes)),
    };
    let summary = format!(
        "A controller with {memory} of battery-backed cache, {name}{read_ahead}, on: {}",
        below.summary()
    );
    let read_ahead_bytes = parameters.read_ahead_bytes;
    let tree = Tree::Cache { parameters, below: branch(&below) };
    let mut parts = natural(tree, summary, vec![below], size_bytes, u64::MAX)?;
    if command_ns.is_none() {
        parts.assumptions.push(
            "command = 40 us: a battery-backed controller is taken to need 20 to 50 us for a write"
                .to_owned(),
        );
    }
    if read_ahead_bytes > 0 {
        parts
            .assumptions
            .push("32 sequential readers are told apart: firmwares do not publish it".to_owned());
    }
    Ok(parts)
}

/// A drive that was used: full, and overwritten three times, unless the table says otherwise.
fn aged(below: StackSpec, keys: &mut Keys<'_>, size_bytes: Option<u64>) -> Result<Parts, Complaint> {
    let ageing = Ageing {
        fill_percent: keys.percent("fill")?.unwrap_or(100),
        overwrite_percent: keys.percent("overwrite")?.unwrap_or(300),
        seed: 1,
    };
    let summary = format!(
        "{} Used: filled to {} %, then overwritten at random by {} % of its size.",
        below.summary(),
        ageing.fill_percent,
        ageing.overwrite_percent
    );
    let tree = Tree::Aged { ageing, below: branch(&below) };
    natural(tree, summary, vec![below], size_bytes, u64::MAX)
}

fn throttle(below: StackSpec, keys: &mut Keys<'_>, size_bytes: Option<u64>) -> Result<Parts, Complaint> {
    let read = Limit { iops: keys.count("read_iops")?, bytes_per_s: keys.rate("read_rate")? };
    let write = Limit { iops: keys.count("write_iops")?, bytes_per_s: keys.rate("write_rate")? };
    let total = Limit { iops: keys.count("iops")?, bytes_per_s: keys.rate("rate")? };
    let burst_ns = keys.duration("burst")?.unwrap_or(0);
    if [read, write, total] == [Limit::default(); 3] {
        return Err(complaint("", "limits nothing: give `iops`, `rate`, or one of them for reads or writes"));
    }
    let parameters = ThrottleParameters { read, write, total, burst_ns };
    let limits = [("reads", read), ("writes", write), ("all", total)].map(|(what, limit)| {
        let iops = limit.iops.map(|iops| format!("{what} at {iops} IOPS"));
        let rate =
            limit.bytes_per_s.map(|rate| format!("{what} at {}", format_rate_bytes_per_s(rate as f64)));
        iops.into_iter().chain(rate)
    });
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    let summary = format!("Throttled ({}): {}", limits.join(", "), below.summary());
    let tree = Tree::Throttle { parameters, below: branch(&below) };
    natural(tree, summary, vec![below], size_bytes, u64::MAX)
}

fn fault(below: StackSpec, keys: &mut Keys<'_>, size_bytes: Option<u64>) -> Result<Parts, Complaint> {
    let spikes = keys.duration("spike")?.map(|extra_ns| (extra_ns, Spikes { per_million: 0, extra_ns }));
    let per_million = keys.count("spikes_per_million")?;
    let stall = (keys.duration("stall")?, keys.duration("stall_period")?);
    let stuck_after = keys.count("stuck_after")?;
    let stuck_for = keys.duration("stuck_for")?;
    let dying_after = keys.duration("dying_after")?;
    let dying = (keys.duration("dying_per_second")?, keys.duration("dying_per_read")?);
    let parameters = FaultParameters {
        spikes: match (spikes, per_million) {
            (Some((_, spikes)), Some(per_million)) => Some(Spikes { per_million, ..spikes }),
            (None, None) => None,
            (Some(_), None) => {
                return Err(complaint("spikes_per_million", "is missing, and `spike` is there"));
            }
            (None, Some(_)) => {
                return Err(complaint("spike", "is missing, and `spikes_per_million` is there"));
            }
        },
        stalls: match stall {
            (Some(duration_ns), Some(period_ns)) => Some(Stalls { period_ns, duration_ns }),
            (None, None) => None,
            (Some(_), None) => return Err(complaint("stall_period", "is missing, and `stall` is there")),
            (None, Some(_)) => return Err(complaint("stall", "is missing, and `stall_period` is there")),
        },
        stuck: stuck_after.map(|after_requests| Stuck { after_requests, duration_ns: stuck_for }),
        read_errors: ReadErrors {
            ranges: keys.list("read_error_ranges", range)?,
            per_million: keys.count("read_errors_per_million")?.unwrap_or(0),
            recovery_ns: keys.duration("read_error_recovery")?.unwrap_or(0),
        },
        dying: (dying_after.is_some() || dying != (None, None)).then(|| Dying {
            starts_at_ns: dying_after.unwrap_or(0),
            extra_ns_per_s: dying.0.unwrap_or(0),
            extra_ns_per_read: dying.1.unwrap_or(0),
        }),
        lying_flush_ns: keys.duration("lying_flush")?,
    };
    if parameters == FaultParameters::default() {
        return Err(complaint(
            "",
            "has no fault: give `spike`, `stall`, `stuck_after`, `lying_flush` or another",
        ));
    }
    let mut faults = Vec::new();
    if let Some(Spikes { per_million, extra_ns }) = parameters.spikes {
        faults.push(format!(
            "{per_million} in a million requests take {} longer",
            format_duration_ns(extra_ns)
        ));
    }
    if let Some(Stalls { period_ns, duration_ns }) = parameters.stalls {
        let (period, duration) = (format_duration_ns(period_ns), format_duration_ns(duration_ns));
        faults.push(format!("stands still for {duration} every {period}"));
    }
    if let Some(Stuck { after_requests, .. }) = parameters.stuck {
        faults.push(format!("request {after_requests} gets stuck"));
    }
    if parameters.read_errors != ReadErrors::default() {
        faults.push("some reads fail".to_owned());
    }
    if parameters.dying.is_some() {
        faults.push("becomes slower and slower".to_owned());
    }
    if parameters.lying_flush_ns.is_some() {
        faults.push("lies about FLUSH".to_owned());
    }
    let summary = format!("Faulty ({}): {}", faults.join(", "), below.summary());
    let tree = Tree::Fault { parameters, below: branch(&below) };
    natural(tree, summary, vec![below], size_bytes, u64::MAX)
}

/// `["1 GiB", "64 KiB"]`: offset and size.
fn range(value: &Value) -> Result<(u64, u64), String> {
    match value.as_array().map(Vec::as_slice) {
        Some([offset, length]) => Ok((size_of(offset)?, size_of(length)?)),
        _ => Err(format!("`{value}` is not an offset and a size; write for example [\"1 GiB\", \"64 KiB\"]")),
    }
}

fn mirror(
    on: &str,
    keys: &mut Keys<'_>,
    size_bytes: Option<u64>,
    context: &mut Context<'_>,
) -> Result<Parts, Complaint> {
    let peer_name = keys.text("peer")?.unwrap_or_else(|| on.to_owned());
    let local = context.below("on", on, size_bytes)?;
    let peer = context.below("peer", &peer_name, size_bytes)?;
    let protocol = match keys.choice("protocol", &["A", "B", "C"])?.as_deref() {
        None => return Err(complaint("protocol", "is missing: A, B or C")),
        Some("A") => Protocol::A,
        Some("B") => Protocol::B,
        Some(_) => Protocol::C,
    };
    let Some(bytes_per_s) = keys.rate("link_rate")? else {
        return Err(complaint("link_rate", "is missing; about \"110 MB/s\" for 1 Gb/s Ethernet"));
    };
    let Some(round_trip_ns) = keys.duration("round_trip")? else {
        return Err(complaint("round_trip", "is missing; 100 to 200 us for 1 Gb/s Ethernet"));
    };
    let (jitter_ns, send_buffer) = (keys.duration("jitter")?, keys.size("send_buffer")?);
    let timeout_ns = keys.duration("timeout")?.unwrap_or(6 * SECOND);
    let resync = keys.rate("resync_rate")?;
    let outages = keys.list("outages", |value| match value.as_array().map(Vec::as_slice) {
        Some([at, length]) => Ok(Outage { starts_at_ns: duration(at)?, duration_ns: duration(length)? }),
        _ => Err(format!("`{value}` is not a start and a duration; write for example [\"30 s\", \"5 s\"]")),
    })?;
    let congestions = keys.list("congestions", |value| match value.as_array().map(Vec::as_slice) {
        Some([at, length, to]) => Ok(Congestion {
            starts_at_ns: duration(at)?,
            duration_ns: duration(length)?,
            bytes_per_s: rate(to)?,
        }),
        _ => Err(format!(
            "`{value}` is not a start, a duration and a rate; write for example [\"30 s\", \"5 s\", \"1 MB/s\"]"
        )),
    })?;
    let survivor = match keys.choice("survivor", &["local", "peer"])?.as_deref() {
        Some("peer") => Survivor::Peer,
        _ => Survivor::Local,
    };
    let parameters = ReplicatedParameters {
        protocol,
        bytes_per_s,
        round_trip_ns,
        jitter_ns: jitter_ns.unwrap_or(20 * MICROSECOND),
        send_buffer_bytes: send_buffer.unwrap_or(2 << 20),
        outages,
        congestions,
        timeout_ns,
        resync_bytes_per_s: resync.unwrap_or(30_000_000),
        survivor,
    };
    let summary = format!(
        "Replicated by protocol {protocol:?} over {} with a round trip of {}: {}",
        format_rate_bytes_per_s(bytes_per_s as f64),
        format_duration_ns(round_trip_ns),
        local.summary()
    );
    let tree = Tree::Replicated { parameters, local: branch(&local), peer: branch(&peer) };
    let mut parts = natural(tree, summary, vec![local, peer], size_bytes, u64::MAX)?;
    if jitter_ns.is_none() {
        parts.assumptions.push("jitter = 20 us: no text found".to_owned());
    }
    if send_buffer.is_none() {
        parts.assumptions.push("send_buffer = 2 MiB: DRBD tunes it by itself".to_owned());
    }
    if resync.is_none() {
        parts.assumptions.push("resync_rate = 30 MB/s: about a third of 1 Gb/s".to_owned());
    }
    Ok(parts)
}

/// The fast and the slow stack of a layer.
fn fast_and_slow(
    on: &str,
    keys: &mut Keys<'_>,
    size_bytes: Option<u64>,
    context: &mut Context<'_>,
) -> Result<(StackSpec, StackSpec), Complaint> {
    let Some(name) = keys.text("fast")? else {
        return Err(complaint("fast", "is missing: which stack is in front?"));
    };
    let fast_size = keys.size("fast_size")?;
    Ok((context.below("fast", &name, fast_size)?, context.below("on", on, size_bytes)?))
}

fn fits_on(fast: &StackSpec, key: &str, size_bytes: u64) -> Result<(), Complaint> {
    if size_bytes <= fast.size_bytes() {
        return Ok(());
    }
    let (size, most) = (format_size_bytes(size_bytes), format_size_bytes(fast.size_bytes()));
    Err(complaint(key, format!("is {size}, must be at most the size of the fast stack, {most}")))
}

fn tier(
    on: &str,
    keys: &mut Keys<'_>,
    size_bytes: Option<u64>,
    context: &mut Context<'_>,
) -> Result<Parts, Complaint> {
    let (fast, slow) = fast_and_slow(on, keys, size_bytes, context)?;
    let policies = ["write-back", "write-through", "write-around"];
    let policy = keys.choice("policy", &policies)?;
    let write_policy = match policy.as_deref() {
        None => return Err(complaint("policy", format!("is missing: {}", policies.join(", ")))),
        Some("write-back") => WritePolicy::Back,
        Some("write-through") => WritePolicy::Through,
        Some(_) => WritePolicy::Around,
    };
    let promotion = keys.take("promotion", |value| match value.as_str() {
        Some("always") => Ok(Promotion::Always),
        Some("never") => Ok(Promotion::Never),
        _ => match rate(value) {
            Ok(bytes_per_s) => Ok(Promotion::AtRate { bytes_per_s }),
            Err(_) => Err(format!("`{value}` must be \"always\", \"never\" or a rate such as \"8 MiB/s\"")),
        },
    })?;
    let (block, writeback) = (keys.size("block")?, keys.percent("writeback")?);
    let writeback_rate = keys.rate("writeback_rate")?;
    let parameters = SsdCacheParameters {
        block_bytes: block.unwrap_or(16 << 10),
        cache_bytes: keys.size("cache")?.unwrap_or(fast.size_bytes()),
        write_policy,
        promotion: promotion.unwrap_or(Promotion::Always),
        sequential_cutoff_bytes: keys.size("sequential_cutoff")?.unwrap_or(4 << 20),
        writeback_percent: writeback.unwrap_or(10),
        writeback_bytes_per_s: writeback_rate.unwrap_or(50_000_000),
        dirty_limit_percent: keys.percent("dirty_limit")?.unwrap_or(70),
        keeps_clean_blocks: keys.take("keeps_clean_blocks", boolean)?.unwrap_or(true),
    };
    fits_on(&fast, "cache", parameters.cache_bytes)?;
    let summary = format!(
        "A {} cache of {} on: {} In front of: {}",
        policy.unwrap_or_default(),
        format_size_bytes(parameters.cache_bytes),
        fast.summary(),
        slow.summary()
    );
    let tree = Tree::SsdCache { parameters, fast: branch(&fast), slow: branch(&slow) };
    let mut parts = natural(tree, summary, vec![fast, slow], size_bytes, u64::MAX)?;
    if block.is_none() {
        parts.assumptions.push("block = 16 KiB: the page of InnoDB".to_owned());
    }
    if write_policy == WritePolicy::Back && writeback.is_none() {
        parts.assumptions.push("writeback = 10 %: bcache's, from memory".to_owned());
    }
    if write_policy == WritePolicy::Back && writeback_rate.is_none() {
        parts.assumptions.push("writeback_rate = 50 MB/s: bcache has a controller for it".to_owned());
    }
    Ok(parts)
}

fn intent_log(
    on: &str,
    keys: &mut Keys<'_>,
    size_bytes: Option<u64>,
    context: &mut Context<'_>,
) -> Result<Parts, Complaint> {
    let (fast, slow) = fast_and_slow(on, keys, size_bytes, context)?;
    let (header, block) = (keys.size("record_header")?, keys.size("log_block")?);
    let (memory_ns, group) = (keys.duration("memory")?, keys.size("group")?);
    let (dirty_limit, depth) = (keys.size("dirty_limit")?, keys.count("pool_queue_depth")?);
    let parameters = IntentLogParameters {
        log_bytes: keys.size("log")?.unwrap_or(fast.size_bytes()),
        record_header_bytes: header.unwrap_or(192),
        log_block_bytes: block.unwrap_or(4 << 10),
        memory_ns: memory_ns.unwrap_or(MICROSECOND),
        group_interval_ns: keys.duration("group_interval")?.unwrap_or(5 * SECOND),
        group_bytes: group.unwrap_or(64 << 20),
        dirty_limit_bytes: dirty_limit.unwrap_or(256 << 20),
        pool_queue_depth: depth.unwrap_or(10),
    };
    fits_on(&fast, "log", parameters.log_bytes)?;
    let summary =
        format!("A log of synchronous writes on: {} In front of: {}", fast.summary(), slow.summary());
    let tree = Tree::IntentLog { parameters, fast: branch(&fast), slow: branch(&slow) };
    let mut parts = natural(tree, summary, vec![fast, slow], size_bytes, u64::MAX)?;
    let assumed = [
        (header.is_none(), "record_header = 192 B: from memory"),
        (block.is_none(), "log_block = 4 KiB: from memory"),
        (memory_ns.is_none(), "memory = 1 us: a copy of 16 KiB"),
        (group.is_none(), "group = 64 MiB: from memory"),
        (dirty_limit.is_none(), "dirty_limit = 256 MiB: a tenth of a small machine's memory"),
        (depth.is_none(), "pool_queue_depth = 10: from memory"),
    ];
    parts.assumptions.extend(assumed.iter().filter(|(is, _)| *is).map(|(_, text)| (*text).to_owned()));
    Ok(parts)
}
