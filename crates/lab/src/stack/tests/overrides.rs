//! Parameters of a profile, or of a ready-made stack, that a stack table sets.

use spindle_model::{Parameters, StackSpec as Tree};

use super::*;
use crate::stack::values::Origin;

fn stack(text: &str) -> StackSpec {
    StackFile::parse("s.toml", text).unwrap().resolve("s.toml", "a").unwrap()
}

fn device(keys: &str) -> String {
    format!("[stacks.a]\nprofile = \"x25m-80\"\n{keys}")
}

/// The assumption about a key, and the row in `spindle disk show`.
#[track_caller]
fn check_marked(text: &str, key: &str, assumption: &str, row: &str) {
    let stack = stack(text);
    let begin = format!("{key} = ");
    let found: Vec<&String> = stack.head().assumptions.iter().filter(|it| it.starts_with(&begin)).collect();
    assert_eq!(found, [assumption]);
    let table = stack.explained().table();
    let found = table.lines().find(|line| line.trim_start().starts_with(&format!("{key} "))).unwrap();
    assert_eq!(found.split_whitespace().collect::<Vec<_>>().join(" "), row);
}

#[test]
fn a_table_sets_any_parameter_of_its_device_and_says_so() {
    let slow = stack(&device("flush_commit = \"20 ms\"\nchannels = 8"));
    let Tree::Device(Parameters::Flash(flash)) = slow.tree() else { panic!("{slow:?}") };
    assert_eq!((flash.flush_commit_ns, flash.channel_count), (20_000_000, 8));
    let summary = &slow.head().summary;
    assert!(
        summary.ends_with(" With channels = 8 instead of 10, flush_commit = 20 ms instead of 2 ms."),
        "{summary}"
    );
    check_marked(
        &device("flush_commit = \"20 ms\""),
        "flush_commit",
        "flush_commit = 20 ms: set by the scenario; the profile has 2 ms",
        "flush_commit 20 ms given; the profile has 2 ms",
    );
}

#[test]
fn the_reason_of_an_override_is_kept() {
    check_marked(
        &device("flush_commit = { value = \"20 ms\", assumption = \"a worn drive\" }"),
        "flush_commit",
        "flush_commit = 20 ms: set by the scenario (a worn drive); the profile has 2 ms",
        "flush_commit 20 ms assumption: a worn drive; the profile has 2 ms",
    );
    check_marked(
        &device("page_read = { value = \"50 us\", source = \"a sheet\" }"),
        "page_read",
        "page_read = 50 us: set by the scenario (source: a sheet); the profile has 25 us",
        "page_read 50 us source: a sheet; the profile has 25 us",
    );
    check_stack(
        &device("flush_commit = { value = \"20 ms\" }"),
        "a",
        "s.toml: stacks.a.flush_commit: needs a `source`, or an `assumption` that says why this value",
    );
}

#[test]
fn an_override_has_the_bounds_and_cross_checks_of_a_profile() {
    check_stack(
        &device("flush_commit = \"2 s\""),
        "a",
        "s.toml: stacks.a.flush_commit: is 2 s, must be 0 s to 1 s",
    );
    check_stack(
        &device("flush_commit = 20"),
        "a",
        "s.toml: stacks.a.flush_commit: `20` has no unit; write for example \"8.5 ms\"",
    );
    check_stack(
        &device("flush_comit = \"20 ms\""),
        "a",
        "s.toml: stacks.a.flush_comit: unknown key; did you mean `flush_commit`?",
    );
    check_stack(
        "[stacks.a]\nprofile = \"hdd-7200\"\nseek_average = \"10 us\"",
        "a",
        "s.toml: stacks.a.seek_average: is 10 us, must be at least `seek_minimum`, 1 ms",
    );
    check_stack(
        "[stacks.a]\nprofile = \"hdd-7200\"\nseek_minimum = \"20 ms\"",
        "a",
        "s.toml: stacks.a.seek_minimum: does not fit the profile, whose `seek_average` is 8.5 ms, must be at least `seek_minimum`, 20 ms",
    );
    check_stack(
        &device("data_space = \"40 GB\"\ncapacity = \"60 GB\""),
        "a",
        "s.toml: stacks.a.data_space: cannot be there together with `capacity`: both set the same parameter",
    );
}

