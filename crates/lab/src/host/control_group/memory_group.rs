//! A control group for one server of one trial: the most memory that its processes and the page cache of the
//! files that they touch may use.
//!
//! Version 1 (Linux, Documentation/admin-guide/cgroup-v1/memory.rst) has `memory.limit_in_bytes`, version 2
//! (admin-guide/cgroup-v2.rst) has `memory.max`. Both count a page of a file in the group whose process
//! touched it first. Nothing of a group is swapped: the swap lies on a disk of the machine and not on the
//! storage under test.
//!
//! Groups of killed runs are found by their names in the mounted hierarchies, never in a process's memory.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use spindle_base::proc;
use spindle_base::units::format_size_bytes;

use super::{Hierarchy, Version, hierarchies, own_groups};

/// Then follow the process id of the run and the number of the server.
const PREFIX: &str = "spindle-memory-";

/// For killed processes to leave their group. The kernel refuses to remove a group with processes.
const DYING_PATIENCE: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A group with a limit. Dropping it removes it, once its processes have ended.
#[derive(Debug)]
pub(crate) struct MemoryGroup {
    directory: PathBuf,
    version: Version,
    limit_bytes: u64,
}

impl MemoryGroup {
    /// Makes a group below this process's own, so that the limits above stay in force. In version 2 a group
    /// has either processes or groups with limits, so it is beside our own there. `root` is `/`; the number
    /// tells the groups of this process apart.
    ///
    /// # Errors
    /// The machine has no memory controller, or keeps it from this process.
    pub(crate) fn make(root: &Path, number: usize, limit_bytes: u64) -> Result<MemoryGroup> {
        let groups = own_groups(root);
        let place = |hierarchy: Hierarchy| Some((hierarchy.place(root, &groups)?, hierarchy.version));
        let (place, version) = hierarchies(root)
            .into_iter()
            .find_map(place)
            .context("no memory controller is mounted that this process may divide (`man 7 cgroups`)")?;
        let directory = place.join(format!("{PREFIX}{}-{number}", std::process::id()));
        let making = || format!("making the control group {}", directory.display());
        // Of a killed run with the same process id.
        remove(&directory).with_context(making)?;
        fs::create_dir(&directory).with_context(making)?;
        let group = MemoryGroup { directory, version, limit_bytes };
        group.limit().with_context(|| format!("limiting the memory of {}", group.directory.display()))?;
        Ok(group)
    }

    fn limit(&self) -> io::Result<()> {
        // Version 1 counts memory and swap together.
        let (limit, swap, swap_bytes) = match self.version {
            Version::One => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", self.limit_bytes),
            Version::Two => ("memory.max", "memory.swap.max", 0),
        };
        fs::write(self.directory.join(limit), self.limit_bytes.to_string())?;
        let swap = self.directory.join(swap);
        // A kernel that counts no swap has no such file.
        if swap.exists() { fs::write(swap, swap_bytes.to_string()) } else { Ok(()) }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// # Errors
    /// The kernel killed a process of the group for lack of memory.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(
            self.killed() == 0,
            "the kernel killed a process of the server, which needed more memory than `memory` = \"{}\" \
             allows: raise it, or let the server's settings reserve less",
            format_size_bytes(self.limit_bytes)
        );
        Ok(())
    }

    /// Processes that the kernel killed for lack of memory.
    fn killed(&self) -> u64 {
        let file = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        let text = fs::read_to_string(self.directory.join(file)).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
        count.unwrap_or(0)
    }

    /// # Errors
    /// Processes are left in it.
    pub(crate) fn remove(self) -> Result<()> {
        remove(&self.directory)
            .with_context(|| format!("removing the control group {}", self.directory.display()))
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // The next run removes what is left.
        let _ = remove(&self.directory);
    }
}

/// Removes a group, if it is there, when its last process has ended. What the page cache still has in it is
/// no obstacle.
fn remove(directory: &Path) -> io::Result<()> {
    let deadline = Instant::now() + DYING_PATIENCE;
    loop {
        match fs::remove_dir(directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(POLL_INTERVAL);
            }
            done => return done,
        }
    }
}

