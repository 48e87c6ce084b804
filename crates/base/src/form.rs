//! Compares a table of a user's file with the JSON schema of its declaration. Every misspelt key, missing key
//! and value of a wrong type is found in one pass, and each sentence shows the right form.
//!
//! Serde stops at the first error, and names types of Rust. It still reads the table afterwards. Of a schema,
//! this module uses `properties`, `additionalProperties`, `required`, `type`, `items`, `anyOf`, `oneOf`,
//! `enum`, `const`, `minimum`, `maximum`, `examples`, `default`, and of `format` the project's own `duration`
//! and `size`. It ignores any other word, which can only allow more.

use serde_json::Value as Schema;
use toml::{Table, Value};

use crate::Mistake;
use crate::near;
use crate::units;

/// All mistakes in a table.
pub fn mistakes(schema: &Schema, table: &Table) -> Vec<Mistake> {
    let mut found = Vec::new();
    in_table(schema, table, "", &mut found);
    found
}

/// An example of the value in TOML's syntax; `None` if the schema has none.
pub fn example(schema: &Schema) -> Option<String> {
    let given = schema["examples"].get(0).or(schema.get("default")).filter(|value| !value.is_null());
    match given {
        Some(value) => Some(Value::try_from(value).ok()?.to_string()),
        None => words(schema).first().map(|word| Value::from(*word).to_string()),
    }
}

/// The words that a value can be; empty for a value of another kind.
pub fn words(schema: &Schema) -> Vec<&str> {
    texts(schema, &["enum", "const"])
}

/// The types that a value can have, in the schema's words; empty for any type.
pub fn types(schema: &Schema) -> Vec<&str> {
    texts(schema, &["type"]).into_iter().filter(|name| *name != "null").collect()
}

/// The texts under these keys, over all alternatives of the schema.
fn texts<'a>(schema: &'a Schema, keys: &[&str]) -> Vec<&'a str> {
    let under_keys = |leaf: &'a Schema| keys.iter().map(|key| &leaf[*key]).collect::<Vec<_>>();
    let each = |value: &'a Schema| match value {
        Schema::Array(values) => values.iter().collect(),
        value => vec![value],
    };
    leaves(schema).into_iter().flat_map(under_keys).flat_map(each).filter_map(Schema::as_str).collect()
}

/// The alternatives of a schema.
fn leaves(schema: &Schema) -> Vec<&Schema> {
    match schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        Some(alternatives) => alternatives.iter().flat_map(leaves).collect(),
        None => vec![schema],
    }
}

/// The alternative of that type. An optional value has `null` as its second type.
fn leaf_of<'a>(schema: &'a Schema, name: &str) -> Option<&'a Schema> {
    leaves(schema).into_iter().find(|leaf| types(leaf).contains(&name))
}

