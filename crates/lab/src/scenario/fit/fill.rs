//! The part of a stack that a freshly loaded database fills, and the size of a stack whose table gives none.
//!
//! A database that fills little of a drive flatters it: the arm moves over a few cylinders, and most of an
//! SSD is spare space. A small emulated drive that is half full stands for a large one: seeks span the whole
//! stroke.

use std::collections::BTreeMap;

use serde::Serialize;
use spindle_base::Mistake;
use spindle_base::units::{format_size_bytes, format_size_rounded};

use crate::record::FileClass;
use crate::scenario::{Scenario, ServerSpec, storage};
use crate::stack::StackTable;

/// A server's default redo log is part of its empty files: MariaDB's is 96 MiB, MySQL's from 8.0.30 is 100
/// MiB.
const DEFAULT_REDO_BYTES: u64 = 96 << 20;
/// Room for the files of a class on a mount of its own, which grow as the server runs.
pub(super) const APART_BYTES: u64 = 512 << 20;
/// What a file system takes of a small disk. Of 400 to 1024 MiB, `df` shows 86 to 102 MiB less for xfs, 59 to
/// 117 MiB for ext4, and 81 to 119 MiB for btrfs.
const FILE_SYSTEM_BYTES: u64 = 96 << 20;
/// Smallest usual size. xfs needs 300 MiB, and its log is 64 MiB.
const USUAL_BYTES_LEAST: u64 = 512 << 20;
/// A drive that is filled less looks faster than it is.
const SHARE_LEAST: f64 = 0.1;
/// A drive that is filled more may run full: the load adds rows, and a log grows beyond its setting.
const SHARE_MOST: f64 = 2.0 / 3.0;
const MIB: u64 = 1 << 20;

/// The files of the servers besides their data: the maximum over the servers of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerFiles {
    pub empty_bytes: u64,
    pub redo_bytes: u64,
}

impl ServerFiles {
    pub(super) fn of(scenario: &Scenario) -> ServerFiles {
        let largest = |of: &dyn Fn(&ServerSpec) -> u64| {
            scenario.matrix.server.iter().map(|name| of(&scenario.servers[name])).max().unwrap_or(0)
        };
        ServerFiles {
            empty_bytes: largest(&|spec| spec.server().empty_bytes()),
            // InnoDB creates its redo log in full before anything else; PostgreSQL's grows between
            // checkpoints.
            redo_bytes: largest(&|spec| {
                spec.server().redo_bytes(&spec.settings).unwrap_or(DEFAULT_REDO_BYTES)
            }),
        }
    }

    /// The redo log without the part that the empty files include.
    pub(super) fn more_redo_bytes(&self) -> u64 {
        self.redo_bytes.saturating_sub(DEFAULT_REDO_BYTES)
    }
}

/// The size of a stack of the cells, and the part of it that is filled after the load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Filled {
    pub stack: String,
    pub size_bytes: u64,
    /// `None` if the data lie elsewhere, or if nothing is loaded.
    pub filled_share: Option<f64>,
    /// The size follows from the data, because no table gives one.
    pub follows_data: bool,
    /// The reason for the size, in words.
    pub why: String,
}

impl Filled {
    /// The sentence about a drive with hardly any data, if it has a size that the scenario gives, or about
    /// one with hardly any room.
    pub fn warning(&self) -> Option<String> {
        let Some(share) = self.nearly_empty_share() else { return self.nearly_full_warning() };
        Some(format!(
            "the data fill {} of {}: a short-stroked disk and an empty SSD look faster than a full one; leave \
             `size` out to fill half",
            percent(share),
            format_size_rounded(self.size_bytes)
        ))
    }

    /// The sentence about a drive that may run full during a trial.
    pub fn nearly_full_warning(&self) -> Option<String> {
        let share = self.filled_share.filter(|share| *share > SHARE_MOST)?;
        let remedy = if self.follows_data {
            "take a larger drive or less data"
        } else {
            "leave `size` out to fill half"
        };
        Some(format!(
            "the data, the log and the server's own files fill {} of {}, and the load adds to them: the disk may \
             run full; {remedy}",
            percent(share),
            format_size_rounded(self.size_bytes)
        ))
    }

    /// The filled share, if it is too small for a fair measurement.
    pub fn nearly_empty_share(&self) -> Option<f64> {
        self.filled_share.filter(|share| *share < SHARE_LEAST && !self.follows_data)
    }
}

/// The filled part of a stack of the usual size, which its drive or the smallest size may prevent from being
/// half.
fn words_of_share(share: f64) -> &'static str {
    match share {
        ..0.4 => "the smallest size",
        0.4..0.52 => "about half full",
        _ => "the whole drive",
    }
}

/// `54 %`, or `below 1 %`.
pub fn percent(share: f64) -> String {
    match (share * 100.0).round() {
        none if none < 1.0 => "below 1 %".to_owned(),
        percent => format!("{percent} %"),
    }
}

