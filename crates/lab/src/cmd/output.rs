//! Output of the commands, and checks of the destinations of `--output`.

use std::io::{self, Write as _};
use std::path::Path;

use serde::Serialize;
pub(crate) use spindle_base::text::columns;
use spindle_base::{Mistake, text};

/// Prints an answer as JSON or as text.
pub(crate) fn print_answer(
    json: bool,
    answer: &impl Serialize,
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    print(&if json { text::json(answer)? + "\n" } else { text() })
}

pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}

/// Whether `NO_COLOR` allows colours (<https://no-color.org>).
pub(crate) fn allows_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Checks `--output DIRECTORY`. A missing directory is fine: it is created later.
pub(crate) fn check_output_directory(directory: &Path) -> Result<(), Mistake> {
    match directory.exists() && !directory.is_dir() {
        true => Err(Mistake::new(format!("--output: {} is not a directory", directory.display()))),
        false => Ok(()),
    }
}

/// Checks `--output FILE`. An existing file is fine: it is overwritten.
pub(crate) fn check_output_file(file: &Path) -> Result<(), Mistake> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    match directory.filter(|directory| !directory.is_dir()) {
        Some(directory) => Err(Mistake::new(format!("--output: {} is not a directory", directory.display()))),
        None if file.is_dir() => {
            Err(Mistake::new(format!("--output: {} is a directory; name a file in it", file.display())))
        }
        None => Ok(()),
    }
}
