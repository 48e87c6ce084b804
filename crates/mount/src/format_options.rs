//! The options of mkfs, mount and ZFS that a user may give: those that shape the file system on its own
//! device.
//!
//! mkfs and mount run as root. Many of their options name other files and devices, which they read or write
//! (`xfs -l logdev=`, `ext4 -z`, `btrfs --rootdir`, `mount -o loop=`). Others let a file system do more than
//! hold files (`suid`, `dev`), or let its errors bring the machine down (`errors=panic`). So every option
//! outside `format_options.toml` is refused, and no value may be or contain a path.
//!
//! Sources: mkfs.xfs(8), xfs(5), mke2fs(8), ext4(5), mkfs.btrfs(8), btrfs(5), zfs(8) of zfs-fuse 0.7.0.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum FileSystem {
    #[default]
    /// Raw: a block device only.
    None,
    Xfs,
    Ext4,
    Btrfs,
}

impl FileSystem {
    pub const ALL: [FileSystem; 4] = [FileSystem::Xfs, FileSystem::Ext4, FileSystem::Btrfs, FileSystem::None];

    pub fn by_name(name: &str) -> Option<FileSystem> {
        FileSystem::ALL.into_iter().find(|file_system| file_system.name() == name)
    }

    /// Name for mount; `none` for a raw device.
    pub fn name(self) -> &'static str {
        match self {
            FileSystem::None => "none",
            FileSystem::Xfs => "xfs",
            FileSystem::Ext4 => "ext4",
            FileSystem::Btrfs => "btrfs",
        }
    }

    /// Size of the smallest device that mkfs accepts (xfsprogs 6.1, btrfs-progs 6.2).
    pub fn least_bytes(self) -> u64 {
        match self {
            FileSystem::None | FileSystem::Ext4 => 0,
            FileSystem::Xfs => 300 << 20,
            FileSystem::Btrfs => 109 << 20,
        }
    }
}

/// `format_options.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    /// Options of mount for every file system.
    mount: Vec<String>,
    /// Properties of a ZFS file system.
    zfs: Vec<String>,
    file_systems: BTreeMap<String, Table>,
}

/// The options of one file system.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Options of mkfs without an argument.
    alone: Vec<String>,
    /// Options of mkfs with one word as their argument.
    words: Vec<String>,
    lists: Vec<List>,
    mount: Vec<String>,
}

/// Options of mkfs whose argument is a list: keys or `key=value`, separated by commas; `^` negates a key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    options: Vec<String>,
    keys: Vec<String>,
}

static TABLES: LazyLock<Tables> =
    LazyLock::new(|| toml::from_str(include_str!("format_options.toml")).expect("the tables can be read"));

/// The mistake in mkfs's arguments, if any: one sentence that names the option and some known ones.
pub(crate) fn mkfs_refusal(file_system: FileSystem, arguments: &[String]) -> Option<String> {
    if file_system == FileSystem::None {
        return None;
    }
    let table = &TABLES.file_systems[file_system.name()];
    let program = format!("mkfs.{}", file_system.name());
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        let refusal = table.refusal(&program, argument, &mut rest);
        if refusal.is_some() {
            return refusal;
        }
    }
    None
}

impl Table {
    /// The mistake in one argument of mkfs, whose value may be the next of `rest`.
    fn refusal<'a>(
        &self,
        program: &str,
        argument: &'a str,
        rest: &mut impl Iterator<Item = &'a str>,
    ) -> Option<String> {
        let Some((name, value)) = split(argument) else {
            return Some(format!(
                "`{argument}` is not an option of {program}, and Spindle alone names the device"
            ));
        };
        if has(&self.alone, name) {
            return (name != argument).then(|| format!("`{argument}`: `{name}` of {program} stands alone"));
        }
        let list = self.lists.iter().find(|list| has(&list.options, name));
        if list.is_none() && !has(&self.words, name) {
            let of_lists = self.lists.iter().flat_map(|list| &list.options);
            return Some(unknown(program, name, self.alone.iter().chain(&self.words).chain(of_lists)));
        }
        match (value.or_else(|| rest.next()), list) {
            (None, _) => Some(format!("`{name}` of {program} needs a value")),
            (Some(value), None) => value_refusal(&format!("`{name}` of {program}"), value),
            (Some(value), Some(list)) => list_refusal(&format!("{program} {name}"), &list.keys, value),
        }
    }
}

