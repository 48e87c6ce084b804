//! Stack tables: `[stacks.NAME]` in a file of their own or in a scenario, and the stack that one of them describes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use spindle_model::{Invalid, Parameters, StackSpec as Tree, Stroke, WriteCache};
use spindle_mount::FILE_SYSTEMS;
use spindle_mount::real::Place;
use toml::Value;

use super::keys::Keys;
use super::misses::Miss;
use super::ready_made::{ready_made, ready_made_names};
use super::{Complaint, PROFILES, Profile, complaint, layers, toml_error, write_cache_mode};
use crate::record::StackHead;
use spindle_base::Mistake;
use spindle_base::near::did_you_mean;
use spindle_base::units::{format_size_bytes, parse_size_bytes};

/// Size of a stack whose table names none, or the drive's capacity if that is smaller.
const DEFAULT_SIZE_BYTES: u64 = 20_000_000_000;

const BLOCK_BYTES: u64 = 4096;

/// A file of a few lines can name a stack twice in each of its layers, and so on downwards. Beyond any storage that was ever built.
const DEVICES_MOST: usize = 256;
const DEPTH_MOST: usize = 16;

/// One `[stacks.NAME]`: a device from a profile, or a layer on other stacks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StackTable {
    /// A built-in profile's name or a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// `raid`, `cache`, `partition` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// What the layer is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<On>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// `xfs` (the default), `ext4`, `btrfs`, `none`, or `zfs` with the keys of [`PoolSpec`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_system: Option<String>,
    /// Further arguments of mkfs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mkfs_options: Option<Vec<String>>,
    /// Further options of mount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount_options: Option<Vec<String>>,
    /// A real disk: a directory on it, or its block device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Allows a file system to be made on a block device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destroy_content: Option<bool>,
    /// What reports call it; the table's name by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What only this layer or this kind of device has.
    #[serde(flatten)]
    pub keys: BTreeMap<String, Value>,
    /// Published figures that it does not meet; they change nothing in what it does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misses: Vec<Miss>,
}

/// Names of stacks or of profiles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum On {
    One(String),
    Many(Vec<String>),
}

/// A file of stacks, on its own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackFile {
    pub stacks: BTreeMap<String, StackTable>,
}

impl StackFile {
    /// `file` is what errors call it.
    pub fn parse(file: &str, text: &str) -> Result<StackFile, Mistake> {
        toml::from_str(text).map_err(|error| toml_error(file, text, &error))
    }

    pub fn resolve(&self, file: &str, name: &str) -> Result<StackSpec, Mistake> {
        let Some(table) = find(name, &self.stacks) else {
            let known: Vec<&str> = self.stacks.keys().map(String::as_str).collect();
            let near = did_you_mean(name, &known);
            let message = format!("{file}: there is no stack `{name}`{near}; there are {}", known.join(", "));
            return Err(Mistake::new(message));
        };
        StackSpec::resolve(name, &table, &self.stacks).map_err(|(key, message)| {
            let dot = if key.is_empty() { "" } else { "." };
            Mistake::new(format!("{file}: stacks.{name}{dot}{key}: {message}"))
        })
    }
}

/// A stack that can be built: its tree, and what a record says about it.
#[derive(Debug, Clone, PartialEq)]
pub struct StackSpec {
    head: StackHead,
    label: String,
    /// Of a real disk a device that is never built.
    tree: Tree,
    real: Option<Place>,
    pool: Option<Box<PoolSpec>>,
    tables: StackFile,
}

impl StackSpec {
    /// `tables` are those that a layer may be on.
    pub fn resolve(
        name: &str,
        table: &StackTable,
        tables: &BTreeMap<String, StackTable>,
    ) -> Result<StackSpec, (String, String)> {
        resolve(name, table, None, &mut Context { tables, path: vec![name.to_owned()], device_count: 0 })
    }

