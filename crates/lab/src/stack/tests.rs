use std::collections::BTreeMap;

use spindle_model::{Parameters, StackSpec as Tree, Stroke, WriteCache};

use super::{PROFILES, Profile, StackFile, StackSpec, StackTable, built_in_stack, ready_made_names};

const STACKS: &str = r#"
[stacks.slow]
profile = "hdd-7200"
size = "20 GiB"

[stacks.outer]
profile = "hdd-7200"
stroke = "short"
label = "outer cylinders"

[stacks.part]
layer = "partition"
on = "slow"
offset = "1 GiB"
size = "4 GiB"
file_system = "ext4"
"#;

fn profile_with(change: (&str, &str)) -> String {
    let (_, text) = PROFILES.iter().find(|(name, _)| *name == "hdd-7200").unwrap();
    assert!(text.contains(change.0), "{change:?}");
    let changed = text.replacen(change.0, change.1, 1);
    Profile::parse("my.toml", "my", &changed)
        .map(|_| "accepted".to_owned())
        .unwrap_or_else(|error| error.to_string())
}

fn check_profile(change: (&str, &str), expect: &str) {
    assert_eq!(profile_with(change), expect);
}

fn check_stack(text: &str, name: &str, expect: &str) {
    let resolved = StackFile::parse("s.toml", text).and_then(|file| file.resolve("s.toml", name));
    assert_eq!(resolved.map(|_| "accepted".to_owned()).unwrap_or_else(|error| error.to_string()), expect);
}

#[test]
fn every_built_in_profile_is_valid_and_says_what_it_assumes() {
    for (name, _) in PROFILES {
        let profile = Profile::find(name).unwrap();
        assert!(!profile.summary.is_empty());
        assert_eq!(profile.assumptions.is_empty(), profile.parameters == Parameters::Null, "{name}");
    }
}

