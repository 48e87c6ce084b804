//! The drives of a stack, counted by profile.

use super::*;

#[track_caller]
fn check(stack: &StackSpec, expect: &[(u64, &str)]) {
    let drives = stack.drives();
    let found: Vec<(u64, &str)> =
        drives.iter().map(|drives| (drives.count, drives.facts.profile.as_str())).collect();
    assert_eq!(found, expect);
}

fn built_in(name: &str) -> StackSpec {
    StackSpec::of_name(name, None, StackSpec::usual_file_system(name)).unwrap()
}

#[test]
fn equal_drives_are_counted_together_under_any_layers() {
    check(&built_in("x25m-80"), &[(1, "x25m-80")]);
    check(&built_in("raid10-4x15k-wb"), &[(4, "cheetah-15k7")]);
    check(&built_in("raid5-4x-x25e-controller"), &[(4, "x25e-32")]);
    check(&built_in("drbd-c-1g"), &[(2, "x25e-32")]);
    check(&built_in("x25m-80-used"), &[(1, "x25m-80")]);
}

#[test]
fn drives_of_an_ssd_cache_a_log_and_a_pool_are_there_too() {
    check(&built_in("barracuda-cached"), &[(1, "barracuda-160"), (1, "agility3-60")]);
    check(&built_in("barracuda-logged-cached"), &[(1, "barracuda-160"), (2, "agility3-60")]);
    check(&built_in("barracuda-zfs-log-cache"), &[(1, "barracuda-160"), (2, "agility3-60")]);
}

#[test]
fn a_drive_has_the_size_that_the_stack_uses_of_it() {
    let stack = StackSpec::of_name("iodrive-160-raid0x2", Some("20 GiB"), "xfs").unwrap();
    let drives = stack.drives();
    assert_eq!((drives[0].count, drives[0].size_bytes), (2, 10 << 30));
}

#[test]
fn other_parameters_are_another_drive() {
    let text = "[stacks.a]\nlayer = \"raid\"\nlevel = 0\non = [\"b\", \"x25m-80\"]\n\
        [stacks.b]\nprofile = \"x25m-80\"\nbuffer = \"1 MiB\"\n";
    let stack = StackFile::parse("s.toml", text).unwrap().resolve("s.toml", "a").unwrap();
    check(&stack, &[(1, "x25m-80"), (1, "x25m-80")]);
}