fn has(options: &[String], name: &str) -> bool {
    options.iter().any(|option| option == name)
}

/// Name and value of `-d`, `-dsu=64k`, `--data` and `--data=single`; `None` if it is not an option.
fn split(argument: &str) -> Option<(&str, Option<&str>)> {
    if argument.starts_with("--") {
        return Some(argument.split_once('=').map_or((argument, None), |(name, value)| (name, Some(value))));
    }
    let letter = argument.strip_prefix('-')?.chars().next()?;
    let (name, value) = argument.split_at(1 + letter.len_utf8());
    Some((name, (!value.is_empty()).then_some(value)))
}

/// The mistake in mount's options, if any.
pub(crate) fn mount_refusal(file_system: FileSystem, options: &[String]) -> Option<String> {
    if file_system == FileSystem::None {
        return None;
    }
    let own = &TABLES.file_systems[file_system.name()].mount;
    let known = [own.as_slice(), &TABLES.mount].concat();
    let whose = format!("mount -t {}", file_system.name());
    options.iter().find_map(|list| list_refusal(&whose, &known, list))
}

/// The mistake in the properties of a ZFS file system, if any.
pub(crate) fn zfs_refusal(properties: &[String]) -> Option<String> {
    properties.iter().find_map(|property| match property.split_once('=') {
        Some((name, value)) if has(&TABLES.zfs, name) => value_refusal(&format!("`{name}` of ZFS"), value),
        Some((name, _)) => Some(unknown("ZFS", name, TABLES.zfs.iter())),
        None => Some(format!("`{property}` must be `name=value`")),
    })
}

fn list_refusal(whose: &str, known: &[String], list: &str) -> Option<String> {
    list.split(',').find_map(|item| {
        let (key, value) = item.split_once('=').map_or((item, None), |(key, value)| (key, Some(value)));
        if !has(known, key.trim_start_matches('^')) {
            return Some(unknown(whose, key, known.iter()));
        }
        value.and_then(|value| value_refusal(&format!("`{key}` of {whose}"), value))
    })
}

/// Refuses quotes, spaces, commas, slashes, and values that look like an option.
fn value_refusal(whose: &str, value: &str) -> Option<String> {
    let allowed = |character: char| character.is_ascii_alphanumeric() || "._:+-%".contains(character);
    let fits = !value.is_empty() && !value.starts_with('-') && value.chars().all(allowed);
    (!fits).then(|| format!("{whose} cannot be `{value}`: it takes one word of letters, digits and `._:+-%`"))
}

/// Number of known options in a message.
const SHOWN: usize = 12;

