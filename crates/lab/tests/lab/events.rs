//! Changes in the measured window: refused before any work, carried out in time, recorded, and told.

use std::path::Path;

use crate::emulated_support;
use crate::in_check_all;
use crate::report_support::browser::Driver;
use crate::run_mock::{Bench, GOOD, scenario};
use spindle_lab::record::{EventView, Measurement, Trial};
use spindle_lab::report::{self, Format, render};

/// A mock at 100 transactions a second, with these events.
fn with_events(measure: &str, events: &str) -> String {
    let text = scenario(2, GOOD, measure).replace("latency_us = 500", "latency_us = 500\nrate = 100");
    format!("{text}\n{events}")
}

const TWO_EVENTS: &str = r#"
[[events]]
at = "2 s"
set = { pace = 7 }
[[events]]
at = "1 s"
load = { times = 3 }
"#;

/// Checks that each event took place after its time, and that the parts are the window. Returns the
/// words of the events.
#[track_caller]
fn check_events(measurement: &Measurement, duration_s: f64) -> Vec<&str> {
    for event in &measurement.events {
        let late_s = event.at_s - event.planned_s;
        // A busy machine stalls every process now and then.
        assert!((0.0..1.9).contains(&late_s) && event.took_s < 5.0, "{event:?}");
    }
    let mut times: Vec<f64> = measurement.events.iter().map(|event| event.planned_s).collect();
    times.dedup();
    assert_eq!(measurement.parts.len(), times.len() + 1);
    let counted: u64 = measurement.parts.iter().map(|part| part.latency.count).sum();
    assert_eq!(counted, measurement.latency.count);
    assert!(measurement.parts[0].from_s == 0.0 && measurement.duration_s >= duration_s);
    for (part, next) in measurement.parts.iter().zip(&measurement.parts[1..]) {
        assert!(part.to_s == next.from_s && part.metric.name == measurement.metric.name, "{part:?}");
    }
    measurement.events.iter().map(|EventView { change, .. }| change.as_str()).collect()
}

#[test]
fn a_load_that_trebles_is_seen_in_its_part_of_every_trial_and_in_every_format() {
    let Some(bench) = in_check_all(|| Some(Bench::new(&with_events("4 s", TWO_EVENTS)))) else { return };
    let talk = bench.run(&[], 0);
    assert!(talk.contains("a, trial 1: at 1 s: load × 3"), "{talk}");
    let (_, trials) = bench.read();
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        let measurement = trial.measurement.as_ref().unwrap();
        assert_eq!(check_events(measurement, 4.0), ["load × 3", "pace = 7"]);
        assert_eq!(measurement.events[1].outcome, "pace:  before, then 7");
        let ratio = measurement.parts[1].metric.value / measurement.parts[0].metric.value;
        assert!((1.8..4.5).contains(&ratio), "{ratio}");
        assert!(trial.warnings.iter().all(|warning| warning.name() != "not steady"), "{:?}", trial.warnings);
    }
    let records = report::read(&bench.records()).unwrap();
    let text = render(&records, Format::Text, false).unwrap();
    let text = text.replace("\n  ", " ");
    assert!(text.contains("- at 1.00 s, load × 3, the a: ") && text.contains("; p95 ms "), "{text}");
    let markdown = render(&records, Format::Md, false).unwrap();
    assert!(markdown.contains("## Before and after each event"), "{markdown}");
    assert!(markdown.contains("| a | at 2.00 s | pace = 7 | transactions per second |"), "{markdown}");
    let json: serde_json::Value =
        serde_json::from_str(&render(&records, Format::Json, false).unwrap()).unwrap();
    let row = &json["events"][0];
    assert_eq!((row["change"].as_str(), row["cell"].as_str()), (Some("load × 3"), Some("a")));
    let ratio = row["ratio"]["ratio"].as_f64().unwrap();
    assert!((1.8..4.5).contains(&ratio) && row["ratio"]["interval"]["low"].is_number(), "{row}");
    let cores = row["levels"].as_array().unwrap().iter().find(|level| level["name"] == "cpu busy").unwrap();
    assert!(cores["before"]["mean"].is_number() && cores["ratio"]["interval"]["low"].is_number(), "{cores}");
    assert!(markdown.contains("| a | at 1.00 s | load × 3 | cpu busy |"), "{markdown}");
    check_page(&bench.results().join("report.html"));
}

