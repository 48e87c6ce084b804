//! Stacks by name: ready-made ones, and those of a file.

use std::collections::BTreeMap;

use spindle_base::Mistake;

use super::pool;
use crate::stack::built_in::{find, ready_made, suggestion};
use crate::stack::spec::StackSpec;
use crate::stack::table::{COMMON_KEYS, StackFile, StackTable};

impl StackSpec {
    /// A ready-made stack or a profile alone, as in `spindle disk up NAME --size SIZE`.
    pub fn of_name(name: &str, size: Option<&str>, file_system: &str) -> Result<StackSpec, Mistake> {
        StackSpec::of_name_with(name, size, file_system, &toml::Table::new())
    }

    /// As [`StackSpec::of_name`]; `set` are keys of its table, as in `spindle disk up NAME --set KEY=VALUE`.
    pub fn of_name_with(
        name: &str,
        size: Option<&str>,
        file_system: &str,
        set: &toml::Table,
    ) -> Result<StackSpec, Mistake> {
        if StackSpec::usual_file_system(name) == pool::FILE_SYSTEM && file_system != pool::FILE_SYSTEM {
            return Err(Mistake::new(format!(
                "`{name}` is a ZFS pool, no device: `spindle disk up {name}` mounts it, and then its directory can be measured"
            )));
        }
        if let Some(key) = set.keys().find(|key| COMMON_KEYS.contains(&key.as_str())) {
            let message = "is no parameter of a device or a layer; `spindle disk show NAME` shows those";
            return Err(Mistake::at(format!("--set {key}"), message));
        }
        let base = ready_made(name);
        let mut table = base.filter(|_| set.is_empty()).cloned().unwrap_or_else(|| StackTable {
            profile: Some(name.to_owned()),
            label: base.and_then(|base| base.label.clone()),
            keys: set.clone(),
            ..StackTable::default()
        });
        table.size = size.map(str::to_owned).or(table.size);
        table.file_system = Some(file_system.to_owned());
        StackSpec::resolve(name, &table, &BTreeMap::new()).map_err(|mistake| match mistake.place.as_str() {
            "size" | "file_system" => Mistake::of_flag(&mistake.place, mistake.message),
            key if set.contains_key(key) => Mistake::at(format!("--set {key}"), mistake.message),
            _ => Mistake::new(mistake.message),
        })
    }

    /// The same stack with another size.
    ///
    /// # Errors
    /// The stack cannot have this size.
    pub fn with_size(&self, size_bytes: u64) -> Result<StackSpec, Mistake> {
        let table = StackTable { size: Some(format!("{size_bytes} B")), ..self.table.clone() };
        StackSpec::resolve(&self.head.name, &table, &self.tables)
    }

    /// The default file system of `spindle disk up NAME`.
    pub fn usual_file_system(name: &str) -> &'static str {
        let is_pool =
            ready_made(name).is_some_and(|table| table.file_system.as_deref() == Some(pool::FILE_SYSTEM));
        if is_pool { pool::FILE_SYSTEM } else { "xfs" }
    }
}

impl StackFile {
    pub fn resolve(&self, file: &str, name: &str) -> Result<StackSpec, Mistake> {
        let Some(table) = find(name, &self.stacks) else {
            let known: Vec<&str> = self.stacks.keys().map(String::as_str).collect();
            let message = format!("there is no stack `{name}`{}", suggestion(name, &known));
            return Err(Mistake::at(file, message));
        };
        StackSpec::resolve(name, &table, &self.stacks)
            .map_err(|mistake| mistake.under(&format!("stacks.{name}")).in_file(file))
    }
}

impl StackTable {
    /// The ready-made stack that `profile` names, if any, with its name.
    pub(super) fn ready_made(&self) -> Option<(&str, &'static StackTable)> {
        let name = self.profile.as_deref().filter(|_| self.layer.is_none())?;
        Some((name, ready_made(name)?))
    }

    /// The ready-made stack that `profile` names, if any, with the other keys of this table.
    pub(super) fn with_ready_made(&self) -> StackTable {
        let Some((_, base)) = self.ready_made() else { return self.clone() };
        let own = self.clone();
        let mut keys = base.keys.clone();
        keys.extend(own.keys);
        StackTable {
            profile: base.profile.clone(),
            layer: base.layer.clone(),
            on: own.on.or_else(|| base.on.clone()),
            size: own.size.or_else(|| base.size.clone()),
            file_system: own.file_system.or_else(|| base.file_system.clone()),
            mkfs_options: own.mkfs_options.or_else(|| base.mkfs_options.clone()),
            mount_options: own.mount_options.or_else(|| base.mount_options.clone()),
            known_deviations: base.known_deviations.clone(),
            keys,
            ..own
        }
    }
}
