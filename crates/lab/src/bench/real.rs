//! Answers questions with fio, on a real target or on an emulated one in real time.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use itertools::Itertools as _;
use spindle_base::dilation::Dilation;
use spindle_model::split_mix;
use spindle_mount::{Disk, FileSystem, Statistics};
use tempfile::NamedTempFile;

use super::fio::{self, Job};
use super::target::Target;
use super::{Access, Place, Question, Row};
use crate::host::interrupt::Interrupt;
use crate::observe;
use crate::stack::StackSpec;
use crate::volume::emulated::{self, Wishes};

const MEBIBYTE: u64 = 1 << 20;
/// Size of the temporary file, unless the target is small.
const FILE_BYTES: u64 = 1 << 30;
/// Size of the disk divided by the largest size of the file. The rest is for metadata of the file system.
const FILE_SHARE: u64 = 4;
const READ_RAMP: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Seconds per row.
    pub seconds: u64,
    pub seed: u64,
    /// Size of the file in a directory; the default when absent.
    pub file_bytes: Option<u64>,
}

/// Passes each row to `on_row` as soon as it is measured.
///
/// # Errors
/// The disk does not come up, fio fails, or the user asked to stop. The rows measured until then have been
/// passed on.
pub fn measure(
    target: &Target,
    questions: &[Question],
    options: Options,
    interrupt: &Interrupt,
    on_row: &mut dyn FnMut(Row) -> Result<()>,
) -> Result<Vec<String>> {
    let (raw, file): (Vec<Question>, Vec<Question>) =
        questions.iter().partition(|question| question.place == Place::Raw);
    let file_bytes = |room_bytes: u64| options.file_bytes.unwrap_or(FILE_BYTES.min(room_bytes / FILE_SHARE));
    let mut notes = Vec::new();
    let mut ask = Ask { options, interrupt, on_row, real_time: false, dilation: Dilation::NONE };
    match target {
        Target::Stack(stack) => {
            ask.real_time = true;
            if !raw.is_empty() {
                let mut disk = up(stack, FileSystem::None, options.seed, Dilation::NONE)?;
                let earlier = disk.statistics()?;
                let device = disk.device.clone();
                ask.all(&raw, &device, stack.size_bytes(), true)?;
                notes.extend(lateness_note(&earlier, &disk.statistics()?)?);
                disk.down()?;
            }
            if !file.is_empty() {
                let kind = match FileSystem::by_name(&stack.head().file_system) {
                    None | Some(FileSystem::None) => FileSystem::Xfs,
                    Some(kind) => kind,
                };
                let mut disk = up(stack, kind, options.seed, Dilation::NONE)?;
                let mount = disk.mount.clone().context("the emulated disk has no mount")?;
                let file_bytes = FILE_BYTES.min(stack.size_bytes() / FILE_SHARE);
                disk.set_timing(false)?;
                let own = own_file(&mount, file_bytes)?;
                disk.set_timing(true)?;
                ask.all(&file, own.path(), file_bytes, false)?;
                drop(own);
                notes.push(format!("file system: {}, a file of {} MiB", kind.name(), file_bytes / MEBIBYTE));
                disk.set_timing(false)?;
                disk.down()?;
            }
        }
        Target::Running { device, mount, size_bytes, .. } => {
            ask.real_time = true;
            ask.dilation = emulated::dilation_under(device)?.unwrap_or_default();
            ask.all(&raw, device, *size_bytes, true)?;
            if let Some(mount) = mount.as_deref().filter(|_| !file.is_empty()) {
                let file_bytes = file_bytes(*size_bytes);
                ask.all(&file, own_file(mount, file_bytes)?.path(), file_bytes, false)?;
            }
        }
        Target::BlockDevice { path, size_bytes } => {
            let emulated = emulated::dilation_under(path)?;
            ask.real_time = emulated.is_some();
            ask.dilation = emulated.unwrap_or_default();
            ask.all(&raw, path, *size_bytes, true)?;
        }
        Target::File { path, size_bytes } => {
            ask.dilation = emulated::dilation_under(path)?.unwrap_or_default();
            ask.all(&file, path, *size_bytes, false)?;
        }
        Target::Directory(path) => {
            ask.dilation = emulated::dilation_under(path)?.unwrap_or_default();
            let file_bytes = file_bytes(free_bytes(path)?);
            ask.all(&file, own_file(path, file_bytes)?.path(), file_bytes, false)?;
            notes.push(format!("a temporary file of {} MiB", file_bytes / MEBIBYTE));
        }
    }
    if !ask.dilation.is_none() {
        notes.push(format!("dilation {}: all figures are in dilated time", ask.dilation));
    }
    Ok(notes)
}

