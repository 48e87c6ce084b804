//! `spindle disk list`: the figures by which storage is chosen, from the model.

use serde_json::Value;
use spindle_lab::stack::{PROFILES, ready_made_names};

use crate::emulated_support::Bench;

fn list() -> Vec<Value> {
    Bench::anywhere().json(&["disk", "list", "--json"]).as_array().unwrap().clone()
}

fn entry(name: &str) -> Value {
    list().into_iter().find(|entry| entry["name"] == name).unwrap()
}

#[test]
fn every_profile_and_ready_made_stack_is_listed_once() {
    let mut listed: Vec<String> =
        list().iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect();
    listed.sort_unstable();
    let mut known: Vec<&str> = PROFILES.iter().map(|(name, _)| *name).chain(ready_made_names()).collect();
    known.sort_unstable();
    assert_eq!(listed, known);
}

#[test]
fn current_devices_come_first_and_stacks_after_all_devices() {
    let listed = list();
    let place = |name: &str| listed.iter().position(|entry| entry["name"] == name).unwrap();
    let order = ["pm9a3", "870evo", "ebs-gp3", "iodrive-160", "hdd-7200", "raid5-4x-x25e", "null"].map(place);
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(listed[place("ebs-gp3")]["group"], "current-devices");
    assert_eq!(listed[place("x25m-80")]["group"], "earlier-devices");
}

#[test]
fn figures_are_those_of_a_bench_in_virtual_time() {
    let (listed, bench) = (entry("ebs-gp3"), Bench::anywhere());
    let arguments =
        ["disk", "bench", "ebs-gp3", "--virtual", "--hours", "0", "--iodepth", "1", "--block-sizes", "4K"];
    let measured = bench.json(&[&arguments[..], &["--json"]].concat());
    let read =
        measured["rows"].as_array().unwrap().iter().find(|row| row["access"] == "random-read").unwrap();
    let ratio = listed["read_latency_us"].as_f64().unwrap() / read["latency_us_mean"].as_f64().unwrap();
    assert!((0.95..1.05).contains(&ratio), "{ratio}");
}

#[test]
fn a_power_cut_loses_at_most_the_volatile_caches() {
    let volatile = |name: &str| entry(name)["volatile_bytes"].as_u64().unwrap();
    assert_eq!(["pm9a3", "cheetah-15k7", "ebs-gp3", "raid10-4x15k-wb"].map(volatile), [0; 4]);
    assert_eq!(volatile("870evo"), 8 << 20);
    assert_eq!(volatile("raid5-4x-x25e"), 4 * volatile("x25e-32"));
}

#[test]
fn a_flush_that_lies_is_told() {
    let bench = Bench::anywhere();
    let text =
        "[stacks.liar]\nlayer = \"fault\"\nlying_flush = \"1 us\"\non = \"x25m-80\"\nsize = \"1 GiB\"\n";
    bench.write("mine.toml", text);
    let shown = bench.text(&["disk", "show", "liar", "--stacks", "mine.toml"]);
    assert!(
        shown.contains("a power cut may lose                           also flushed writes\n"),
        "{shown}"
    );
}

#[test]
fn a_terminal_gets_one_line_for_each() {
    let text = Bench::anywhere().text(&["disk", "list"]);
    let line = text.lines().find(|line| line.starts_with("870evo ")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[..5], ["870evo", "flash", "2021", "1", "TB"]);
    assert!(line.ends_with("  up to 8 MiB unflushed"), "{line}");
    assert!(text.lines().all(|line| line.len() <= 110), "{text}");
}
