//! A device: the parameters of its profile, some of them overridden by the stack table.

use spindle_base::Mistake;
use spindle_base::near::nearest;
use spindle_model::{Field, Invalid, Parameters, StackSpec as Tree, Style, Value};

use super::overrides::{self, Override};
use super::{BLOCK_BYTES, Context, DEFAULT_SIZE_BYTES, DEVICES_MOST, Parts, Wanted, is_pool, keys, pool};
use crate::stack::explained::{DeviceFacts, explanations, unset};
use crate::stack::profile::{self, Profile};
use crate::stack::table::{COMMON_KEYS, StackTable};
use crate::stack::values::{self, Entries};

impl Context<'_> {
    /// The second value is the part of the table about a ZFS pool, if any.
    pub(super) fn device(
        &mut self,
        profile: &str,
        table: &StackTable,
        wanted: Option<Wanted>,
    ) -> Result<(Parts, Option<Entries>), Mistake> {
        self.device_count += 1;
        if self.device_count > DEVICES_MOST {
            let message = format!("makes the whole stack larger than {DEVICES_MOST} devices");
            return Err(self.whole("profile", message));
        }
        if table.on.is_some() {
            return Err(Mistake::at("on", "belongs to a layer, and this stack is a device"));
        }
        let name = profile;
        let profile = Profile::find(name).map_err(|mistake| Mistake::at("profile", mistake.to_string()))?;
        let kind = profile.parameters.kind();
        let fields = Parameters::fields_of(kind).expect("a kind has fields");
        let of_table = of_table(&fields, is_pool(table));
        refuse_unknown_keys(name, table, &of_table)?;
        let (own, pool) = keys(table, &of_table)?;
        let Overridden { parameters, entries, assumptions, told } = overridden(&profile, &fields, &own)?;
        let capacity = parameters.capacity_bytes().unwrap_or(DEFAULT_SIZE_BYTES);
        // Rounded down to whole blocks of the emulator. A drive's capacity is whole sectors in the same way,
        // whatever its label says.
        let size_bytes = match wanted {
            Some(Wanted::Given(bytes)) => bytes,
            Some(Wanted::Usual(bytes)) => bytes.min(parameters.capacity_bytes().unwrap_or(bytes)),
            None => DEFAULT_SIZE_BYTES.min(capacity),
        } / BLOCK_BYTES
            * BLOCK_BYTES;
        let parts = Parts {
            size_bytes,
            is_usual: matches!(wanted, Some(Wanted::Usual(_))),
            summary: format!("{}{told}", profile.summary),
            assumptions,
            kind: format!("{kind} of profile {}", profile.name),
            device: Some(DeviceFacts { profile: profile.name, endurance: profile.endurance }),
            parameters: explanations(&fields, &parameters.values(), &entries),
            unset: unset(&fields, &parameters.values()),
            below: Vec::new(),
            tree: Tree::Device(parameters),
        };
        Ok((parts, pool))
    }
}

/// Refuses a key that is near none. The list of a drive's parameters is too long for a sentence.
fn refuse_unknown_keys(profile: &str, table: &StackTable, of_table: &[Field]) -> Result<(), Mistake> {
    let own = of_table.iter().map(|field| field.key.as_ref());
    let of_pool = pool::fields();
    let known = own.chain(of_pool.iter().map(|field| field.key.as_ref())).chain(COMMON_KEYS);
    let known: Vec<&str> = known.collect();
    match table.keys.keys().find(|key| nearest(key, known.iter().copied()).is_none()) {
        Some(key) if !of_table.is_empty() => {
            let message = match of_unit(key, of_table) {
                Some(right) => format!("unknown key; did you mean `{right}`?"),
                None => format!("unknown key; `spindle disk show {profile}` shows the keys that it can have"),
            };
            Err(Mistake::at(key, message))
        }
        _ => Ok(()),
    }
}

/// The only parameter whose values have this unit: `rotation` for `rpm`.
fn of_unit<'a>(unit: &str, fields: &'a [Field]) -> Option<&'a str> {
    let has_unit = |field: &&Field| {
        let text = field.written(&Value::Number(1), Style::Shortest).to_string();
        text.split_once(' ').is_some_and(|(_, own)| own == unit)
    };
    let mut found = fields.iter().filter(has_unit);
    found.next().filter(|_| found.next().is_none()).map(|field| field.key.as_ref())
}

/// The parameters of a device by the keys of stack tables: their own, then those of profiles. In the table of
/// a ZFS pool, a key that a pool has too is the pool's.
pub(super) fn of_table(fields: &[Field], is_pool: bool) -> Vec<Field> {
    let renamed = |field: &Field| {
        let (key, _) = field.of_table?;
        Some(Field { key: key.into(), ..field.clone() })
    };
    let mut all: Vec<Field> = fields.iter().filter_map(renamed).collect();
    let of_pool = if is_pool { pool::fields() } else { Vec::new() };
    for field in fields {
        if !all.iter().chain(&of_pool).any(|known| known.key == field.key) {
            all.push(field.clone());
        }
    }
    all
}

/// A device after its overrides.
pub(super) struct Overridden {
    pub parameters: Parameters,
    pub entries: Entries,
    /// Values without a source, as sentences.
    pub assumptions: Vec<String>,
    /// A sentence for each override.
    pub told: String,
}

/// The device of a profile with the stack table's own values.
///
/// # Errors
/// A value that does not fit the others; names the table's key.
pub(super) fn overridden(profile: &Profile, fields: &[Field], own: &Entries) -> Result<Overridden, Mistake> {
    let mut entries = profile.entries.clone();
    let mut told = String::new();
    let mut plain: Vec<Override<'_>> = Vec::new();
    let mut last_key = "profile";
    let there = profile.parameters.values();
    for field in fields {
        let Some((key, given)) = overrides::given(field, own)? else { continue };
        last_key = key;
        if let Some((_, sentence)) = field.of_table.filter(|_| field.default.as_ref() != Some(&given.value)) {
            let value = overrides::shortest(field, &given.value);
            told.push_str(&format!(" {}", sentence.replace("{}", &value)));
        }
        let Some(own) = overrides::of(field, given, "the profile", there.get(field.key.as_ref())) else {
            continue;
        };
        entries.insert(field.key.clone().into_owned(), own.1.clone());
        if field.of_table.is_none() {
            plain.push(own);
        }
    }
    told.push_str(&overrides::sentence(&plain));
    let refused = |invalid: Invalid| {
        let field = fields.iter().find(|field| field.key == invalid.key);
        match field.and_then(|field| overrides::given(field, own).ok().flatten()) {
            Some((key, _)) => Mistake::at(key, invalid.problem),
            None => Mistake::at(last_key, format!("does not fit the profile, whose {invalid}")),
        }
    };
    let kind = profile.parameters.kind();
    let parameters = Parameters::from_values(kind, values::values(&entries)).map_err(refused)?;
    Ok(Overridden { parameters, assumptions: profile::assumptions(fields, &entries), entries, told })
}
