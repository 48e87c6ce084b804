//! The directions in which crates and rooms may use each other, written down once, checked against the
//! imports.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Each crate, and those that it may depend on.
const CRATES: [(&str, &[&str]); 9] = [
    ("dilate", &[]),
    ("model", &[]),
    ("stats", &[]),
    ("base", &["model"]),
    ("mount", &["base", "model"]),
    ("load", &["base", "scatter"]),
    ("twin", &["model"]),
    ("scatter", &["base"]),
    ("lab", &["base", "load", "model", "mount", "scatter", "stats", "twin"]),
];

/// Crates that are divided into rooms: each room uses those before it in its line and none after it.
const ROOMS: [(&str, &[&str]); 3] = [
    ("load", &["protocol", "sql", "foreign", "workload", "runner", "workloads", "catalog", "process"]),
    (
        "scatter",
        &[
            "sql", "facts", "mapping", "plan", "servers", "shards", "split", "execute", "spark", "load",
            "proxy",
        ],
    ),
    (
        "lab",
        &[
            "host",
            "record",
            "report",
            "claims",
            "stack",
            "server",
            "dataset",
            "volume",
            "scenario",
            "observe",
            "watch",
            "run",
            "advise",
            "study",
            "bench",
            "published",
            "cmd",
        ],
    ),
];

/// Files of one folder of such a crate, its tests not counted.
const FILES_MOST: usize = 12;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// All files of Rust code below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let (directories, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let code = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    code.chain(directories.iter().flat_map(|directory| self::files(directory))).collect()
}

/// The first names of the paths that begin at the crate's root, each with its line.
fn uses(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_group = false;
    for (line, number) in code.lines().zip(1..) {
        if line.trim_start().starts_with("//") {
            continue;
        }
        if is_group {
            let names = line.split([',', ' ', '}']).filter(|word| !word.is_empty() && *word != ";");
            found.extend(names.take(1).map(|name| (number, first_name(name))));
            is_group = !line.starts_with('}');
        }
        for rest in line.split("crate::").skip(1) {
            match rest.strip_prefix('{') {
                Some(names) => {
                    let names = names.split(", ").filter(|name| !name.is_empty());
                    found.extend(names.map(|name| (number, first_name(name))));
                    is_group = !rest.contains('}');
                }
                None => found.push((number, first_name(rest))),
            }
        }
    }
    found
}

fn first_name(path: &str) -> String {
    path.trim().chars().take_while(|one| one.is_alphanumeric() || *one == '_').collect()
}

#[test]
fn crates_depend_in_one_direction() {
    for (name, allowed) in CRATES {
        let manifest: toml::Table =
            fs::read_to_string(source(name).join("Cargo.toml")).unwrap().parse().unwrap();
        let ours = manifest
            .get("dependencies")
            .and_then(toml::Value::as_table)
            .into_iter()
            .flat_map(toml::Table::keys);
        let mut ours: Vec<&str> = ours.filter_map(|key| key.strip_prefix("spindle-")).collect();
        ours.sort_unstable();
        assert!(ours.iter().all(|key| allowed.contains(key)), "crate {name} depends on {ours:?}");
    }
    let listed = CRATES.map(|(name, _)| name);
    for entry in fs::read_dir(source("")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(listed.contains(&name.as_str()), "crate {name} is not listed");
    }
}

#[test]
fn rooms_use_only_rooms_before_them() {
    for (name, rooms) in ROOMS {
        let source = source(name).join("src");
        let place = |room: &str| rooms.iter().position(|known| *known == room);
        for path in files(&source) {
            let relative = path.strip_prefix(&source).unwrap();
            let room = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
            let Some(own) = place(room) else { continue };
            for (line, used) in uses(&fs::read_to_string(&path).unwrap()) {
                let is_before = place(&used).is_none_or(|other| other <= own);
                assert!(is_before, "{}, line {line}: room {room} uses {used}", path.display());
            }
        }
    }
}

#[test]
fn every_module_is_in_a_room() {
    for (name, rooms) in ROOMS {
        for entry in fs::read_dir(source(name).join("src")).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let is_known = rooms.contains(&stem) || ["lib", "main", "structure"].contains(&stem);
            assert!(is_known, "{} is in no room", path.display());
        }
    }
}

#[test]
fn a_room_has_a_dozen_files_at_most() {
    let mut counts: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for (name, _) in ROOMS {
        for path in files(&source(name).join("src")) {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            if !stem.ends_with("tests") && stem != "structure" {
                *counts.entry(path.parent().unwrap().to_owned()).or_default() += 1;
            }
        }
    }
    counts.retain(|_, count| *count > FILES_MOST);
    assert!(counts.is_empty(), "{counts:#?}");
}

#[test]
fn imports_are_found_wherever_they_stand() {
    let names = |code: &str| uses(code).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    assert_eq!(
        names("use crate::record::Trial;\nlet a = crate::run::b(crate::cmd);"),
        ["record", "run", "cmd"]
    );
    assert_eq!(names("use crate::{\n    record::Trial,\n    text,\n};\nfn a() {}"), ["record", "text"]);
    assert_eq!(names("use crate::{record, text};"), ["record", "text"]);
    assert!(names("// crate::run").is_empty());
}
