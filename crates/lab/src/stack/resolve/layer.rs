//! A layer, and the stacks below it.

use spindle_base::Mistake;
use spindle_base::near::did_you_mean;
use spindle_base::units::format_size_bytes;
use spindle_model::{Branch, Field, Layer, LayerKind, Parameters, StackSpec as Tree, Told, Value, Values};

use super::overrides::{self, Override};
use super::{BLOCK_BYTES, Context, DEPTH_MOST, Parts, Wanted, extend, keys, pool};
use crate::stack::built_in::find;
use crate::stack::explained::{ExplainedBelow, Explanation, explanations, unset};
use crate::stack::profile::Profile;
use crate::stack::spec::StackSpec;
use crate::stack::table::StackTable;
use crate::stack::values::{self, Entries, Entry};

impl Context<'_> {
    /// `own` is the table as written, `table` the same with the keys of a ready-made stack. The second value
    /// is the part of the table about a ZFS pool, if any.
    pub(super) fn layer(
        &mut self,
        name: &str,
        own: &StackTable,
        table: &StackTable,
        wanted: Option<Wanted>,
    ) -> Result<(Parts, Option<Entries>), Mistake> {
        let kinds = Layer::kinds();
        let Some(kind) = kinds.iter().find(|kind| kind.names.contains(&name)) else {
            let known: Vec<&str> = kinds.iter().flat_map(|kind| kind.names).copied().collect();
            let near = did_you_mean(name, &known);
            let message = format!("`{name}` is unknown{near}; known are {}", known.join(", "));
            return Err(Mistake::at("layer", message));
        };
        let mut fields = kind.fields_below();
        fields.extend(kind.fields.iter().cloned());
        self.refuse_keys_of_devices(table, &fields)?;
        let (mut entries, pool) = keys(table, &fields)?;
        let names = names_below(kind, table, &entries)?;
        let of_layer = |key: &String| kind.fields.iter().any(|field| field.key == *key);
        let given: Values = values::values(&entries).into_iter().filter(|(key, _)| of_layer(key)).collect();
        let layer = Layer::from_values(name, given)?;
        if let Some(hint) = layer.idle_hint() {
            return Err(Mistake::new(hint));
        }
        layer.check_count(names.len())?;
        let below = self.stacks_below(&layer, &names, &entries, wanted)?;
        let overrides = overridden(own, &fields, &entries)?;
        let told = overrides::sentence(&overrides);
        entries.extend(overrides.into_iter().map(|(field, entry)| (field.key.clone().into_owned(), entry)));
        let assumed = |field: &Field| match entries.get(field.key.as_ref()) {
            Some(entry) => entry.assumption(&field.key),
            None => layer.uses(&field.key).then(|| field.assumed()).flatten(),
        };
        let assumed: Vec<String> = fields.iter().filter_map(assumed).collect();
        let parameters = explanations(&kind.fields, &layer.values(), &entries);
        let mut unset = unset(&kind.fields, &layer.values());
        unset.retain(|key| layer.uses(key));
        let mut parts = parts(layer, &below, wanted, assumed, parameters)?;
        parts.summary.push_str(&told);
        parts.unset = unset;
        Ok((parts, pool))
    }

    /// The stacks below, each with its key.
    fn stacks_below(
        &mut self,
        layer: &Layer,
        names: &[NameBelow],
        entries: &Entries,
        wanted: Option<Wanted>,
    ) -> Result<Vec<(&'static str, StackSpec)>, Mistake> {
        let resolve = |context: &mut Self, usual: Option<Wanted>| {
            let stack = |(key, size_key, stack): &NameBelow| {
                let wanted = match size_key {
                    Some(size_key) => number(entries, size_key).map(Wanted::Given).or(usual),
                    None => wanted.map(|wanted| {
                        wanted.map(|size_bytes| layer.size_below_bytes(size_bytes, names.len()))
                    }),
                };
                Ok((*key, context.below(key, stack, wanted)?))
            };
            names.iter().map(stack).collect::<Result<Vec<_>, Mistake>>()
        };
        let device_count = self.device_count;
        let below = resolve(self, self.usual)?;
        // The usual size may be too small for what the layer keeps on an SSD.
        if self.usual.is_some() && layer.check_sizes(&sizes(&below)).is_err() {
            self.device_count = device_count;
            return resolve(self, None);
        }
        Ok(below)
    }

    /// Refuses a parameter of the device below in the table of a layer, and says where it belongs.
    fn refuse_keys_of_devices(&self, table: &StackTable, fields: &[Field]) -> Result<(), Mistake> {
        let of_pool = pool::fields();
        let is_known = |key: &str| fields.iter().chain(&of_pool).any(|field| field.key == key);
        for key in table.keys.keys().filter(|key| !is_known(key)) {
            let Some((name, profile)) = self.device_with(key, table, DEPTH_MOST) else { continue };
            let place = match name == profile {
                false => format!("[stacks.{name}]"),
                true => format!(
                    "a table of its own, [stacks.NAME] with profile = \"{profile}\", and put the layer on that \
                     with on = \"NAME\""
                ),
            };
            let message = format!("belongs to the device below this layer, `{name}`: write it into {place}");
            return Err(Mistake::at(key, message));
        }
        Ok(())
    }

    /// The stack below, and its profile, whose device has such a parameter.
    fn device_with(&self, key: &str, table: &StackTable, depth: usize) -> Option<(String, String)> {
        let names = table.on.as_ref().map(|on| on.names()).unwrap_or_default();
        names.iter().find_map(|name| {
            let below = find(name, self.tables)?.with_ready_made();
            let Some(profile) = below.profile.clone().filter(|_| below.layer.is_none()) else {
                return self.device_with(key, &below, depth.checked_sub(1)?);
            };
            let kind = Profile::find(&profile).ok()?.parameters.kind();
            let has_it = Parameters::fields_of(kind)?.iter().any(|field| field.key == key);
            has_it.then(|| (name.clone(), profile))
        })
    }
}

