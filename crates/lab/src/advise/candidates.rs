//! The storages that are predicted: all that Spindle knows, some by name, or those of a file.

use std::path::Path;

use spindle_base::Mistake;
use toml::{Table, Value};

use super::prediction::{Storage, has_model};
use crate::stack::{StackFile, StackSpec, built_in_names};

/// `--on all`, `--on hdd-7200,pm9a3`, `--on my.toml`.
pub const ALL: &str = "all";
/// Not storage to buy: a device without delays, and second profiles of a drive after one source alone.
const LEFT_OUT: [&str; 4] = ["null", "agility3-60-datasheet", "st2000dm006-datasheet", "flash-285us-4ch"];
const FILE_SYSTEM: &str = "xfs";

/// Storages with a device of `size_bytes` each, so that the database fills the same share of them as of the
/// measured one. A storage that cannot have that size is left out with the reason.
///
/// # Errors
/// A name is unknown, or the file is not one of stacks.
pub fn candidates(on: &str, size_bytes: u64) -> Result<(Vec<Storage>, Vec<String>), Mistake> {
    let mut storages = Vec::new();
    let mut left_out = Vec::new();
    for (stack, mut tables) in stacks(on)? {
        let name = stack.head().name.clone();
        let sized = has_model(&stack).and_then(|()| stack.with_size(size_bytes));
        match sized {
            Ok(stack) => {
                if let Some(Value::Table(table)) = tables.get_mut(&name) {
                    table.insert("size".to_owned(), format!("{} B", stack.size_bytes()).into());
                }
                storages.push(Storage { label: stack.label().to_owned(), name, stacks: vec![stack], tables });
            }
            Err(mistake) => left_out.push(format!("{name}: {mistake}")),
        }
    }
    Ok((storages, left_out))
}

/// The stacks, each with the tables that make it.
fn stacks(on: &str) -> Result<Vec<(StackSpec, Table)>, Mistake> {
    let of_name = |name: &str| {
        let profile = Table::from_iter([("profile".to_owned(), name.into())]);
        let tables = Table::from_iter([(name.to_owned(), Value::Table(profile))]);
        Ok((StackSpec::of_name(name, None, FILE_SYSTEM)?, tables))
    };
    if on == ALL {
        let is_one =
            |name: &&str| !LEFT_OUT.contains(name) && StackSpec::usual_file_system(name) == FILE_SYSTEM;
        return built_in_names().filter(is_one).map(of_name).collect();
    }
    if Path::new(on).extension().is_some_and(|extension| extension == "toml") {
        return of_file(on);
    }
    on.split(',').map(|name| of_name(name.trim())).collect()
}

fn of_file(file: &str) -> Result<Vec<(StackSpec, Table)>, Mistake> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Mistake::at("--on", format!("{file} cannot be read: {error}")))?;
    let stacks = StackFile::parse(file, &text)?;
    let written: Table = text.parse().map_err(|error| Mistake::at(file, format!("{error}")))?;
    let tables = written.get("stacks").and_then(Value::as_table).cloned().unwrap_or_default();
    stacks.stacks.keys().map(|name| Ok((stacks.resolve(file, name)?, tables.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_storages_that_one_can_buy() {
        let (storages, left_out) = candidates(ALL, 2 << 30).unwrap();
        let names: Vec<&str> = storages.iter().map(|storage| storage.name.as_str()).collect();
        assert!(names.contains(&"hdd-7200") && names.contains(&"raid10-4x15k") && !names.contains(&"null"));
        assert!(storages.len() >= 40, "{} storages, left out: {left_out:?}", storages.len());
    }

    #[test]
    fn a_stack_without_a_model_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mine.toml");
        let pool = "[stacks.pool]\nprofile = \"hdd-7200\"\nfile_system = \"zfs\"\n";
        std::fs::write(&file, format!("{pool}[stacks.disk]\nprofile = \"hdd-7200\"\n")).unwrap();
        let (storages, left_out) = candidates(file.to_str().unwrap(), 2 << 30).unwrap();
        assert_eq!(storages.iter().map(|storage| storage.name.as_str()).collect::<Vec<_>>(), ["disk"]);
        assert_eq!(left_out.len(), 1);
        assert!(left_out[0].starts_with("pool: `pool` is a real disk or a ZFS pool"), "{left_out:?}");
    }

    #[test]
    fn an_unknown_name_is_answered_with_a_near_one() {
        let mistake = candidates("hdd-720", 1 << 30).unwrap_err().to_string();
        assert!(mistake.contains("hdd-7200"), "{mistake}");
    }
}
