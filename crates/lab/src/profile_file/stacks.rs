//! Stack tables: `[stacks.NAME]` in a file of their own or in a scenario, and the stack that one of them describes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use spindle_model::{Invalid, Parameters, StackSpec as Tree, Stroke};

use super::{Profile, near_names, toml_error, write_cache_mode};
use crate::record::StackHead;
use crate::units::{format_size_bytes, parse_size_bytes};
use crate::user_error::UserError;

/// Size of a stack whose table names none, or the drive's capacity if that is smaller.
const DEFAULT_SIZE_BYTES: u64 = 20_000_000_000;

const BLOCK_BYTES: u64 = 4096;

/// One `[stacks.NAME]`: a device from a profile, or a layer on another stack.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackTable {
    /// A built-in profile's name or a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// `partition`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// The stack that the layer is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// `xfs` (the default), `ext4` or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_system: Option<String>,
    /// Disks only: `full` (the default) or `short`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stroke: Option<String>,
    /// Flash only: what the drive is formatted to, for example `96 GB` of a card that has 160 GB of NAND. The rest is spare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_space: Option<String>,
    /// Disks and flash: `off`, `volatile` or `protected` in place of the profile's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<String>,
    /// What reports call it; the table's name by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// A file of stacks, on its own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackFile {
    pub stacks: BTreeMap<String, StackTable>,
}

impl StackFile {
    /// `file` is what errors call it.
    pub fn parse(file: &str, text: &str) -> Result<StackFile, UserError> {
        toml::from_str(text).map_err(|error| toml_error(file, text, &error))
    }

    pub fn resolve(&self, file: &str, name: &str) -> Result<StackSpec, UserError> {
        let Some(table) = self.stacks.get(name) else {
            let known: Vec<&str> = self.stacks.keys().map(String::as_str).collect();
            let near = near_names(name, &known);
            let message = format!("{file}: there is no stack `{name}`{near}; there are {}", known.join(", "));
            return Err(UserError(message));
        };
        StackSpec::resolve(name, table, &self.stacks).map_err(|(key, message)| {
            let dot = if key.is_empty() { "" } else { "." };
            UserError(format!("{file}: stacks.{name}{dot}{key}: {message}"))
        })
    }
}

/// A stack that can be built: its tree, and what a record says about it.
#[derive(Debug, Clone, PartialEq)]
pub struct StackSpec {
    head: StackHead,
    label: String,
    tree: Tree,
    tables: StackFile,
}

/// The key within the table (empty for the table itself), and a sentence about it.
type Complaint = (String, String);

fn complaint(key: &str, message: impl Into<String>) -> Complaint {
    (key.to_owned(), message.into())
}

impl StackSpec {
    /// `tables` are those that a layer may be on.
    pub fn resolve(
        name: &str,
        table: &StackTable,
        tables: &BTreeMap<String, StackTable>,
    ) -> Result<StackSpec, (String, String)> {
        let mut path = vec![name.to_owned()];
        resolve(name, table, tables, &mut path)
    }

