//! The target of a bench: a stack, an emulated disk that is up, or something real.

use std::collections::BTreeMap;
use std::io::{Seek as _, SeekFrom};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use spindle_mount::{disk, zfs};

use super::plan::Abilities;
use crate::stack::{StackFile, StackSpec, StackTable, built_in_stack, suggestion};
use spindle_base::Mistake;
use spindle_base::explain::read_toml;
use spindle_base::units::format_size_bytes;

/// Size of the smallest target that all questions fit on.
const SIZE_LOW_BYTES: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// An emulated disk that is up only during the bench. In virtual time it never comes up.
    Stack(Box<StackSpec>),
    /// An emulated disk that is already up.
    Running {
        name: String,
        device: PathBuf,
        mount: Option<PathBuf>,
        size_bytes: u64,
    },
    BlockDevice {
        path: PathBuf,
        size_bytes: u64,
    },
    /// A directory on a real file system. A temporary file is created there.
    Directory(PathBuf),
    File {
        path: PathBuf,
        size_bytes: u64,
    },
}

/// The arguments that name a target on the command line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Name<'a> {
    pub text: &'a str,
    /// A file with stack tables, or a scenario that has some.
    pub stacks_file: Option<&'a Path>,
    /// Size of the emulated disk of a profile.
    pub size: Option<&'a str>,
    /// Keys of the stack's table.
    pub set: Option<&'a toml::Table>,
    pub virtual_time: bool,
}

impl<'a> Name<'a> {
    /// The name alone.
    pub fn plain(text: &'a str) -> Name<'a> {
        Name { text, stacks_file: None, size: None, set: None, virtual_time: false }
    }
}

/// Any file with `[stacks.NAME]` tables.
#[derive(Debug, Deserialize)]
struct FileWithStacks {
    #[serde(default)]
    stacks: BTreeMap<String, StackTable>,
}

impl Target {
    pub fn find(name: Name<'_>) -> Result<Target, Mistake> {
        let target = Target::find_any(name)?;
        let refused = |option: &str, words: &str| {
            Err(Mistake::of_flag(option, format!("`{}` is {}, {words}", name.text, target.kind())))
        };
        match &target {
            Target::Stack(_) => {}
            _ if name.virtual_time => {
                return refused("virtual", "and only a model has virtual time; name a profile or a stack");
            }
            _ if name.set.is_some_and(|set| !set.is_empty()) => {
                return refused("set", "and only a profile or a stack has parameters");
            }
            Target::Directory(_) => {}
            _ if name.size.is_some() => return refused("size", "which has its size already"),
            _ => {}
        }
        match target.size_bytes() {
            Some(size_bytes) if size_bytes < SIZE_LOW_BYTES => Err(Mistake::new(format!(
                "`{}` has {}, must have at least {} to be measured",
                name.text,
                format_size_bytes(size_bytes),
                format_size_bytes(SIZE_LOW_BYTES)
            ))),
            _ => Ok(target),
        }
    }

    fn find_any(name: Name<'_>) -> Result<Target, Mistake> {
        let text = name.text;
        if let Some(file) = name.stacks_file {
            if name.size.is_some() {
                return Err(Mistake::new("--size: a stack of a file has its size there".to_owned()));
            }
            return stack_of_file(file, text).map(Box::new).map(Target::Stack);
        }
        let may_run = !name.virtual_time && !text.contains('/');
        if let Some(running) = may_run.then(|| running(text)).flatten() {
            return Ok(running);
        }
        if built_in_stack(text).is_some() || text.ends_with(".toml") {
            let none = toml::Table::new();
            let stack = StackSpec::of_name_with(text, name.size, "none", name.set.unwrap_or(&none));
            return stack.map(Box::new).map(Target::Stack);
        }
        let path = Path::new(text);
        match std::fs::metadata(path) {
            Ok(metadata) => real(path, &metadata),
            Err(error) if text.contains('/') => {
                Err(Mistake::new(format!("{text}: cannot be measured: {error}")))
            }
            Err(_) => {
                let suggestion = suggestion(text, &[]);
                Err(Mistake::new(format!(
                    "`{text}` is neither a profile nor an emulated disk that is up nor a block device, directory or file{suggestion}"
                )))
            }
        }
    }

