//! The reference page of scenarios, from the declarations that read them: `docs/scenario.md`.

use serde_json::Value;
use spindle_base::form::{example, types, words};
use spindle_load::WorkloadSpec;

use super::{whole, workload};

const HEAD: &str = "# The keys of a scenario

`spindle docs scenario` prints this page from the declarations that read a scenario. `spindle new` writes a scenario, and
[scenarios](../scenarios) has examples. Durations are texts such as `\"30 s\"` or `\"5 min\"`, sizes such as `\"20 GB\"` or `\"20 GiB\"`.
NAME has 1 to 40 letters, digits, `-`, `_` or `.`.
";

/// Tables: heading, the keys that lead to it (`*` for any name, `[]` for each of a list), and a sentence.
const TABLES: [(&str, &[&str], &str); 10] = [
    ("The file", &[], ""),
    (
        "`[stacks.NAME]`",
        &["stacks", "*"],
        "A table has `profile`, or `layer` and `on`, or `path`. [parameters.md](parameters.md) has the keys of each layer, and those of a \
         device that a table may set.",
    ),
    ("`[layouts.NAME]`", &["layouts", "*"], ""),
    ("`[servers.NAME]`", &["servers", "*"], "[servers.md](servers.md) has the kinds."),
    ("`[servers.NAME.replication]`", &["servers", "*", "replication"], ""),
    (
        "`[matrix]`",
        &["matrix"],
        "The first name of each list belongs to the baseline of comparisons. Each workload has its own baseline, unless it has a single cell. Any further key is an axis of values: a list of values of a key \
         of the workloads (`terminals = [1, 4, 16, 64]`) or of a setting of the servers (`innodb_buffer_pool_size = [\"64M\", \"128M\"]`). \
         Each value takes the place of the one in the table ([sweeps.md](sweeps.md)). At most two such axes, and 64 cells with them.",
    ),
    ("`[run]`", &["run"], ""),
    (
        "`[[more_trials]]`",
        &["more_trials", "[]"],
        "Cells that differ by less than the others need more trials to tell. One table for each number of trials; finished trials of a run are \
         kept when a table is added.",
    ),
    (
        "`[[events]]`",
        &["events", "[]"],
        "One table for each change at a time of the measured window, with `at` and one of the other keys ([events.md](events.md)).",
    ),
    (
        "`[[published]]`",
        &["published", "[]"],
        "One table for each row of a published study that a cell reproduces. `spindle published list` has the studies, and \
         `spindle published compare` holds the run against their claims.",
    ),
];

/// The page in Markdown.
pub fn page() -> String {
    let mut text = HEAD.to_owned();
    let scenario = whole();
    for (title, path, sentence) in TABLES {
        let step = |schema: Value, key: &&str| match *key {
            "*" => schema["additionalProperties"].clone(),
            "[]" => schema["items"].clone(),
            key => schema["properties"][key].clone(),
        };
        let table = path.iter().fold(scenario.clone(), step);
        section(&mut text, "##", title, sentence, &table);
    }
    text.push_str("\n## `[workloads.NAME]`\n\nThe key `kind` selects the workload.\n");
    for kind in WorkloadSpec::kinds_that(|_| true).into_iter().filter(|kind| *kind != "mock") {
        let mut schema = workload(kind);
        let sentence = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
        schema["properties"].as_object_mut().expect("a workload has keys").remove("kind");
        section(&mut text, "###", &format!("`kind = \"{kind}\"`"), &sentence, &schema);
    }
    text
}

/// Required keys come first.
fn section(text: &mut String, level: &str, title: &str, sentence: &str, table: &Value) {
    text.push_str(&format!("\n{level} {title}\n\n"));
    if !sentence.is_empty() {
        text.push_str(&format!("{sentence}\n\n"));
    }
    text.push_str("| key | value | unless given | what it is |\n|---|---|---|---|\n");
    let required: Vec<&str> =
        table["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = table["properties"].as_object().expect("a table has keys");
    let is_optional = |key: &str| !required.contains(&key);
    let others = properties.keys().map(String::as_str).filter(|key| is_optional(key));
    for key in required.iter().copied().chain(others) {
        let property = &properties[key];
        let doc = property["description"].as_str().unwrap_or_default().replace('\n', " ");
        let (value, absent) = (value(property), absent(property, is_optional(key)));
        text.push_str(&format!("| `{key}` | {value} | {absent} | {doc} |\n"));
    }
}

fn value(property: &Value) -> String {
    let words: Vec<String> = words(property).iter().map(|word| format!("`\"{word}\"`")).collect();
    let bound = |of_number: &str, of_list: &str| property[of_number].as_u64().or(property[of_list].as_u64());
    let bounds = match (bound("minimum", "minItems"), bound("maximum", "maxItems")) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        _ => String::new(),
    };
    let format = format(property).filter(|name| matches!(*name, "duration" | "size"));
    let kind = match types(property).first().copied() {
        _ if format.is_some() => format.unwrap_or_default(),
        Some("string") if !words.is_empty() => return words.join(", "),
        Some("string") => "text",
        Some("integer") => "whole number",
        Some("number") => "number",
        Some("boolean") => "`true` or `false`",
        Some("array") => "list",
        Some("object") => "table",
        _ => "",
    };
    let or_word = words.iter().map(|word| format!(" or {word}")).collect::<String>();
    format!("{kind}{bounds}{or_word}")
}

/// The format of the first alternative that has one.
fn format(property: &Value) -> Option<&str> {
    let alternatives = || property["anyOf"].as_array().into_iter().flatten();
    property["format"].as_str().or_else(|| alternatives().find_map(format))
}

fn absent(property: &Value, is_optional: bool) -> String {
    let in_toml =
        |default| toml::Value::try_from(default).ok().map(|default: toml::Value| default.to_string());
    let default = property.get("default").filter(|default| !default.is_null()).and_then(in_toml);
    match default.filter(|default| !matches!(default.as_str(), "\"\"" | "[]" | "{}")) {
        Some(default) => format!("`{default}`"),
        None if is_optional => "none".to_owned(),
        None => match example(property) {
            Some(example) => format!("must be given, such as `{example}`"),
            None => "must be given".to_owned(),
        },
    }
}