    /// A ready-made stack or a profile alone, as `spindle disk up NAME --size SIZE` wants it.
    pub fn of_name(name: &str, size: Option<&str>, file_system: &str) -> Result<StackSpec, Mistake> {
        let mut table = ready_made(name)
            .unwrap_or_else(|| StackTable { profile: Some(name.to_owned()), ..StackTable::default() });
        let near: Vec<&str> = ready_made_names().collect();
        let hint = if table.profile.is_some() { did_you_mean(name, &near) } else { String::new() };
        if table.file_system.as_deref() == Some(pool::FILE_SYSTEM) && file_system != pool::FILE_SYSTEM {
            return Err(Mistake::new(format!(
                "`{name}` is a ZFS pool, no device: `spindle disk up {name}` mounts it, and then its directory can be measured"
            )));
        }
        table.size = size.map(str::to_owned).or(table.size);
        table.file_system = Some(file_system.to_owned());
        StackSpec::resolve(name, &table, &BTreeMap::new()).map_err(|(key, message)| match key.as_str() {
            "size" => Mistake::new(format!("--size: {message}")),
            "file_system" => Mistake::new(format!("--file-system: {message}")),
            "profile" => Mistake::new(format!("{message}{hint}")),
            _ => Mistake::new(message),
        })
    }

    /// What `spindle disk up NAME` mounts unless another is asked for.
    pub fn usual_file_system(name: &str) -> &'static str {
        let is_pool =
            ready_made(name).is_some_and(|table| table.file_system.as_deref() == Some(pool::FILE_SYSTEM));
        if is_pool { pool::FILE_SYSTEM } else { "xfs" }
    }

    pub fn head(&self) -> &StackHead {
        &self.head
    }

    pub fn label(&self) -> &str {
        &self.label
    }

    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(super) fn into_tables(self) -> BTreeMap<String, StackTable> {
        self.tables.stacks
    }

    pub fn size_bytes(&self) -> u64 {
        self.head.size_bytes
    }

    /// One sentence: what is emulated.
    pub fn summary(&self) -> &str {
        &self.head.summary
    }

    /// Parameters without a source, as sentences.
    pub fn assumptions(&self) -> &[String] {
        &self.head.assumptions
    }

    /// Where it is, when it is a real disk and not emulated.
    pub fn real(&self) -> Option<&Place> {
        self.real.as_ref()
    }

    /// What belongs to it besides its device, when its file system is ZFS.
    pub fn pool(&self) -> Option<&PoolSpec> {
        self.pool.as_deref()
    }

    /// A running device. The stack was validated when it was resolved.
    ///
    /// # Panics
    /// The stack is a real disk.
    pub fn build(&self, seed: u64) -> Box<dyn spindle_model::Device> {
        assert!(self.real.is_none(), "a real disk has no model");
        self.tree.build(self.head.size_bytes, seed).expect("the stack was validated")
    }

    /// The tables that describe this stack, to hand it to another process as text; profiles are named, not included.
    pub fn to_stack_file(&self) -> String {
        toml::to_string(&self.tables).expect("plain tables always become TOML")
    }

    /// Everything that decides how the stack behaves, values and not prose: equal texts, equal devices.
    pub fn stable_text(&self) -> String {
        if let Some(place) = &self.real {
            // Without its size, because what is free of it changes.
            return format!("{place:?}");
        }
        let StackHead { size_bytes, file_system, mkfs_options, mount_options, .. } = &self.head;
        let mut text = format!("{:?} size_bytes={size_bytes} file_system={file_system}", self.tree);
        for (name, options) in [("mkfs", mkfs_options), ("mount", mount_options)] {
            if !options.is_empty() {
                text.push_str(&format!(" {name}={options:?}"));
            }
        }
        if let Some(pool) = &self.pool {
            text.push_str(&format!(" {}", pool.stable_text()));
        }
        text
    }

    /// FNV-1a (64 bits, hexadecimal) of [`StackSpec::stable_text`]: names a stack, guards nothing.
    pub fn hash(&self) -> String {
        let hash = self.stable_text().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{hash:016x}")
    }
}

/// How a complaint begins that is about the stack that was asked for, and about none below it.
const TOO_LARGE: &str = "makes the whole stack";

/// Where the names of other stacks are looked up.
pub(super) struct Context<'a> {
    tables: &'a BTreeMap<String, StackTable>,
    /// From the stack that was asked for down to the present one.
    path: Vec<String>,
    /// In that stack so far.
    device_count: usize,
}

/// The table of that name: the file's own, a ready-made stack, or a profile alone.
fn find(name: &str, tables: &BTreeMap<String, StackTable>) -> Option<StackTable> {
    tables.get(name).cloned().or_else(|| built_in_stack(name))
}

/// A ready-made stack, or a stack of nothing but the profile of that name.
pub fn built_in_stack(name: &str) -> Option<StackTable> {
    let profile = || {
        let is_known = PROFILES.iter().any(|(known, _)| *known == name);
        is_known.then(|| StackTable { profile: Some(name.to_owned()), ..StackTable::default() })
    };
    ready_made(name).or_else(profile)
}

