//! Storage that is against us: options that reach for other files, disks in use, emulators that stand still, images that change under
//! their reader. Always one clear sentence, and nothing is hurt or left behind.

use std::fs;

use crate::emulated_support::{Bench, scenario};

/// The stack of the scenario with these lines more.
fn with_lines(lines: &str) -> String {
    scenario(&[("size = ", &format!("{lines}\nsize = "))])
}

#[track_caller]
fn check_refused(lines: &str, expect: &str) {
    let Some(bench) = Bench::new() else { return };
    let victim = bench.write("victim", "not ours");
    bench.write("test.toml", &with_lines(&lines.replace("VICTIM", victim.to_str().unwrap())));
    let talk = bench.run_scenario(&[], &[], 2);
    let expect = format!("spindle: test.toml: stacks.card.{expect}");
    assert!(talk.starts_with(&expect), "{talk}");
    assert_eq!(fs::read_to_string(victim).unwrap(), "not ours");
    assert!(!bench.path("results").exists(), "work was begun");
    bench.assert_clean();
}

#[test]
fn an_option_that_names_another_file_is_refused_before_it_is_tried() {
    check_refused(
        r#"mkfs_options = ["-d", "name=VICTIM,file"]"#,
        "mkfs_options: `name` is not among the options of mkfs.xfs -d that can be given",
    );
    check_refused(
        "file_system = \"ext4\"\nmkfs_options = [\"-z\", \"VICTIM\"]",
        "mkfs_options: `-z` is not among the options of mkfs.ext4 that can be given",
    );
    check_refused(
        r#"mount_options = ["suid,dev"]"#,
        "mount_options: `suid` is not among the options of mount -t xfs that can be given",
    );
}
