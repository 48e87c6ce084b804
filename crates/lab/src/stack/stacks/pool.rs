//! `file_system = "zfs"`: a pool of real ZFS. The stack is its data device; `log` and `cache` name stacks for a device of the
//! intent log (ZIL) and one of the second-level read cache (L2ARC). Each is a drive of its own, even if both name the same stack.
//!
//! The layers `cache`, `tier` and `intent-log` have keys `cache` or `log` of their own. On such a stack the key is the layer's.

use std::collections::BTreeMap;

use spindle_mount::zfs::PoolOptions;

use super::{Complaint, Context, Keys, StackSpec, StackTable, complaint};
use crate::record::{ZfsDeviceHead, ZfsHead};
use spindle_base::units::format_size_bytes;

pub(super) const FILE_SYSTEM: &str = "zfs";
/// What only such a stack has.
const KEYS: [&str; 4] = ["log", "cache", "recordsize", "arc"];

/// SPA_MINDEVSIZE of ZFS.
const DEVICE_BYTES_MIN: u64 = 64 << 20;
/// Of pool version 23.
const RECORD_BYTES_MIN: u64 = 512;
const RECORD_BYTES_MAX: u64 = 128 << 10;
/// Those of [`PoolOptions::arc_bytes`].
const ARC_BYTES_MIN: u64 = 16 << 20;
const ARC_BYTES_MAX: u64 = 16 << 30;
const MIB: u64 = 1 << 20;

/// What a ZFS pool has besides its data device.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolSpec {
    /// Of the intent log, which otherwise lies on the data device.
    pub log: Option<StackSpec>,
    /// Of the second-level read cache.
    pub cache: Option<StackSpec>,
    pub record_bytes: u64,
    /// Most memory for the first-level cache.
    pub arc_bytes: u64,
}

impl PoolSpec {
    /// `None` for another file system.
    pub(super) fn resolve(
        table: &StackTable,
        keys: &mut Keys<'_>,
        data_bytes: u64,
        context: &mut Context<'_>,
    ) -> Result<Option<PoolSpec>, Complaint> {
        if table.file_system.as_deref() != Some(FILE_SYSTEM) {
            return KEYS
                .into_iter()
                .try_for_each(|key| keys.refuse(key, "belongs to file_system = \"zfs\""))
                .map(|()| None);
        }
        at_least("size", data_bytes)?;
        let log = device("log", keys, context)?;
        let cache = device("cache", keys, context)?;
        let record_bytes = keys.size("recordsize")?.unwrap_or(RECORD_BYTES_MAX);
        if !record_bytes.is_power_of_two() || !(RECORD_BYTES_MIN..=RECORD_BYTES_MAX).contains(&record_bytes) {
            let message = format!("is {record_bytes} bytes, must be a power of two, 512 B to 128 KiB");
            return Err(complaint("recordsize", message));
        }
        let arc_bytes = keys.size("arc")?.unwrap_or(PoolOptions::ARC_BYTES);
        if !arc_bytes.is_multiple_of(MIB) || !(ARC_BYTES_MIN..=ARC_BYTES_MAX).contains(&arc_bytes) {
            let message = format!("is {arc_bytes} bytes, must be whole MiB, 16 MiB to 16 GiB");
            return Err(complaint("arc", message));
        }
        Ok(Some(PoolSpec { log, cache, record_bytes, arc_bytes }))
    }

    /// The devices besides the data's, by the keys that name them.
    pub fn devices(&self) -> impl Iterator<Item = (&'static str, &StackSpec)> {
        let devices = [("log", &self.log), ("cache", &self.cache)];
        devices.into_iter().filter_map(|(key, stack)| Some((key, stack.as_ref()?)))
    }

    pub(super) fn head(&self) -> ZfsHead {
        let head = |stack: &StackSpec| ZfsDeviceHead {
            name: stack.head.name.clone(),
            summary: stack.head.summary.clone(),
            size_bytes: stack.size_bytes(),
        };
        ZfsHead {
            log: self.log.as_ref().map(head),
            cache: self.cache.as_ref().map(head),
            record_bytes: self.record_bytes,
            arc_bytes: self.arc_bytes,
        }
    }

    /// To be appended to what is said of the data device.
    pub(super) fn summary(&self) -> String {
        let (record, arc) = (format_size_bytes(self.record_bytes), format_size_bytes(self.arc_bytes));
        let mut text = format!(" A ZFS pool lies on it, with records of {record} and {arc} of memory (ARC).");
        for (key, stack) in self.devices() {
            let what = if key == "log" { "intent log (ZIL)" } else { "read cache (L2ARC)" };
            let size = format_size_bytes(stack.size_bytes());
            text.push_str(&format!(" Its {what} is on {size} of `{}`: {}", stack.head.name, stack.summary()));
        }
        text
    }

    /// As [`StackSpec::stable_text`].
    pub(super) fn stable_text(&self) -> String {
        let mut text = format!("record_bytes={} arc_bytes={}", self.record_bytes, self.arc_bytes);
        for (key, stack) in self.devices() {
            text.push_str(&format!(" {key}=({:?} size_bytes={})", stack.tree, stack.size_bytes()));
        }
        text
    }

    pub(super) fn tables(&self) -> BTreeMap<String, StackTable> {
        self.devices().flat_map(|(_, stack)| stack.tables.stacks.clone()).collect()
    }
}

fn device(
    key: &'static str,
    keys: &mut Keys<'_>,
    context: &mut Context<'_>,
) -> Result<Option<StackSpec>, Complaint> {
    let Some(name) = keys.text(key)? else { return Ok(None) };
    let stack = context.below(key, &name, None)?;
    at_least(key, stack.size_bytes())?;
    Ok(Some(stack))
}

fn at_least(key: &str, size_bytes: u64) -> Result<(), Complaint> {
    if size_bytes < DEVICE_BYTES_MIN {
        let size = format_size_bytes(size_bytes);
        return Err(complaint(key, format!("has {size}, must have 64 MiB or more for ZFS")));
    }
    Ok(())
}
