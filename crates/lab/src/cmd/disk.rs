//! `spindle disk`: an emulated disk for any use.

mod alignment;
mod bench;
mod clone;
mod dilation;
mod down;
pub(super) mod list;
mod set;
mod show;
mod status;
mod up;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use spindle_model::{Ageing, LayerParameters as _};
use spindle_mount::control::Command as ControlCommand;
use spindle_mount::{DiskOptions, disk, serve};

use super::output::{print, print_answer};
use crate::bench::reference::{self, Reference};
use crate::bench::validate;
use crate::host::interrupt::Interrupt;
use crate::stack::StackSpec;
use crate::volume::emulated;
use alignment::AlignmentArguments;
use spindle_base::Mistake;

const VALIDATE_SEED: u64 = 1;

#[derive(Debug, Args)]
pub struct DiskArguments {
    #[command(subcommand)]
    command: DiskCommand,
}

#[derive(Debug, Subcommand)]
enum DiskCommand {
    /// List the devices and ready-made stacks: latency, rate, cost of a flush, and what a power cut may lose.
    List(list::ListArguments),
    /// Show a device or stack in full: figures, published figures, and every parameter with its source or
    /// assumption.
    #[command(alias = "profile")]
    Show(show::ShowArguments),
    /// Bring up an emulated disk: a block device, mounted unless it is raw, or a ZFS pool of several.
    Up(up::UpArguments),
    /// Show the disks that are up, and their statistics.
    Status {
        /// Show only this disk.
        name: Option<String>,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Switch the timing on or off. When it is off, the disk answers at memory speed.
    ///
    /// Without a state it prints the present one.
    #[command(alias = "physics")]
    Timing {
        /// Name of the disk.
        name: String,
        /// State of the timing.
        #[arg(value_parser = ["on", "off"])]
        state: Option<String>,
    },
    /// Bring a disk into a used state: filled, then overwritten at random. Its contents do not change.
    Age {
        /// Name of the disk.
        name: String,
        /// Share of the disk that is filled.
        #[arg(long, default_value_t = 100, value_name = "PERCENT")]
        fill: u64,
        /// Amount of random overwriting in the filled share, as a percentage of the disk's size.
        #[arg(long, default_value_t = 300, value_name = "PERCENT")]
        overwrite: u64,
    },
    /// Erase a raw disk, as ATA SECURITY ERASE or NVMe Format does. It is then as new.
    SecureErase {
        /// Name of the disk.
        name: String,
    },
    /// Unmount and detach a disk, and end its emulator. Its contents are lost.
    Down {
        /// Name of the disk or pool.
        #[arg(required_unless_present = "all")]
        name: Option<String>,
        /// Take down every disk, including the remains of crashed ones.
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
    /// Measure an emulated or a real disk: random and sequential access by block size and iodepth, fsync, and
    /// the file system against the raw device.
    Bench(bench::BenchArguments),
    /// Measure a device, and write a profile that behaves like it.
    Clone(clone::CloneArguments),
    /// Compare real time with virtual time, or a profile with a stored distribution.
    ///
    /// Without --reference, it compares the read latencies of the mounted disk with those of the model alone,
    /// at several queue depths, with idle and with busy cores. The distance is the demerit figure: the root
    /// mean square of the horizontal distance between two distributions of response times (Ruemmler and
    /// Wilkes 1994).
    Validate(ValidateArguments),
    /// Compute the share of a database's pages that cross a chunk boundary of an array.
    Alignment(AlignmentArguments),
    #[command(hide = true)]
    Serve { state_directory: PathBuf },
}

#[derive(Debug, Args)]
struct ValidateArguments {
    /// A built-in profile, a ready-made stack (`stacks/*.toml`), or the path of a profile (TOML).
    profile: String,
    /// Size of the disk.
    #[arg(long, default_value = "4 GiB")]
    size: String,
    /// Seconds per row, in dilated time.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Size of each read in bytes.
    #[arg(long, default_value_t = 16_384, value_parser = clap::value_parser!(u64).range(512..=1_048_576))]
    read_bytes: u64,
    /// Compare the profile in virtual time with this distribution of measured response times (TOML). Needs no
    /// root.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seconds", "read_bytes", "dilation"])]
    reference: Option<PathBuf>,
    #[command(flatten)]
    dilation: dilation::DilationArguments,
    #[command(flatten)]
    set: set::Set,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// # Errors
/// A mistake in the arguments, or the disk fails.
pub fn run(arguments: DiskArguments) -> Result<()> {
    match arguments.command {
        DiskCommand::List(arguments) => list::run(&arguments),
        DiskCommand::Show(arguments) => show::run(&arguments),
        DiskCommand::Up(arguments) => up::run(&arguments),
        DiskCommand::Status { name, json } => status::status(name.as_deref(), json),
        DiskCommand::Timing { name, state } => timing(&name, state.as_deref()),
        DiskCommand::Age { name, fill, overwrite } => {
            let ageing = Ageing { fill_percent: fill, overwrite_percent: overwrite, seed: 1 };
            ageing.validate().map_err(|invalid| Mistake::of_flag(&invalid.key, invalid.problem))?;
            let Ageing { fill_percent, overwrite_percent, seed } = ageing;
            let command = ControlCommand::Age { fill_percent, overwrite_percent, seed };
            disk::connect(&name)?.call(&command).map(drop)
        }
        DiskCommand::SecureErase { name } => {
            let (_, _, mount) = disk::inspect(&name)?;
            if let Some(at) = mount {
                let at = at.display();
                bail!(Mistake::new(format!("{name} is mounted at {at}; only a raw disk can be erased")));
            }
            disk::connect(&name)?.call(&ControlCommand::SecureErase).map(drop)
        }
        DiskCommand::Down { name: Some(name), .. } => down::one(&name),
        DiskCommand::Down { .. } => down::all(),
        DiskCommand::Bench(arguments) => bench::run(&arguments),
        DiskCommand::Clone(arguments) => clone::run(&arguments),
        DiskCommand::Alignment(arguments) => alignment::run(&arguments),
        DiskCommand::Validate(arguments) => validate(&arguments),
        DiskCommand::Serve { state_directory } => serve_disk(&state_directory),
    }
}

fn timing(name: &str, state: Option<&str>) -> Result<()> {
    let mut disk = disk::connect(name)?;
    match state {
        Some(state) => disk.call(&ControlCommand::Timing { on: state == "on" }).map(drop),
        None => print(if disk.statistics()?.timing { "on\n" } else { "off\n" }),
    }
}

fn validate(arguments: &ValidateArguments) -> Result<()> {
    let dilation = arguments.dilation.dilation()?;
    let set = arguments.set.table();
    let stack = StackSpec::of_name_with(&arguments.profile, Some(&arguments.size), "none", &set)?;
    if let Some(path) = &arguments.reference {
        let agreement = Reference::read(path)?.hold_against(&stack, VALIDATE_SEED)?;
        return print_answer(arguments.json, &agreement, || reference::table(&agreement));
    }
    let interrupt = Interrupt::listen()?;
    let options =
        validate::Options { read_bytes: arguments.read_bytes, seconds: arguments.seconds, dilation };
    let rows = validate::validate(&stack, options, &interrupt)?;
    print_answer(arguments.json, &rows, || validate::table(&rows))
}

fn serve_disk(state_directory: &std::path::Path) -> Result<()> {
    let text = std::fs::read(state_directory.join(disk::OPTIONS_FILE))
        .map_err(|error| Mistake::new(format!("{}: no disk to serve: {error}", state_directory.display())))?;
    let options: DiskOptions = serde_json::from_slice(&text).context("reading what to serve")?;
    serve(emulated::device(&options)?, &options.serve)
}
