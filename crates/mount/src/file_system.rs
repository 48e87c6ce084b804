//! File systems: makes one on a block device and mounts it.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::format_options::{FileSystem, mkfs_refusal, mount_refusal};
use crate::system::{last_words, run};
use spindle_base::Mistake;
use spindle_base::dilation::Dilation;

/// A file system with the user's own options for mkfs and mount.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Formatting {
    pub file_system: FileSystem,
    /// Arguments of mkfs, in addition to our own; for example `["-d", "su=64k,sw=4"]`.
    #[serde(default)]
    pub mkfs_options: Vec<String>,
    /// For example `["inode64", "sunit=128", "swidth=512"]`.
    #[serde(default)]
    pub mount_options: Vec<String>,
}

/// Options of ext4. The disk is empty, so there is nothing to discard, and no initialisation is left for the
/// time of the measurement.
const EXT4_EXTENDED: &str = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";

/// Last in the list, so that no option overrides them. A database's disk holds only data, whatever the disk's
/// origin.
const OURS_LAST: [&str; 2] = ["nosuid", "nodev"];

impl Formatting {
    /// Refuses an option that reaches beyond the one device, or is not known to stay there: the key of its
    /// list, and a sentence that names the option. Runs nothing.
    pub fn refusal(&self) -> Option<(&'static str, String)> {
        let of_mount = || Some(("mount_options", mount_refusal(self.file_system, &self.mount_options)?));
        mkfs_refusal(self.file_system, &self.mkfs_options)
            .map(|words| ("mkfs_options", words))
            .or_else(of_mount)
    }

    /// # Errors
    /// [`Formatting::refusal`], as a [`Mistake`].
    pub(crate) fn check(&self) -> Result<(), Mistake> {
        self.refusal().map_or(Ok(()), |(key, words)| Err(Mistake::new(format!("{key}: {words}"))))
    }

    /// # Errors
    /// mkfs is missing or refuses; [`Formatting::check`].
    pub(crate) fn make(&self, device: &Path) -> Result<()> {
        self.check()?;
        let Some((program, arguments)) = self.mkfs_command(device, EXT4_EXTENDED) else { return Ok(()) };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        run(program, &arguments).map(drop).context("making a file system")
    }

    fn mkfs_command(&self, device: &Path, ext4_extended: &str) -> Option<(&'static str, Vec<String>)> {
        let (program, ours): (_, &[&str]) = match self.file_system {
            FileSystem::None => return None,
            FileSystem::Xfs => ("mkfs.xfs", &["-q", "-f", "-K"]),
            FileSystem::Ext4 => ("mkfs.ext4", &["-q", "-F"]),
            FileSystem::Btrfs => ("mkfs.btrfs", &["-q", "-f", "-K"]),
        };
        let mut arguments: Vec<String> = ours.iter().map(|&argument| argument.to_owned()).collect();
        let mut theirs = self.mkfs_options.iter();
        let mut extended = ext4_extended.to_owned();
        while let Some(argument) = theirs.next() {
            // mkfs.ext4 obeys only its last -E.
            match (self.file_system, argument.as_str()) {
                (FileSystem::Ext4, "-E") => {
                    extended.extend(theirs.next().map(|options| format!(",{options}")))
                }
                _ => arguments.push(argument.clone()),
            }
        }
        if self.file_system == FileSystem::Ext4 {
            arguments.extend(["-E".to_owned(), extended]);
        }
        // xfs accepts an alignment at mount only if it was made with one. This one, the smallest, aligns
        // nothing.
        let aligns = |options: &[String]| {
            options.iter().any(|option| option.contains("sunit=") || option.contains("su="))
        };
        if self.file_system == FileSystem::Xfs && aligns(&self.mount_options) && !aligns(&self.mkfs_options) {
            arguments.extend(["-d", "su=4k,sw=1"].map(str::to_owned));
        }
        arguments.push(device.to_string_lossy().into_owned());
        Some((program, arguments))
    }