fn in_table(schema: &Schema, table: &Table, path: &str, found: &mut Vec<Mistake>) {
    let none = serde_json::Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let others = &schema["additionalProperties"];
    // Keys that are there under another name are told once.
    let mut misspelt = Vec::new();
    for (key, value) in table {
        let place = join(path, key);
        match properties.get(key) {
            Some(property) => in_value(property, value, &place, found),
            None if *others == Schema::Bool(false) => {
                let known: Vec<&str> = properties.keys().map(String::as_str).collect();
                let meant = near::nearest(key, known.iter().copied());
                let form = meant.map(|meant| form(" For example", meant, &properties[meant]));
                let words = format!("unknown key{}{}", near::hint(key, &known), form.unwrap_or_default());
                found.push(Mistake::at(place, words));
                misspelt.extend(meant);
            }
            None => in_value(others, value, &place, found),
        }
    }
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Schema::as_str);
    for key in required.filter(|key| !table.contains_key(*key) && !misspelt.contains(key)) {
        found.push(Mistake::at(join(path, key), missing(&join(path, key), key, &properties[key])));
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// `before` and an example of the key's line, or nothing.
fn form(before: &str, key: &str, schema: &Schema) -> String {
    example(schema).map_or_else(String::new, |example| format!("{before} `{key} = {example}`"))
}

fn missing(path: &str, key: &str, schema: &Schema) -> String {
    let Some(leaf) = leaf_of(schema, "object").filter(|_| schema["examples"].is_null()) else {
        return format!("is missing{}", form("; for example", key, schema));
    };
    let lines = leaf["required"].as_array().into_iter().flatten().filter_map(Schema::as_str);
    let lines: Vec<String> =
        lines.filter_map(|key| Some(format!("`{key} = {}`", example(&leaf["properties"][key])?))).collect();
    match lines.as_slice() {
        [] => format!("is missing; add the table `[{path}]`"),
        lines => format!("is missing; add the table `[{path}]` with {}", lines.join(", ")),
    }
}

fn in_value(schema: &Schema, value: &Value, path: &str, found: &mut Vec<Mistake>) {
    let key = path.rsplit('.').next().unwrap_or(path);
    match value {
        Value::Table(table) => {
            if let Some(leaf) = leaf_of(schema, "object") {
                return in_table(leaf, table, path, found);
            }
            if leaf_of(schema, "array").is_some_and(|leaf| leaf_of(&leaf["items"], "object").is_some()) {
                let words = format!("must be a list of tables; write `[[{path}]]` above each");
                return found.push(Mistake::at(path, words));
            }
        }
        Value::Array(items) => {
            if let Some(leaf) = leaf_of(schema, "array") {
                let each = items.iter().enumerate();
                each.for_each(|(index, item)| {
                    in_value(&leaf["items"], item, &format!("{path}[{index}]"), found)
                });
                return;
            }
        }
        _ => {}
    }
    if let Some(words) = wrong(schema, key, value) {
        found.push(Mistake::at(path, words));
    }
}

/// The complaint about a value of the wrong type, an unknown word, or a number out of range.
fn wrong(schema: &Schema, key: &str, value: &Value) -> Option<String> {
    let (types, words) = (types(schema), words(schema));
    let or_words =
        |message: String| words.iter().fold(message, |text, word| format!("{text}, or \"{word}\""));
    let is = |names: &[&str]| types.is_empty() || types.iter().any(|name| names.contains(name));
    match value {
        Value::String(word) if words.contains(&word.as_str()) => None,
        Value::String(word) if is(&["string"]) => {
            let is_free = |leaf: &&Schema| {
                leaf["type"] != "null" && leaf.get("enum").is_none() && leaf.get("const").is_none()
            };
            match leaves(schema).into_iter().find(is_free).map(|leaf| leaf["format"].as_str()) {
                None => Some(format!("`{word}` is not known{}", near::hint(word, &words))),
                Some(Some("duration")) => units::parse_duration(word).err().map(or_words),
                Some(Some("size")) => units::parse_size_bytes(word).err().map(or_words),
                Some(_) => None,
            }
        }
        Value::Integer(number) if is(&["integer", "number"]) => out_of_range(schema, *number as f64),
        Value::Float(number) if is(&["number"]) => out_of_range(schema, *number),
        Value::Boolean(_) if is(&["boolean"]) => None,
        Value::Table(_) | Value::Array(_) if types.is_empty() => None,
        _ => Some(right_form(schema, key, value, &types)),
    }
}

fn out_of_range(schema: &Schema, number: f64) -> Option<String> {
    let bound = |key: &str| leaves(schema).iter().find_map(|leaf| leaf[key].as_f64());
    let (least, most) = (bound("minimum"), bound("maximum"));
    let is_in_range = least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most);
    let words = match (least, most) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("{least} or more"),
        (None, most) => format!("{} or less", most.unwrap_or_default()),
    };
    (!is_in_range).then(|| format!("{number} is out of range; it can be {words}"))
}

