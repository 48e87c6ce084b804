//! A stack that can be built: its tree, and its description for records.

use std::collections::BTreeMap;

use spindle_base::Mistake;
use spindle_model::{Device, StackSpec as Tree};
use spindle_mount::real::Place;
use spindle_mount::{FileSystem, Formatting};

use super::built_in::ready_made;
use super::explained::Explained;
use super::resolve::pool::{self, PoolSpec};
use super::table::StackTable;
use crate::record::StackHead;

#[derive(Debug, Clone, PartialEq)]
pub struct StackSpec {
    pub(super) head: StackHead,
    pub(super) label: String,
    /// For a real disk, a device that is never built.
    pub(super) tree: Tree,
    pub(super) explained: Explained,
    pub(super) real: Option<Place>,
    pub(super) pool: Option<Box<PoolSpec>>,
    /// Its own table, and those of stacks that its layers may be on.
    pub(super) table: StackTable,
    pub(super) tables: BTreeMap<String, StackTable>,
}

impl StackSpec {
    /// A ready-made stack or a profile alone, as in `spindle disk up NAME --size SIZE`.
    pub fn of_name(name: &str, size: Option<&str>, file_system: &str) -> Result<StackSpec, Mistake> {
        if StackSpec::usual_file_system(name) == pool::FILE_SYSTEM && file_system != pool::FILE_SYSTEM {
            return Err(Mistake::new(format!(
                "`{name}` is a ZFS pool, no device: `spindle disk up {name}` mounts it, and then its directory can be measured"
            )));
        }
        let mut table = ready_made(name)
            .cloned()
            .unwrap_or_else(|| StackTable { profile: Some(name.to_owned()), ..StackTable::default() });
        table.size = size.map(str::to_owned).or(table.size);
        table.file_system = Some(file_system.to_owned());
        StackSpec::resolve(name, &table, &BTreeMap::new()).map_err(|mistake| match mistake.place.as_str() {
            "size" | "file_system" => Mistake::of_flag(&mistake.place, mistake.message),
            _ => Mistake::new(mistake.message),
        })
    }

    /// The same stack with another size.
    ///
    /// # Errors
    /// The stack cannot have this size.
    pub fn with_size(&self, size_bytes: u64) -> Result<StackSpec, Mistake> {
        let table = StackTable { size: Some(format!("{size_bytes} B")), ..self.table.clone() };
        StackSpec::resolve(&self.head.name, &table, &self.tables)
    }

    /// The default file system of `spindle disk up NAME`.
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

    pub fn size_bytes(&self) -> u64 {
        self.head.size_bytes
    }

    /// Every parameter, with its origin.
    pub fn explained(&self) -> &Explained {
        &self.explained
    }

    /// The location of a real disk; `None` for an emulated one.
    pub fn real(&self) -> Option<&Place> {
        self.real.as_ref()
    }

    /// The file system on the device; `None` for a ZFS pool.
    pub fn formatting(&self) -> Option<Formatting> {
        Some(Formatting {
            file_system: FileSystem::by_name(&self.head.file_system)?,
            mkfs_options: self.head.mkfs_options.clone(),
            mount_options: self.head.mount_options.clone(),
        })
    }

    /// The pool's parts besides the data device, if the file system is ZFS.
    pub fn pool(&self) -> Option<&PoolSpec> {
        self.pool.as_deref()
    }

    /// Builds a running device. The stack was validated when it was resolved.
    ///
    /// # Panics
    /// The stack is a real disk.
    pub fn build(&self, seed: u64) -> Box<dyn Device> {
        assert!(self.real.is_none(), "a real disk has no model");
        self.tree.build(self.head.size_bytes, seed).expect("the stack was validated")
    }
}
