//! `spindle disk bench`, `clone` and `validate --reference`: the real binary, with the real fio where there
//! are disks.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::emulated_support::Bench;
use crate::{in_check_all, skip, wait_until};
use serde_json::Value;
use spindle_lab::published;

/// Where disks can be emulated and measured.
fn with_fio() -> Option<Bench> {
    if Command::new("fio").arg("--version").output().is_err() {
        return skip("no fio");
    }
    Bench::new()
}

/// The exit code, and the last line on the standard error.
fn complaint(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap(), talk.lines().last().unwrap_or_default().to_owned())
}

#[track_caller]
fn check_refused(bench: &Bench, arguments: &[&str], sentence: &str) {
    let (code, last) = complaint(&mut bench.command(arguments));
    assert_eq!((code, last), (2, format!("spindle: {sentence}")), "{arguments:?}");
}

/// Raw, on a loop device, which is returned.
fn raw_disk(bench: &Bench, profile: &str, name: &str) -> String {
    bench.up(profile, name, &["--file-system", "none"])["device"].as_str().unwrap().to_owned()
}

fn row<'a>(bench: &'a Value, place: &str, access: &str, block_bytes: u64, iodepth: u64) -> Option<&'a Value> {
    bench["rows"].as_array().unwrap().iter().find(|row| {
        row["place"] == place
            && row["access"] == access
            && row["block_bytes"] == block_bytes
            && row["iodepth"] == iodepth
    })
}

#[test]
fn virtual_time_needs_nothing_and_lists_every_figure_of_a_profile() {
    let place = Bench::anywhere();
    let arguments =
        "disk bench hdd-7200 --virtual --iodepth 1 --block-sizes 16K --against hdd-7200 --output out";
    let text = place.text(&arguments.split(' ').collect::<Vec<_>>());
    let last = text.lines().last().unwrap();
    let words: Vec<&str> = last.split(' ').collect();
    assert_eq!((words[1], &words[3..]), ("of", &["within", "25", "%"][..]), "{last}");
    let figures = published::built_in().iter().filter(|figure| figure.profile == "hdd-7200").count();
    let listed = text.lines().filter(|line| line.starts_with("hdd-7200 ")).count();
    assert_eq!(listed, figures, "{text}");
    let records = fs::read_to_string(place.path("out/bench.jsonl")).unwrap();
    let first: Value = serde_json::from_str(records.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["line"], &first["seed"], &first["arm"]),
        (&"header".into(), &1.into(), &"virtual".into())
    );
    let count =
        |kind: &str| records.lines().filter(|line| line.contains(&format!("{{\"line\":\"{kind}\""))).count();
    assert_eq!((count("row"), count("against")), (7, figures));
    let page = fs::read_to_string(place.path("out/bench.html")).unwrap();
    assert!(page.contains(last) && page.len() > 100_000);
}

