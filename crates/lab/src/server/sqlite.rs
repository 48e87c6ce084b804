//! SQLite: a library in the clients' process, so there is nothing to start, stop or crash. Its settings
//! are pragmas.
//!
//! It reads through the machine's page cache, which no setting bounds. The storage under test is read only
//! for pages that were never read or do not fit into memory. Writes and the fsync of every commit always
//! reach it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use spindle_load::sql::sqlite;
use spindle_load::{Endpoint, Target};

use super::instance::{Instance, Running};
use super::settings::{Advice, Advised, Refusal, Settings, for_loading, unknown_setting};
use super::telemetry::{Engine, Telemetry, Without};
use super::verbs::{Kind, Server};
use spindle_base::text::causes;

const FILE: &str = "spindle.sqlite";
/// Settings that take effect when the first page is written.
const SHAPING_SETTINGS: [&str; 4] = ["auto_vacuum", "encoding", "journal_mode", "page_size"];
/// Words that SQLite accepts for numbers (sqlite.org/pragma.html).
const WORDS: [(&str, &[&str]); 4] = [
    ("synchronous", &["OFF", "NORMAL", "FULL", "EXTRA"]),
    ("auto_vacuum", &["NONE", "FULL", "INCREMENTAL"]),
    ("temp_store", &["DEFAULT", "FILE", "MEMORY"]),
    ("secure_delete", &["OFF", "ON", "FAST"]),
];
const TRUE: [&str; 3] = ["ON", "TRUE", "YES"];
const FALSE: [&str; 3] = ["OFF", "FALSE", "NO"];

const ADVICE: &[Advice] = &[
    Advice {
        name: "journal_mode",
        value: Advised::Value("WAL"),
        why: "A write-ahead log; `DELETE` is the older rollback journal. SQLite reads through the page cache of \
              the machine: data that fit there are read once, and then the storage serves writes.",
    },
    Advice {
        name: "synchronous",
        value: Advised::Value("FULL"),
        why: "Every commit waits until it is on the storage. `NORMAL` may lose the last ones in a power cut.",
    },
];

pub(super) static KIND: Kind = Kind {
    is_default: true,
    advice: ADVICE,
    ..Kind::new("sqlite", &[Target::Sqlite], |_, _| Some(Box::new(Sqlite)))
};

#[derive(Debug)]
struct Sqlite;

impl Server for Sqlite {
    /// The first connection makes an empty file.
    fn empty_bytes(&self) -> u64 {
        0
    }

    fn version(&self) -> Result<String> {
        Ok(sqlite::version().to_owned())
    }

    /// Sets each setting in a temporary database, and reads it back.
    fn check(&self, instance: &Instance) -> Result<(), Refusal> {
        let failed = |error: anyhow::Error| Refusal(format!("SQLite: {}", causes(&error)));
        for (name, value) in &instance.settings {
            if !name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
                return Err(Refusal(format!("setting `{name}`: is not a valid name of a pragma")));
            }
            let directory = tempfile::tempdir().map_err(|error| failed(error.into()))?;
            let file = directory.path().join(FILE);
            let fresh = sqlite::open(&file, &BTreeMap::new()).map_err(failed)?;
            if sqlite::pragma(&fresh, name).map_err(failed)?.is_none() {
                return Err(unknown_setting(name, "SQLite", &sqlite::pragmas(&fresh).map_err(failed)?));
            }
            drop(fresh);
            let one = BTreeMap::from([(name.clone(), value.clone())]);
            let connection = sqlite::open(&file, &one).map_err(failed)?;
            let read = sqlite::pragma(&connection, name).map_err(failed)?.unwrap_or_default();
            if plain(name, &read) != plain(name, value) {
                return Err(Refusal(format!("setting `{name}`: is {value}, and SQLite makes {read} of it")));
            }
        }
        Ok(())
    }

    fn load_settings(&self, settings: &Settings) -> Settings {
        let loading = Settings::from([("synchronous".to_owned(), "OFF".to_owned())]);
        for_loading(settings, |name| SHAPING_SETTINGS.contains(&name), &loading)
    }

    fn prepare(&self, instance: &Instance) -> Result<()> {
        // The file appears with its first connection, which is the loader's.
        sqlite::open(&file(instance), &instance.settings).map(drop)
    }

    fn start(&self, instance: &Instance) -> Result<Box<dyn Running>> {
        let file = file(instance);
        std::fs::metadata(&file).with_context(|| format!("looking for {}", file.display()))?;
        Ok(Box::new(Opened { file, pragmas: instance.settings.clone() }))
    }
}

