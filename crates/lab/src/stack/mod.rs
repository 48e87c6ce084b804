//! Profiles: one TOML file describes a device, and every parameter says where it comes from.
//!
//! `key = { value = "8.5 ms", source = "..." }`, or `assumption = "..."` where no text was found; one of the two, always. A number
//! that nobody can check must not pass for a fact, so a source marked `[UNVERIFIED]` is refused.

mod data_starts;
mod keys;
mod layers;
pub mod layout;
mod misses;
mod reader;
mod ready_made;
mod stacks;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde::Deserialize;
use spindle_model::{
    DiskParameters, FlashParameters, LatencyQuantiles, Parameters, ReadRetries, SlcParameters, Stroke,
    VictimChoice, VolumeParameters, WriteCache,
};

pub use data_starts::{LVM_DATA_STARTS_BYTES, PARTITION_STARTS_BYTES};
pub use misses::{Miss, built_in_misses};
use reader::{
    Entry, Reader, boolean, choice, count, duration, percent, rate, rotation, share_per_million, size,
};
pub use ready_made::ready_made_names;
use spindle_base::Mistake;
use spindle_base::near::did_you_mean;
pub use stacks::{On, PoolSpec, StackFile, StackSpec, StackTable, built_in_stack};

/// Of a profile's file.
const TEXT_BYTES_MOST: u64 = 1 << 20;

/// The profiles inside the binary, by name.
pub const PROFILES: [(&str, &str); 34] = [
    ("660p-1024", include_str!("../../../../profiles/660p-1024.toml")),
    ("850evo-250", include_str!("../../../../profiles/850evo-250.toml")),
    ("870evo", include_str!("../../../../profiles/870evo.toml")),
    ("870qvo-1000", include_str!("../../../../profiles/870qvo-1000.toml")),
    ("970pro-512", include_str!("../../../../profiles/970pro-512.toml")),
    ("agility3-120", include_str!("../../../../profiles/agility3-120.toml")),
    ("agility3-240", include_str!("../../../../profiles/agility3-240.toml")),
    ("agility3-60", include_str!("../../../../profiles/agility3-60.toml")),
    ("agility3-60-datasheet", include_str!("../../../../profiles/agility3-60-datasheet.toml")),
    ("azure-p10", include_str!("../../../../profiles/azure-p10.toml")),
    ("azure-p30", include_str!("../../../../profiles/azure-p30.toml")),
    ("barracuda-160", include_str!("../../../../profiles/barracuda-160.toml")),
    ("cheetah-15k7", include_str!("../../../../profiles/cheetah-15k7.toml")),
    ("ebs-gp2", include_str!("../../../../profiles/ebs-gp2.toml")),
    ("ebs-gp3", include_str!("../../../../profiles/ebs-gp3.toml")),
    ("ebs-io2", include_str!("../../../../profiles/ebs-io2.toml")),
    ("flash-285us-4ch", include_str!("../../../../profiles/flash-285us-4ch.toml")),
    ("hdd-7200", include_str!("../../../../profiles/hdd-7200.toml")),
    ("intel320-160", include_str!("../../../../profiles/intel320-160.toml")),
    ("iodrive-160", include_str!("../../../../profiles/iodrive-160.toml")),
    ("iodrive-duo-320", include_str!("../../../../profiles/iodrive-duo-320.toml")),
    ("iodrive-mlc-320", include_str!("../../../../profiles/iodrive-mlc-320.toml")),
    ("micron7300-pro", include_str!("../../../../profiles/micron7300-pro.toml")),
    ("null", include_str!("../../../../profiles/null.toml")),
    ("pm883-960", include_str!("../../../../profiles/pm883-960.toml")),
    ("pm9a3", include_str!("../../../../profiles/pm9a3.toml")),
    ("pm9a3-u2-1920", include_str!("../../../../profiles/pm9a3-u2-1920.toml")),
    ("sas-15k-160", include_str!("../../../../profiles/sas-15k-160.toml")),
    ("st2000dm006-datasheet", include_str!("../../../../profiles/st2000dm006-datasheet.toml")),
    ("st2000dm006-measured", include_str!("../../../../profiles/st2000dm006-measured.toml")),
    ("x25e-32", include_str!("../../../../profiles/x25e-32.toml")),
    ("x25m-160", include_str!("../../../../profiles/x25m-160.toml")),
    ("x25m-80", include_str!("../../../../profiles/x25m-80.toml")),
    ("x25m-80-g1", include_str!("../../../../profiles/x25m-80-g1.toml")),
];

#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub name: String,
    /// One sentence: what is emulated.
    pub summary: String,
    pub parameters: Parameters,
    /// Parameters without a source, as sentences.
    pub assumptions: Vec<String>,
    /// Published figures that it does not meet.
    pub misses: Vec<Miss>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    kind: Kind,
    summary: String,
    parameters: BTreeMap<String, Entry>,
    #[serde(default)]
    misses: Vec<Miss>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Null,
    Disk,
    Flash,
    Volume,
}

