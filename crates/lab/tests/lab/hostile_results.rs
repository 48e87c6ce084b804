//! Another user plants links, files and directories where a run keeps its results.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use rustix::process::geteuid;

use crate::run_mock::{Bench, GOOD, scenario};
use crate::skip;

/// No account has it.
const SOMEBODY: u32 = 61_400;
const SECRET: &str = "nobody's business";

/// Directories can only be given away by root.
pub(crate) fn as_root() -> Option<()> {
    geteuid().is_root().then_some(()).or_else(|| skip("not root"))
}

fn give_away(path: &Path) {
    chown(path, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
}

fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
}

/// A bench whose run was planned, and a file and a directory that nothing may touch.
fn bench() -> Bench {
    let bench = Bench::new(&scenario(1, GOOD, "100 ms"));
    fs::write(bench.path("victim"), SECRET).unwrap();
    fs::create_dir(bench.path("elsewhere")).unwrap();
    bench
}

#[track_caller]
fn check_untouched(bench: &Bench) {
    assert_eq!(fs::read_to_string(bench.path("victim")).unwrap(), SECRET);
    assert_eq!(fs::read_dir(bench.path("elsewhere")).unwrap().count(), 0);
}

/// `plant` is given the directory of results, which is not there yet.
#[track_caller]
fn check(plant: impl FnOnce(&Path), expect: &str) {
    let bench = bench();
    plant(&bench.results());
    let told = bench.run(&[], 2);
    assert!(told.starts_with("spindle: --output: ") && told.contains(expect), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    check_untouched(&bench);
    bench.check_nothing_left();
}

#[test]
fn a_directory_that_somebody_else_owns_or_may_write_is_refused() {
    let Some(()) = as_root() else { return };
    let make = |path: &Path| fs::create_dir_all(path).unwrap();
    check(
        |results| {
            make(results);
            give_away(results);
        },
        "belongs to user 61400 and not to user 0",
    );
    check(
        |results| {
            make(results);
            open_to_all(results);
        },
        "may be written by other users (mode 777)",
    );
    for inner in ["snapshots", "snapshots/0123456789abcdef"] {
        check(
            |results| {
                make(&results.join(inner));
                give_away(&results.join(inner));
            },
            &format!("{inner} belongs to user 61400"),
        );
        check(
            |results| {
                make(&results.join(inner));
                open_to_all(&results.join(inner));
            },
            &format!("{inner} may be written by other users"),
        );
    }
    for name in ["lock", "records.jsonl", "report.html"] {
        check(
            |results| {
                make(results);
                fs::write(results.join(name), "").unwrap();
                give_away(&results.join(name));
            },
            &format!("{name} belongs to user 61400"),
        );
    }
}

#[test]
fn a_planted_link_is_refused() {
    check(|results| symlink("elsewhere", results).unwrap(), "results is a symbolic link");
    for name in ["lock", "records.jsonl", "report.html"] {
        check(
            |results| {
                fs::create_dir(results).unwrap();
                symlink("../victim", results.join(name)).unwrap();
            },
            &format!("{name} is a symbolic link"),
        );
    }
    for inner in ["snapshots", "snapshots/0123456789abcdef"] {
        check(
            |results| {
                let link = results.join(inner);
                fs::create_dir_all(link.parent().unwrap()).unwrap();
                symlink(results.with_file_name("elsewhere"), link).unwrap();
            },
            &format!("{inner} is a symbolic link"),
        );
    }
}

#[test]
fn a_pipe_in_the_place_of_the_records_is_refused() {
    let plant = |results: &Path| {
        fs::create_dir(results).unwrap();
        assert!(Command::new("mkfifo").arg(results.join("records.jsonl")).status().unwrap().success());
    };
    check(plant, "records.jsonl is not a regular file");
}

#[test]
fn a_planted_link_where_results_go_by_default_is_refused() {
    let Some(()) = as_root() else { return };
    let bench = bench();
    let link = bench.path("spindle-results");
    symlink("elsewhere", &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    let told = bench.talk(&["run", "test.toml"], 2);
    assert!(told.contains("spindle-results belongs to user 61400"), "{told}");
    check_untouched(&bench);
}

#[test]
fn a_link_planted_in_the_place_of_a_draft_is_removed() {
    let bench = bench();
    fs::create_dir(bench.results()).unwrap();
    for draft in ["records.jsonl.new", "report.html.new"] {
        symlink("../victim", bench.results().join(draft)).unwrap();
    }
    bench.run(&[], 0);
    check_untouched(&bench);
    assert_eq!(bench.trials().len(), 2);
}

#[test]
fn everybody_can_read_results_and_only_their_owner_snapshots() {
    let bench = bench();
    bench.run(&[], 0);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&bench.results()), 0o755);
    assert_eq!(mode(&bench.results().join("report.html")), 0o644);
    let snapshots = bench.results().join("snapshots");
    let inner = fs::read_dir(&snapshots).unwrap().map(|entry| entry.unwrap().path());
    for directory in std::iter::once(snapshots.clone()).chain(inner) {
        assert_eq!(mode(&directory), 0o700, "{}", directory.display());
    }
}

#[test]
fn only_our_own_leftovers_of_a_killed_run_are_removed() {
    let Some(()) = as_root() else { return };
    let bench = bench();
    let temporary = bench.temporary();
    // No process has so high a number.
    let [ours, foreign, link] =
        ["aaaaaa", "bbbbbb", "cccccc"].map(|end| temporary.join(format!("spindle-run-4194305-{end}")));
    for directory in [&ours, &foreign] {
        fs::create_dir(directory).unwrap();
    }
    give_away(&foreign);
    symlink(bench.path("elsewhere"), &link).unwrap();
    bench.run(&[], 0);
    let stay = |path: &Path| fs::symlink_metadata(path).is_ok();
    assert_eq!([stay(&ours), stay(&foreign), stay(&link)], [false, true, true]);
}
