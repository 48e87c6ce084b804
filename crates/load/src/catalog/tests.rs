use std::collections::BTreeSet;

use clap::{Arg, Command, Parser, Subcommand};
use serde_json::{Map, Value};

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    workload: WorkloadSpec,
}

fn command(kind: &str) -> Command {
    let all = WorkloadSpec::augment_subcommands(Command::new("load"));
    all.find_subcommand(kind).unwrap_or_else(|| panic!("{kind} has no options")).clone()
}

fn options(kind: &str) -> Vec<Arg> {
    command(kind).get_arguments().filter(|argument| argument.get_id() != "help").cloned().collect()
}

/// A valid value of the option.
fn example(option: &Arg) -> String {
    let values = option.get_possible_values();
    values.first().map_or_else(|| "7".to_owned(), |value| value.get_name().to_owned())
}

fn as_json(text: &str) -> Value {
    text.parse::<u64>().map_or_else(|_| text.into(), Value::from)
}

/// Keys that say over how many servers of a cell a database is; `spindle load` has one.
const OF_CELLS: &str = "shards";

/// The keys that a scenario's table may have.
fn keys(kind: &str) -> BTreeSet<String> {
    let schema = WorkloadSpec::schema_of(kind).expect("the kind is known");
    let properties = schema.get("properties").and_then(Value::as_object).expect("every kind has keys");
    properties.keys().cloned().collect()
}

#[test]
fn every_key_is_an_option_of_the_same_name() {
    for (kind, _) in CATALOG {
        let options: BTreeSet<String> =
            options(kind).iter().map(|option| option.get_id().to_string()).collect();
        let keys: BTreeSet<String> = keys(kind).into_iter().filter(|key| key != OF_CELLS).collect();
        assert_eq!(keys, options, "{kind}");
    }
}

/// Some keys are required in a scenario although the option has a default, so that the scenario stays
/// readable for years. If both have a default, it is the same.
#[test]
fn a_key_that_is_left_out_is_what_the_option_is_without_being_given() {
    for (kind, _) in CATALOG {
        let mut table = Map::from_iter([("kind".to_owned(), Value::from(*kind))]);
        let mut line = vec!["load".to_owned(), (*kind).to_owned()];
        for option in options(kind).iter().filter(|option| option.is_required_set()) {
            let name = option.get_id().to_string();
            line.extend(option.get_long().map(|long| format!("--{long}")));
            line.push(example(option));
            // Paths are texts, even if they look like numbers.
            let value =
                if name == "engine" || name == "file" { "7".into() } else { as_json(&example(option)) };
            table.insert(name, value);
        }
        // Keys that only a scenario requires take the option's default.
        let from_options =
            Line::try_parse_from(&line).unwrap_or_else(|error| panic!("{kind}: {error}")).workload;
        let mut from_scenario = serde_json::from_value::<WorkloadSpec>(Value::Object(table.clone()));
        let filled = serde_json::to_value(&from_options).unwrap();
        while let Err(error) = &from_scenario {
            let words = error.to_string();
            let key =
                words.split('`').nth(1).filter(|key| filled.get(key).is_some() && !table.contains_key(*key));
            let key = key.unwrap_or_else(|| panic!("{kind}: {words}"));
            table.insert(key.to_owned(), filled[key].clone());
            from_scenario = serde_json::from_value(Value::Object(table.clone()));
        }
        assert_eq!(from_scenario.unwrap(), from_options, "{kind}");
    }
}

#[test]
fn the_least_and_the_most_are_refused_by_one_sentence() {
    let check = |line: &str, expect: Option<(&str, &str)>| {
        let words = ["load"].into_iter().chain(line.split(' '));
        let workload = Line::try_parse_from(words).unwrap().workload;
        let complaint = workload.complaint();
        assert_eq!(complaint.as_ref().map(|(key, words)| (key.as_str(), words.as_str())), expect, "{line}");
    };
    check("scan --rows 1", None);
    check("scan --rows 0", Some(("rows", "0 is out of range; it can be 1 to 2000000000")));
    check("scan --rows 2000000001", Some(("rows", "2000000001 is out of range; it can be 1 to 2000000000")));
    check("tpcc --rate 0", Some(("rate", "0 is out of range; it can be 1 to 1000000")));
    check("slap --load-type key", Some(("load_type", "`key` needs the key that `autoincrement` makes")));
}

