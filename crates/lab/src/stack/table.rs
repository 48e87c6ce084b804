//! Stack tables as they are written: `[stacks.NAME]` in a file of their own or in a scenario.

use std::collections::BTreeMap;

use serde::Deserialize;
use spindle_base::Mistake;
use spindle_base::explain::read_toml;
use spindle_base::near::did_you_mean;

use super::built_in::{built_in_stack, ready_made};
use super::profile::deviations::KnownDeviation;
use super::spec::StackSpec;

/// One `[stacks.NAME]`: a device from a profile, a ready-made stack, or a layer on other stacks.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub struct StackTable {
    /// The name of a built-in profile or of a ready-made stack, or the path of a profile.
    pub profile: Option<String>,
    /// `raid`, `cache`, `partition` and so on.
    pub layer: Option<String>,
    /// What the layer is on.
    pub on: Option<On>,
    pub size: Option<String>,
    /// `xfs` (the default), `ext4`, `btrfs`, `none`, or `zfs` with the keys of [`super::PoolSpec`].
    pub file_system: Option<String>,
    /// Further arguments of mkfs.
    pub mkfs_options: Option<Vec<String>>,
    /// Further options of mount.
    pub mount_options: Option<Vec<String>>,
    /// A real disk: a directory on it, or its block device.
    pub path: Option<String>,
    /// Allows a file system to be made on a block device.
    pub destroy_content: Option<bool>,
    /// What reports call it; the table's name by default.
    pub label: Option<String>,
    /// Published figures that it does not meet; they change nothing in what it does.
    #[serde(default, alias = "misses")]
    pub known_deviations: Vec<KnownDeviation>,
    /// What only this layer or this kind of device has.
    #[serde(flatten)]
    pub keys: toml::Table,
}

/// The keys that every table may have.
pub(super) const COMMON_KEYS: [&str; 10] = [
    "profile",
    "layer",
    "on",
    "size",
    "file_system",
    "mkfs_options",
    "mount_options",
    "path",
    "destroy_content",
    "label",
];

/// Names of stacks or of profiles.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum On {
    One(String),
    Many(Vec<String>),
}

impl On {
    pub fn names(&self) -> &[String] {
        match self {
            On::One(name) => std::slice::from_ref(name),
            On::Many(names) => names,
        }
    }
}

impl StackTable {
    /// Where `profile` names a ready-made stack: that one, with what this table says besides.
    pub(super) fn with_ready_made(&self) -> StackTable {
        let base = self.profile.as_deref().and_then(ready_made).filter(|_| self.layer.is_none());
        let Some(base) = base else { return self.clone() };
        let own = self.clone();
        let mut keys = base.keys.clone();
        keys.extend(own.keys);
        StackTable {
            profile: base.profile.clone(),
            layer: base.layer.clone(),
            on: own.on.or_else(|| base.on.clone()),
            size: own.size.or_else(|| base.size.clone()),
            file_system: own.file_system.or_else(|| base.file_system.clone()),
            mkfs_options: own.mkfs_options.or_else(|| base.mkfs_options.clone()),
            mount_options: own.mount_options.or_else(|| base.mount_options.clone()),
            path: own.path,
            destroy_content: own.destroy_content,
            label: own.label,
            known_deviations: base.known_deviations.clone(),
            keys,
        }
    }
}

/// A file of stacks, on its own.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackFile {
    pub stacks: BTreeMap<String, StackTable>,
}

impl StackFile {
    /// `file` is what errors call it.
    pub fn parse(file: &str, text: &str) -> Result<StackFile, Mistake> {
        read_toml(text).map_err(|mistake| mistake.in_file(file))
    }

    pub fn resolve(&self, file: &str, name: &str) -> Result<StackSpec, Mistake> {
        let Some(table) = find(name, &self.stacks) else {
            let known: Vec<&str> = self.stacks.keys().map(String::as_str).collect();
            let near = did_you_mean(name, &known);
            let message = format!("there is no stack `{name}`{near}; there are {}", known.join(", "));
            return Err(Mistake::at(file, message));
        };
        StackSpec::resolve(name, &table, &self.stacks)
            .map_err(|mistake| mistake.under(&format!("stacks.{name}")).in_file(file))
    }
}

/// The table of that name: the file's own, a ready-made stack, or a profile alone.
pub(super) fn find(name: &str, tables: &BTreeMap<String, StackTable>) -> Option<StackTable> {
    tables.get(name).cloned().or_else(|| built_in_stack(name))
}