impl Profile {
    /// A built-in profile by its name, or the user's own by its path (one that has a `/` or ends in `.toml`).
    pub fn find(name: &str) -> Result<Profile, Mistake> {
        if name.contains('/') || name.ends_with(".toml") {
            let text = read(Path::new(name))
                .map_err(|error| Mistake::new(format!("{name}: the profile cannot be read: {error}")))?;
            let stem = Path::new(name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
            return Profile::parse(name, &stem.unwrap_or_default(), &text);
        }
        match PROFILES.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Profile::parse(&format!("profiles/{name}.toml"), name, text),
            None => {
                let known = PROFILES.map(|(known, _)| known);
                Err(Mistake::new(format!(
                    "there is no profile `{name}`{}; there are {}, or give the path of a .toml file",
                    did_you_mean(name, &known),
                    known.join(", ")
                )))
            }
        }
    }

    /// `file` is what errors call it.
    pub fn parse(file: &str, name: &str, text: &str) -> Result<Profile, Mistake> {
        let read: ProfileFile = toml::from_str(text).map_err(|error| toml_error(file, text, &error))?;
        let mut reader = Reader::new(read.parameters);
        let (parameters, assumptions) = match read.kind {
            Kind::Null => Ok(Parameters::Null),
            Kind::Disk => disk(&mut reader).map(Parameters::Disk),
            Kind::Flash => flash(&mut reader).map(Parameters::Flash),
            Kind::Volume => volume(&mut reader).map(Parameters::Volume),
        }
        .and_then(|parameters| Ok((parameters, reader.finish()?)))
        .map_err(|(key, message)| Mistake::new(format!("{file}: parameters.{key}: {message}")))?;
        parameters.validate().map_err(|invalid| {
            Mistake::new(format!("{file}: parameters.{}: {}", invalid.key, invalid.problem))
        })?;
        Ok(Profile {
            name: name.to_owned(),
            summary: read.summary,
            parameters,
            assumptions,
            misses: read.misses,
        })
    }
}