    /// # Errors
    /// mount refuses; [`Formatting::check`].
    pub(crate) fn mount(&self, device: &Path, at: &Path, dilation: Dilation) -> Result<()> {
        self.check()?;
        fs::create_dir_all(at).with_context(|| format!("making {}", at.display()))?;
        // Two disks may come from one snapshot and have one UUID. xfs can ignore that; btrfs must forget the
        // other disk.
        self.forget(device);
        let options = self.all_mount_options(dilation);
        let (device, at) = (device.to_string_lossy(), at.to_string_lossy());
        run("mount", &["-t", self.file_system.name(), "-o", &options, &device, &at])
            .map(drop)
            .with_context(|| format!("mounting {device} on {at}"))
    }

    fn all_mount_options(&self, dilation: Dilation) -> String {
        let mut options = vec!["noatime"];
        if self.file_system == FileSystem::Xfs {
            options.push("nouuid");
        }
        options.extend(self.mount_options.iter().map(String::as_str));
        // Of two, the last counts.
        let commit = self.commit_option(dilation);
        options.extend(commit.as_deref().filter(|_| !dilation.is_none()));
        options.extend(OURS_LAST);
        options.join(",")
    }

    /// Adapts the timer of a mounted file system to another dilation.
    ///
    /// # Errors
    /// mount refuses.
    pub(crate) fn set_dilation(&self, at: &Path, dilation: Dilation) -> Result<()> {
        let Some(commit) = self.commit_option(dilation) else { return Ok(()) };
        let at = at.to_string_lossy();
        run("mount", &["-o", &format!("remount,{commit}"), &at])
            .map(drop)
            .with_context(|| format!("setting the commit interval of {at}"))
    }

    /// The interval at which the kernel commits the file system's journal, in real time. A database notices
    /// it, so under dilation it is k times as long. `None` for a file system without such an option: the
    /// timer of xfs is the whole machine's, and stays as it is.
    fn commit_option(&self, dilation: Dilation) -> Option<String> {
        let usual_s = match self.file_system {
            FileSystem::Ext4 => 5,
            FileSystem::Btrfs => 30,
            FileSystem::None | FileSystem::Xfs => return None,
        };
        let theirs = self.mount_options.iter().flat_map(|options| options.split(','));
        let theirs_s = theirs.filter_map(|option| option.strip_prefix("commit=")?.parse().ok()).next_back();
        // Zero stands for the usual one.
        let dilated = Duration::from_secs(theirs_s.filter(|&theirs_s| theirs_s > 0).unwrap_or(usual_s));
        Some(format!("commit={}", dilation.real(dilated).as_secs_f64().ceil()))
    }

    /// Makes the kernel forget a btrfs device. It remembers them by UUID and refuses an older copy of one
    /// that it knows.
    pub(crate) fn forget(&self, device: &Path) {
        if self.file_system == FileSystem::Btrfs {
            // Fails if the kernel never knew the device.
            let _ = run("btrfs", &["device", "scan", "--forget", &device.to_string_lossy()]);
        }
    }