/// The right form for a value of the wrong type. The user's own value is kept if it fits.
fn right_form(schema: &Schema, key: &str, value: &Value, types: &[&str]) -> String {
    let text = value.as_str().unwrap_or_default();
    let example = form(", for example", key, schema);
    match types.first().copied().unwrap_or_default() {
        "array" if !value.is_table() => format!("`{value}` must be a list; write `{key} = [{value}]`"),
        "integer" if text.parse::<i64>().is_ok() => {
            format!("`{value}` must be a number without quotes; write `{key} = {text}`")
        }
        "integer" => format!("`{value}` must be a whole number{example}"),
        "number" => match words(schema).as_slice() {
            [] => format!("`{value}` must be a number without quotes{example}"),
            words => format!("`{value}` must be a number without quotes, or \"{}\"", words.join("\" or \"")),
        },
        "boolean" if matches!(text, "true" | "false") => {
            format!("`{value}` must be true or false without quotes; write `{key} = {text}`")
        }
        "boolean" => format!("`{value}` must be true or false, for example `{key} = true`"),
        "object" => format!("`{value}` must be a table{example}"),
        _ => format!("`{value}` must be a text in quotes{example}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        serde_json::json!({
            "type": "object", "additionalProperties": false, "required": ["title", "run"],
            "properties": {
                "title": { "type": "string", "examples": ["Disk or SSD"] },
                "stacks": { "type": "object", "additionalProperties": {
                    "type": "object", "additionalProperties": false,
                    "properties": { "size": { "type": ["string", "null"], "examples": ["20 GB"] } },
                } },
                "run": { "type": "object", "additionalProperties": false, "required": ["trials", "measure"], "properties": {
                    "trials": { "type": "integer", "minimum": 1, "maximum": 1000, "examples": [3] },
                    "measure": { "type": "string", "format": "duration", "examples": ["30 s"] },
                    "start": { "anyOf": [
                        { "oneOf": [{ "type": "string", "const": "warm" }, { "type": "string", "enum": ["cold"] }] },
                        { "type": "null" },
                    ] },
                    "cells": { "type": "array", "items": { "type": "string" } },
                    "strict": { "type": "boolean" },
                    "rows": { "type": "array", "items": { "type": "object", "required": ["row"], "properties": {
                        "row": { "type": "object", "examples": [{ "a": 1 }] },
                    } } },
                } },
            },
        })
    }

    #[track_caller]
    fn check(text: &str, expect: &[&str]) {
        let table: Table = text.parse().expect("the test's text is TOML");
        let found: Vec<String> = mistakes(&schema(), &table).iter().map(Mistake::to_string).collect();
        assert_eq!(found, expect);
    }

    /// The right keys, and one more line of `[run]`.
    fn check_run(line: &str, expect: &[&str]) {
        check(&format!("title = 'a'\n[run]\ntrials = 3\nmeasure = '30 s'\n{line}"), expect);
    }

    #[test]
    fn a_table_of_the_right_form_has_no_mistakes() {
        check_run("start = 'cold'\ncells = ['a']\nstrict = true\n[stacks.a]\nsize = '1 GB'", &[]);
    }

    #[test]
    fn every_missing_and_misspelt_key_is_told_in_one_pass() {
        check(
            "titel = 'a'\n[run]\ntrails = 3\nmesure = '3 s'\n[stacks.hdd]\nsise = '3 GB'",
            &[
                "run.mesure: unknown key; did you mean `measure`? For example `measure = \"30 s\"`",
                "run.trails: unknown key; did you mean `trials`? For example `trials = 3`",
                "stacks.hdd.sise: unknown key; did you mean `size`? For example `size = \"20 GB\"`",
                "titel: unknown key; did you mean `title`? For example `title = \"Disk or SSD\"`",
            ],
        );
        check(
            "title = 'a'\n[run]",
            &[
                "run.trials: is missing; for example `trials = 3`",
                "run.measure: is missing; for example `measure = \"30 s\"`",
            ],
        );
    }

    #[test]
    fn a_missing_table_is_told_with_its_required_keys() {
        check(
            "title = 'a'",
            &["run: is missing; add the table `[run]` with `trials = 3`, `measure = \"30 s\"`"],
        );
    }

    #[test]
    fn a_value_of_the_wrong_type_is_told_with_the_right_form() {
        check_run("cells = 'a'", &["run.cells: `\"a\"` must be a list; write `cells = [\"a\"]`"]);
        check_run(
            "strict = 'true'",
            &["run.strict: `\"true\"` must be true or false without quotes; write `strict = true`"],
        );
        check_run("start = 3", &["run.start: `3` must be a text in quotes, for example `start = \"warm\"`"]);
        check("title = 'a'\nrun = 3", &["run: `3` must be a table"]);
        check(
            "title = 'a'\n[run]\ntrials = '3'\nmeasure = 30",
            &[
                "run.measure: `30` must be a text in quotes, for example `measure = \"30 s\"`",
                "run.trials: `\"3\"` must be a number without quotes; write `trials = 3`",
            ],
        );
    }

    #[test]
    fn a_list_of_tables_is_told_with_its_form() {
        check_run(
            "[run.rows]\nrow = {}",
            &["run.rows: must be a list of tables; write `[[run.rows]]` above each"],
        );
        check_run("[[run.rows]]\nrow = { b = 2 }", &[]);
        check_run("[[run.rows]]", &["run.rows[0].row: is missing; for example `row = { a = 1 }`"]);
        check_run("[run.cells]\na = 1", &["run.cells: `{ a = 1 }` must be a text in quotes"]);
    }

    #[test]
    fn a_wrong_unit_is_told() {
        let expect = "run.measure: `3 sec` is not a duration; write for example \"8.5 ms\" or \"30 s\" (ns, us, ms, s, min, h, d)";
        check("title = 'a'\n[run]\ntrials = 3\nmeasure = '3 sec'", &[expect]);
    }

    #[test]
    fn unknown_words_and_numbers_out_of_range_are_told_with_what_is_allowed() {
        check_run("start = 'wram'", &["run.start: `wram` is not known; did you mean `warm`?"]);
        check(
            "title = 'a'\n[run]\ntrials = 0\nmeasure = '1 s'",
            &["run.trials: 0 is out of range; it can be 1 to 1000"],
        );
    }
}