struct Ask<'a> {
    options: Options,
    interrupt: &'a Interrupt,
    on_row: &'a mut dyn FnMut(Row) -> Result<()>,
    real_time: bool,
    dilation: Dilation,
}

impl Ask<'_> {
    fn all(&mut self, questions: &[Question], path: &Path, size_bytes: u64, is_device: bool) -> Result<()> {
        for question in questions {
            self.interrupt.check()?;
            let figures = fio::run(&self.job(*question, path, size_bytes, is_device), self.interrupt)?;
            (self.on_row)(figures.row)?;
        }
        Ok(())
    }

    fn job<'b>(&self, question: Question, path: &'b Path, size_bytes: u64, is_device: bool) -> Job<'b> {
        let is_fsync = question.access == Access::Fsync;
        Job {
            path,
            question,
            offset_bytes: 0,
            span_bytes: size_bytes / question.block_bytes * question.block_bytes,
            dilation: self.dilation,
            seconds: self.options.seconds,
            // Fills the write cache before the measurement, so that the first writes do not look too fast.
            ramp: match question.access.is_write() && !is_fsync {
                true => Duration::from_secs(self.options.seconds),
                false => READ_RAMP,
            },
            // Logs are written through the page cache. On a raw device, that would be the cache of the device
            // node.
            direct: is_device || !is_fsync,
            seed: self.options.seed,
            real_time: self.real_time,
        }
    }
}

/// An emulated disk of that stack. It exists as long as the value.
///
/// # Errors
/// The disk does not come up.
pub fn up(stack: &StackSpec, file_system: FileSystem, seed: u64, dilation: Dilation) -> Result<Disk> {
    let wishes = Wishes {
        name: format!("bench-{}", std::process::id()),
        seed,
        dilation,
        mount_at: None,
        timing: true,
        floor: None,
        snapshot: None,
        spill_directory: &std::env::temp_dir(),
        die_with_parent: true,
    };
    let program = std::env::current_exe().context("looking for our own binary")?;
    let mut options = emulated::options(stack, &wishes)?;
    options.formatting.file_system = file_system;
    Disk::up(&program, &options)
}

fn lateness_note(earlier: &Statistics, later: &Statistics) -> Result<Option<String>> {
    let lateness = observe::histogram_difference(&earlier.lateness_histogram, &later.lateness_histogram)?;
    if lateness.is_empty() {
        return Ok(None);
    }
    let late_us = |share: f64| lateness.value_at_quantile(share) as f64 / 1e3;
    Ok(Some(format!(
        "lateness of the emulator against the model: p50 {:.1} us, p99 {:.1} us; raw rows only",
        late_us(0.50),
        late_us(0.99)
    )))
}

/// # Errors
/// `statvfs` fails on the directory.
fn free_bytes(directory: &Path) -> Result<u64> {
    let status = rustix::fs::statvfs(directory)
        .with_context(|| format!("asking how much room there is in {}", directory.display()))?;
    Ok(status.f_bavail * status.f_frsize)
}

/// A temporary file, which is removed on drop. It is written once before the measurement, so that reads find
/// blocks and writes overwrite.
///
/// # Errors
/// The directory is not writable, or is full.
pub fn own_file(directory: &Path, size_bytes: u64) -> Result<NamedTempFile> {
    let write = || -> std::io::Result<NamedTempFile> {
        let mut file = tempfile::Builder::new().prefix("spindle-bench-").tempfile_in(directory)?;
        // Random data, because drives with compression are fast with zeroes.
        let mut state = size_bytes;
        let mut random = |index| {
            state = split_mix(state ^ index);
            state.to_le_bytes()
        };
        let block = (0..MEBIBYTE / 8).flat_map(&mut random).collect_vec();
        for start in (0..size_bytes).step_by(block.len()) {
            file.write_all(&block[..MEBIBYTE.min(size_bytes - start) as usize])?;
        }
        file.as_file().sync_all()?;
        Ok(file)
    };
    let size = size_bytes / MEBIBYTE;
    write().with_context(|| format!("making a file of {size} MiB in {}", directory.display()))
}
