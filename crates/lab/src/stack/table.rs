//! Stack tables as written: `[stacks.NAME]` in a file of their own or in a scenario.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use spindle_base::Mistake;
use spindle_base::explain::read_toml;

use super::profile::deviations::KnownDeviation;

/// One `[stacks.NAME]`: a device from a profile, a ready-made stack, or a layer on other stacks.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
pub struct StackTable {
    /// Name of a built-in profile or of a ready-made stack, or path of a profile.
    #[schemars(example = "hdd-7200")]
    pub profile: Option<String>,
    /// `raid`, `cache`, `partition` and so on (docs/parameters.md).
    #[schemars(example = &"raid")]
    pub layer: Option<String>,
    /// The stack below the layer, or a list of them.
    #[schemars(example = "x25m-80")]
    pub on: Option<On>,
    /// Emulated size. Without one, the largest loaded database fills half of it.
    #[schemars(extend("format" = "size"), example = "20 GB")]
    pub size: Option<String>,
    /// `xfs` (the default), `ext4`, `btrfs`, `none`, or `zfs` with the keys of a pool.
    #[schemars(example = &"xfs")]
    pub file_system: Option<String>,
    /// Further arguments of mkfs.
    #[schemars(example = ["-b", "size=4096"])]
    pub mkfs_options: Option<Vec<String>>,
    /// Further options of mount.
    #[schemars(example = ["noatime"])]
    pub mount_options: Option<Vec<String>>,
    /// A real disk: a directory on it, or its block device.
    pub path: Option<String>,
    /// Allows a file system to be made on a block device.
    pub destroy_content: Option<bool>,
    /// Name in reports; by default the table's name.
    pub label: Option<String>,
    /// Published figures that it does not meet; without effect on its behaviour.
    #[serde(default, alias = "misses")]
    #[schemars(skip)]
    pub known_deviations: Vec<KnownDeviation>,
    /// Keys of this layer or kind of device only.
    #[serde(flatten)]
    #[schemars(skip)]
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
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
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
}