#[test]
fn a_value_that_the_profile_has_already_is_no_override() {
    let plain = stack(&device(""));
    let same = stack(&device("flush_commit = \"2 ms\""));
    assert_eq!((same.hash(), same.head()), (plain.hash(), plain.head()));
    assert_ne!(stack(&device("flush_commit = \"3 ms\"")).hash(), plain.hash());
}

#[test]
fn the_top_layer_of_a_ready_made_stack_takes_values_of_its_own() {
    let slow = "[stacks.a]\nprofile = \"drbd-c-1g\"\nround_trip = \"2 ms\"";
    check_marked(
        slow,
        "round_trip",
        "round_trip = 2 ms: set by the scenario; `drbd-c-1g` has 150 us",
        "round_trip 2 ms given; `drbd-c-1g` has 150 us",
    );
    let summary = stack(slow).head().summary.clone();
    assert!(summary.ends_with(" With round_trip = 2 ms instead of 150 us."), "{summary}");
    let more = stack("[stacks.a]\nprofile = \"raid10-4x15k\"\nmembers = 8");
    assert!(more.head().summary.ends_with(" With members = 8 instead of 4."), "{}", more.head().summary);
}

#[test]
fn a_parameter_of_the_device_below_a_layer_is_sent_to_its_own_table() {
    check_stack(
        "[stacks.a]\nprofile = \"drbd-c-1g\"\nflush_commit = \"20 ms\"",
        "a",
        "s.toml: stacks.a.flush_commit: belongs to the device below this layer, `x25e-32`: write it into a table \
         of its own, [stacks.NAME] with profile = \"x25e-32\", and put the layer on that with on = \"NAME\"",
    );
    check_stack(
        "[stacks.a]\nlayer = \"raid\"\nlevel = 1\nmembers = 2\non = \"b\"\nflush_commit = \"20 ms\"\n\
         [stacks.b]\nprofile = \"x25m-80\"",
        "a",
        "s.toml: stacks.a.flush_commit: belongs to the device below this layer, `b`: write it into [stacks.b]",
    );
    check_stack(
        "[stacks.a]\nprofile = \"drbd-c-1g\"\non = \"b\"\n[stacks.b]\nprofile = \"x25e-32\"\nflush_commit = \"20 ms\"",
        "a",
        "accepted",
    );
}

#[test]
fn a_key_that_a_pool_has_too_is_the_pools_on_a_pool_and_the_disks_elsewhere() {
    let cached = stack("[stacks.a]\nprofile = \"hdd-7200\"\ncache = \"8 MiB\"");
    let row = cached.explained().parameters.iter().find(|row| row.key == "cache").unwrap();
    assert!(matches!(&row.origin, Origin::Override { .. }), "{row:?}");
    let pool = stack("[stacks.a]\nprofile = \"hdd-7200\"\nfile_system = \"zfs\"\ncache = \"x25m-80\"");
    assert!(pool.pool().unwrap().cache.is_some());
}

#[test]
fn one_command_sets_parameters_without_a_file() {
    let set = |key: &str, value: &str| {
        let table = toml::Table::from_iter([(key.to_owned(), value.into())]);
        StackSpec::of_name_with("x25m-80", None, "none", &table)
    };
    let slow = set("flush_commit", "20 ms").unwrap();
    assert_eq!(slow.hash(), {
        let text = device("flush_commit = \"20 ms\"\nfile_system = \"none\"");
        stack(&text).hash()
    });
    let refused = |key: &str, value: &str| set(key, value).unwrap_err().to_string();
    assert_eq!(
        refused("flush_comit", "20 ms"),
        "--set flush_comit: unknown key; did you mean `flush_commit`?"
    );
    assert_eq!(
        refused("size", "20 GB"),
        "--set size: is no parameter of a device or a layer; `spindle disk show NAME` shows those"
    );
}

#[test]
fn a_layers_size_is_rounded_down_to_whole_blocks_of_its_devices() {
    for layer in [
        "layer = \"cache\"\npolicy = \"write-through\"\ncache = \"1 MiB\"",
        "layer = \"throttle\"\nrate = \"1 MB/s\"",
    ] {
        let stack = stack(&format!("[stacks.a]\n{layer}\non = \"null\"\nsize = \"1 GB\""));
        assert_eq!(stack.size_bytes(), 1_000_000_000 / 4096 * 4096);
        assert_eq!(stack.written_size_bytes(), Some(1_000_000_000));
    }
}
