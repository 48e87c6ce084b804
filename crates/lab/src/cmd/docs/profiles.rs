//! The page of all profiles and ready-made stacks.

use spindle_model::Parameters;

use super::{quoted, table};
use crate::stack::ready_made_names;
use crate::stack::{
    Explained, Explanation, KnownDeviation, Origin, PROFILES, Profile, StackSpec, known_deviations_of,
};

const HEAD: &str = "# Profiles and ready-made stacks

`spindle docs profiles` prints this page from the files in [profiles/](../profiles/) and [stacks/](../stacks/).
A name goes into the matrix of a scenario (`stack = [\"NAME\"]`), into `profile = \"NAME\"` of a stack table, and
into `spindle disk up NAME`. `spindle disk list` shows the figures of all, `spindle disk show NAME` every parameter of
one with its source or assumption. [devices.md](devices.md) says what is modelled, [parameters.md](parameters.md) has
the keys.
";

const ENDURANCE_HEAD: &str = "
## Endurance

`[endurance]` of a profile; a drive that is not here has no figure with a source. [parameters.md](parameters.md#profiles)
has the keys.

";

/// In the kind of a device whose stack has another name than its profile.
const OF_PROFILE: &str = " of profile ";

/// The page in Markdown.
pub(super) fn page() -> String {
    let mut text = HEAD.to_owned();
    let profiles: Vec<Profile> =
        PROFILES.iter().map(|(name, _)| Profile::find(name).expect("a test reads every profile")).collect();
    text.push_str(
        "\n## Profiles\n\nA parameter without a source is an assumption, with its reason in the profile.\n",
    );
    for kind in Parameters::KINDS {
        let of_kind = profiles.iter().filter(|profile| profile.parameters.kind() == *kind);
        text.push_str(&format!("\n### `kind = \"{kind}\"`\n\n"));
        text.push_str(&table(
            ["profile", "device", "year", "capacity", "parameters with a source"],
            of_kind.map(row),
        ));
    }
    text.push_str(&endurance(&profiles));
    text.push_str("\n## Ready-made stacks\n\n");
    let stacks: Vec<(&str, StackSpec)> = ready_made_names().map(|name| (name, stack(name))).collect();
    let rows = stacks.iter().map(|(name, stack)| {
        let mut devices = Vec::new();
        devices_of(stack.explained(), &mut devices);
        [format!("`{name}`"), stack.label().to_owned(), top(stack), quoted(devices)]
    });
    text.push_str(&table(["stack", "label", "top", "devices"], rows));
    text.push_str(
        "\n## Known deviations\n\nPublished figures that a profile or stack does not meet \
         (`spindle disk bench NAME --virtual --against all`).\n\n",
    );
    let names = PROFILES.iter().map(|(name, _)| *name).chain(ready_made_names());
    let deviations = names.flat_map(|name| {
        let row = move |deviation: KnownDeviation| {
            [format!("`{name}`"), deviation.operation, deviation.source, deviation.reason]
        };
        known_deviations_of(name).into_iter().map(row)
    });
    text.push_str(&table(["name", "operation", "source", "reason"], deviations));
    text
}

/// What is known of how much may be written to flash drives.
fn endurance(profiles: &[Profile]) -> String {
    let rows = profiles.iter().flat_map(|profile| {
        let facts = profile.about.iter().filter(|fact| fact.key != "year");
        let row = move |fact: &Explanation| {
            [format!("`{}`", profile.name), fact.key.clone(), fact.value.clone(), fact.origin.to_string()]
        };
        facts.map(row)
    });
    format!("{ENDURANCE_HEAD}{}", table(["profile", "figure", "value", "origin"], rows))
}

fn stack(name: &str) -> StackSpec {
    let stack = StackSpec::of_name(name, None, StackSpec::usual_file_system(name));
    stack.expect("a test resolves every ready-made stack")
}

fn row(profile: &Profile) -> [String; 5] {
    let stack = stack(&profile.name);
    let parameters = &stack.explained().parameters;
    let sourced = parameters.iter().filter(|row| matches!(row.origin, Origin::Source(_))).count();
    let capacity = parameters.iter().find(|row| row.key == "capacity");
    let sourced = format!("{sourced} of {}", parameters.len());
    let capacity = capacity.map_or_else(|| "any".to_owned(), |row| row.value.clone());
    let year = profile.year.map_or_else(|| "-".to_owned(), |year| year.to_string());
    [format!("`{}`", profile.name), profile.summary.clone(), year, capacity, sourced]
}

/// What is on top: a pool, a layer, or a device.
fn top(stack: &StackSpec) -> String {
    let kind = stack.explained().kind.as_str();
    let kind = kind.split_once(OF_PROFILE).map_or(kind, |(kind, _)| kind);
    if stack.pool().is_some() { "`zfs`".to_owned() } else { format!("`{kind}`") }
}

/// Profiles of the devices, each once. The data device of a pool has its other devices below it.
fn devices_of(explained: &Explained, names: &mut Vec<String>) {
    let name = match explained.kind.split_once(OF_PROFILE) {
        Some((_, profile)) => Some(profile),
        None => explained.below.is_empty().then_some(explained.name.as_str()),
    };
    if let Some(name) = name.filter(|name| !names.iter().any(|known| known == name)) {
        names.push(name.to_owned());
    }
    explained.below.iter().for_each(|below| devices_of(&below.stack, names));
}
