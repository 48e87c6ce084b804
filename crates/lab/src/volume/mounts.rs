//! The storage of a cell: a volume mount per stack of its layout. The mounts are brought up, switched and
//! taken down together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::record::FileClass;
use spindle_base::proc::process_cpu_s;
use spindle_model::Change;
use spindle_mount::Floor;
use spindle_mount::trace::TraceHead;

use crate::host::trial_time::TrialTime;
use crate::stack::StackSpec;
use crate::stack::layout::Layout;
use crate::volume::emulated::Wishes;
use crate::volume::plain_directory::PlainDirectory;
use crate::volume::sample::MountSample;
use crate::volume::{self, Volume};

/// The mounts of a layout that are up. Dropping them takes everything down again.
#[derive(Debug)]
pub struct Mounts {
    /// The data's first.
    mounts: Vec<Mount>,
}

#[derive(Debug)]
struct Mount {
    key: &'static str,
    stack: String,
    classes: Vec<FileClass>,
    volume: Box<dyn Volume>,
}

/// Arguments of [`Mounts::up`].
#[derive(Debug, Clone, Copy)]
pub struct MountsRequest<'a> {
    pub layout: &'a Layout,
    pub stacks: &'a BTreeMap<String, StackSpec>,
    /// Uses directories instead of emulated disks, so that the whole pipeline runs on any machine in
    /// milliseconds.
    pub plain_directories: bool,
    /// The output of [`Mounts::into_snapshot`] of an earlier layout of the same shape; `None` for new, empty
    /// file systems.
    pub snapshot: Option<&'a Path>,
    /// The run's directory for a mount's files besides its store.
    pub work_directory: &'a Path,
    pub seed: u64,
    /// The owner: `replica-1`, or empty for the only server or the primary. Part of the names of directories
    /// and disks.
    pub owner: &'a str,
    /// Number of mounts that are up together, with those of other owners.
    pub mount_count: usize,
    pub time: &'a TrialTime,
    /// See [`Wishes::floor`]. Without it, the first emulated disk measures it for all.
    pub floor: Option<Floor>,
}

impl Mounts {
    /// Brings the mounts up with the timing off.
    ///
    /// # Errors
    /// Any failure to bring up a mount, with its class; the others are down again then.
    pub fn up(request: &MountsRequest<'_>) -> Result<Mounts> {
        let mut mounts: Vec<Mount> = Vec::new();
        let mut floor = request.floor;
        let mount_count = request.layout.mounts.len();
        for (index, wanted) in request.layout.mounts.iter().enumerate() {
            let key = wanted.key();
            let name = match request.owner {
                "" => key.to_owned(),
                owner => format!("{owner}-{key}"),
            };
            let snapshot = request.snapshot.map(|directory| directory.join(key));
            let stack = &request.stacks[&wanted.stack];
            let volume: Box<dyn Volume> = match (request.plain_directories, stack.real()) {
                (true, None) => {
                    let path = request.work_directory.join("volumes").join(&name);
                    Box::new(PlainDirectory::up(&path, snapshot.as_deref())?)
                }
                _ => {
                    let id = std::process::id();
                    let wishes = Wishes {
                        name: if name == "data" { format!("run-{id}") } else { format!("run-{id}-{name}") },
                        // Two drives of the same kind do not rotate in step.
                        seed: request.seed.wrapping_add(index as u64),
                        dilation: request.time.clock.dilation,
                        mount_at: None,
                        timing: false,
                        floor,
                        snapshot: snapshot.as_deref(),
                        spill_directory: request.work_directory,
                        die_with_parent: true,
                    };
                    let environment = request.time.environment();
                    let volume = volume::bring_up(stack, &wishes, request.mount_count as u64, &environment);
                    named(volume, mount_count, || format!("the stack `{}` for {key}", wanted.stack))?
                }
            };
            floor = floor.or_else(|| volume.floor());
            mounts.push(Mount { key, stack: wanted.stack.clone(), classes: wanted.classes.clone(), volume });
        }
        Ok(Mounts { mounts })
    }