impl Context<'_> {
    /// The stack of that name, as a layer's `key` gives it; `size_bytes` counts if its own table has none.
    pub(super) fn below(
        &mut self,
        key: &str,
        name: &str,
        size_bytes: Option<u64>,
    ) -> Result<StackSpec, Complaint> {
        if self.path.iter().any(|above| above == name) {
            let path = self.path.join(" on ");
            return Err(complaint(key, format!("makes a cycle: {path} on {name}")));
        }
        if self.path.len() >= DEPTH_MOST {
            return Err(complaint(key, format!("{TOO_LARGE} more than {DEPTH_MOST} stacks deep")));
        }
        let Some(table) = find(name, self.tables) else {
            let built_in = ready_made_names().chain(PROFILES.iter().map(|(name, _)| *name));
            let mut known: Vec<&str> = self.tables.keys().map(String::as_str).collect();
            built_in.for_each(|name| known.push(name));
            return Err(complaint(key, format!("there is no stack `{name}`{}", did_you_mean(name, &known))));
        };
        if table.path.is_some() {
            return Err(complaint(key, format!("`{name}` is a real disk, and layers are emulated")));
        }
        if table.file_system.as_deref() == Some(pool::FILE_SYSTEM) {
            return Err(complaint(
                key,
                format!("`{name}` is a ZFS pool, on which nothing else can be built"),
            ));
        }
        self.path.push(name.to_owned());
        let resolved = resolve(name, &table, size_bytes, self);
        self.path.pop();
        resolved.map_err(|(inner, message)| match inner.as_str() {
            "" => complaint(key, format!("stacks.{name}: {message}")),
            _ if message.starts_with("makes a cycle") || message.starts_with(TOO_LARGE) => {
                complaint(key, message)
            }
            _ => complaint(key, format!("stacks.{name}.{inner}: {message}")),
        })
    }
}

/// A stack without its name.
pub(super) struct Parts {
    pub(super) tree: Tree,
    pub(super) size_bytes: u64,
    pub(super) summary: String,
    pub(super) assumptions: Vec<String>,
    /// The tables of what is below.
    pub(super) used: BTreeMap<String, StackTable>,
}

fn resolve(
    name: &str,
    table: &StackTable,
    size_above: Option<u64>,
    context: &mut Context<'_>,
) -> Result<StackSpec, Complaint> {
    let size = table.size.as_deref().map(parse_size_bytes).transpose();
    let size = size.map_err(|message| complaint("size", message))?.or(size_above);
    let file_system = table.file_system.as_deref().unwrap_or("xfs");
    if !FILE_SYSTEMS.contains(&file_system) && file_system != pool::FILE_SYSTEM {
        let message =
            format!("`{file_system}` must be one of \"xfs\", \"ext4\", \"btrfs\", \"zfs\", \"none\"");
        return Err(complaint("file_system", message));
    }
    let (mkfs_options, mount_options) =
        (table.mkfs_options.clone().unwrap_or_default(), table.mount_options.clone().unwrap_or_default());
    for (key, options) in [("mkfs_options", &mkfs_options), ("mount_options", &mount_options)] {
        if (file_system == "none" || file_system == pool::FILE_SYSTEM) && !options.is_empty() {
            let message = format!("has no meaning with file_system = \"{file_system}\"; leave it out");
            return Err(complaint(key, message));
        }
    }
    if table.path.is_some() {
        if file_system == pool::FILE_SYSTEM {
            let message = "`zfs` belongs to an emulated stack, and this one is a real disk (`path`)";
            return Err(complaint("file_system", message));
        }
        return real_disk::resolve(name, table);
    }
    if table.destroy_content.is_some() {
        return Err(complaint(
            "destroy_content",
            "belongs to a real disk (`path`), and this stack is emulated",
        ));
    }
    let mut keys = Keys::new(&table.keys);
    let parts = match (&table.profile, &table.layer) {
        (Some(profile), None) => {
            context.device_count += 1;
            if context.device_count > DEVICES_MOST {
                return Err(complaint("profile", format!("{TOO_LARGE} larger than {DEVICES_MOST} devices")));
            }
            device(profile, table, &mut keys, size)?
        }
        (None, Some(layer)) => layers::layer(layer, table.on.as_ref(), &mut keys, size, context)?,
        (Some(_), Some(_)) => {
            return Err(complaint(
                "layer",
                "cannot be there together with `profile`: a stack is one of the two",
            ));
        }
        (None, None) => return Err(complaint("", "needs a `profile`, a `layer` or a `path`")),
    };
    let pool = PoolSpec::resolve(table, &mut keys, parts.size_bytes, context)?;
    keys.finish()?;
    let Parts { tree, size_bytes, mut summary, mut assumptions, mut used } = parts;
    tree.validate(size_bytes).map_err(|invalid| complaint(invalid.key, invalid.problem))?;
    if let Some(pool) = &pool {
        summary.push_str(&pool.summary());
        for assumption in pool.devices().flat_map(|(_, stack)| stack.assumptions()) {
            if !assumptions.contains(assumption) {
                assumptions.push(assumption.clone());
            }
        }
        used.extend(pool.tables());
    }
    used.insert(name.to_owned(), table.clone());
    let head = StackHead {
        name: name.to_owned(),
        summary,
        size_bytes,
        file_system: file_system.to_owned(),
        mkfs_options,
        mount_options,
        real: false,
        zfs: pool.as_ref().map(PoolSpec::head),
        assumptions,
    };
    let label = table.label.clone().unwrap_or_else(|| name.to_owned());
    let pool = pool.map(Box::new);
    Ok(StackSpec { head, label, tree, real: None, pool, tables: StackFile { stacks: used } })
}

