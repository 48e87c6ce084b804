//! The options of mkfs, mount and ZFS that a user may give: those that shape the file system on its own
//! device.
//!
//! mkfs and mount run as root. Many of their options name other files and devices, which they read or write
//! (`xfs -l logdev=`, `ext4 -z`, `btrfs --rootdir`, `mount -o loop=`). Others let a file system do more than
//! hold files (`suid`, `dev`), or let its errors bring the machine down (`errors=panic`). So every option
//! outside these tables is refused, and no value may be or contain a path.
//!
//! Sources: mkfs.xfs(8), xfs(5), mke2fs(8), ext4(5), mkfs.btrfs(8), btrfs(5), zfs(8) of zfs-fuse 0.7.0.
//! Options that newer kernels have dropped stay in the tables: mount refuses them in its own words.

use crate::file_system::FileSystem;

/// The argument of an option of mkfs.
#[derive(Debug, Clone, Copy)]
enum Argument {
    Nothing,
    /// One word.
    Word,
    /// Words of this list, or `key=value` with such a key, separated by commas; `^` negates a word.
    List(&'static [&'static str]),
}

/// An option of mkfs with all its names.
type MkfsOption = (&'static [&'static str], Argument);

const XFS_MKFS: &[MkfsOption] = &[
    (&["-q", "-f", "-K"], Argument::Nothing),
    (&["-L"], Argument::Word),
    (&["-b", "-s"], Argument::List(&["size"])),
    (
        &["-d"],
        Argument::List(&[
            "agcount",
            "agsize",
            "concurrency",
            "cowextsize",
            "extszinherit",
            "noalign",
            "size",
            "su",
            "sunit",
            "sw",
            "swidth",
        ]),
    ),
    (
        &["-i"],
        Argument::List(&[
            "align",
            "attr",
            "exchange",
            "maxpct",
            "nrext64",
            "perblock",
            "projid32bit",
            "size",
            "sparse",
        ]),
    ),
    (
        &["-l"],
        Argument::List(&["agnum", "concurrency", "internal", "lazy-count", "size", "su", "sunit", "version"]),
    ),
    (
        &["-m"],
        Argument::List(&["autofsck", "bigtime", "crc", "finobt", "inobtcount", "reflink", "rmapbt", "uuid"]),
    ),
    (&["-n"], Argument::List(&["ftype", "parent", "size", "version"])),
];

const EXT4_MKFS: &[MkfsOption] = &[
    (&["-q", "-F", "-j"], Argument::Nothing),
    (&["-b", "-C", "-g", "-G", "-i", "-I", "-L", "-m", "-N", "-T", "-U"], Argument::Word),
    (
        &["-E"],
        Argument::List(&[
            "assume_storage_prezeroed",
            "discard",
            "hash_seed",
            "lazy_itable_init",
            "lazy_journal_init",
            "nodiscard",
            "num_backup_sb",
            "orphan_file_size",
            "packed_meta_blocks",
            "resize",
            "stride",
            "stripe-width",
            "stripe_width",
        ]),
    ),
    (&["-J"], Argument::List(&["fast_commit_size", "location", "size"])),
    (
        &["-O"],
        Argument::List(&[
            "64bit",
            "bigalloc",
            "dir_index",
            "dir_nlink",
            "ea_inode",
            "ext_attr",
            "extent",
            "extents",
            "extra_isize",
            "fast_commit",
            "filetype",
            "flex_bg",
            "has_journal",
            "huge_file",
            "inline_data",
            "large_dir",
            "large_file",
            "meta_bg",
            "metadata_csum",
            "metadata_csum_seed",
            "none",
            "orphan_file",
            "resize_inode",
            "sparse_super",
            "sparse_super2",
            "stable_inodes",
            "uninit_bg",
        ]),
    ),
];

const BTRFS_MKFS: &[MkfsOption] = &[
    (&["-q", "--quiet", "-f", "--force", "-K", "--nodiscard", "-M", "--mixed"], Argument::Nothing),
    (
        &[
            "-b",
            "--byte-count",
            "--csum",
            "--checksum",
            "-d",
            "--data",
            "-L",
            "--label",
            "-m",
            "--metadata",
            "-n",
            "--nodesize",
            "-s",
            "--sectorsize",
            "-U",
            "--uuid",
        ],
        Argument::Word,
    ),
    (
        &["-O", "--features", "-R", "--runtime-features"],
        Argument::List(&[
            "block-group-tree",
            "extref",
            "free-space-tree",
            "mixed-bg",
            "no-holes",
            "skinny-metadata",
        ]),
    ),
];

/// Options of every file system; each may have a value.
const MOUNT: &[&str] = &[
    "async",
    "atime",
    "diratime",
    "dirsync",
    "discard",
    "lazytime",
    "noatime",
    "nodev",
    "nodiratime",
    "nodiscard",
    "noexec",
    "nolazytime",
    "norelatime",
    "nostrictatime",
    "nosuid",
    "relatime",
    "strictatime",
    "sync",
];