fn file(instance: &Instance) -> PathBuf {
    instance.data_directory.join(FILE)
}

/// One spelling for equal values.
fn plain(name: &str, value: &str) -> String {
    let value = value.trim().trim_matches(['\'', '"']).to_ascii_uppercase();
    let words = WORDS.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, words)| words);
    match words.iter().position(|word| *word == value) {
        Some(number) => number.to_string(),
        None if TRUE.contains(&value.as_str()) => "1".to_owned(),
        None if FALSE.contains(&value.as_str()) => "0".to_owned(),
        None => value,
    }
}

#[derive(Debug)]
struct Opened {
    file: PathBuf,
    pragmas: Settings,
}

impl Opened {
    fn read(&self, names: &[&str]) -> Result<Settings> {
        let connection = open_existing(&self.file, &self.pragmas)?;
        let mut values = BTreeMap::new();
        for name in names {
            if let Some(value) = sqlite::pragma(&connection, name)? {
                values.insert((*name).to_owned(), value);
            }
        }
        Ok(values)
    }
}

fn open_existing(file: &Path, pragmas: &Settings) -> Result<sqlite::Connection> {
    std::fs::metadata(file).with_context(|| format!("looking for {}", file.display()))?;
    sqlite::open(file, pragmas)
}

impl Running for Opened {
    fn wait_ready(&mut self, _: Duration) -> Result<()> {
        open_existing(&self.file, &self.pragmas).map(drop)
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::Sqlite { path: self.file.clone(), pragmas: self.pragmas.clone() }
    }

    fn telemetry(&self) -> &'static dyn Telemetry {
        &Without(Engine::InClients)
    }

    fn settings(&mut self, names: &[String]) -> Result<Settings> {
        self.read(&names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        let values = self.read(&["page_count", "freelist_count"])?;
        Ok(values.into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str, value: &str) -> Option<String> {
        let instance = Instance {
            data_directory: PathBuf::new(),
            class_directories: BTreeMap::new(),
            runtime_directory: PathBuf::new(),
            settings: BTreeMap::from([(name.to_owned(), value.to_owned())]),
            environment: Vec::new(),
            control_group: None,
            changing: Vec::new(),
        };
        Sqlite.check(&instance).err().map(|Refusal(sentence)| sentence)
    }

    #[test]
    fn pragmas_that_sqlite_takes_are_accepted_in_its_spellings() {
        for (name, value) in [
            ("journal_mode", "WAL"),
            ("journal_mode", "delete"),
            ("synchronous", "FULL"),
            ("synchronous", "2"),
            ("cache_size", "-65536"),
            ("page_size", "16384"),
            ("wal_autocheckpoint", "1000"),
            ("foreign_keys", "on"),
        ] {
            assert_eq!(refusal(name, value), None, "{name} = {value}");
        }
    }

    #[test]
    fn ignored_pragmas_are_refused() {
        assert_eq!(
            refusal("innodb_buffer_pool_size", "1G").unwrap(),
            "setting `innodb_buffer_pool_size`: SQLite has no such setting"
        );
        assert_eq!(
            refusal("synchronus", "FULL").unwrap(),
            "setting `synchronus`: SQLite has no such setting; did you mean `synchronous`?"
        );
        assert_eq!(
            refusal("page_size", "5000").unwrap(),
            "setting `page_size`: is 5000, and SQLite makes 4096 of it"
        );
        assert_eq!(
            refusal("journal_mode", "fast").unwrap(),
            "setting `journal_mode`: is fast, and SQLite makes delete of it"
        );
        assert_eq!(refusal("a b", "1").unwrap(), "setting `a b`: is not a valid name of a pragma");
    }
}