#[test]
fn each_mistake_gives_one_sentence() {
    let place = Bench::anywhere();
    let bench = |target, more: &[&'static str]| [&["disk", "bench", target][..], more].concat();
    fs::create_dir(place.path("old")).unwrap();
    fs::write(place.path("old/bench.jsonl"), "").unwrap();
    check_refused(
        &place,
        &bench("nul", &[]),
        "`nul` is neither a profile nor an emulated disk that is up nor a block device, directory or file; did you mean `null`?",
    );
    check_refused(
        &place,
        &bench(".", &["--virtual"]),
        "--virtual: `.` is a directory, and only a model has virtual time; name a profile or a stack",
    );
    check_refused(
        &place,
        &bench("null", &["--virtual", "--output", "old"]),
        "--output old: holds the records of a bench already; name another directory",
    );
    check_refused(&place, &bench(".", &["--size", "1 MiB"]), "--size: is 1 MiB, must be at least 16 MiB");
    check_refused(
        &place,
        &bench("null", &["--virtual", "--against", "nowhere.toml"]),
        "--against: nowhere.toml cannot be read: No such file or directory (os error 2)",
    );
    check_refused(
        &place,
        &["disk", "clone", "null", "--name", "mine"],
        "`null` is a profile already; clone a block device, a file, a directory or a disk that is up",
    );
    check_refused(
        &place,
        &["disk", "clone", ".", "--name", "../mine"],
        "--name: a profile cannot be called \"../mine\"; use up to 64 letters, digits, `-`, `_` and `.`",
    );
    check_refused(
        &place,
        &["disk", "validate", "null", "--reference", "nowhere.toml"],
        "--reference: nowhere.toml cannot be read: No such file or directory (os error 2)",
    );
}

/// Measures with a script in the place of fio.
fn check_fio(script: &str, sentence: &str) {
    let place = Bench::anywhere();
    let programs = place.path("programs");
    fs::create_dir(&programs).unwrap();
    let fio = programs.join("fio");
    fs::write(&fio, format!("#!/bin/sh\n[ \"$1\" = --version ] && echo fio-3.33 && exit 0\n{script}\n"))
        .unwrap();
    fs::set_permissions(&fio, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = place.command(&["disk", "bench", ".", "--size", "16 MiB", "--output", "out"]);
    let (code, last) = complaint(command.env("PATH", format!("{}:/usr/bin:/bin", programs.display())));
    assert_eq!(
        (code, last),
        (1, format!("spindle: measuring random read, 4 KiB, iodepth 1, file system: {sentence}"))
    );
    let records = fs::read_to_string(place.path("out/bench.jsonl")).unwrap();
    assert!(records.lines().last().unwrap().starts_with("{\"line\":\"error\""), "{records}");
    let left: Vec<String> = fs::read_dir(place.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("spindle-bench-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_failing_fio_is_quoted_in_one_sentence() {
    check_fio("echo no space >&2; exit 1", "fio failed: `no space`");
    check_fio("echo hello", "fio printed no figures; its last words: `hello`");
    check_fio("kill -9 $$", "fio was killed by signal 9; its last words: none");
    check_fio("echo '{\"jobs\": []}'", "fio's output lacks `total_ios`");
}

#[test]
fn without_fio_the_error_says_how_to_get_it() {
    let place = Bench::anywhere();
    let nothing = place.path("nothing");
    fs::create_dir(&nothing).unwrap();
    let (code, last) = complaint(place.command(&["disk", "bench", "."]).env("PATH", nothing));
    let sentence = "fio is not installed, and it makes the measurements; `spindle doctor` prints the command that installs it";
    assert_eq!((code, last), (1, format!("spindle: {sentence}")));
}

#[test]
fn an_emulated_disk_is_brought_up_measured_and_taken_down() {
    let Some(place) = in_check_all(with_fio) else { return };
    let arguments = "disk bench flash-285us-4ch --size 1GiB --iodepth 1 --block-sizes 16K --seconds 1 --json";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let mut bench = Value::Null;
    // The model says 285. Only fio's bins may take away from it. A busy host adds to it, in some windows.
    wait_until("a median near the model's", || {
        bench = place.json(&arguments);
        let median_us = &row(&bench, "raw", "random-read", 16_384, 1).unwrap()["latency_us_p50"];
        let median_us = median_us.as_f64().unwrap();
        assert!(median_us >= 279.0, "{median_us}");
        median_us < 427.0
    });
    for block_bytes in [1 << 10, 8 << 10, 16 << 10] {
        assert!(row(&bench, "raw", "fsync", block_bytes, 1).is_some(), "{block_bytes}");
    }
    for (access, iodepth) in
        [("random-read", 1), ("random-read", 16), ("random-write", 1), ("random-write", 16)]
    {
        for place in ["raw", "file-system"] {
            assert!(row(&bench, place, access, 16_384, iodepth).is_some(), "{place} {access} {iodepth}");
        }
    }
    let disks = fs::read_dir(place.path("run")).map(|entries| entries.count()).unwrap_or(0);
    assert_eq!(disks, 0, "a disk was left up");
}

#[test]
fn a_device_of_the_user_is_only_read_without_destructive() {
    let Some(place) = in_check_all(with_fio) else { return };
    let file = place.path("data");
    let content = vec![7_u8; 32 << 20];
    fs::write(&file, &content).unwrap();
    let read_only = ["--iodepth", "1", "--block-sizes", "4K", "--seconds", "1", "--json"];
    let bench = place.json(&[&["disk", "bench", "./data"][..], &read_only].concat());
    let rows = bench["rows"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["access"].as_str().unwrap().ends_with("read")));
    assert!(fs::read(&file).unwrap() == content);
    let device = raw_disk(&place, "null", "mine");
    let bench = place.json(&[&["disk", "bench", &device][..], &read_only].concat());
    assert!(row(&bench, "raw", "random-write", 4_096, 1).is_none());
    let written = place.json(&[&["disk", "bench", &device, "--destructive"][..], &read_only].concat());
    assert!(row(&written, "raw", "random-write", 4_096, 1).is_some());
}

#[test]
fn a_mounted_device_is_never_written_raw() {
    let Some(place) = with_fio() else { return };
    let disk = place.up("null", "mine", &[]);
    let device = disk["device"].as_str().unwrap();
    check_refused(
        &place,
        &["disk", "bench", device, "--destructive"],
        &format!(
            "--destructive: {device} cannot be written: Device or resource busy (os error 16); a mounted device must be unmounted first"
        ),
    );
    let mount = disk["mount"].as_str().unwrap();
    check_refused(
        &place,
        &["disk", "bench", "mine", "--destructive"],
        &format!(
            "--destructive: the disk mine is mounted on {mount}; without the flag, it is written in a file there"
        ),
    );
}

/// A clone is measured through FUSE and a loop device on a busy machine, fitted, and run in virtual time.
const CLONE_TOLERANCE: f64 = 0.25;

fn in_virtual_time(place: &Bench, target: &str, output: &str) -> Value {
    let asked = format!(
        "disk bench {target} --virtual --hours 0 --iodepth 1,4,32 --block-sizes 4K,16K \
         --output {output} --json"
    );
    place.json(&asked.split(' ').collect::<Vec<_>>())
}

/// Clones the device. Returns whether the clone is within the tolerance: its rates of those of `original`,
/// and its latencies of the measured ones.
fn is_cloned(place: &Bench, device: &str, original: &Value, name: &str) -> bool {
    place.text(&["disk", "clone", device, "--name", name, "--seconds", "2"]);
    let copy = in_virtual_time(place, &format!("./{name}.toml"), name);
    let mut ratios = Vec::new();
    for (block_bytes, iodepth) in
        [4_096, 16_384].into_iter().flat_map(|size| [1, 4, 32].map(|depth| (size, depth)))
    {
        let rate =
            |bench| row(bench, "raw", "random-read", block_bytes, iodepth).unwrap()["per_second"].as_f64();
        ratios.push(rate(&copy).unwrap() / rate(original).unwrap());
    }
    let validate =
        format!("disk validate ./{name}.toml --size 1GiB --reference {name}.reference.toml --json");
    let agreement = place.json(&validate.split(' ').collect::<Vec<_>>());
    assert!(agreement["demerit_share"].as_f64().is_some(), "{agreement}");
    // The tail of the measurement has the stalls of a busy host, which a clone has not. The demerit weighs
    // the tail most.
    let quantiles = agreement["quantiles_us"].as_array().unwrap().iter();
    let rows: Vec<_> = quantiles.map(|row| [0, 1, 2].map(|column| row[column].as_f64().unwrap())).collect();
    let middle = rows.iter().filter(|[quantile, ..]| (0.25..=0.75).contains(quantile));
    let before = ratios.len();
    ratios.extend(middle.map(|[_, measured_us, clone_us]| clone_us / measured_us));
    assert!(ratios.len() > before, "{agreement}");
    println!("clone over original {ratios:.3?}, demerit {} of the mean", agreement["demerit_share"]);
    ratios.iter().all(|ratio| (ratio - 1.0).abs() < CLONE_TOLERANCE)
}

#[test]
fn a_clone_is_as_fast_as_its_original() {
    let Some(place) = in_check_all(with_fio) else { return };
    let device = raw_disk(&place, "flash-285us-4ch", "original");
    let original = in_virtual_time(&place, "flash-285us-4ch --size 1GiB", "original");
    let mut names = (1..).map(|attempt| format!("copy-{attempt}"));
    // On a busy machine a window of two seconds may measure the machine. Another clone then counts.
    wait_until("a clone within the tolerance", || {
        is_cloned(&place, &device, &original, &names.next().unwrap())
    });
}