/// The values that a table sets against those of the ready-made stack that it names.
fn overridden<'a>(
    own: &StackTable,
    fields: &'a [Field],
    entries: &Entries,
) -> Result<Vec<Override<'a>>, Mistake> {
    let Some((name, base)) = own.ready_made() else { return Ok(Vec::new()) };
    let (there, _) = keys(base, fields)?;
    let of = |field: &'a Field| {
        let key = field.key.as_ref();
        let given = entries.get(key).filter(|_| own.keys.contains_key(key))?;
        let there = there.get(key).map(|entry| &entry.value).or(field.default.as_ref());
        overrides::of(field, given, &format!("`{name}`"), there)
    };
    Ok(fields.iter().filter_map(of).collect())
}

fn sizes(below: &[(&str, StackSpec)]) -> Vec<u64> {
    below.iter().map(|(_, stack)| stack.size_bytes()).collect()
}

fn parts(
    layer: Layer,
    below: &[(&str, StackSpec)],
    wanted: Option<Wanted>,
    assumed: Vec<String>,
    parameters: Vec<Explanation>,
) -> Result<Parts, Mistake> {
    let sizes = sizes(below);
    layer.check_sizes(&sizes)?;
    let size_bytes = size_of(&layer, &sizes, wanted)?;
    let heads = below.iter().map(|(_, stack)| &stack.head);
    let told: Vec<Told<'_>> =
        heads.map(|head| Told { size_bytes: head.size_bytes, summary: &head.summary }).collect();
    let mut assumptions: Vec<String> = Vec::new();
    extend(&mut assumptions, below.iter().flat_map(|(_, stack)| &stack.head.assumptions));
    assumptions.extend(assumed);
    assumptions.extend(layer.assumptions().iter().map(|assumption| (*assumption).to_owned()));
    let mut explained: Vec<ExplainedBelow> = Vec::new();
    for (key, stack) in below {
        match explained.last_mut().filter(|last| last.key == *key && last.stack == stack.explained) {
            Some(last) => last.count += 1,
            None => {
                let stack = stack.explained.clone();
                explained.push(ExplainedBelow { key: (*key).to_owned(), count: 1, stack });
            }
        }
    }
    let branches =
        below.iter().map(|(_, stack)| Branch { size_bytes: stack.size_bytes(), stack: stack.tree.clone() });
    let is_usual = matches!(wanted, Some(Wanted::Usual(_))) && below[0].1.has_usual_size;
    Ok(Parts {
        size_bytes,
        is_usual,
        summary: layer.summary(&told),
        assumptions,
        kind: layer.name().to_owned(),
        device: None,
        parameters,
        unset: Vec::new(),
        below: explained,
        tree: Tree::layer(layer, branches),
    })
}