impl Scenario {
    /// The stacks of the cells, in the order of appearance. A real disk's size is its free space.
    pub fn filled(&self) -> Vec<Filled> {
        self.stacks_in_use().into_iter().map(|name| self.filled_stack(name)).collect()
    }

    pub fn filled_stack(&self, name: &str) -> Filled {
        let stack = &self.stacks[name];
        let (size_bytes, is_real) = (stack.size_bytes(), stack.real().is_some());
        let share = self.bytes_on(name).filter(|_| !is_real).map(|bytes| bytes as f64 / size_bytes as f64);
        let follows_data = stack.has_usual_size() && self.usual_size_bytes().is_some();
        let why = match stack.written_size_bytes().filter(|written| *written != size_bytes) {
            _ if is_real => "a real disk's free space".to_owned(),
            _ if follows_data => {
                format!("no `size` is given: {}", share.map_or("as the data's", words_of_share))
            }
            Some(written) => format!("the scenario's {}, in whole blocks", format_size_bytes(written)),
            None if stack.has_usual_size() => "the default".to_owned(),
            None => "the scenario's".to_owned(),
        };
        Filled { stack: name.to_owned(), size_bytes, filled_share: share, follows_data, why }
    }

    /// The freshly loaded database in words.
    pub fn fill_in_words(&self) -> Option<String> {
        let data = self.matrix.workload.iter().filter_map(|name| self.workloads[name].data());
        let data = data.max_by_key(|data| data.bytes)?;
        let files = ServerFiles::of(self);
        let whole = |bytes: u64| format_size_rounded(bytes.next_multiple_of(MIB));
        let own = match files.empty_bytes + files.more_redo_bytes() {
            0 => String::new(),
            bytes => format!(", and {} of the server's own files and redo log", whole(bytes)),
        };
        Some(format!("{} of data ({}){own}", whole(data.bytes), data.words))
    }

    /// Smallest size of a stack that is freshly loaded with these bytes. A load also writes files for
    /// sorting, and more log than its setting: PostgreSQL takes 597 MiB of xfs for 424 MiB of two warehouses
    /// (`df`). The size of a real disk is its free space, without what its file system takes.
    pub(super) fn least_bytes(&self, stack: &str, loaded_bytes: u64) -> u64 {
        let of_file_system = if self.stacks[stack].real().is_some() { 0 } else { FILE_SYSTEM_BYTES };
        loaded_bytes + loaded_bytes / 4 + of_file_system
    }

    /// Bytes on a stack that holds data, after the load of the largest database.
    fn bytes_on(&self, stack: &str) -> Option<u64> {
        let data_bytes = Some(self.data_bytes()).filter(|bytes| *bytes > 0)?;
        let files = ServerFiles::of(self);
        let layouts = self.layouts.iter().chain(self.replica_layouts());
        let of_data = layouts.filter(|layout| layout.stack_of(FileClass::Data) == stack);
        let redo = of_data.map(|layout| match layout.mount_of(FileClass::Redo) {
            0 => files.more_redo_bytes(),
            _ => 0,
        });
        Some(data_bytes + files.empty_bytes + redo.max()?)
    }

    /// The size of every stack without one: the largest database, with the server's own files and redo log,
    /// fills half of it. `None` if no workload loads data.
    fn usual_size_bytes(&self) -> Option<u64> {
        let data_bytes = Some(self.data_bytes()).filter(|bytes| *bytes > 0)?;
        let files = ServerFiles::of(self);
        let all_bytes = data_bytes + files.empty_bytes + files.more_redo_bytes();
        let apart_bytes = APART_BYTES + files.more_redo_bytes();
        Some(round_up((2 * all_bytes).max(apart_bytes).max(USUAL_BYTES_LEAST)))
    }
}

/// The next of 512, 640, 768, 896 MiB, 1, 1.25, 1.5, 1.75 GiB, and so on.
fn round_up(bytes: u64) -> u64 {
    bytes.next_multiple_of((bytes.next_power_of_two() / 8).max(1))
}

/// Gives every stack without a size the usual one. Stacks are resolved before servers, whose files are part
/// of it.
pub(in crate::scenario) fn size_stacks(
    scenario: &mut Scenario,
    tables: &BTreeMap<String, StackTable>,
) -> Result<(), Mistake> {
    if let Some(usual_bytes) = scenario.usual_size_bytes() {
        scenario.stacks = storage::stacks(tables, Some(usual_bytes))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_rounded_up_to_a_quarter_of_a_power_of_two() {
        let check = |mib: u64, expect: u64| assert_eq!(round_up(mib * MIB), expect * MIB, "{mib}");
        check(512, 512);
        check(513, 640);
        check(900, 1024);
        check(1025, 1280);
        check(2049, 2560);
        assert_eq!(round_up((512 << 20) + 1), 640 << 20);
    }

    #[test]
    fn a_share_below_a_percent_is_told_as_such() {
        assert_eq!([0.004, 0.02, 0.5].map(percent), ["below 1 %", "2 %", "50 %"]);
    }
}
