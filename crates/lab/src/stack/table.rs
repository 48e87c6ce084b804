//! Stack tables as written: `[stacks.NAME]` in a file of their own or in a scenario.

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
    /// Name of a built-in profile or of a ready-made stack, or path of a profile.
    pub profile: Option<String>,
    /// `raid`, `cache`, `partition` and so on.
    pub layer: Option<String>,
    /// The stacks below the layer.
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
    /// Name in reports; by default the table's name.
    pub label: Option<String>,
    /// Published figures that it does not meet; without effect on its behaviour.
    #[serde(default, alias = "misses")]
    pub known_deviations: Vec<KnownDeviation>,
    /// Keys of this layer or kind of device only.
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
    /// The ready-made stack that `profile` names, if any, with the other keys of this table.
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
            known_deviations: base.known_deviations.clone(),
            keys,
            ..own
        }
    }
}

/// A separate file of stacks.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackFile {
    pub stacks: BTreeMap<String, StackTable>,
}

impl StackFile {
    /// `file` is its name in errors.
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
