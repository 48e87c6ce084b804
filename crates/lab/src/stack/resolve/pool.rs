//! `file_system = "zfs"`: a pool of real ZFS. The stack is its data device. `log` and `cache` name stacks for
//! a device of the intent log (ZIL) and one of the second-level read cache (L2ARC). Each is a separate drive,
//! even if both name the same stack.
//!
//! The layers `cache`, `ssd-cache` and `intent-log` have keys `cache` or `log` of their own. On such a stack
//! the key is the layer's.

use spindle_base::Mistake;
use spindle_base::units::format_size_bytes;
use spindle_model::declare;
use spindle_model::parameter::{Declared, Described, Field, Step};
use spindle_mount::zfs::PoolOptions;

use super::Context;
use crate::record::{ZfsDeviceHead, ZfsHead};
use crate::stack::explained::{Explanation, explanations};
use crate::stack::spec::{PoolSpec, StackSpec};
use crate::stack::values::{self, Entries};

pub(in crate::stack) const FILE_SYSTEM: &str = "zfs";

/// SPA_MINDEVSIZE of ZFS.
const DEVICE_BYTES_MIN: u64 = 64 << 20;
const MIB: u64 = 1 << 20;

declare! {
    /// What only such a stack has.
    #[derive(Debug, Clone, PartialEq)]
    pub(in crate::stack) struct PoolKeys {
        /// The stack of a device for the intent log, which otherwise lies on the data device.
        pub log: Option<String> = Name "log";
        /// The stack of a device for the second-level read cache.
        pub cache: Option<String> = Name "cache";
        /// Largest record, of pool version 23.
        pub record_bytes: u64 = Size "recordsize" in 512..=128 << 10, step Step::PowerOfTwo, default 128 << 10;
        /// Most memory for the first-level cache.
        pub arc_bytes: u64 = Size "arc" in 16 * MIB..=16_384 * MIB, step Step::MultipleOf(MIB),
            default PoolOptions::ARC_BYTES;
    }
}

pub(in crate::stack) fn fields() -> Vec<Field> {
    PoolKeys::fields()
}

impl PoolSpec {
    pub(in crate::stack) fn resolve(
        entries: &Entries,
        data_bytes: u64,
        context: &mut Context<'_>,
    ) -> Result<PoolSpec, Mistake> {
        at_least("size", data_bytes)?;
        let PoolKeys { log, cache, record_bytes, arc_bytes } =
            PoolKeys::from_values(values::values(entries))?;
        let mut device = |key, name: Option<String>| {
            let stack = name.map(|name| context.below(key, &name, context.usual)).transpose()?;
            stack.iter().try_for_each(|stack| at_least(key, stack.size_bytes()))?;
            Ok::<_, Mistake>(stack)
        };
        Ok(PoolSpec { log: device("log", log)?, cache: device("cache", cache)?, record_bytes, arc_bytes })
    }

    /// The pool's keys, without its devices, which are explained separately from their names.
    pub(in crate::stack) fn keys(&self) -> PoolKeys {
        PoolKeys { log: None, cache: None, record_bytes: self.record_bytes, arc_bytes: self.arc_bytes }
    }

    pub(in crate::stack) fn explanations(&self, entries: &Entries) -> Vec<Explanation> {
        explanations(&PoolKeys::fields(), &self.keys().values(), entries)
    }

    /// The devices besides the data's, by the keys that name them.
    pub fn devices(&self) -> impl Iterator<Item = (&'static str, &StackSpec)> {
        let devices = [("log", &self.log), ("cache", &self.cache)];
        devices.into_iter().filter_map(|(key, stack)| Some((key, stack.as_ref()?)))
    }

    pub(in crate::stack) fn head(&self) -> ZfsHead {
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

    /// Text to append to the summary of the data device.
    pub(in crate::stack) fn summary(&self) -> String {
        let (record, arc) = (format_size_bytes(self.record_bytes), format_size_bytes(self.arc_bytes));
        let mut text = format!(" A ZFS pool lies on it, with records of {record} and {arc} of memory (ARC).");
        for (key, stack) in self.devices() {
            let what = if key == "log" { "intent log (ZIL)" } else { "read cache (L2ARC)" };
            let size = format_size_bytes(stack.size_bytes());
            text.push_str(&format!(
                " Its {what} is on {size} of `{}`: {}",
                stack.head.name, stack.head.summary
            ));
        }
        text
    }
}

fn at_least(key: &str, size_bytes: u64) -> Result<(), Mistake> {
    if size_bytes < DEVICE_BYTES_MIN {
        let size = format_size_bytes(size_bytes);
        return Err(Mistake::at(key, format!("has {size}, must have 64 MiB or more for ZFS")));
    }
    Ok(())
}
