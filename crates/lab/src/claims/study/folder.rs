//! The folders of `studies/`, one for each published study that Spindle repeats.

use std::sync::LazyLock;

use spindle_base::{Mistake, near};

/// A study that is repeated.
#[derive(Debug, Clone, Copy)]
pub struct Folder {
    /// Name of the study.
    pub study: &'static str,
    /// What was asked, what was scaled and what differs, in Markdown.
    pub prose: &'static str,
    /// How Spindle reads the claims ([`super::reading`]).
    pub(super) claims: &'static str,
    /// Name and text of each scenario, in the order in which they run.
    pub scenarios: &'static [(&'static str, &'static str)],
}

/// Name, prose, claims and scenarios of each folder, collected by `build.rs`.
type Collected =
    &'static [(&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)])];
const COLLECTED: Collected = include!(concat!(env!("OUT_DIR"), "/study_folders.rs"));

static FOLDERS: LazyLock<Vec<Folder>> = LazyLock::new(|| {
    let folder = |&(study, prose, claims, scenarios)| Folder { study, prose, claims, scenarios };
    COLLECTED.iter().map(folder).collect()
});

/// In alphabetical order.
pub fn folders() -> &'static [Folder] {
    &FOLDERS
}

/// The folder with that name, or the only one with that part of a name.
///
/// # Errors
/// There is none, or there are several: a sentence with their names.
pub fn folder(name: &str) -> Result<&'static Folder, Mistake> {
    let named: Vec<&Folder> = folders().iter().filter(|folder| folder.study == name).collect();
    let similar = || folders().iter().filter(|folder| folder.study.contains(name)).collect();
    let found: Vec<&Folder> = if named.is_empty() { similar() } else { named };
    let names = |folders: &[&Folder]| folders.iter().map(|folder| folder.study).collect::<Vec<_>>();
    match found.as_slice() {
        [folder] => Ok(folder),
        [] => {
            let known = names(&folders().iter().collect::<Vec<_>>());
            let hint = near::hint(name, &known);
            Err(Mistake::new(format!("there is no study `{name}`{hint}; `spindle study list` has them")))
        }
        several => {
            Err(Mistake::new(format!("`{name}` is a part of {}; give one", near::list(&names(several)))))
        }
    }
}
