//! A stack that can be built: its tree, and its description for records.

pub(super) mod drives;

use std::collections::BTreeMap;

use spindle_base::units::parse_size_bytes;
use spindle_model::{Device, Parameters, Rates, StackSpec as Tree};
use spindle_mount::real::Place;
use spindle_mount::{FileSystem, Formatting};

use super::explained::Explained;
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
    /// No table gives its size.
    pub(super) has_usual_size: bool,
    pub(super) pool: Option<Box<PoolSpec>>,
    /// Its own table, and those of stacks that its layers may be on.
    pub(super) table: StackTable,
    pub(super) tables: BTreeMap<String, StackTable>,
}

/// The parts of a ZFS pool besides its data device.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolSpec {
    /// Device of the intent log; without one, the log is on the data device.
    pub log: Option<StackSpec>,
    /// Device of the second-level read cache.
    pub cache: Option<StackSpec>,
    pub record_bytes: u64,
    /// Size limit of the first-level cache (ARC).
    pub arc_bytes: u64,
}

/// The largest drive of a stack.
#[derive(Debug, Clone, Copy)]
pub struct Drive<'a> {
    pub parameters: &'a Parameters,
    pub capacity_bytes: u64,
    /// Size of the stack divided by the size of this drive.
    stack_share: f64,
}

impl Drive<'_> {
    /// Size of the stack in which this drive has that size.
    pub fn stack_bytes(&self, drive_bytes: u64) -> u64 {
        (drive_bytes as f64 * self.stack_share) as u64 / 4096 * 4096
    }
}

/// Size and parameters of the largest drive with a capacity.
fn largest_drive(tree: &Tree, size_bytes: u64) -> Option<(u64, &Parameters)> {
    match tree {
        Tree::Device(parameters) => parameters.capacity_bytes().map(|_| (size_bytes, parameters)),
        _ => {
            let drives =
                tree.branches().iter().filter_map(|branch| largest_drive(&branch.stack, branch.size_bytes));
            drives.max_by_key(|(_, parameters)| parameters.capacity_bytes())
        }
    }
}

impl StackSpec {
    /// The largest of its drives that have a capacity.
    pub fn largest_drive(&self) -> Option<Drive<'_>> {
        let (size_bytes, parameters) = largest_drive(&self.tree, self.size_bytes())?;
        let stack_share = self.size_bytes() as f64 / size_bytes as f64;
        Some(Drive { parameters, capacity_bytes: parameters.capacity_bytes()?, stack_share })
    }

    /// Size of the stack when its drives are used whole.
    pub fn natural_bytes(&self) -> u64 {
        self.largest_drive().map_or(self.size_bytes(), |drive| drive.stack_bytes(drive.capacity_bytes))
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

    /// Whether the size is the usual one of its scenario, because no table gives one.
    pub fn has_usual_size(&self) -> bool {
        self.has_usual_size
    }

    /// The size as its table has it, in bytes.
    pub fn written_size_bytes(&self) -> Option<u64> {
        parse_size_bytes(self.table.size.as_deref()?).ok()
    }

    /// Every parameter, with its origin.
    pub fn explained(&self) -> &Explained {
        &self.explained
    }

    /// Highest rates of the device, as far as its parameters state them. A real disk and a pool state none.
    pub fn rates(&self) -> Rates {
        if self.real.is_some() || self.pool.is_some() { Rates::default() } else { self.tree.rates() }
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