/// The size that results from the stacks below; a layer that may be smaller can have its own.
fn size_of(layer: &Layer, below_bytes: &[u64], wanted: Option<Wanted>) -> Result<u64, Mistake> {
    let size_bytes = layer.size_bytes(below_bytes);
    if layer.may_be_smaller() {
        let own_bytes = match wanted {
            None => size_bytes,
            Some(Wanted::Given(bytes)) => bytes,
            Some(Wanted::Usual(bytes)) => bytes.min(size_bytes),
        };
        return Ok(own_bytes / BLOCK_BYTES * BLOCK_BYTES);
    }
    let Some(Wanted::Given(wanted)) = wanted else { return Ok(size_bytes) };
    // The stacks below have whole blocks.
    let least = wanted / BLOCK_BYTES * BLOCK_BYTES;
    let most = wanted.saturating_add(layer.slack_bytes(below_bytes.len()));
    if (least..=most).contains(&size_bytes) {
        return Ok(size_bytes);
    }
    let (wanted, found) = (format_size_bytes(wanted), format_size_bytes(size_bytes));
    let message = format!("is {wanted}, but the stacks below have {found}; give a size to one of the two");
    Err(Mistake::at("size", message))
}

/// A stack below a layer: the key, the key of the size, the name of the stack.
type NameBelow = (&'static str, Option<&'static str>, String);

fn names_below(kind: &LayerKind, table: &StackTable, entries: &Entries) -> Result<Vec<NameBelow>, Mistake> {
    let on = table.on.as_ref().map(|on| on.names()).unwrap_or_default();
    let first = &kind.below[0];
    let missing = |key: &'static str, hint: Option<&str>| {
        Mistake::at(key, format!("is missing: {}", hint.unwrap_or("which stack?")))
    };
    let members = number(entries, LayerKind::MEMBERS);
    let of_first = |name: &String| (first.key, first.size_key, name.clone());
    let mut names: Vec<NameBelow> = match (on, members) {
        ([], _) => return Err(missing(first.key, first.hint)),
        // More than any array may have; the layer checks the number.
        ([one], Some(members)) => vec![of_first(one); members.min(1_000) as usize],
        (_, Some(_)) => {
            let message = "counts copies of one stack, and `on` names several";
            return Err(Mistake::at(LayerKind::MEMBERS, message));
        }
        ([one], None) => vec![of_first(one)],
        (several, None) if kind.is_array => several.iter().map(of_first).collect(),
        (several, None) => {
            return Err(Mistake::at(first.key, format!("names {} stacks, must name one", several.len())));
        }
    };
    for below in &kind.below[1..] {
        let name = match (entries.get(below.key), below.hint) {
            (Some(Entry { value: Value::Name(name), .. }), _) => name.clone(),
            (_, None) => names[0].2.clone(),
            (_, hint) => return Err(missing(below.key, hint)),
        };
        names.push((below.key, below.size_key, name));
    }
    Ok(names)
}

fn number(entries: &Entries, key: &str) -> Option<u64> {
    match entries.get(key)?.value {
        Value::Number(number) => Some(number),
        _ => None,
    }
}
