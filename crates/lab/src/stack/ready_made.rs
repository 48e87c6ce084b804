//! Ready-made stacks inside the binary (`stacks/*.toml`), for use by name.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::stacks::{StackFile, StackTable};

const FILES: [(&str, &str); 1] = [("arrays", include_str!("../../../../stacks/arrays.toml"))];

static READY_MADE: LazyLock<BTreeMap<String, StackTable>> = LazyLock::new(|| {
    let mut all = BTreeMap::new();
    for (name, text) in FILES {
        let file = StackFile::parse(&format!("stacks/{name}.toml"), text);
        all.extend(file.unwrap_or_else(|error| panic!("{error}")).stacks);
    }
    all
});

pub(super) fn ready_made(name: &str) -> Option<StackTable> {
    READY_MADE.get(name).cloned()
}

/// In alphabetical order.
pub fn ready_made_names() -> impl Iterator<Item = &'static str> {
    READY_MADE.keys().map(String::as_str)
}