    /// [`Formatting::refusal`]; otherwise tries the options on a sparse file in `directory`, of the disk's
    /// size. Returns the key of the list and the complaint of mkfs or mount, if any. Leaves nothing mounted
    /// or attached, even if it is killed.
    ///
    /// # Errors
    /// The attempt itself was not possible.
    pub fn complaint(&self, size_bytes: u64, directory: &Path) -> Result<Option<(&'static str, String)>> {
        if self.mkfs_options.is_empty() && self.mount_options.is_empty() {
            return Ok(None);
        }
        if let Some(refusal) = self.refusal() {
            return Ok(Some(refusal));
        }
        let file = directory.join("format-check");
        let at = directory.join("format-check-mount");
        let attempt = || -> Result<Option<(&'static str, String)>> {
            File::create(&file)?.set_len(size_bytes)?;
            fs::create_dir_all(&at)?;
            let Some((program, arguments)) = self.mkfs_command(&file, "nodiscard") else { return Ok(None) };
            if let Some(words) = last_words(program, program, &arguments)? {
                return Ok(Some(("mkfs_options", words)));
            }
            // In its own mount namespace, which ends with the process, together with the mount and its loop
            // device.
            let options = format!("loop,{}", self.all_mount_options(Dilation::NONE));
            let mut arguments = ["--mount", "mount", "-t", self.file_system.name(), "-o", &options]
                .map(str::to_owned)
                .to_vec();
            arguments.extend([&file, &at].map(|path| path.to_string_lossy().into_owned()));
            Ok(last_words("mount", "unshare", &arguments)?.map(|words| ("mount_options", words)))
        };
        let result = attempt().with_context(|| format!("trying the options on {}", file.display()));
        // Both are in a directory that is removed anyway.
        let _ = fs::remove_file(&file);
        let _ = fs::remove_dir(&at);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatting(file_system: FileSystem, mkfs_options: &[&str], mount_options: &[&str]) -> Formatting {
        let [mkfs_options, mount_options] = [mkfs_options, mount_options]
            .map(|options| options.iter().map(|&option| option.to_owned()).collect());
        Formatting { file_system, mkfs_options, mount_options }
    }

    #[track_caller]
    fn check(file_system: FileSystem, options: &[&str], expect: &str) {
        let formatting = formatting(file_system, options, &[]);
        let (program, arguments) = formatting.mkfs_command(Path::new("/dev/x"), "ours").unwrap();
        assert_eq!(format!("{program} {}", arguments.join(" ")), expect);
    }

    #[test]
    fn the_users_options_follow_ours() {
        check(FileSystem::Xfs, &["-d", "su=64k,sw=4"], "mkfs.xfs -q -f -K -d su=64k,sw=4 /dev/x");
        check(FileSystem::Btrfs, &[], "mkfs.btrfs -q -f -K /dev/x");
    }

    #[test]
    fn xfs_with_an_alignment_at_mount_is_made_with_one() {
        let formatting = formatting(FileSystem::Xfs, &[], &["sunit=128", "swidth=512"]);
        let (_, arguments) = formatting.mkfs_command(Path::new("/dev/x"), "").unwrap();
        assert!(arguments.join(" ").ends_with("-d su=4k,sw=1 /dev/x"), "{arguments:?}");
    }

    #[test]
    fn extended_options_of_ext4_are_one_list() {
        check(
            FileSystem::Ext4,
            &["-E", "stride=16,stripe_width=64", "-b", "4096"],
            "mkfs.ext4 -q -F -b 4096 -E ours,stride=16,stripe_width=64 /dev/x",
        );
        check(FileSystem::Ext4, &[], "mkfs.ext4 -q -F -E ours /dev/x");
    }

    #[test]
    fn nothing_overrides_our_own_last_mount_options() {
        let formatting = formatting(FileSystem::Xfs, &[], &["inode64"]);
        assert_eq!(formatting.all_mount_options(Dilation::NONE), "noatime,nouuid,inode64,nosuid,nodev");
    }

    #[test]
    fn under_dilation_the_kernel_commits_k_times_less_often() {
        let check = |file_system, options: &[&str], k: f64, expect: &str| {
            let all = formatting(file_system, &[], options).all_mount_options(Dilation::new(k).unwrap());
            assert_eq!(all, format!("{expect},nosuid,nodev"));
        };
        check(FileSystem::Ext4, &[], 1.0, "noatime");
        check(FileSystem::Ext4, &["commit=7"], 1.0, "noatime,commit=7");
        check(FileSystem::Ext4, &[], 4.0, "noatime,commit=20");
        check(FileSystem::Ext4, &["commit=7,data=ordered"], 2.5, "noatime,commit=7,data=ordered,commit=18");
        check(FileSystem::Ext4, &["commit=0"], 2.0, "noatime,commit=0,commit=10");
        check(FileSystem::Btrfs, &[], 8.0, "noatime,commit=240");
        check(FileSystem::Xfs, &[], 8.0, "noatime,nouuid");
    }

    #[test]
    fn an_option_that_reaches_beyond_the_device_is_refused_at_every_step() {
        let formatting = formatting(FileSystem::Ext4, &[], &["loop=/dev/loop7"]);
        let nowhere = Path::new("/nonexistent");
        let (key, words) = formatting.complaint(1 << 20, nowhere).unwrap().unwrap();
        assert!(key == "mount_options" && words.starts_with("`loop` is not among"), "{key}: {words}");
        for refused in [formatting.make(nowhere), formatting.mount(nowhere, nowhere, Dilation::NONE)] {
            assert!(refused.unwrap_err().downcast_ref::<Mistake>().is_some());
        }
    }

    #[test]
    fn every_file_system_is_found_by_its_name() {
        for file_system in FileSystem::ALL {
            assert_eq!(FileSystem::by_name(file_system.name()), Some(file_system));
        }
        assert_eq!(FileSystem::by_name("zfs"), None);
    }
}