#[test]
fn a_preset_has_its_warehouses_unless_they_are_given() {
    let check = |line: &str, expect: u32| {
        let words = ["load", "tpcc"].into_iter().chain(line.split_whitespace());
        let WorkloadSpec::Tpcc(spec) = Line::try_parse_from(words).unwrap().workload else { panic!("tpcc") };
        assert_eq!(spec.warehouses, expect, "{line}");
    };
    check("", 10);
    check("--preset tpcc-mysql", 40);
    check("--preset dbt2 --warehouses 3", 3);
}

#[test]
fn parameters_of_a_file_are_given_one_by_one() {
    let line = ["load", "custom", "a.sql", "--parameter", "scale=7", "--parameter", "least=-1"];
    let workload = Line::try_parse_from(line).unwrap().workload;
    let json =
        r#"{"kind": "custom", "file": "a.sql", "terminals": 8, "parameters": {"scale": 7, "least": -1}}"#;
    assert_eq!(serde_json::from_str::<WorkloadSpec>(json).unwrap(), workload);
    let error = Line::try_parse_from(["load", "custom", "a.sql", "--parameter", "scale"]).unwrap_err();
    assert!(error.to_string().contains("write NAME=NUMBER"), "{error}");
}

#[test]
fn an_option_is_named_as_it_is_written() {
    let workload = |json: &str| serde_json::from_str::<WorkloadSpec>(json).unwrap();
    let custom = workload(r#"{"kind": "custom", "file": "a.sql", "terminals": 8}"#);
    assert_eq!(custom.option("file"), None);
    assert_eq!(custom.option("parameters").unwrap(), "--parameter");
    assert_eq!(
        workload(r#"{"kind": "mock", "terminals": 1, "latency_us": 1}"#).option("latency_us").unwrap(),
        "--latency-us"
    );
}

/// The form in records and scenarios: the order of the keys is part of every hash.
#[test]
fn a_workload_is_written_as_ever() {
    let check = |json: &str| {
        let workload: WorkloadSpec = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&workload).unwrap(), json);
    };
    check(r#"{"kind":"tpcc","warehouses":40,"terminals":8,"preset":"tpcc-mysql"}"#);
    check(r#"{"kind":"wide-tables","mode":"insert","tables":40,"range":"wide","terminals":40}"#);
    check(
        r#"{"kind":"custom","file":"a.sql","terminals":8,"parameters":{"accounts":5},"text":"\\check a\nSELECT 1;\n"}"#,
    );
    check(
        r#"{"kind":"oltp","script":"read-write","tables":4,"rows":1000,"distribution":"uniform","terminals":8,"autocommit":false,"point_selects":10,"range_size":100}"#,
    );
    check(
        r#"{"kind":"fileio","mode":"rndrw","files":64,"total_mib":8,"block_bytes":4096,"terminals":2,"fsync_every":0,"fsync_at_end":false,"sync":"fsync","direct":true,"program":"sysbench"}"#,
    );
}

/// The quotes in the page match the smallest workload and the lists.
#[test]
fn the_page_about_a_new_workload_quotes_the_source() {
    let page = include_str!("../../../../docs/extending.md");
    let section = page.split("\n## ").find(|section| section.starts_with("A workload\n")).unwrap();
    let sources = [include_str!("../workloads/mock.rs"), include_str!("../catalog.rs")];
    let quotes: Vec<&str> =
        section.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(quotes.len(), 3);
    for quote in quotes {
        assert!(sources.iter().any(|source| source.contains(quote)), "nowhere in the source: {quote}");
    }
    let lines = sources[0].lines().count();
    assert!((80..=120).contains(&lines), "a file of a hundred lines has {lines}");
}