    /// The kind in words, for messages.
    fn kind(&self) -> &'static str {
        match self {
            Target::Stack(_) => "a stack",
            Target::Running { .. } => "an emulated disk that is up",
            Target::BlockDevice { .. } => "a block device",
            Target::Directory(_) => "a directory",
            Target::File { .. } => "a file",
        }
    }

    /// One sentence about the target.
    pub fn summary(&self) -> String {
        match self {
            Target::Stack(stack) => stack.head().summary.clone(),
            Target::Running { name, .. } => format!("The emulated disk {name}."),
            Target::BlockDevice { path, .. } => format!("The block device {}.", path.display()),
            Target::Directory(path) => format!("A file in {}.", path.display()),
            Target::File { path, .. } => format!("The file {}.", path.display()),
        }
    }

    /// `None` for a directory, because the bench chooses the size of its file.
    pub fn size_bytes(&self) -> Option<u64> {
        match self {
            Target::Stack(stack) => Some(stack.size_bytes()),
            Target::Running { size_bytes, .. }
            | Target::BlockDevice { size_bytes, .. }
            | Target::File { size_bytes, .. } => Some(*size_bytes),
            Target::Directory(_) => None,
        }
    }

    /// The bench always writes its own emulated disks. It writes targets that may hold user data only with
    /// `destructive`.
    pub fn abilities(&self, destructive: bool) -> Abilities {
        let none = Abilities { raw: false, raw_writes: false, file: false, file_writes: false };
        match self {
            Target::Stack(_) => Abilities { raw: true, raw_writes: true, file: true, file_writes: true },
            Target::Running { mount, .. } => Abilities {
                raw: true,
                raw_writes: destructive && mount.is_none(),
                file: mount.is_some(),
                file_writes: mount.is_some(),
            },
            Target::BlockDevice { .. } => Abilities { raw: true, raw_writes: destructive, ..none },
            Target::Directory(_) => Abilities { file: true, file_writes: true, ..none },
            Target::File { .. } => Abilities { file: true, file_writes: destructive, ..none },
        }
    }

    /// Refuses to write a device that is mounted or opened exclusively.
    pub fn check_destructive(&self) -> Result<(), Mistake> {
        let path = match self {
            Target::Running { mount: None, device, .. } => device,
            Target::BlockDevice { path, .. } => path,
            Target::Running { name, mount: Some(mount), .. } => {
                return Err(Mistake::new(format!(
                    "--destructive: the disk {name} is mounted on {}; without the flag, it is written in a file there",
                    mount.display()
                )));
            }
            Target::Stack(_) | Target::Directory(_) => return Ok(()),
            Target::File { path, .. } => path,
        };
        // On a block device, O_EXCL fails while the device is mounted or part of another device.
        let flags = if matches!(self, Target::File { .. }) { 0 } else { libc::O_EXCL };
        let opened = std::fs::OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
        let path = path.display();
        opened.map(drop).map_err(|error| {
            Mistake::new(format!(
                "--destructive: {path} cannot be written: {error}; a mounted device must be unmounted first"
            ))
        })
    }
}

fn running(name: &str) -> Option<Target> {
    if zfs::list().ok()?.iter().any(|known| known == name) {
        return Some(Target::Directory(zfs::mount_of(name).ok()?));
    }
    if !disk::list().ok()?.iter().any(|known| known == name) {
        return None;
    }
    let (options, device, mount) = disk::inspect(name).ok()?;
    let size_bytes = options.serve.size_bytes;
    Some(Target::Running { name: name.to_owned(), device: device?, mount, size_bytes })
}