#[test]
fn a_number_without_a_source_is_refused() {
    check_profile(
        (r#", source = "Seagate Barracuda XT: 64 MB""#, ""),
        "my.toml: parameters.cache: needs a `source`, or an `assumption` that says why this value",
    );
}

#[test]
fn an_unverified_source_is_refused() {
    check_profile(
        ("Seagate Barracuda XT: 64 MB", "[UNVERIFIED]"),
        "my.toml: parameters.cache: has an unverified source: say `assumption` instead of `source`",
    );
}

#[test]
fn a_wrong_unit_is_refused() {
    check_profile(
        ("\"8.5 ms\"", "\"8.5 MB\""),
        "my.toml: parameters.seek_average: `8.5 MB` is not a duration; write for example \"8.5 ms\" or \"30 s\" \
         (ns, us, ms, s, min, h)",
    );
}

#[test]
fn a_number_without_a_unit_is_refused() {
    check_profile(
        ("\"8.5 ms\"", "8.5"),
        "my.toml: parameters.seek_average: `8.5` has no unit; write for example \"8.5 ms\"",
    );
}

#[test]
fn a_misspelt_key_is_named_with_the_right_one() {
    check_profile(
        ("seek_average", "seek_avrage"),
        "my.toml: parameters.seek_avrage: is unknown; did you mean `seek_average`?",
    );
}

#[test]
fn a_key_too_many_is_named() {
    let sentence = profile_with(("capacity =", "colour = { value = 1, source = \"x\" }\ncapacity ="));
    assert!(
        sentence.starts_with("my.toml: parameters.colour: is unknown; known are age_limit, cache"),
        "{sentence}"
    );
}

#[test]
fn a_value_out_of_bounds_is_named_with_the_bound() {
    check_profile(
        ("\"7200 rpm\"", "\"72 rpm\""),
        "my.toml: parameters.rotation: is 72 rpm, must be 1000 to 60000 rpm",
    );
}

/// The profile of a drive with an SLC cache, changed.
fn check_slc_profile(change: (&str, &str), expect: &str) {
    let (_, text) = PROFILES.iter().find(|(name, _)| *name == "850evo-250").unwrap();
    let line = text.lines().find(|line| line.starts_with(change.0)).unwrap();
    let parsed = Profile::parse("my.toml", "my", &text.replacen(line, change.1, 1));
    assert_eq!(parsed.map(|_| "accepted".to_owned()).unwrap_or_else(|error| error.to_string()), expect);
}

#[test]
fn an_slc_cache_has_all_of_its_keys_or_none() {
    check_slc_profile(("slc_program", ""), "my.toml: parameters.slc_program: is missing");
    check_slc_profile(
        ("slc_program", "slc_progam = { value = \"1 us\", source = \"x\" }"),
        "my.toml: parameters.slc_progam: is unknown; did you mean `slc_program`?",
    );
}

#[test]
fn an_slc_cache_that_does_not_fit_is_refused_with_the_key() {
    check_slc_profile(
        ("slc_static", "slc_static = { value = \"30 GB\", source = \"x\" }"),
        "my.toml: parameters.slc_static: is 30000000000 bytes, must be at most 6225000000 bytes: one part in 3 \
         (`cell_bits`) of the spare space that `gc_high_watermark` leaves",
    );
}

#[test]
fn read_retries_have_both_keys_or_none() {
    let with = |keys: &str| profile_with(("capacity =", &format!("{keys}\ncapacity =")));
    let share = "read_retries = { value = \"0.8 %\", source = \"x\" }";
    let rotations = "retry_rotations = { value = 5, source = \"x\" }";
    assert_eq!(with(&format!("{share}\n{rotations}")), "accepted");
    assert_eq!(with(share), "my.toml: parameters.retry_rotations: is missing");
    assert_eq!(with(rotations), "my.toml: parameters.read_retries: is missing");
    assert_eq!(
        with(&format!("{rotations}\n{}", share.replace("0.8 %", "0 %"))),
        "my.toml: parameters.read_retries: is 0 reads of a million, must be 1 to 1000000 reads of a million"
    );
}

#[test]
fn broken_toml_is_named_with_its_line() {
    let sentence = profile_with(("kind = \"disk\"", "kind = \"tape\""));
    assert!(sentence.starts_with("my.toml, line 4: unknown variant `tape`"), "{sentence}");
}

#[test]
fn a_missing_profile_lists_the_near_names() {
    check_stack(
        "[stacks.a]\nprofile = \"x25m\"",
        "a",
        &format!(
            "s.toml: stacks.a.profile: there is no profile `x25m`; did you mean `x25m-80`?; there are {}, \
             or give the path of a .toml file",
            PROFILES.map(|(name, _)| name).join(", ")
        ),
    );
}

#[test]
fn a_missing_file_is_named() {
    check_stack(
        "[stacks.a]\nprofile = \"./no.toml\"",
        "a",
        "s.toml: stacks.a.profile: ./no.toml: the profile cannot be read: No such file or directory (os error 2)",
    );
}

#[test]
fn a_cycle_is_shown() {
    check_stack(
        "[stacks.a]\nlayer = \"partition\"\non = \"b\"\n[stacks.b]\nlayer = \"partition\"\non = \"a\"",
        "a",
        "s.toml: stacks.a.on: makes a cycle: a on b on a",
    );
}

/// A device `s0`, and as many layers on it, each with this text between its name and the next.
fn layers(count: usize, layer: impl Fn(usize) -> String) -> String {
    let device = "[stacks.s0]\nprofile = \"null\"\nsize = \"1 GB\"\n".to_owned();
    (1..=count).fold(device, |text, index| format!("{text}[stacks.s{index}]\n{}\n", layer(index - 1)))
}

fn partition_of(below: usize) -> String {
    format!("layer = \"partition\"\non = \"s{below}\"")
}

#[test]
fn a_stack_that_doubles_in_every_layer_is_refused_before_it_is_built() {
    let mirrored = |below| format!("layer = \"raid\"\nlevel = 1\nmembers = 2\non = \"s{below}\"");
    let file = StackFile::parse("s.toml", &layers(8, mirrored)).unwrap();
    file.resolve("s.toml", "s8").unwrap();
    check_stack(
        &layers(15, mirrored),
        "s15",
        "s.toml: stacks.s15.on: makes the whole stack larger than 256 devices",
    );
}

#[test]
fn a_stack_is_at_most_sixteen_deep() {
    let file = StackFile::parse("s.toml", &layers(15, partition_of)).unwrap();
    file.resolve("s.toml", "s15").unwrap();
    for count in [16, 1_000, 20_000] {
        let expect = format!("s.toml: stacks.s{count}.on: makes the whole stack more than 16 stacks deep");
        check_stack(&layers(count, partition_of), &format!("s{count}"), &expect);
    }
}

#[test]
fn a_file_without_an_end_is_no_profile() {
    check_stack(
        "[stacks.a]\nprofile = \"/dev/zero\"",
        "a",
        "s.toml: stacks.a.profile: /dev/zero: the profile cannot be read: it has more than 1048576 bytes",
    );
}

#[test]
fn a_stack_larger_than_its_drive_is_refused() {
    check_stack(
        "[stacks.a]\nprofile = \"x25m-80\"\nsize = \"1 TB\"",
        "a",
        "s.toml: stacks.a.size: is 1000000000000 bytes, must be at most the drive's capacity, 80000000000 bytes",
    );
}

#[test]
fn an_unknown_key_of_a_stack_is_refused() {
    check_stack(
        "[stacks.a]\nprofile = \"null\"\ncolour = \"red\"",
        "a",
        "s.toml: stacks.a.colour: is unknown; known are profile, layer, on, size, file_system, mkfs_options, \
         mount_options, path, destroy_content, label",
    );
}

#[test]
fn a_stroke_needs_an_arm() {
    check_stack(
        "[stacks.a]\nprofile = \"null\"\nstroke = \"short\"",
        "a",
        "s.toml: stacks.a.stroke: is unknown; known are profile, layer, on, size, file_system, mkfs_options, \
         mount_options, path, destroy_content, label",
    );
}

#[test]
fn a_size_that_is_no_size_is_refused() {
    check_stack(
        "[stacks.a]\nprofile = \"null\"\nsize = \"20 GO\"",
        "a",
        "s.toml: stacks.a.size: `20 GO` is not a size in whole bytes; write for example \"20 GiB\", \"16 KiB\" or \
         \"96M\" (B, KB, MB, GB, TB, KiB, MiB, GiB, TiB)",
    );
}

#[test]
fn tables_become_trees() {
    let file = StackFile::parse("s.toml", STACKS).unwrap();
    let part = file.resolve("s.toml", "part").unwrap();
    assert_eq!((part.size_bytes(), part.head().file_system.as_str()), (4 << 30, "ext4"));
    let Tree::Partition { offset_bytes, below } = part.tree() else { panic!("{part:?}") };
    assert_eq!((*offset_bytes, below.size_bytes), (1 << 30, 20 << 30));
    let outer = file.resolve("s.toml", "outer").unwrap();
    let Tree::Device(Parameters::Disk(disk)) = outer.tree() else { panic!("{outer:?}") };
    assert_eq!((disk.stroke, outer.label()), (Stroke::Short, "outer cylinders"));
}

#[test]
fn a_stack_survives_the_way_to_another_process() {
    let file = StackFile::parse("s.toml", STACKS).unwrap();
    let part = file.resolve("s.toml", "part").unwrap();
    let again = StackFile::parse("text", &part.to_stack_file()).unwrap().resolve("text", "part").unwrap();
    assert_eq!(again, part);
    assert_eq!(again.hash(), part.hash());
    assert_ne!(file.resolve("s.toml", "slow").unwrap().hash(), part.hash());
}

#[test]
fn a_layer_shares_its_size_among_its_members() {
    let text = "[stacks.a]\nlayer = \"raid\"\nlevel = 10\non = \"hdd-7200\"\nmembers = 4\nsize = \"8 GiB\"";
    let stack = StackFile::parse("s.toml", text).unwrap().resolve("s.toml", "a").unwrap();
    let Tree::Raid { members, .. } = stack.tree() else { panic!("{stack:?}") };
    assert_eq!((members.len(), members[0].size_bytes, stack.size_bytes()), (4, 4 << 30, 8 << 30));
    assert!(stack.tree().build(stack.size_bytes(), 1).is_ok());
}

#[test]
fn every_ready_made_stack_can_be_built_and_survives_the_way_to_another_process() {
    for name in ready_made_names() {
        let table = StackTable { size: Some("2 GiB".to_owned()), ..built_in_stack(name).unwrap() };
        let stack = StackSpec::resolve(name, &table, &BTreeMap::new()).unwrap();
        let again = StackFile::parse("text", &stack.to_stack_file()).unwrap().resolve("text", name).unwrap();
        assert_eq!(again, stack);
        let device = stack.tree().build(stack.size_bytes(), 1).unwrap();
        assert_eq!(device.size_bytes(), stack.size_bytes(), "{name}");
    }
}

#[test]
fn a_layer_that_cannot_exist_is_refused_with_the_key() {
    let raid = "[stacks.a]\nlayer = \"raid\"\non = \"null\"\n";
    check_stack(
        &format!("{raid}level = 5\nmembers = 2"),
        "a",
        "s.toml: stacks.a.on: the members are 2, must be 3 to 64",
    );
    check_stack(
        &format!("{raid}level = 10\nmembers = 4\nchunk = \"5 KiB\""),
        "a",
        "s.toml: stacks.a.chunk: is 5120 bytes, must be a power of two, 4096 to 1073741824",
    );
    check_stack(
        &format!("{raid}level = 3\nmembers = 4"),
        "a",
        "s.toml: stacks.a.level: `3` must be one of 0, 1, 5, 6, 10",
    );
    check_stack(
        &format!("{raid}level = 0\nmembers = 4\nchunks = \"64 KiB\""),
        "a",
        "s.toml: stacks.a.chunks: is unknown; did you mean `chunk`?; known are level, members, chunk, missing_members, \
         rebuilding_members, rebuild_least, rebuild_most, rebuild_idle, host_latency, host_write, bitmap_chunk, \
         resync, profile, layer, on, size, file_system, mkfs_options, mount_options, path, destroy_content, label",
    );
    check_stack(
        "[stacks.a]\nlayer = \"mirror\"\non = \"null\"\nprotocol = \"C\"",
        "a",
        "s.toml: stacks.a.link_rate: is missing; about \"110 MB/s\" for 1 Gb/s Ethernet",
    );
    check_stack(
        "[stacks.a]\nlayer = \"throttle\"\non = \"null\"",
        "a",
        "s.toml: stacks.a: limits nothing: give `iops`, `rate`, or one of them for reads or writes",
    );
}

#[test]
fn a_data_space_leaves_the_raw_capacity() {
    let text = "[stacks.a]\nprofile = \"iodrive-160\"\ndata_space = \"96 GB\"\nwrite_cache = \"off\"";
    let stack = StackFile::parse("s.toml", text).unwrap().resolve("s.toml", "a").unwrap();
    let Tree::Device(Parameters::Flash(flash)) = stack.tree() else { panic!("{stack:?}") };
    assert_eq!((flash.capacity_bytes, flash.raw_bytes), (96_000_000_000, 160_000_000_000));
    assert_eq!(flash.write_cache, WriteCache::Off);
}

#[test]
fn a_data_space_without_spare_is_refused() {
    check_stack(
        "[stacks.a]\nprofile = \"iodrive-160\"\ndata_space = \"160 GB\"",
        "a",
        "s.toml: stacks.a.data_space: leaves too little spare: the drive's raw capacity is 160000000000 bytes, must be \
         161600000000 to 16000000000000 bytes",
    );
}

#[test]
fn a_data_space_needs_flash() {
    check_stack(
        "[stacks.a]\nprofile = \"hdd-7200\"\ndata_space = \"96 GB\"",
        "a",
        "s.toml: stacks.a.data_space: is unknown; known are stroke, write_cache, profile, layer, on, size, file_system, \
         mkfs_options, mount_options, path, destroy_content, label",
    );
}

/// `more` is what the stack has besides a device of 1 GiB and `file_system = "zfs"`.
fn pool(more: &str) -> String {
    format!("[stacks.a]\nprofile = \"null\"\nsize = \"1 GiB\"\nfile_system = \"zfs\"\n{more}")
}

#[test]
fn a_pool_that_cannot_exist_is_refused_with_the_key() {
    check_stack(
        &pool("log = \"null\"\ncache = \"null\"\nrecordsize = \"16 KiB\"\narc = \"64 MiB\""),
        "a",
        "accepted",
    );
    check_stack(
        &pool("recordsize = \"17 KiB\""),
        "a",
        "s.toml: stacks.a.recordsize: is 17408 bytes, must be a power of two, 512 B to 128 KiB",
    );
    check_stack(
        &pool("arc = \"1 MiB\""),
        "a",
        "s.toml: stacks.a.arc: is 1048576 bytes, must be whole MiB, 16 MiB to 16 GiB",
    );
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
        // To the process that serves its data disk.
        let again = StackFile::parse("text", &stack.to_stack_file()).unwrap().resolve("text", "a").unwrap();
        assert_eq!(again, stack);
        assert_eq!(stack.summary().contains("`x25m-80`"), more.contains("x25m-80"), "{}", stack.summary());
    }
    let logged = resolve("log = \"x25m-80\"");
    assert!(logged.summary().contains("intent log (ZIL)"), "{}", logged.summary());
    let partition = "[stacks.a]\nlayer = \"partition\"\non = \"null\"\nsize = \"1 GiB\"\nfile_system = \"zfs\"\nlog = \"null\"";
    check_stack(partition, "a", "accepted");
}

