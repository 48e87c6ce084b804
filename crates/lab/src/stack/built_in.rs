//! Profiles (`profiles/*.toml`) and ready-made stacks (`stacks/*.toml`) in the binary, for use by name.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use spindle_base::near::did_you_mean;

use super::table::{StackFile, StackTable};

/// The profiles in the binary, by name.
pub const PROFILES: [(&str, &str); 34] = [
    ("660p-1024", include_str!("../../../../profiles/660p-1024.toml")),
    ("850evo-250", include_str!("../../../../profiles/850evo-250.toml")),
    ("870evo", include_str!("../../../../profiles/870evo.toml")),
    ("870qvo-1000", include_str!("../../../../profiles/870qvo-1000.toml")),
    ("970pro-512", include_str!("../../../../profiles/970pro-512.toml")),
    ("agility3-120", include_str!("../../../../profiles/agility3-120.toml")),
    ("agility3-240", include_str!("../../../../profiles/agility3-240.toml")),
    ("agility3-60", include_str!("../../../../profiles/agility3-60.toml")),
    ("agility3-60-datasheet", include_str!("../../../../profiles/agility3-60-datasheet.toml")),
    ("azure-p10", include_str!("../../../../profiles/azure-p10.toml")),
    ("azure-p30", include_str!("../../../../profiles/azure-p30.toml")),
    ("barracuda-160", include_str!("../../../../profiles/barracuda-160.toml")),
    ("cheetah-15k7", include_str!("../../../../profiles/cheetah-15k7.toml")),
    ("ebs-gp2", include_str!("../../../../profiles/ebs-gp2.toml")),
    ("ebs-gp3", include_str!("../../../../profiles/ebs-gp3.toml")),
    ("ebs-io2", include_str!("../../../../profiles/ebs-io2.toml")),
    ("flash-285us-4ch", include_str!("../../../../profiles/flash-285us-4ch.toml")),
    ("hdd-7200", include_str!("../../../../profiles/hdd-7200.toml")),
    ("intel320-160", include_str!("../../../../profiles/intel320-160.toml")),
    ("iodrive-160", include_str!("../../../../profiles/iodrive-160.toml")),
    ("iodrive-duo-320", include_str!("../../../../profiles/iodrive-duo-320.toml")),
    ("iodrive-mlc-320", include_str!("../../../../profiles/iodrive-mlc-320.toml")),
    ("micron7300-pro", include_str!("../../../../profiles/micron7300-pro.toml")),
    ("null", include_str!("../../../../profiles/null.toml")),
    ("pm883-960", include_str!("../../../../profiles/pm883-960.toml")),
    ("pm9a3", include_str!("../../../../profiles/pm9a3.toml")),
    ("pm9a3-u2-1920", include_str!("../../../../profiles/pm9a3-u2-1920.toml")),
    ("sas-15k-160", include_str!("../../../../profiles/sas-15k-160.toml")),
    ("st2000dm006-datasheet", include_str!("../../../../profiles/st2000dm006-datasheet.toml")),
    ("st2000dm006-measured", include_str!("../../../../profiles/st2000dm006-measured.toml")),
    ("x25e-32", include_str!("../../../../profiles/x25e-32.toml")),
    ("x25m-160", include_str!("../../../../profiles/x25m-160.toml")),
    ("x25m-80", include_str!("../../../../profiles/x25m-80.toml")),
    ("x25m-80-g1", include_str!("../../../../profiles/x25m-80-g1.toml")),
];

const STACK_FILES: [(&str, &str); 1] = [("arrays", include_str!("../../../../stacks/arrays.toml"))];

static READY_MADE: LazyLock<BTreeMap<String, StackTable>> = LazyLock::new(|| {
    let mut all = BTreeMap::new();
    for (name, text) in STACK_FILES {
        let file = StackFile::parse(&format!("stacks/{name}.toml"), text);
        all.extend(file.unwrap_or_else(|error| panic!("{error}")).stacks);
    }
    all
});

/// A ready-made stack.
pub(super) fn ready_made(name: &str) -> Option<&'static StackTable> {
    READY_MADE.get(name)
}

/// In alphabetical order.
pub fn ready_made_names() -> impl Iterator<Item = &'static str> {
    READY_MADE.keys().map(String::as_str)
}

/// Names of profiles, then of ready-made stacks.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|(name, _)| *name).chain(ready_made_names())
}

/// A ready-made stack, or a stack of only the profile of that name.
pub fn built_in_stack(name: &str) -> Option<StackTable> {
    let profile = || {
        let is_known = PROFILES.iter().any(|(known, _)| *known == name);
        is_known.then(|| StackTable { profile: Some(name.to_owned()), ..StackTable::default() })
    };
    ready_made(name).cloned().or_else(profile)
}

/// Message for an unknown name.
pub(super) fn unknown(name: &str) -> String {
    let near = did_you_mean(name, &built_in_names().collect::<Vec<_>>());
    format!(
        "there is no profile or stack `{name}`{near}; profiles are {}; stacks are {}; or give the path of a .toml file",
        PROFILES.map(|(known, _)| known).join(", "),
        ready_made_names().collect::<Vec<_>>().join(", ")
    )
}
