//! Memory limits of this process's control groups, above all in containers, and a group with a limit for a
//! server (`memory_group.rs`).
//!
//! `man 7 cgroups`: `/proc/self/cgroup` names the process's group in each hierarchy, and
//! `/proc/self/mountinfo` gives the mount point of each hierarchy and the group at that point. Version 1,
//! version 2 and a mix of both are supported.

use std::fs;
use std::path::{Path, PathBuf};

use spindle_mount::unescape;

mod memory_group;

pub(crate) use memory_group::{MemoryGroup, clear_leftovers};

/// The lowest limit of the process's groups and all groups above them; `None` without a limit. `root` is `/`.
pub(crate) fn memory_limit_bytes(root: &Path) -> Option<u64> {
    lowest_limit_bytes(root, &[Version::One, Version::Two])
}

/// As [`memory_limit_bytes`], for version 1 alone.
pub(crate) fn memory_limit_bytes_of_version_1(root: &Path) -> Option<u64> {
    lowest_limit_bytes(root, &[Version::One])
}

fn lowest_limit_bytes(root: &Path, versions: &[Version]) -> Option<u64> {
    let groups = own_groups(root);
    let chosen = hierarchies(root).into_iter().filter(|hierarchy| versions.contains(&hierarchy.version));
    chosen.filter_map(|hierarchy| hierarchy.limit_bytes(root, &groups)).min()
}

/// The groups of this process, as the kernel lists them.
fn own_groups(root: &Path) -> String {
    fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default()
}

/// The mounted hierarchies that may have a memory controller.
fn hierarchies(root: &Path) -> Vec<Hierarchy> {
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).unwrap_or_default();
    mounts.lines().filter_map(Hierarchy::of_mount).collect()
}

/// A mounted hierarchy with a memory controller.
struct Hierarchy {
    version: Version,
    /// The group at the mount point.
    top: PathBuf,
    at: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Hierarchy {
    /// Parses a line of mountinfo.
    fn of_mount(line: &str) -> Option<Hierarchy> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3).map(unescape);
        let (top, at) = (mount.next()?, mount.next()?);
        let mut file_system = file_system.split(' ');
        let kind = file_system.next()?;
        let has_memory = file_system.next_back()?.split(',').any(|option| option == "memory");
        let version = match kind {
            "cgroup2" => Version::Two,
            "cgroup" if has_memory => Version::One,
            _ => return None,
        };
        Some(Hierarchy { version, top: top.into(), at: at.into() })
    }

    /// Names of the files with a group's limits.
    fn files(&self) -> &'static [&'static str] {
        match self.version {
            Version::One => &["memory.limit_in_bytes"],
            Version::Two => &["memory.max", "memory.high"],
        }
    }

    /// Path of the process's group below the group at the mount point; empty if the process is in none below
    /// it.
    fn group(&self, groups: &str) -> Option<PathBuf> {
        let path = groups.lines().find_map(|line| {
            let (number, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            let is_it = match self.version {
                Version::One => controllers.split(',').any(|controller| controller == "memory"),
                Version::Two => number == "0" && controllers.is_empty(),
            };
            is_it.then(|| Path::new(path))
        })?;
        let below = path.strip_prefix(&self.top).unwrap_or(Path::new(""));
        // `/../x` is outside of the part that this process can see.
        let is_shown = below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        Some(if is_shown { below.to_owned() } else { PathBuf::new() })
    }

    /// The mount point below `root`.
    fn directory(&self, root: &Path) -> PathBuf {
        root.join(self.at.strip_prefix("/").unwrap_or(&self.at))
    }

    fn limit_bytes(&self, root: &Path, groups: &str) -> Option<u64> {
        let at = self.directory(root);
        let group = self.group(groups)?;
        let limits = group.ancestors().flat_map(|group| {
            let directory = at.join(group);
            // Without a limit the content is `max`, which does not parse.
            self.files()
                .iter()
                .filter_map(move |file| fs::read_to_string(directory.join(file)).ok()?.trim().parse().ok())
        });
        limits.min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
    const TWO: &str = "41 31 0:38 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[track_caller]
    fn check(groups: &str, mounts: &str, files: &[(&str, &str)], expect: Option<u64>) {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/self/cgroup", groups);
        write("proc/self/mountinfo", mounts);
        files.iter().for_each(|(path, text)| write(path, text));
        assert_eq!(memory_limit_bytes(root.path()), expect);
        if mounts == ONE {
            assert_eq!(memory_limit_bytes_of_version_1(root.path()), expect);
        } else if mounts == TWO {
            assert_eq!(memory_limit_bytes_of_version_1(root.path()), None);
        }
    }

    #[test]
    fn a_machine_without_control_groups_has_no_limit() {
        check("", "", &[], None);
        check("0::/\n", TWO, &[], None);
    }

    #[test]
    fn the_least_limit_on_the_way_up_counts() {
        let limits = |own, slice| {
            [
                ("sys/fs/cgroup/user.slice/a/memory.max", own),
                ("sys/fs/cgroup/user.slice/memory.max", slice),
                ("sys/fs/cgroup/other/memory.max", "5\n"),
            ]
        };
        check("0::/user.slice/a\n", TWO, &limits("4000\n", "max\n"), Some(4000));
        check("0::/user.slice/a\n", TWO, &limits("max\n", "3000\n"), Some(3000));
        check("0::/user.slice/a\n", TWO, &limits("max\n", "max\n"), None);
    }

    #[test]
    fn the_limit_above_which_memory_is_taken_back_counts_too() {
        let files = [("sys/fs/cgroup/a/memory.max", "4000\n"), ("sys/fs/cgroup/a/memory.high", "2000\n")];
        check("0::/a\n", TWO, &files, Some(2000));
    }

    #[test]
    fn version_1_has_a_hierarchy_of_its_own_for_memory() {
        let groups = "9:name=systemd:/b\n4:cpu,memory:/a/b\n3:cpuset:/c\n";
        let files = [
            ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "6000\n"),
        ];
        check(groups, ONE, &files, Some(6000));
    }

    #[test]
    fn both_versions_beside_each_other_count() {
        let groups = "4:memory:/a\n0::/b\n";
        let mounts = format!("{ONE}{}", TWO.replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified"));
        let files = |one, two| {
            [
                ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", one),
                ("sys/fs/cgroup/unified/b/memory.max", two),
            ]
        };
        check(groups, &mounts, &files("6000\n", "max\n"), Some(6000));
        check(groups, &mounts, &files("6000\n", "5000\n"), Some(5000));
    }

    #[test]
    fn a_container_is_shown_its_own_part_of_the_hierarchy() {
        let mounts = ONE.replace(" / ", " /docker/x ");
        let files = [
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "6000\n"),
            ("sys/fs/cgroup/memory/y/memory.limit_in_bytes", "5000\n"),
        ];
        check("4:memory:/docker/x\n", &mounts, &files, Some(6000));
        check("4:memory:/docker/x/y\n", &mounts, &files, Some(5000));
        check("4:memory:/elsewhere\n", &mounts, &files, Some(6000));
        check("4:memory:/../y\n", ONE, &files, Some(6000));
    }

    #[test]
    fn a_mount_point_may_have_a_blank_in_its_name() {
        let mounts = TWO.replace("/sys/fs/cgroup", "/mnt/control\\040groups");
        check("0::/a\n", &mounts, &[("mnt/control groups/a/memory.max", "7000\n")], Some(7000));
    }
}
