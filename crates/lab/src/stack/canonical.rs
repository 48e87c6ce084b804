//! A stack as JSON, independent of names in the code: keys in the spelling of files and in alphabetical
//! order, values in the smallest units, names of kinds and layers as declared. Its hash identifies the stack
//! in records. The emulator's process receives this JSON.
//!
//! This is a format: a change to it changes the hash of every stack, and runs cannot be resumed across the
//! change.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use spindle_base::Mistake;
use spindle_base::hash::content_hash;
use spindle_base::units::parse_size_bytes;
use spindle_model::{
    Branch, Declared as _, Described as _, Device, Field, Layer, Parameters, StackSpec as Tree,
};
use spindle_mount::real::Place;

use super::resolve::pool::PoolKeys;
use super::spec::StackSpec;
use super::values::{self, Form};

/// A device or a layer. Fields are in alphabetical order here and below.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    below: Vec<Node>,
    /// Kind of a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    layer: Option<String>,
    parameters: BTreeMap<String, serde_json::Value>,
    size: String,
}

/// Everything that determines a stack's behaviour, without names and prose.
#[derive(Debug, Serialize)]
struct Whole {
    file_system: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mkfs_options: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mount_options: Vec<String>,
    /// Path of a real disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<Pool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<Node>,
}

#[derive(Debug, Serialize)]
struct Pool {
    devices: BTreeMap<&'static str, Node>,
    parameters: BTreeMap<String, serde_json::Value>,
}

impl StackSpec {
    /// Hash of everything that determines the stack's behaviour: equal hashes, equal devices.
    pub fn hash(&self) -> String {
        content_hash(&whole(self))
    }

    /// The device as text for the process that serves it; [`served_device`] reads it.
    pub fn to_served(&self) -> String {
        serde_json::to_string(&node(&self.tree, self.size_bytes())).expect("plain data always becomes JSON")
    }
}

#[cfg(test)]
pub(super) fn text(stack: &StackSpec) -> String {
    serde_json::to_string_pretty(&whole(stack)).expect("plain data always becomes JSON")
}

/// Builds the device from the output of [`StackSpec::to_served`].
///
/// # Errors
/// A text of another origin, or of another version.
pub fn served_device(text: &str, size_bytes: u64, seed: u64) -> Result<Box<dyn Device>> {
    let Branch { size_bytes: own_bytes, stack } = parse(text)?;
    ensure!(own_bytes == size_bytes, "the stack's size has changed");
    Ok(stack.build(size_bytes, seed)?)
}

pub(super) fn parse(text: &str) -> Result<Branch> {
    let node: Node = serde_json::from_str(text).context("reading the stack to serve")?;
    Ok(branch(node)?)
}

fn whole(stack: &StackSpec) -> Whole {
    let head = &stack.head;
    // Size and file system of a directory are left out, because the stack does not determine them.
    let path = stack.real.as_ref().map(|place| match place {
        Place::Directory { path } | Place::BlockDevice { path, .. } => path.display().to_string(),
    });
    let is_directory = matches!(stack.real, Some(Place::Directory { .. }));
    Whole {
        file_system: if is_directory { "none".to_owned() } else { head.file_system.clone() },
        mkfs_options: head.mkfs_options.clone(),
        mount_options: head.mount_options.clone(),
        stack: path.is_none().then(|| node(&stack.tree, head.size_bytes)),
        path,
        pool: stack.pool().map(|pool| Pool {
            devices: pool
                .devices()
                .map(|(key, stack)| (key, node(stack.tree(), stack.size_bytes())))
                .collect(),
            parameters: values::canonical(&PoolKeys::fields(), &pool.keys().values()),
        }),
    }
}

fn node(tree: &Tree, size_bytes: u64) -> Node {
    let (kind, layer, fields, values) = match tree {
        Tree::Device(parameters) => {
            let kind = parameters.kind();
            let fields = Parameters::fields_of(kind).expect("a kind has fields");
            (Some(kind.to_owned()), None, fields, parameters.values())
        }
        Tree::Layer(layer, _) => (None, Some(layer.name().to_owned()), layer.own_fields(), layer.values()),
    };
    Node {
        below: tree.branches().iter().map(|branch| node(&branch.stack, branch.size_bytes)).collect(),
        kind,
        layer,
        parameters: values::canonical(&fields, &values),
        size: format!("{size_bytes} B"),
    }
}

fn branch(node: Node) -> Result<Branch, Mistake> {
    let read = |fields: &[Field], parameters: BTreeMap<String, serde_json::Value>| {
        let table = serde_json::Value::Object(parameters.into_iter().collect());
        values::read(table, Form::Plain, fields, &[]).map(|entries| values::values(&entries))
    };
    let unknown = |name: &str| Mistake::new(format!("`{name}` is unknown"));
    let stack = match (node.kind, node.layer) {
        (Some(kind), None) => {
            let fields = Parameters::fields_of(&kind).ok_or_else(|| unknown(&kind))?;
            Tree::Device(Parameters::from_values(&kind, read(&fields, node.parameters)?)?)
        }
        (None, Some(name)) => {
            let kinds = Layer::kinds();
            let kind = kinds.iter().find(|kind| kind.names.contains(&name.as_str()));
            let kind = kind.ok_or_else(|| unknown(&name))?;
            let layer = Layer::from_values(&name, read(&kind.fields, node.parameters)?)?;
            let below = node.below.into_iter().map(branch).collect::<Result<Vec<_>, _>>()?;
            Tree::layer(layer, below)
        }
        _ => return Err(Mistake::new("a stack is a device or a layer")),
    };
    let size_bytes = parse_size_bytes(&node.size).map_err(Mistake::new)?;
    Ok(Branch { size_bytes, stack })
}
