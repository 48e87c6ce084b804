//! Checks the destinations of `--output`.

use std::path::Path;

use spindle_base::Mistake;

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