    /// A profile alone, as `spindle disk up PROFILE --size SIZE` wants it.
    pub fn of_profile(profile: &str, size: Option<&str>, file_system: &str) -> Result<StackSpec, UserError> {
        let table = StackTable {
            profile: Some(profile.to_owned()),
            size: size.map(str::to_owned),
            file_system: Some(file_system.to_owned()),
            ..StackTable::default()
        };
        StackSpec::resolve(profile, &table, &BTreeMap::new()).map_err(|(key, message)| match key.as_str() {
            "size" => UserError(format!("--size: {message}")),
            "file_system" => UserError(format!("--file-system: {message}")),
            _ => UserError(message),
        })
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

    /// A running device. The stack was validated when it was resolved.
    pub fn build(&self, seed: u64) -> Box<dyn spindle_model::Device> {
        self.tree.build(self.head.size_bytes, seed).expect("the stack was validated")
    }

    /// The tables that describe this stack, to hand it to another process as text; profiles are named, not included.
    pub fn to_stack_file(&self) -> String {
        toml::to_string(&self.tables).expect("plain tables always become TOML")
    }

    /// Everything that decides how the stack behaves, values and not prose: equal texts, equal devices.
    pub fn stable_text(&self) -> String {
        format!("{:?} size_bytes={} file_system={}", self.tree, self.head.size_bytes, self.head.file_system)
    }

    /// FNV-1a (64 bits, hexadecimal) of [`StackSpec::stable_text`]: names a stack, guards nothing.
    pub fn hash(&self) -> String {
        let hash = self.stable_text().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{hash:016x}")
    }
}

fn resolve(
    name: &str,
    table: &StackTable,
    tables: &BTreeMap<String, StackTable>,
    path: &mut Vec<String>,
) -> Result<StackSpec, Complaint> {
    let size = table.size.as_deref().map(parse_size_bytes).transpose();
    let size = size.map_err(|message| complaint("size", message))?;
    let file_system = table.file_system.as_deref().unwrap_or("xfs");
    if !["xfs", "ext4", "none"].contains(&file_system) {
        let message = format!("`{file_system}` must be one of \"xfs\", \"ext4\", \"none\"");
        return Err(complaint("file_system", message));
    }
    let mut used = BTreeMap::from([(name.to_owned(), table.clone())]);
    let (tree, size_bytes, summary, assumptions) = match (&table.profile, &table.layer) {
        (Some(profile), None) => device(profile, table, size)?,
        (None, Some(layer)) if layer == "partition" => {
            let below = below(table, tables, path)?;
            used.extend(below.tables.stacks.clone());
            partition(table, size, below)?
        }
        (None, Some(layer)) => {
            return Err(complaint("layer", format!("`{layer}` is unknown; known is `partition`")));
        }
        (Some(_), Some(_)) => {
            return Err(complaint(
                "layer",
                "cannot be there together with `profile`: a stack is one of the two",
            ));
        }
        (None, None) => return Err(complaint("", "needs a `profile` or a `layer`")),
    };
    tree.validate(size_bytes).map_err(|invalid| complaint(invalid.key, invalid.problem))?;
    let head = StackHead {
        name: name.to_owned(),
        summary,
        size_bytes,
        file_system: file_system.to_owned(),
        assumptions,
    };
    let label = table.label.clone().unwrap_or_else(|| name.to_owned());
    Ok(StackSpec { head, label, tree, tables: StackFile { stacks: used } })
}

type Parts = (Tree, u64, String, Vec<String>);

fn device(profile: &str, table: &StackTable, size: Option<u64>) -> Result<Parts, Complaint> {
    for (key, value) in [("on", &table.on), ("offset", &table.offset)] {
        if value.is_some() {
            return Err(complaint(key, "belongs to a layer, and this stack is a device"));
        }
    }
    let mut profile = Profile::find(profile).map_err(|error| complaint("profile", error.0))?;
    let mut summary = profile.summary;
    match (table.stroke.as_deref(), &mut profile.parameters) {
        (None, _) => {}
        (Some("full"), Parameters::Disk(_)) => {}
        (Some("short"), Parameters::Disk(disk)) => {
            disk.stroke = Stroke::Short;
            summary.push_str(" Only its outer cylinders are used.");
        }
        (Some(other), Parameters::Disk(_)) => {
            return Err(complaint("stroke", format!("`{other}` must be \"full\" or \"short\"")));
        }
        (Some(_), _) => return Err(complaint("stroke", "belongs to a disk, and this device has no arm")),
    }
    if let Some(data_space) = &table.data_space {
        let Parameters::Flash(flash) = &mut profile.parameters else {
            return Err(complaint("data_space", "belongs to a flash drive"));
        };
        flash.capacity_bytes =
            parse_size_bytes(data_space).map_err(|message| complaint("data_space", message))?;
        flash.validate().map_err(|invalid| complaint("data_space", data_space_problem(&invalid)))?;
        summary.push_str(&format!(" Formatted to {data_space}."));
    }
    if let Some(name) = &table.write_cache {
        let known = ["off", "volatile", "protected"];
        let Some(mode) = write_cache_mode(name) else {
            let message = format!("`{name}` must be one of \"{}\"", known.join("\", \""));
            return Err(complaint("write_cache", message));
        };
        match &mut profile.parameters {
            Parameters::Disk(disk) => disk.write_cache = mode,
            Parameters::Flash(flash) => flash.write_cache = mode,
            _ => return Err(complaint("write_cache", "belongs to a disk or a flash drive")),
        }
        summary.push_str(&format!(" Its write cache is set to {name}."));
    }
    let capacity = profile.parameters.capacity_bytes().unwrap_or(DEFAULT_SIZE_BYTES);
    // In whole blocks of the emulator, as a drive's capacity is in whole sectors whatever its label says.
    let size_bytes = size.unwrap_or(DEFAULT_SIZE_BYTES.min(capacity)) / BLOCK_BYTES * BLOCK_BYTES;
    Ok((Tree::Device(profile.parameters), size_bytes, summary, profile.assumptions))
}

/// The raw capacity stays as it is, so a data space that is too large shows as too little spare.
fn data_space_problem(invalid: &Invalid) -> String {
    match invalid.key {
        "raw_capacity" => format!("leaves too little spare: the drive's raw capacity {}", invalid.problem),
        _ => invalid.problem.clone(),
    }
}

fn below(
    table: &StackTable,
    tables: &BTreeMap<String, StackTable>,
    path: &mut Vec<String>,
) -> Result<StackSpec, Complaint> {
    let Some(on) = &table.on else {
        return Err(complaint("on", "is missing: which stack is the layer on?"));
    };
    if path.contains(on) {
        path.push(on.clone());
        return Err(complaint("on", format!("makes a cycle: {}", path.join(" on "))));
    }
    let Some(below) = tables.get(on) else {
        let known: Vec<&str> = tables.keys().map(String::as_str).collect();
        return Err(complaint("on", format!("there is no stack `{on}`{}", near_names(on, &known))));
    };
    path.push(on.clone());
    resolve(on, below, tables, path).map_err(|(key, message)| match key.as_str() {
        "" => complaint("on", format!("stacks.{on}: {message}")),
        _ if message.starts_with("makes a cycle") => complaint("on", message),
        _ => complaint("on", format!("stacks.{on}.{key}: {message}")),
    })
}

fn partition(table: &StackTable, size: Option<u64>, below: StackSpec) -> Result<Parts, Complaint> {
    if table.stroke.is_some() {
        return Err(complaint("stroke", "belongs to a disk, and this stack is a layer"));
    }
    for (key, value) in [("data_space", &table.data_space), ("write_cache", &table.write_cache)] {
        if value.is_some() {
            return Err(complaint(key, "belongs to a device, and this stack is a layer"));
        }
    }
    let offset = table.offset.as_deref().map(parse_size_bytes).transpose();
    let offset_bytes = offset.map_err(|message| complaint("offset", message))?.unwrap_or(0);
    let below_size_bytes = below.size_bytes();
    let Some(rest) = below_size_bytes.checked_sub(offset_bytes).filter(|&rest| rest > 0) else {
        let bound = format_size_bytes(below_size_bytes);
        let message = format!("is {offset_bytes} bytes, must be below the size of the device below, {bound}");
        return Err(complaint("offset", message));
    };
    let summary = format!("A partition of: {}", below.summary());
    let tree = Tree::Partition { offset_bytes, below_size_bytes, below: Box::new(below.tree) };
    Ok((tree, size.unwrap_or(rest), summary, below.head.assumptions))
}
