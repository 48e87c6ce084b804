//! Resolves stack tables to a stack that can be built.

mod by_name;
mod device;
mod layer;
mod overrides;
pub(super) mod pool;
mod real_disk;

use std::collections::BTreeMap;
use std::path::Path;

use spindle_base::Mistake;
use spindle_base::units::parse_size_bytes;
use spindle_model::{Field, StackSpec as Tree};
use spindle_mount::FileSystem;

use super::built_in::{find, suggestion};
use super::explained::{DeviceFacts, Explained, ExplainedBelow, Explanation};
use super::spec::{PoolSpec, StackSpec};
use super::table::{COMMON_KEYS, StackTable};
use super::values::{self, Entries, Form};
use crate::record::StackHead;
use real_disk::RealDisk;

/// Size of a stack whose table has none, unless the drive's capacity is smaller.
const DEFAULT_SIZE_BYTES: u64 = 20_000_000_000;

/// Block size of the emulator's store.
const BLOCK_BYTES: u64 = 4096;

/// Limits against a file of a few lines that names a stack twice in each of many layers. They are beyond any
/// storage ever built.
const DEVICES_MOST: usize = 256;
const DEPTH_MOST: usize = 16;

/// The size that a stack is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// By a table or an option.
    Given(u64),
    /// Because no table gives one. It bends to capacities and to sizes below, and nothing is refused for it.
    Usual(u64),
}

impl Wanted {
    fn map(self, change: impl FnOnce(u64) -> u64) -> Wanted {
        match self {
            Wanted::Given(bytes) => Wanted::Given(change(bytes)),
            Wanted::Usual(bytes) => Wanted::Usual(change(bytes)),
        }
    }
}

/// Lookup of the names of other stacks.
pub(super) struct Context<'a> {
    tables: &'a BTreeMap<String, StackTable>,
    /// Size of every stack whose table has none.
    usual: Option<Wanted>,
    /// Names from the requested stack down to the present one.
    path: Vec<String>,
    /// Devices in the requested stack so far.
    device_count: usize,
    /// The last mistake is about the requested stack, and about no stack below it.
    is_whole: bool,
}

/// A stack without its name.
struct Parts {
    tree: Tree,
    size_bytes: u64,
    /// The size is [`Wanted::Usual`], or follows from such a size.
    is_usual: bool,
    summary: String,
    assumptions: Vec<String>,
    /// Kind of the device or layer.
    kind: String,
    /// `None` for a layer or a real disk.
    device: Option<DeviceFacts>,
    parameters: Vec<Explanation>,
    /// Keys without a value.
    unset: Vec<String>,
    below: Vec<ExplainedBelow>,
}

impl Parts {
    /// `own` is the table as written, `table` the same with the keys of a ready-made stack.
    fn spec(
        self,
        name: &str,
        own: &StackTable,
        table: &StackTable,
        file_system: &str,
        pool: Option<PoolSpec>,
    ) -> StackSpec {
        let Parts {
            tree,
            size_bytes,
            is_usual,
            summary,
            assumptions,
            kind,
            device,
            parameters,
            unset,
            below,
        } = self;
        let explained =
            Explained { name: name.to_owned(), kind, size_bytes, device, parameters, unset, below };
        let label = table.label.clone().unwrap_or_else(|| name.to_owned());
        let head = StackHead {
            name: name.to_owned(),
            label: label.clone(),
            summary,
            size_bytes,
            file_system: file_system.to_owned(),
            mkfs_options: table.mkfs_options.clone().unwrap_or_default(),
            mount_options: table.mount_options.clone().unwrap_or_default(),
            real: table.path.is_some(),
            zfs: pool.as_ref().map(PoolSpec::head),
            assumptions,
            part: table.path.is_none().then(|| explained.part()),
        };
        StackSpec {
            head,
            label,
            tree,
            explained,
            real: None,
            has_usual_size: is_usual,
            pool: pool.map(Box::new),
            table: own.clone(),
            tables: BTreeMap::new(),
        }
    }
}