/// Checks the marks of the events on the charts over time.
fn check_page(page: &Path) {
    let Some(driver) = Driver::start() else { return };
    let browser = driver.open(1280);
    browser.load(page);
    browser.wait_until("return document.querySelectorAll('[id^=chart-time-] svg').length === 2");
    let marks = "return [...document.querySelectorAll('[id^=chart-time-]')].map(chart =>
        [...chart.querySelectorAll('svg text')].map(text => text.textContent).filter(text => /load|pace/.test(text)));";
    let both = ["load × 3", "pace = 7"];
    assert_eq!(browser.run(marks), serde_json::json!([both, both]));
    // Two events of two cells.
    let levels = "return document.querySelectorAll('#event-levels tbody').length";
    assert_eq!(browser.run(levels), serde_json::json!(4));
}

#[test]
fn terminals_that_double_send_twice_as_much() {
    let event = "[[events]]\nat = \"1 s\"\nload = { times = 2 }\n";
    let bench = Bench::new(&(scenario(1, GOOD, "2 s").replace("= 500", "= 3000") + event));
    bench.run(&[], 0);
    for trial in bench.read().1 {
        let measurement = trial.measurement.unwrap();
        check_events(&measurement, 2.0);
        let ratio = measurement.parts[1].metric.value / measurement.parts[0].metric.value;
        assert!((1.3..4.0).contains(&ratio), "{ratio}");
    }
}

#[test]
fn an_event_that_cannot_be_carried_out_fails_its_trial_with_a_sentence() {
    // The mock has the value already.
    let servers = [("good", "pace = \"7\"")];
    let text = scenario(1, &servers, "2 s");
    let bench = Bench::new(&format!("{text}\n[[events]]\nat = \"1 s\"\nset = {{ pace = 7 }}\n"));
    bench.run(&[], 1);
    for trial in bench.read().1 {
        let error = trial.error.unwrap();
        let expect = "the event at 1 s: pace = 7 could not be carried out: `pace` is 7 as before, and not 7";
        assert!(error.contains(expect), "{error}");
    }
}

#[test]
fn a_plan_tells_the_events_in_their_order() {
    let bench = Bench::new(&with_events("3 s", TWO_EVENTS));
    let plan = String::from_utf8(bench.command(&["plan", "test.toml"]).output().unwrap().stdout).unwrap();
    assert!(plan.ends_with("event at 1 s: load × 3\nevent at 2 s: pace = 7\n"), "{plan}");
    let json = bench.command(&["plan", "test.toml", "--json"]).output().unwrap().stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["events"][1], serde_json::json!({"at_s": 2.0, "change": "pace = 7"}));
}

/// The sentence by which the scenario is refused.
#[track_caller]
fn check_refused(text: &str, expect: &str) {
    let bench = Bench::new(text);
    let talk = bench.run(&[], 2);
    assert_eq!(talk.trim().trim_start_matches("spindle: test.toml: "), expect);
    assert!(!bench.records().exists());
}

#[test]
fn an_event_that_no_window_can_have_is_refused_before_any_work() {
    let check = |event: &str, expect: &str| {
        check_refused(&with_events("3 s", &format!("[[events]]\n{event}")), expect);
    };
    check(
        "at = \"3 s\"\nload = { times = 2 }",
        "events[0].at: 3 s is not inside the measured window, which has 3 s",
    );
    check(
        "at = \"1 s\"",
        "events[0]: must change one thing at a time: one of `set`, `load`, `battery`, `member` and `link`",
    );
    check("at = \"1 s\"\nset = {}", "events[0].set: names no setting");
    check(
        "at = \"1 s\"\nload = { times = -2 }",
        "events[0].load.times: -2 is out of range; it can be more than 0, to 100",
    );
    check(
        "at = \"1 s\"\nbattery = { stack = \"card\", state = \"fails\" }",
        "events[0].battery.stack: no cell has its files on `card`; known here: `a` and `b`",
    );
    check(
        "at = \"1 s\"\nbattery = { stack = \"a\", state = \"fails\" }",
        "events[0]: `a` has no part for it: a controller's cache with a battery",
    );
    check(
        "at = \"1 s\"\nlink = { stack = \"a\", state = \"broken\" }",
        "events[0].link.state: `broken` is not known; known here: `breaks` and `is restored`",
    );
    let enough = with_events("3 s", TWO_EVENTS).replace("seed = 3", "enough = 100\nseed = 3");
    check_refused(&enough, "run.enough: can end the window before an event; leave it out");
}