#[test]
fn a_misspelt_ready_made_stack_is_named_with_the_right_one() {
    let refused = StackSpec::of_name("raid10-4x15k-w", None, "xfs").unwrap_err();
    assert!(refused.message.contains("there is no profile `raid10-4x15k-w`"), "{}", refused.message);
    assert!(refused.message.contains("did you mean `raid10-4x15k-wb`"), "{}", refused.message);
}

#[test]
fn an_array_is_told_what_to_do_after_a_power_cut() {
    let array = |level: u64, more: &str| {
        format!("[stacks.a]\nlayer = \"raid\"\nlevel = {level}\non = \"null\"\nmembers = 4\n{more}")
    };
    check_stack(&array(5, "resync = \"whole\""), "a", "accepted");
    check_stack(&array(10, "resync = \"bitmap\"\nbitmap_chunk = \"4 MiB\""), "a", "accepted");
    check_stack(
        &array(0, "resync = \"whole\""),
        "a",
        "s.toml: stacks.a.resync: has nothing to compare at level 0",
    );
    check_stack(
        &array(5, "resync = \"whole\"\nbitmap_chunk = \"4 MiB\""),
        "a",
        "s.toml: stacks.a.bitmap_chunk: belongs to resync = \"bitmap\"",
    );
}

#[test]
fn what_is_read_ahead_needs_room() {
    let controller = |more: &str| {
        format!(
            "[stacks.a]\nlayer = \"cache\"\npolicy = \"write-back\"\ncache = \"1 MiB\"\non = \"null\"\n{more}"
        )
    };
    check_stack(&controller("read_cache = \"1 MiB\"\nread_ahead = \"128 KiB\""), "a", "accepted");
    check_stack(
        &controller("read_ahead = \"128 KiB\""),
        "a",
        "s.toml: stacks.a.read_ahead: is 131072 bytes, must be at most `read_cache`, 0 bytes, where it is kept",
    );
}
