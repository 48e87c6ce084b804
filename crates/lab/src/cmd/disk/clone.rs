//! `spindle disk clone`: a profile of a device at hand.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use tempfile::NamedTempFile;

use crate::bench::clone::{self, Options, Source};
use crate::bench::fio;
use crate::bench::real::own_file;
use crate::bench::target::{Name, Target};
use crate::cmd::output::print_answer;
use crate::host::interrupt::Interrupt;
use crate::host::provenance;
use crate::volume::emulated;
use spindle_base::Mistake;
use spindle_base::units::format_size_bytes;

/// Size of the temporary file in a directory.
const FILE_BYTES: u64 = 1 << 30;

#[derive(Debug, Args)]
pub(super) struct CloneArguments {
    /// A block device, a file, a directory (for a temporary file), or a disk that is up.
    source: String,
    /// Name of the profile, which is written to NAME.toml.
    #[arg(long)]
    name: String,
    /// Also measure writes. The contents of the device or file are lost.
    #[arg(long)]
    destructive: bool,
    /// Seconds per measurement. There are about ten measurements.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Directory for the profile.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    output: PathBuf,
    /// Print the figures of the device and of the clone as one JSON object.
    #[arg(long)]
    json: bool,
}

/// # Errors
/// A mistake in the arguments, a failure of fio, or a device that no parameters reproduce.
pub(super) fn run(arguments: &CloneArguments) -> Result<()> {
    let paths = paths(arguments)?;
    let target = Target::find(Name::plain(&arguments.source))?;
    if arguments.destructive {
        target.check_destructive()?;
    }
    fio::version()?;
    let interrupt = Interrupt::listen()?;
    let (source, _own_file) = source(&target, arguments)?;
    let now = provenance::now();
    let dilation = emulated::dilation_under(&source.path)?;
    let is_device = matches!(target, Target::Running { .. } | Target::BlockDevice { .. });
    let options = Options {
        seconds: arguments.seconds,
        date: now.split('T').next().unwrap_or(&now),
        real_time: is_device && dilation.is_some(),
        dilation: dilation.unwrap_or_default(),
    };
    let clone = clone::clone(&source, options, &interrupt)?;
    let [profile, reference] = &paths;
    write_new(profile, &clone.profile)?;
    if let Some(distribution) = &clone.reference {
        write_new(reference, &toml::to_string(distribution)?)?;
        eprintln!(
            "to compare it with the original: `spindle disk validate {} --size '{}' --reference {}`",
            profile.display(),
            format_size_bytes(source.size_bytes),
            reference.display()
        );
    }
    eprintln!("profile: {}", profile.display());
    print_answer(arguments.json, &clone, || clone::table(&clone))
}

/// Paths of the profile and of the distribution of read times. Fails if either exists.
fn paths(arguments: &CloneArguments) -> Result<[PathBuf; 2], Mistake> {
    let name = &arguments.name;
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || name.starts_with('.') || name.len() > 64 || !name.chars().all(allowed) {
        return Err(Mistake::new(format!(
            "--name: a profile cannot be called {name:?}; use up to 64 letters, digits, `-`, `_` and `.`"
        )));
    }
    let paths = [format!("{name}.toml"), format!("{name}.reference.toml")];
    let paths = paths.map(|file| arguments.output.join(file));
    if let Some(there) = paths.iter().find(|path| path.exists()) {
        return Err(Mistake::new(format!("--name: {} exists already; choose another name", there.display())));
    }
    if !arguments.output.is_dir() {
        return Err(Mistake::new(format!("--output: {} is not a directory", arguments.output.display())));
    }
    Ok(paths)
}

/// The source, and the temporary file, if there is one, which must live as long as the measurement.
fn source(target: &Target, arguments: &CloneArguments) -> Result<(Source, Option<NamedTempFile>)> {
    let of = |path: &Path, size_bytes| Source {
        path: path.to_owned(),
        size_bytes,
        writes: arguments.destructive,
        rotational: clone::rotational(path),
        description: arguments.source.clone(),
    };
    Ok(match target {
        Target::Stack(_) => {
            return Err(Mistake::new(format!(
                "`{}` is a profile already; clone a block device, a file, a directory or a disk that is up",
                arguments.source
            ))
            .into());
        }
        Target::Running { device, size_bytes, .. } => (of(device, *size_bytes), None),
        Target::BlockDevice { path, size_bytes } => (of(path, *size_bytes), None),
        Target::File { path, size_bytes } => (of(path, *size_bytes), None),
        Target::Directory(directory) => {
            let own = own_file(directory, FILE_BYTES)?;
            (Source { writes: true, ..of(own.path(), FILE_BYTES) }, Some(own))
        }
    })
}

fn write_new(path: &Path, text: &str) -> Result<()> {
    std::fs::File::create_new(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("writing {}", path.display()))
}