impl StackSpec {
    /// `tables` are those of stacks that a layer may be on. A mistake names a key of the table.
    pub fn resolve(
        name: &str,
        table: &StackTable,
        tables: &BTreeMap<String, StackTable>,
    ) -> Result<StackSpec, Mistake> {
        StackSpec::resolve_with(name, table, tables, None)
    }

    /// As [`StackSpec::resolve`]; the stack, and each below it, has the usual size unless a table gives one.
    pub fn resolve_with(
        name: &str,
        table: &StackTable,
        tables: &BTreeMap<String, StackTable>,
        usual_bytes: Option<u64>,
    ) -> Result<StackSpec, Mistake> {
        let usual = usual_bytes.map(Wanted::Usual);
        let path = vec![name.to_owned()];
        let mut context = Context { tables, usual, path, device_count: 0, is_whole: false };
        Ok(StackSpec { tables: tables.clone(), ..context.resolve(name, table, usual)? })
    }
}

impl Context<'_> {
    /// The stack of that name, which a layer's `key` gives. `wanted` applies if its own table has no size.
    pub(super) fn below(
        &mut self,
        key: &str,
        name: &str,
        wanted: Option<Wanted>,
    ) -> Result<StackSpec, Mistake> {
        if self.path.iter().any(|above| above == name) {
            let path = self.path.join(" on ");
            return Err(self.whole(key, format!("makes a cycle: {path} on {name}")));
        }
        if self.path.len() >= DEPTH_MOST {
            return Err(self.whole(key, format!("makes the whole stack more than {DEPTH_MOST} stacks deep")));
        }
        let Some(table) = find(name, self.tables) else {
            let own: Vec<&str> = self.tables.keys().map(String::as_str).collect();
            let suggestion = suggestion(name, &own);
            return Err(Mistake::at(key, format!("there is no stack `{name}`{suggestion}")));
        };
        if table.path.is_some() {
            return Err(Mistake::at(key, format!("`{name}` is a real disk, and layers are emulated")));
        }
        self.path.push(name.to_owned());
        let resolved = self.resolve(name, &table, wanted);
        self.path.pop();
        let stack = resolved.map_err(|mistake| match self.is_whole {
            true => Mistake::at(key, mistake.message),
            false => Mistake::at(key, mistake.under(&format!("stacks.{name}")).to_string()),
        })?;
        match stack.pool {
            Some(_) => {
                Err(Mistake::at(key, format!("`{name}` is a ZFS pool, on which nothing else can be built")))
            }
            None => Ok(stack),
        }
    }

    fn whole(&mut self, key: &str, message: String) -> Mistake {
        self.is_whole = true;
        Mistake::at(key, message)
    }

    fn resolve(
        &mut self,
        name: &str,
        table: &StackTable,
        wanted_above: Option<Wanted>,
    ) -> Result<StackSpec, Mistake> {
        let own_table = table;
        let table = &table.with_ready_made();
        let size = table.size.as_deref().map(parse_size_bytes).transpose();
        let size = size.map_err(|message| Mistake::at("size", message))?;
        let size = size.map(Wanted::Given).or(wanted_above);
        let file_system = file_system(table)?;
        if let Some(path) = &table.path {
            let RealDisk { parts, file_system, place } = real_disk::resolve(Path::new(path), table)?;
            let spec = parts.spec(name, own_table, table, &file_system, None);
            return Ok(StackSpec { real: Some(place), ..spec });
        }
        if table.destroy_content.is_some() {
            let message = "belongs to a real disk (`path`), and this stack is emulated";
            return Err(Mistake::at("destroy_content", message));
        }
        let (mut parts, pool) = match (&table.profile, &table.layer) {
            (Some(profile), None) => self.device(profile, table, size)?,
            (None, Some(layer)) => self.layer(layer, own_table, table, size)?,
            (Some(_), Some(_)) => {
                let message = "cannot be there together with `profile`: a stack is one of the two";
                return Err(Mistake::at("layer", message));
            }
            (None, None) => return Err(Mistake::new("needs a `profile`, a `layer` or a `path`")),
        };
        let pool = pool.map(|entries| self.pool(&entries, &mut parts)).transpose()?;
        parts.tree.validate(parts.size_bytes)?;
        Ok(parts.spec(name, own_table, table, file_system, pool))
    }

    /// Resolves the pool, and adds it to the parts.
    fn pool(&mut self, entries: &Entries, parts: &mut Parts) -> Result<PoolSpec, Mistake> {
        let pool = PoolSpec::resolve(entries, parts.size_bytes, self)?;
        parts.summary.push_str(&pool.summary());
        extend(&mut parts.assumptions, pool.devices().flat_map(|(_, stack)| &stack.head.assumptions));
        parts.parameters.extend(pool.explanations(entries));
        let device = |(key, stack): (&str, &StackSpec)| ExplainedBelow {
            key: key.to_owned(),
            count: 1,
            stack: stack.explained.clone(),
        };
        parts.below.extend(pool.devices().map(device));
        Ok(pool)
    }
}