fn real(path: &Path, metadata: &std::fs::Metadata) -> Result<Target, Mistake> {
    if metadata.is_dir() {
        return Ok(Target::Directory(path.to_owned()));
    }
    let is_device = metadata.file_type().is_block_device();
    if !is_device && !metadata.is_file() {
        let words = "is neither a block device nor a directory nor a file";
        return Err(Mistake::new(format!("{}: {words}", path.display())));
    }
    let size_bytes = std::fs::File::open(path)
        .and_then(|mut file| file.seek(SeekFrom::End(0)))
        .map_err(|error| Mistake::new(format!("{}: cannot be measured: {error}", path.display())))?;
    let path = path.to_owned();
    Ok(if is_device { Target::BlockDevice { path, size_bytes } } else { Target::File { path, size_bytes } })
}

/// The stack of that name in a file with stack tables.
///
/// # Errors
/// The file cannot be read, lacks the stack, or the stack is a real disk.
pub fn stack_of_file(file: &Path, name: &str) -> Result<StackSpec, Mistake> {
    let shown = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Mistake::new(format!("--stacks: {shown} cannot be read: {error}")))?;
    let FileWithStacks { stacks } =
        read_toml(&text).map_err(|mistake| mistake.in_file(&shown).in_file("--stacks"))?;
    let stack = StackFile { stacks }.resolve(&shown, name)?;
    match stack.real() {
        Some(_) => {
            Err(Mistake::new(format!("{shown}: stacks.{name}: is a real disk; give its path as the target")))
        }
        None => Ok(stack),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, size: Option<&str>, virtual_time: bool) -> Result<Target, Mistake> {
        Target::find(Name { size, virtual_time, ..Name::plain(text) })
    }

    fn complaint(text: &str, size: Option<&str>, virtual_time: bool) -> String {
        find(text, size, virtual_time).unwrap_err().to_string()
    }

    #[test]
    fn a_profile_is_a_stack() {
        let Target::Stack(stack) = find("x25m-80", Some("1 GiB"), true).unwrap() else { panic!("no stack") };
        assert_eq!(stack.size_bytes(), 1 << 30);
    }

    #[test]
    fn each_bad_name_gives_one_sentence() {
        assert_eq!(
            complaint("x25m-8", None, true),
            "`x25m-8` is neither a profile nor an emulated disk that is up nor a block device, directory or file; \
             did you mean `x25m-80`?"
        );
        assert_eq!(
            complaint("/nowhere/disk", None, false),
            "/nowhere/disk: cannot be measured: No such file or directory (os error 2)"
        );
        assert_eq!(
            complaint("/tmp", None, true),
            "--virtual: `/tmp` is a directory, and only a model has virtual time; name a profile or a stack"
        );
        assert_eq!(
            complaint("/dev/null", None, false),
            "/dev/null: is neither a block device nor a directory nor a file"
        );
        assert_eq!(
            complaint("null", Some("1 MiB"), true),
            "`null` has 1 MiB, must have at least 16 MiB to be measured"
        );
    }

    #[test]
    fn somebodys_data_is_not_written_unasked() {
        let device = Target::BlockDevice { path: "/dev/sda".into(), size_bytes: 1 << 30 };
        assert!(!device.abilities(false).raw_writes && device.abilities(true).raw_writes);
        let file = Target::File { path: "/data".into(), size_bytes: 1 << 30 };
        assert!(!file.abilities(false).file_writes && file.abilities(true).file_writes);
        let mounted = Target::Running {
            name: "a".to_owned(),
            device: "/dev/loop0".into(),
            mount: Some("/mnt".into()),
            size_bytes: 1 << 30,
        };
        assert!(!mounted.abilities(true).raw_writes && mounted.check_destructive().is_err());
    }

    #[test]
    fn a_stack_comes_from_any_file_that_has_stacks() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("scenario.toml");
        std::fs::write(&file, "title = \"x\"\n[stacks.slow]\nprofile = \"hdd-7200\"\nsize = \"1 GiB\"\n")
            .unwrap();
        let name = |text| Name { stacks_file: Some(&file), virtual_time: true, ..Name::plain(text) };
        assert!(matches!(Target::find(name("slow")), Ok(Target::Stack(_))));
        assert!(Target::find(name("fast")).unwrap_err().to_string().contains("there is no stack `fast`"));
    }
}