/// # Errors
/// It is far too long for a profile, as `/dev/zero` is.
fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(TEXT_BYTES_MOST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > TEXT_BYTES_MOST {
        let words = format!("it has more than {TEXT_BYTES_MOST} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, words));
    }
    Ok(text)
}

/// What serde complains about, as one sentence with the line.
fn toml_error(file: &str, text: &str, error: &toml::de::Error) -> Mistake {
    let start = error.span().map_or(0, |span| span.start);
    let line = text[..start.min(text.len())].matches('\n').count() + 1;
    Mistake::new(format!("{file}, line {line}: {}", error.message().replace('\n', " ")))
}

/// The key (empty for the whole table), and a sentence about it.
type Complaint = (String, String);

fn complaint(key: &str, message: impl Into<String>) -> Complaint {
    (key.to_owned(), message.into())
}

fn write_cache(reader: &mut Reader) -> Result<WriteCache, Complaint> {
    let name = reader.take("write_cache", |value| choice(value, &["off", "volatile", "protected"]))?;
    Ok(write_cache_mode(&name).expect("one of the choices"))
}

fn write_cache_mode(name: &str) -> Option<WriteCache> {
    match name {
        "off" => Some(WriteCache::Off),
        "volatile" => Some(WriteCache::Volatile),
        "protected" => Some(WriteCache::Protected),
        _ => None,
    }
}

fn disk(reader: &mut Reader) -> Result<DiskParameters, Complaint> {
    Ok(DiskParameters {
        capacity_bytes: reader.take("capacity", size)?,
        rotation_per_minute: reader.take("rotation", rotation)?,
        seek_track_to_track_ns: reader.take("seek_track_to_track", duration)?,
        seek_minimum_ns: reader.take("seek_minimum", duration)?,
        seek_average_ns: reader.take("seek_average", duration)?,
        write_settle_ns: reader.take("write_settle", duration)?,
        outer_bytes_per_s: reader.take("outer_rate", rate)?,
        inner_bytes_per_s: reader.take("inner_rate", rate)?,
        zone_count: reader.take("zones", count)?,
        tracks_per_cylinder: reader.take("tracks_per_cylinder", count)?,
        command_overhead_ns: reader.take("command_overhead", duration)?,
        interface_bytes_per_s: reader.take("interface_rate", rate)?,
        queue_depth: reader.take("queue_depth", count)?,
        age_limit_ns: reader.take("age_limit", duration)?,
        physical_sector_bytes: reader.take("physical_sector", size)?,
        cache_bytes: reader.take("cache", size)?,
        read_segments: reader.take("read_segments", count)?,
        write_cache: write_cache(reader)?,
        dirty_runs: reader.take("dirty_runs", count)?,
        destage_candidates: reader.take("destage_candidates", count)?,
        destage_watermark_percent: reader.take("destage_watermark", percent)?,
        destage_idle_ns: reader.take("destage_idle", duration)?,
        read_retries: read_retries(reader)?,
        stroke: Stroke::Full,
    })
}

/// Both keys, or none for a disk whose reads need no retries.
fn read_retries(reader: &mut Reader) -> Result<Option<ReadRetries>, Complaint> {
    if !reader.has_any(&["read_retries", "retry_rotations"]) {
        return Ok(None);
    }
    Ok(Some(ReadRetries {
        per_million: reader.take("read_retries", share_per_million)?,
        mean_rotations: reader.take("retry_rotations", count)?,
    }))
}

fn gc_victim(reader: &mut Reader) -> Result<VictimChoice, Complaint> {
    let name = reader.take("gc_victim", |value| choice(value, &["greedy", "cost-benefit"]))?;
    Ok(if name == "greedy" { VictimChoice::Greedy } else { VictimChoice::CostBenefit })
}

fn flash(reader: &mut Reader) -> Result<FlashParameters, Complaint> {
    Ok(FlashParameters {
        capacity_bytes: reader.take("capacity", size)?,
        raw_bytes: reader.take("raw_capacity", size)?,
        channel_count: reader.take("channels", count)?,
        dies_per_channel: reader.take("dies_per_channel", count)?,
        mapping_unit_bytes: reader.take("mapping_unit", size)?,
        page_bytes: reader.take("page", size)?,
        pages_per_program: reader.take("pages_per_program", count)?,
        block_bytes: reader.take("block", size)?,
        page_read_ns: reader.take("page_read", duration)?,
        page_program_ns: reader.take("page_program", duration)?,
        block_erase_ns: reader.take("block_erase", duration)?,
        suspend_limit: reader.take("suspend_limit", count)?,
        suspend_ns: reader.take("suspend", duration)?,
        channel_bytes_per_s: reader.take("channel_rate", rate)?,
        link_bytes_per_s: reader.take("link_rate", rate)?,
        read_overhead_ns: reader.take("read_overhead", duration)?,
        write_overhead_ns: reader.take("write_overhead", duration)?,
        command_interval_ns: reader.take("command_interval", duration)?,
        write_cache: write_cache(reader)?,
        buffer_bytes: reader.take("buffer", size)?,
        flush_commit_ns: reader.take("flush_commit", duration)?,
        flush_blocks_queue: reader.take("flush_blocks_queue", boolean)?,
        gc_victim: gc_victim(reader)?,
        gc_low_percent: reader.take("gc_low_watermark", percent)?,
        gc_high_percent: reader.take("gc_high_watermark", percent)?,
        slc: slc(reader)?,
    })
}

/// All of these keys, or none for a drive without an SLC write cache.
fn slc(reader: &mut Reader) -> Result<Option<SlcParameters>, Complaint> {
    let keys = [
        "cell_bits",
        "slc_static",
        "slc_dynamic",
        "slc_dynamic_full",
        "slc_dynamic_gone",
        "slc_program",
        "slc_read",
    ];
    if !reader.has_any(&keys) {
        return Ok(None);
    }
    Ok(Some(SlcParameters {
        cell_bits: reader.take("cell_bits", count)?,
        static_bytes: reader.take("slc_static", size)?,
        dynamic_bytes: reader.take("slc_dynamic", size)?,
        dynamic_full_percent: reader.take("slc_dynamic_full", percent)?,
        dynamic_gone_percent: reader.take("slc_dynamic_gone", percent)?,
        page_program_ns: reader.take("slc_program", duration)?,
        page_read_ns: reader.take("slc_read", duration)?,
    }))
}

fn volume(reader: &mut Reader) -> Result<VolumeParameters, Complaint> {
    Ok(VolumeParameters {
        capacity_bytes: reader.take("capacity", size)?,
        iops_per_gib: reader.take("iops_per_gib", count)?,
        iops_minimum: reader.take("iops_minimum", count)?,
        iops_maximum: reader.take("iops_maximum", count)?,
        burst_iops: reader.take("burst_iops", count)?,
        burst_credits: reader.take("burst_credits", count)?,
        bytes_per_s: reader.take("rate", rate)?,
        burst_bytes_per_s: reader.take("burst_rate", rate)?,
        burst_credit_bytes: reader.take("burst_credit_bytes", size)?,
        initial_credit_percent: reader.take("initial_credit", percent)?,
        window_ns: reader.take("window", duration)?,
        operation_bytes: reader.take("operation_size", size)?,
        merges_sequential: reader.take("merges_sequential", boolean)?,
        link_bytes_per_s: reader.take("link_rate", rate)?,
        read_latency: LatencyQuantiles {
            minimum_ns: reader.take("read_latency_minimum", duration)?,
            median_ns: reader.take("read_latency_median", duration)?,
            p99_ns: reader.take("read_latency_p99", duration)?,
            p999_ns: reader.take("read_latency_p999", duration)?,
        },
        write_latency: LatencyQuantiles {
            minimum_ns: reader.take("write_latency_minimum", duration)?,
            median_ns: reader.take("write_latency_median", duration)?,
            p99_ns: reader.take("write_latency_p99", duration)?,
            p999_ns: reader.take("write_latency_p999", duration)?,
        },
        flush_ns: reader.take("flush", duration)?,
    })
}

#[cfg(test)]
mod tests;