fn unknown<'known>(whose: &str, name: &str, known: impl Iterator<Item = &'known String>) -> String {
    let known: Vec<String> = known.take(SHOWN).map(|name| format!("`{name}`")).collect();
    format!("`{name}` is not among the options of {whose} that can be given, such as {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(options: &[&str]) -> Vec<String> {
        options.iter().map(|&option| option.to_owned()).collect()
    }

    #[track_caller]
    fn check_mkfs(file_system: FileSystem, arguments: &[&str], expect: Option<&str>) {
        check(mkfs_refusal(file_system, &strings(arguments)), expect);
    }

    #[track_caller]
    fn check_mount(file_system: FileSystem, options: &[&str], expect: Option<&str>) {
        check(mount_refusal(file_system, &strings(options)), expect);
    }

    #[track_caller]
    fn check(refusal: Option<String>, begins_with: Option<&str>) {
        match (&refusal, begins_with) {
            (Some(words), Some(begin)) => assert!(words.starts_with(begin), "{words}"),
            (refusal, expect) => assert_eq!(refusal.as_deref(), expect),
        }
    }

    #[test]
    fn options_that_shape_a_file_system_can_be_given_in_every_form() {
        check_mkfs(FileSystem::Xfs, &["-d", "su=64k,sw=4", "-lsize=64m", "-L", "data"], None);
        check_mkfs(
            FileSystem::Ext4,
            &["-E", "stride=16,stripe_width=64", "-b4096", "-O", "^has_journal"],
            None,
        );
        check_mkfs(FileSystem::Btrfs, &["--nodesize", "16k", "--data=single", "-O", "no-holes"], None);
        check_mount(FileSystem::Xfs, &["inode64", "sunit=128,swidth=512"], None);
        check_mount(FileSystem::Ext4, &["nobarrier", "data=writeback"], None);
        check_mount(FileSystem::Btrfs, &["compress=zstd:3"], None);
        check(zfs_refusal(&strings(&["recordsize=16K", "sync=always"])), None);
    }

    #[test]
    fn no_argument_of_mkfs_names_a_file_or_a_device() {
        let xfs = |arguments: &[&str], expect| check_mkfs(FileSystem::Xfs, arguments, Some(expect));
        xfs(&["/dev/loop0"], "`/dev/loop0` is not an option of mkfs.xfs");
        xfs(&["-l", "logdev=/dev/loop0"], "`logdev` is not among the options of mkfs.xfs -l");
        xfs(&["-llogdev=/dev/loop0"], "`logdev` is not among the options of mkfs.xfs -l");
        xfs(&["-d", "name=/dev/loop0,file"], "`name` is not among");
        xfs(
            &["-r", "rtdev=/dev/loop0"],
            "`-r` is not among the options of mkfs.xfs that can be given, such as `-q`",
        );
        xfs(&["-p", "/etc"], "`-p` is not among");
        xfs(&["-c", "options=/etc/passwd"], "`-c` is not among");
        let ext4 = |arguments: &[&str], expect| check_mkfs(FileSystem::Ext4, arguments, Some(expect));
        ext4(&["-z", "/etc/passwd"], "`-z` is not among");
        ext4(&["-d", "/etc"], "`-d` is not among");
        ext4(&["-l", "/etc/passwd"], "`-l` is not among");
        ext4(&["-J", "device=/dev/loop0"], "`device` is not among");
        ext4(&["-L", "../x"], "`-L` of mkfs.ext4 cannot be `../x`");
        ext4(&["-e", "panic"], "`-e` is not among");
        ext4(&["-qd"], "`-qd`: `-q` of mkfs.ext4 stands alone");
        ext4(&["-b"], "`-b` of mkfs.ext4 needs a value");
        let btrfs = |arguments: &[&str], expect| check_mkfs(FileSystem::Btrfs, arguments, Some(expect));
        btrfs(&["/dev/loop0"], "`/dev/loop0` is not an option of mkfs.btrfs");
        btrfs(&["--rootdir", "/etc"], "`--rootdir` is not among");
        btrfs(&["--root=/etc"], "`--root` is not among");
        btrfs(&["--"], "`--` is not among");
    }

    #[test]
    fn no_option_of_mount_reaches_beyond_the_device() {
        for option in [
            "loop=/dev/loop7",
            "bind",
            "remount",
            "suid",
            "dev",
            "x-mount.mkdir",
            "context=system_u",
            "errors=panic",
            "fatal_errors=panic",
            "defaults",
            "",
        ] {
            let name = option.split('=').next().unwrap();
            for file_system in [FileSystem::Xfs, FileSystem::Ext4, FileSystem::Btrfs] {
                check_mount(file_system, &["noatime", option], Some(&format!("`{name}` is not among")));
            }
        }
        check_mount(FileSystem::Xfs, &["noatime,logdev=/dev/loop0"], Some("`logdev` is not among"));
        check_mount(FileSystem::Ext4, &["journal_path=/dev/loop0"], Some("`journal_path` is not among"));
        check_mount(FileSystem::Btrfs, &["device=/dev/loop0"], Some("`device` is not among"));
        check_mount(FileSystem::Ext4, &["data=/etc"], Some("`data` of mount -t ext4 cannot be `/etc`"));
        check_mount(FileSystem::Ext4, &["data=\"a,b\""], Some("`data` of mount -t ext4 cannot be `\"a`"));
    }

    #[test]
    fn no_property_of_zfs_leads_out_of_the_pool() {
        for property in ["mountpoint=/etc", "sharenfs=on", "devices=on", "setuid=on", "volsize=1G"] {
            let name = property.split('=').next().unwrap();
            check(
                zfs_refusal(&strings(&[property])),
                Some(&format!("`{name}` is not among the options of ZFS")),
            );
        }
        check(zfs_refusal(&strings(&["sync"])), Some("`sync` must be `name=value`"));
        check(zfs_refusal(&strings(&["sync=a b"])), Some("`sync` of ZFS cannot be `a b`"));
    }
}