    /// Of an emulated disk among them.
    pub fn floor(&self) -> Option<Floor> {
        self.mounts.iter().find_map(|mount| mount.volume.floor())
    }

    /// With the timing off, requests are answered at memory speed.
    pub fn set_timing(&mut self, on: bool) -> Result<()> {
        self.mounts.iter_mut().try_for_each(|mount| mount.volume.set_timing(on))
    }

    /// A part of the disk of this stack changes.
    pub fn change(&mut self, stack: &str, change: Change) -> Result<()> {
        let mount = self.mounts.iter_mut().find(|mount| mount.stack == stack);
        mount.with_context(|| format!("no mount is on `{stack}`"))?.volume.change(change)
    }

    /// Begins a block trace of each emulated disk.
    pub fn begin_trace(&mut self, limit_bytes: u64) -> Result<()> {
        self.mounts.iter_mut().try_for_each(|mount| mount.volume.begin_trace(limit_bytes))
    }

    pub fn end_trace(&mut self) -> Result<()> {
        self.mounts.iter_mut().try_for_each(|mount| mount.volume.end_trace())
    }

    /// Writes each mount's block trace to the new file that `path_for` names for it. In the order of the
    /// layout; `None` for a mount without a trace.
    pub fn save_traces(
        &mut self,
        path_for: impl Fn(&str) -> PathBuf,
    ) -> Result<Vec<Option<(PathBuf, TraceHead)>>> {
        let mount_count = self.mounts.len();
        let save = |mount: &mut Mount| {
            let path = path_for(mount.key);
            let saved = mount.volume.save_trace(&path);
            let head = named(saved, mount_count, || format!("the mount for {}", mount.key))?;
            Ok(head.map(|head| (path, head)))
        };
        self.mounts.iter_mut().map(save).collect()
    }

    pub fn write_back(&mut self) -> Result<()> {
        self.mounts.iter_mut().try_for_each(|mount| mount.volume.write_back())
    }

    /// An error if measurements on any of them are meaningless from now on.
    pub fn check(&mut self) -> Result<()> {
        let mount_count = self.mounts.len();
        self.mounts.iter_mut().try_for_each(|mount| {
            named(mount.volume.check(), mount_count, || format!("the mount for {}", mount.key))
        })
    }

    pub fn data_directory(&self) -> PathBuf {
        self.mounts[0].volume.path().join("data")
    }

    /// The directories of the classes with a mount of their own.
    pub fn class_directories(&self) -> BTreeMap<FileClass, PathBuf> {
        let others = self.mounts.iter().skip(1);
        let directory = |mount: &Mount, class: FileClass| mount.volume.path().join(class.key());
        others.flat_map(|mount| mount.classes.iter().map(|&class| (class, directory(mount, class)))).collect()
    }

    /// Samples in the order of the layout.
    ///
    /// # Errors
    /// An emulator is dead.
    pub fn samples(&mut self) -> Result<Vec<MountSample>> {
        self.mounts.iter_mut().map(|mount| mount.volume.sample()).collect()
    }

    /// User and system CPU of all emulators since they came up.
    pub fn emulator_cpu_s(&self) -> f64 {
        self.mounts.iter().flat_map(|mount| mount.volume.process_ids()).map(process_cpu_s).sum()
    }

    /// Unmounts, stores the content in `directory`, one part per mount, and takes everything down.
    pub fn into_snapshot(self, directory: &Path) -> Result<()> {
        let mount_count = self.mounts.len();
        self.mounts.into_iter().try_for_each(|mount| {
            let kept = mount.volume.into_snapshot(&directory.join(mount.key));
            named(kept, mount_count, || format!("keeping {}", mount.key))
        })
    }

    /// Unmounts and discards the written data.
    pub fn down(self) -> Result<()> {
        self.mounts.into_iter().try_for_each(|mount| mount.volume.down())
    }
}

/// Names the mount in an error, unless it is the only one.
fn named<T>(result: Result<T>, mount_count: usize, name: impl FnOnce() -> String) -> Result<T> {
    if mount_count > 1 { result.with_context(name) } else { result }
}