/// Adds the assumptions that are not in the list yet.
fn extend<'a>(assumptions: &mut Vec<String>, more: impl Iterator<Item = &'a String>) {
    for assumption in more {
        if !assumptions.contains(assumption) {
            assumptions.push(assumption.clone());
        }
    }
}

fn file_system(table: &StackTable) -> Result<&str, Mistake> {
    let file_system = table.file_system.as_deref().unwrap_or("xfs");
    if FileSystem::by_name(file_system).is_none() && file_system != pool::FILE_SYSTEM {
        let message =
            format!("`{file_system}` must be one of \"xfs\", \"ext4\", \"btrfs\", \"zfs\", \"none\"");
        return Err(Mistake::at("file_system", message));
    }
    for (key, options) in [("mkfs_options", &table.mkfs_options), ("mount_options", &table.mount_options)] {
        let is_given = options.as_ref().is_some_and(|options| !options.is_empty());
        if (file_system == "none" || file_system == pool::FILE_SYSTEM) && is_given {
            let message = format!("has no meaning with file_system = \"{file_system}\"; leave it out");
            return Err(Mistake::at(key, message));
        }
    }
    if table.path.is_some() && file_system == pool::FILE_SYSTEM {
        let message = "`zfs` belongs to an emulated stack, and this one is a real disk (`path`)";
        return Err(Mistake::at("file_system", message));
    }
    Ok(file_system)
}

fn is_pool(table: &StackTable) -> bool {
    table.file_system.as_deref() == Some(pool::FILE_SYSTEM)
}

/// The keys of the device or layer, and those of the pool if the file system is ZFS, without keys that the
/// layer has too.
fn keys(table: &StackTable, own: &[Field]) -> Result<(Entries, Option<Entries>), Mistake> {
    let is_own = |key: &str| own.iter().any(|field| field.key == key);
    let of_pool: Vec<Field> = pool::fields().into_iter().filter(|field| !is_own(&field.key)).collect();
    let is_pool = is_pool(table);
    let stray = of_pool.iter().find(|field| !is_pool && table.keys.contains_key(field.key.as_ref()));
    if let Some(field) = stray {
        return Err(Mistake::at(field.key.clone(), "belongs to file_system = \"zfs\""));
    }
    let mut fields = own.to_vec();
    if is_pool {
        fields.extend(of_pool);
    }
    let entries = values::read(table.keys.clone(), Form::Either, &fields, &COMMON_KEYS)?;
    let (own, pool): (Entries, Entries) = entries.into_iter().partition(|(key, _)| is_own(key));
    Ok((own, is_pool.then_some(pool)))
}