#[test]
fn a_member_that_the_array_cannot_lose_is_refused_before_any_work() {
    let array = "layer = \"raid\"\nlevel = 1\nmembers = 2\non = \"null\"";
    let check = |events: &[(u32, u32, &str)], expect: &str| {
        let text = scenario(1, GOOD, "9 s").replacen("profile = \"null\"", array, 1);
        let events = events.iter().map(|(at, number, state)| {
            format!("[[events]]\nat = \"{at} s\"\nmember = {{ stack = \"a\", number = {number}, state = \"{state}\" }}\n")
        });
        check_refused(&(text + &events.collect::<String>()), expect);
    };
    check(&[(1, 3, "fails")], "events[0]: `a`: `member` 3 is not there: the array has members 1 to 2");
    check(
        &[(1, 1, "fails"), (2, 2, "fails")],
        "events[1]: `a`: `member` 2 cannot die: the array would lose data",
    );
    check(
        &[(1, 1, "is replaced")],
        "events[0]: `a`: `member` 1 works, and only a member that died is replaced",
    );
}

/// A controller with a battery on a mirror of two cards.
const CONTROLLER: &str = r#"[stacks.drive]
profile = "iodrive-160"
[stacks.mirror]
layer = "raid"
level = 1
members = 2
on = "drive"
[stacks.card]
layer = "cache"
policy = "write-back"
cache = "8 MiB"
on = "mirror""#;

const EVENTS_OF_DISKS: &str = r#"
[[events]]
at = "1 s"
battery = { stack = "card", state = "fails" }
[[events]]
at = "1 s"
member = { stack = "card", number = 2, state = "fails" }
[[events]]
at = "2 s"
member = { stack = "card", number = 2, state = "is replaced" }
"#;

#[track_caller]
fn run_one(bench: &emulated_support::Bench, text: &str) -> (Trial, Measurement) {
    bench.write("test.toml", text);
    bench.run_one_tpcc()
}

#[test]
fn a_setting_of_mariadb_and_parts_of_its_disk_change_in_the_window() {
    let Some(bench) = in_check_all(emulated_support::Bench::new) else { return };
    let changes = [("[stacks.card]\nprofile = \"iodrive-160\"", CONTROLLER)];
    let set =
        "[[events]]\nat = \"1 s\"\nset = { innodb_io_capacity = 321, innodb_adaptive_flushing = false }\n";
    let text = emulated_support::scenario(&changes) + set + EVENTS_OF_DISKS;
    let (trial, measurement) = run_one(&bench, &text);
    assert_eq!(
        check_events(&measurement, 3.0),
        [
            "innodb_adaptive_flushing = OFF, innodb_io_capacity = 321",
            "card: battery fails",
            "card: member 2 fails",
            "card: member 2 is replaced",
        ]
    );
    assert_eq!(
        measurement.events[0].outcome,
        "innodb_adaptive_flushing: ON before, then OFF; innodb_io_capacity: 200 before, then 321"
    );
    assert!(trial.error.is_none());
    let wrong = text.replace("innodb_io_capacity", "innodb_io_capacitty");
    bench.write("test.toml", &wrong);
    let talk = bench.run_scenario(&["--fresh"], &[], 2);
    assert!(talk.contains("events[0].set: setting `innodb_io_capacitty`: "), "{talk}");
    bench.assert_clean();
}

#[test]
fn a_setting_of_postgresql_changes_in_the_window_also_if_it_was_set_before() {
    let Some(bench) = in_check_all(emulated_support::Bench::new) else { return };
    let text = emulated_support::scenario(&[
        ("kind = \"mariadb\"", "kind = \"postgresql\""),
        (
            "innodb_flush_method = \"O_DIRECT\", innodb_buffer_pool_size = \"12M\"",
            "synchronous_commit = \"on\", max_wal_size = \"96MB\"",
        ),
    ]);
    let event =
        "[[events]]\nat = \"1 s\"\nset = { synchronous_commit = \"off\", max_wal_size = \"128MB\" }\n";
    let (_, measurement) = run_one(&bench, &(text + event));
    check_events(&measurement, 3.0);
    assert_eq!(
        measurement.events[0].outcome,
        "max_wal_size: 96MB before, then 128MB; synchronous_commit: on before, then off"
    );
    bench.assert_clean();
}