const XFS_MOUNT: &[&str] = &[
    "allocsize",
    "attr2",
    "barrier",
    "filestreams",
    "ikeep",
    "inode32",
    "inode64",
    "largeio",
    "logbsize",
    "logbufs",
    "max_atomic_write",
    "noalign",
    "noattr2",
    "nobarrier",
    "noikeep",
    "nolargeio",
    "noquota",
    "nouuid",
    "sunit",
    "swalloc",
    "swidth",
    "wsync",
];

const EXT4_MOUNT: &[&str] = &[
    "acl",
    "auto_da_alloc",
    "barrier",
    "block_validity",
    "commit",
    "data",
    "delalloc",
    "dioread_lock",
    "dioread_nolock",
    "i_version",
    "init_itable",
    "inode_readahead_blks",
    "journal_async_commit",
    "journal_checksum",
    "journal_ioprio",
    "max_batch_time",
    "max_dir_size_kb",
    "mb_optimize_scan",
    "min_batch_time",
    "noacl",
    "noauto_da_alloc",
    "nobarrier",
    "noblock_validity",
    "nodelalloc",
    "nodioread_nolock",
    "noinit_itable",
    "nojournal_checksum",
    "nombcache",
    "noquota",
    "nouser_xattr",
    "stripe",
    "user_xattr",
];

const BTRFS_MOUNT: &[&str] = &[
    "acl",
    "autodefrag",
    "barrier",
    "clear_cache",
    "commit",
    "compress",
    "compress-force",
    "datacow",
    "datasum",
    "flushoncommit",
    "max_inline",
    "metadata_ratio",
    "noacl",
    "noautodefrag",
    "nobarrier",
    "nodatacow",
    "nodatasum",
    "noflushoncommit",
    "nospace_cache",
    "nossd",
    "nossd_spread",
    "notreelog",
    "space_cache",
    "ssd",
    "ssd_spread",
    "thread_pool",
    "treelog",
];

/// Properties of a ZFS file system, given as `name=value`.
const ZFS_PROPERTIES: &[&str] = &[
    "atime",
    "checksum",
    "compression",
    "copies",
    "dedup",
    "logbias",
    "primarycache",
    "recordsize",
    "secondarycache",
    "sync",
    "xattr",
];

/// The mistake in mkfs's arguments, if any: one sentence that names the option and some known ones.
pub(crate) fn mkfs_refusal(file_system: FileSystem, arguments: &[String]) -> Option<String> {
    let (program, known) = match file_system {
        FileSystem::None => return None,
        FileSystem::Xfs => ("mkfs.xfs", XFS_MKFS),
        FileSystem::Ext4 => ("mkfs.ext4", EXT4_MKFS),
        FileSystem::Btrfs => ("mkfs.btrfs", BTRFS_MKFS),
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let Some((name, value)) = split(argument) else {
            return Some(format!(
                "`{argument}` is not an option of {program}, which is given the device by us alone"
            ));
        };
        let Some((_, takes)) = known.iter().find(|(names, _)| names.contains(&name)) else {
            let names = known.iter().flat_map(|(names, _)| names.iter().copied());
            return Some(unknown(program, name, names));
        };
        let value = match takes {
            Argument::Nothing => None,
            _ => value.or_else(|| rest.next().map(String::as_str)),
        };
        let refusal = match (takes, value) {
            (Argument::Nothing, _) if name == argument => None,
            (Argument::Nothing, _) => Some(format!("`{argument}`: `{name}` of {program} stands alone")),
            (_, None) => Some(format!("`{name}` of {program} needs a value")),
            (Argument::Word, Some(value)) => value_refusal(&format!("`{name}` of {program}"), value),
            (Argument::List(keys), Some(value)) => list_refusal(&format!("{program} {name}"), keys, value),
        };
        if refusal.is_some() {
            return refusal;
        }
    }
    None
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
    let own = match file_system {
        FileSystem::None => return None,
        FileSystem::Xfs => XFS_MOUNT,
        FileSystem::Ext4 => EXT4_MOUNT,
        FileSystem::Btrfs => BTRFS_MOUNT,
    };
    let known: Vec<&str> = own.iter().chain(MOUNT).copied().collect();
    let whose = format!("mount -t {}", file_system.name());
    options.iter().find_map(|list| list_refusal(&whose, &known, list))
}

/// The mistake in the properties of a ZFS file system, if any.
pub(crate) fn zfs_refusal(properties: &[String]) -> Option<String> {
    properties.iter().find_map(|property| match property.split_once('=') {
        Some((name, value)) if ZFS_PROPERTIES.contains(&name) => {
            value_refusal(&format!("`{name}` of ZFS"), value)
        }
        Some((name, _)) => Some(unknown("ZFS", name, ZFS_PROPERTIES.iter().copied())),
        None => Some(format!("`{property}` must be `name=value`")),
    })
}

fn list_refusal(whose: &str, known: &[&str], list: &str) -> Option<String> {
    list.split(',').find_map(|item| {
        let (key, value) = item.split_once('=').map_or((item, None), |(key, value)| (key, Some(value)));
        if !known.contains(&key.trim_start_matches('^')) {
            return Some(unknown(whose, key, known.iter().copied()));
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

fn unknown<'known>(whose: &str, name: &str, known: impl Iterator<Item = &'known str>) -> String {
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
