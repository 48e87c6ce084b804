//! A mistake of the user: one sentence that names the flag or key and the bound. Exit code 2, before any work.

use std::path::Path;

use spindle_model::Invalid;

/// The whole sentence, without `spindle: ` in front of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UserError(pub String);

impl UserError {
    /// Of a parameter of the model that is a flag too.
    pub(crate) fn of_flag(invalid: &Invalid) -> UserError {
        UserError(format!("--{}: {}", invalid.key.replace('_', "-"), invalid.problem))
    }
}

/// For `--output DIRECTORY`, which is made if need be.
pub(crate) fn check_output_directory(directory: &Path) -> Result<(), UserError> {
    match directory.exists() && !directory.is_dir() {
        true => Err(UserError(format!("--output: {} is not a directory", directory.display()))),
        false => Ok(()),
    }
}

/// For `--output FILE`, which is written over.
pub(crate) fn check_output_file(file: &Path) -> Result<(), UserError> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    match directory.filter(|directory| !directory.is_dir()) {
        Some(directory) => Err(UserError(format!("--output: {} is not a directory", directory.display()))),
        None if file.is_dir() => {
            Err(UserError(format!("--output: {} is a directory; name a file in it", file.display())))
        }
        None => Ok(()),
    }
}
