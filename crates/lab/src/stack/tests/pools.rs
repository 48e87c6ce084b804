use super::*;

/// `more` is appended to a stack with a device of 1 GiB and `file_system = "zfs"`.
fn pool(more: &str) -> String {
    format!("[stacks.a]\nprofile = \"null\"\nsize = \"1 GiB\"\nfile_system = \"zfs\"\n{more}")
}

#[test]
fn an_impossible_pool_is_refused_with_the_key() {
    check_stack(
        &pool("log = \"null\"\ncache = \"null\"\nrecordsize = \"16 KiB\"\narc = \"64 MiB\""),
        "a",
        "accepted",
    );
    check_stack(
        &pool("recordsize = \"17 KiB\""),
        "a",
        "s.toml: stacks.a.recordsize: is 17 KiB, must be a power of two, 512 B to 128 KiB",
    );
    check_stack(&pool("arc = \"1 MiB\""), "a", "s.toml: stacks.a.arc: is 1 MiB, must be 16 MiB to 16 GiB");
    check_stack(
        &pool("log = \"b\"\n[stacks.b]\nprofile = \"null\"\nsize = \"1 MiB\""),
        "a",
        "s.toml: stacks.a.log: has 1 MiB, must have 64 MiB or more for ZFS",
    );
    check_stack(
        &pool("log = \"nul\""),
        "a",
        "s.toml: stacks.a.log: there is no stack `nul`; did you mean `null`?",
    );
    check_stack(&pool("log = \"a\""), "a", "s.toml: stacks.a.log: makes a cycle: a on a");
    check_stack(
        &pool("mkfs_options = [\"-q\"]"),
        "a",
        "s.toml: stacks.a.mkfs_options: has no meaning with file_system = \"zfs\"; leave it out",
    );
}

#[test]
fn a_pool_is_at_the_top_and_on_emulated_disks() {
    check_stack(
        &pool("[stacks.b]\nlayer = \"partition\"\non = \"a\""),
        "b",
        "s.toml: stacks.b.on: `a` is a ZFS pool, on which nothing else can be built",
    );
    check_stack(
        "[stacks.a]\npath = \"/\"\nfile_system = \"zfs\"",
        "a",
        "s.toml: stacks.a.file_system: `zfs` belongs to an emulated stack, and this one is a real disk (`path`)",
    );
    check_stack(
        "[stacks.a]\nprofile = \"null\"\nlog = \"null\"",
        "a",
        "s.toml: stacks.a.log: belongs to file_system = \"zfs\"",
    );
    let raw = StackSpec::of_name("barracuda-zfs", None, "none").unwrap_err();
    assert_eq!(
        raw.message,
        "`barracuda-zfs` is a ZFS pool, no device: `spindle disk up barracuda-zfs` mounts it, and then its directory can be measured"
    );
    assert!(StackSpec::of_name("barracuda-zfs", None, StackSpec::usual_file_system("barracuda-zfs")).is_ok());
}

#[test]
fn log_cache_and_memory_of_a_pool_are_part_of_what_it_is() {
    let resolve =
        |more: &str| StackFile::parse("s.toml", &pool(more)).unwrap().resolve("s.toml", "a").unwrap();
    let all = ["", "log = \"x25m-80\"", "cache = \"x25m-80\"", "arc = \"64 MiB\"", "recordsize = \"16 KiB\""];
    for (index, more) in all.iter().enumerate() {
        let stack = resolve(more);
        assert!(all[..index].iter().all(|earlier| resolve(earlier).hash() != stack.hash()), "{more}");
        assert_eq!(
            stack.head.summary.contains("`x25m-80`"),
            more.contains("x25m-80"),
            "{}",
            stack.head.summary
        );
    }
    let logged = resolve("log = \"x25m-80\"");
    assert!(logged.head.summary.contains("intent log (ZIL)"), "{}", logged.head.summary);
    let partition = "[stacks.a]\nlayer = \"partition\"\non = \"null\"\nsize = \"1 GiB\"\nfile_system = \"zfs\"\nlog = \"null\"";
    check_stack(partition, "a", "accepted");
}