fn device(
    profile: &str,
    table: &StackTable,
    keys: &mut Keys<'_>,
    size: Option<u64>,
) -> Result<Parts, Complaint> {
    if table.on.is_some() {
        return Err(complaint("on", "belongs to a layer, and this stack is a device"));
    }
    let mut profile = Profile::find(profile).map_err(|error| complaint("profile", error.message))?;
    let mut summary = profile.summary;
    match &mut profile.parameters {
        Parameters::Null => {}
        Parameters::Disk(disk) => {
            if let Some("short") = keys.choice("stroke", &["full", "short"])?.as_deref() {
                disk.stroke = Stroke::Short;
                summary.push_str(" Only its outer cylinders are used.");
            }
            override_write_cache(keys, &mut disk.write_cache, &mut summary)?;
        }
        Parameters::Flash(flash) => {
            if let Some(data_space) = keys.size("data_space")? {
                flash.capacity_bytes = data_space;
                flash.validate().map_err(|invalid| complaint("data_space", data_space_problem(&invalid)))?;
                summary.push_str(&format!(" Formatted to {}.", format_size_bytes(data_space)));
            }
            override_write_cache(keys, &mut flash.write_cache, &mut summary)?;
        }
        Parameters::Volume(volume) => {
            if let Some(capacity_bytes) = keys.size("capacity")? {
                volume.capacity_bytes = capacity_bytes;
                summary.push_str(&format!(" Bought with {}.", format_size_bytes(capacity_bytes)));
            }
        }
    }
    let capacity = profile.parameters.capacity_bytes().unwrap_or(DEFAULT_SIZE_BYTES);
    // In whole blocks of the emulator, as a drive's capacity is in whole sectors whatever its label says.
    let size_bytes = size.unwrap_or(DEFAULT_SIZE_BYTES.min(capacity)) / BLOCK_BYTES * BLOCK_BYTES;
    Ok(Parts {
        tree: Tree::Device(profile.parameters),
        size_bytes,
        summary,
        assumptions: profile.assumptions,
        used: BTreeMap::new(),
    })
}

/// The raw capacity stays as it is, so a data space that is too large shows as too little spare.
fn data_space_problem(invalid: &Invalid) -> String {
    match invalid.key {
        "raw_capacity" => format!("leaves too little spare: the drive's raw capacity {}", invalid.problem),
        _ => invalid.problem.clone(),
    }
}

fn override_write_cache(
    keys: &mut Keys<'_>,
    write_cache: &mut WriteCache,
    summary: &mut String,
) -> Result<(), Complaint> {
    let Some(name) = keys.choice("write_cache", &["off", "volatile", "protected"])? else { return Ok(()) };
    *write_cache = write_cache_mode(&name).expect("one of the choices");
    summary.push_str(&format!(" Its write cache is set to {name}."));
    Ok(())
}

pub use pool::PoolSpec;

mod pool;
mod real_disk;
