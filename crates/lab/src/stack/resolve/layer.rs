//! Resolves a layer's table, once the stacks below are known.

use spindle_base::Mistake;
use spindle_base::units::format_size_bytes;
use spindle_model::{Branch, Layer, LayerKind, StackSpec as Tree, Told, Value};

use super::{BLOCK_BYTES, Parts, extend};
use crate::stack::explained::{ExplainedBelow, Explanation};
use crate::stack::spec::StackSpec;
use crate::stack::table::StackTable;
use crate::stack::values::{Entries, Entry};

pub(super) fn parts(
    layer: Layer,
    below: &[(&str, StackSpec)],
    wanted_bytes: Option<u64>,
    assumed: Vec<String>,
    parameters: Vec<Explanation>,
) -> Result<Parts, Mistake> {
    let sizes: Vec<u64> = below.iter().map(|(_, stack)| stack.size_bytes()).collect();
    layer.check_sizes(&sizes)?;
    let size_bytes = size_of(&layer, &sizes, wanted_bytes)?;
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
    Ok(Parts {
        size_bytes,
        summary: layer.summary(&told),
        assumptions,
        kind: layer.name().to_owned(),
        parameters,
        below: explained,
        tree: Tree::layer(layer, branches),
    })
}

/// The size that results from the stacks below; a layer that may be smaller can have its own.
fn size_of(layer: &Layer, below_bytes: &[u64], wanted_bytes: Option<u64>) -> Result<u64, Mistake> {
    let size_bytes = layer.size_bytes(below_bytes);
    if layer.may_be_smaller() {
        return Ok(wanted_bytes.unwrap_or(size_bytes) / BLOCK_BYTES * BLOCK_BYTES);
    }
    let slack_bytes = layer.slack_bytes(below_bytes.len());
    match wanted_bytes {
        Some(wanted) if !(wanted..=wanted.saturating_add(slack_bytes)).contains(&size_bytes) => {
            let (wanted, found) = (format_size_bytes(wanted), format_size_bytes(size_bytes));
            let message =
                format!("is {wanted}, but the stacks below have {found}; give a size to one of the two");
            Err(Mistake::at("size", message))
        }
        _ => Ok(size_bytes),
    }
}

/// A stack below a layer: the key, the key of the size, the name of the stack.
pub(super) type NameBelow = (&'static str, Option<&'static str>, String);

pub(super) fn names_below(
    kind: &LayerKind,
    table: &StackTable,
    entries: &Entries,
) -> Result<Vec<NameBelow>, Mistake> {
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

pub(super) fn number(entries: &Entries, key: &str) -> Option<u64> {
    match entries.get(key)?.value {
        Value::Number(number) => Some(number),
        _ => None,
    }
}