/// Removes the groups of killed runs. `root` is `/`. Errors are ignored, because groups of other users are
/// not ours to judge.
pub(crate) fn clear_leftovers(root: &Path) {
    for hierarchy in hierarchies(root) {
        for directory in abandoned_below(&hierarchy.directory(root)) {
            let _ = remove(&directory);
        }
    }
}

/// The groups below this one whose run is no longer there. At the beginning and at the end of a process,
/// those with its own number are of an earlier process.
fn abandoned_below(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let is_gone = |id: u32| !proc::is_there(id) || id == std::process::id();
    let found = below.flat_map(|entry| match entry.file_name().to_str().and_then(process_id) {
        Some(id) if is_gone(id) => vec![entry.path()],
        Some(_) => Vec::new(),
        None => abandoned_below(&entry.path()),
    });
    found.collect()
}

/// Process id of the run that made a group of this name.
fn process_id(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

impl Hierarchy {
    /// The nearest group whose children can have limits; `None` if the hierarchy has none for this process.
    fn place(&self, root: &Path, groups: &str) -> Option<PathBuf> {
        let at = self.directory(root);
        let own = self.group(groups)?;
        match self.version {
            Version::One => Some(at.join(own)),
            Version::Two => own.ancestors().map(|group| at.join(group)).find(|group| hands_memory_on(group)),
        }
    }
}

/// Whether a group of version 2 hands its memory controller on to its children, or can be told to. One with
/// processes cannot (cgroups(7), "no internal processes").
fn hands_memory_on(group: &Path) -> bool {
    let has_memory = |file: &str| {
        let text = fs::read_to_string(group.join(file)).unwrap_or_default();
        text.split_whitespace().any(|controller| controller == "memory")
    };
    let handed_on = "cgroup.subtree_control";
    has_memory(handed_on)
        || (has_memory("cgroup.controllers") && fs::write(group.join(handed_on), "+memory").is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
    const TWO: &str = "41 31 0:38 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    const LIMIT_BYTES: u64 = 256_000_000;

    /// A directory in place of `/`, with these files in it.
    fn root(groups: &str, mounts: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let own = [("proc/self/cgroup", groups), ("proc/self/mountinfo", mounts)];
        for (path, text) in own.iter().chain(files) {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    /// `place` is the group in which the new one is made, and `file` has its limit.
    #[track_caller]
    fn check_made(groups: &str, mounts: &str, files: &[(&str, &str)], place: &str, file: &str) {
        let root = root(groups, mounts, files);
        let group = MemoryGroup::make(root.path(), 2, LIMIT_BYTES).unwrap();
        let name = format!("{PREFIX}{}-2", std::process::id());
        assert_eq!(group.directory(), root.path().join(place).join(name));
        assert_eq!(fs::read_to_string(group.directory().join(file)).unwrap(), LIMIT_BYTES.to_string());
    }

    #[test]
    fn a_group_of_version_1_is_below_our_own() {
        let files = [("sys/fs/cgroup/memory/a/b/tasks", "")];
        let (place, file) = ("sys/fs/cgroup/memory/a/b", "memory.limit_in_bytes");
        check_made("4:memory:/a/b\n0::/\n", ONE, &files, place, file);
        // Beside it a hierarchy of version 2 without this controller.
        let both = format!("{}{ONE}", TWO.replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified"));
        let files = [files[0], ("sys/fs/cgroup/unified/cgroup.controllers", "cpu\n")];
        check_made("4:memory:/a/b\n0::/\n", &both, &files, place, file);
    }

    #[test]
    fn a_group_of_version_2_is_where_the_controller_is_handed_on() {
        let files = [
            ("sys/fs/cgroup/cgroup.subtree_control", "cpu memory\n"),
            ("sys/fs/cgroup/user/cgroup.subtree_control", "memory pids\n"),
            // A group with processes, of which a directory in place of the file refuses the write.
            ("sys/fs/cgroup/user/session/cgroup.controllers", "memory pids\n"),
            ("sys/fs/cgroup/user/session/cgroup.subtree_control/busy", ""),
        ];
        check_made("0::/user/session\n", TWO, &files, "sys/fs/cgroup/user", "memory.max");
    }

    #[test]
    fn a_group_of_version_2_that_has_the_controller_is_told_to_hand_it_on() {
        let files = [
            ("sys/fs/cgroup/a/cgroup.controllers", "cpu memory\n"),
            ("sys/fs/cgroup/a/cgroup.subtree_control", "\n"),
        ];
        let root = root("0::/a\n", TWO, &files);
        let group = MemoryGroup::make(root.path(), 0, LIMIT_BYTES).unwrap();
        assert!(group.directory().starts_with(root.path().join("sys/fs/cgroup/a")));
        let told = fs::read_to_string(root.path().join(files[1].0)).unwrap();
        assert_eq!(told, "+memory");
    }

    #[test]
    fn a_machine_without_a_memory_controller_refuses_in_a_sentence() {
        let files = [("sys/fs/cgroup/a/cgroup.controllers", "cpu pids\n")];
        for mounts in ["", TWO] {
            let root = root("0::/a\n", mounts, &files);
            let error = MemoryGroup::make(root.path(), 0, LIMIT_BYTES).unwrap_err().to_string();
            assert!(error.starts_with("no memory controller is mounted"), "{error}");
        }
    }

    fn group(version: Version, files: &[(&str, &str)]) -> (tempfile::TempDir, MemoryGroup) {
        let directory = root("", "", files);
        let group = MemoryGroup { directory: directory.path().to_owned(), version, limit_bytes: LIMIT_BYTES };
        (directory, group)
    }

    #[test]
    fn nothing_of_a_group_is_swapped_where_the_kernel_counts_swap() {
        for (version, file, expect) in [
            (Version::One, "memory.memsw.limit_in_bytes", "256000000"),
            (Version::Two, "memory.swap.max", "0"),
        ] {
            let (_directory, counts) = group(version, &[(file, "max\n")]);
            counts.limit().unwrap();
            assert_eq!(fs::read_to_string(counts.directory().join(file)).unwrap(), expect);
            let (_directory, counts_none) = group(version, &[]);
            counts_none.limit().unwrap();
            assert!(!counts_none.directory().join(file).exists());
        }
    }

    #[test]
    fn a_process_that_the_kernel_killed_is_told_with_the_limit() {
        let one = |count: u32| format!("oom_kill_disable 0\nunder_oom 0\noom_kill {count}\n");
        let two = |count: u32| format!("low 0\nhigh 0\nmax 12\noom 3\noom_kill {count}\noom_group_kill 0\n");
        let check = |version, file, text: &str, expect| {
            let (_directory, group) = group(version, &[(file, text)]);
            let told = group.check().err().map(|error| error.to_string());
            assert_eq!(told.is_some(), expect, "{text}");
            assert!(told.is_none_or(|words| words.contains("`memory` = \"256 MB\"")), "{text}");
        };
        check(Version::One, "memory.oom_control", &one(0), false);
        check(Version::One, "memory.oom_control", &one(2), true);
        check(Version::Two, "memory.events", &two(0), false);
        check(Version::Two, "memory.events", &two(1), true);
        check(Version::Two, "another", "", false);
    }

    #[test]
    fn groups_of_runs_that_are_gone_are_removed() {
        // Larger than any process id.
        let gone = format!("{PREFIX}4194305-0");
        let living = format!("{PREFIX}1-0");
        let own = format!("{PREFIX}{}-1", std::process::id());
        let other = "spindle-memory";
        let root = root("", ONE, &[]);
        let above = ["sys/fs/cgroup/memory", "sys/fs/cgroup/memory/a/b"].map(|path| root.path().join(path));
        for name in [gone.as_str(), &living, &own, other] {
            above.iter().for_each(|above| fs::create_dir_all(above.join(name)).unwrap());
        }
        clear_leftovers(root.path());
        for above in above {
            let is_left = |name: &str| above.join(name).exists();
            assert_eq!([gone.as_str(), &living, &own, other].map(is_left), [false, true, false, true]);
        }
    }
}
