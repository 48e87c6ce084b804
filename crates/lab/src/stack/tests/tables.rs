use spindle_model::{Layer, Parameters, StackSpec as Tree, Stroke, WriteCache};

use super::*;

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

#[test]
fn an_unknown_profile_is_answered_with_near_names() {
    check_stack(
        "[stacks.a]\nprofile = \"x25m\"",
        "a",
        "s.toml: stacks.a.profile: there is no profile or stack `x25m`; did you mean `x25m-80`, `x25m-160`, \
         `x25m-80-g1` or `x25m-80-used`?",
    );
    check_stack(
        "[stacks.a]\nprofile = \"tape\"",
        "a",
        "s.toml: stacks.a.profile: there is no profile or stack `tape`; `spindle disk list` shows them all",
    );
    check_stack(
        "[stacks.a]\nlayer = \"partition\"\non = \"tape\"",
        "a",
        "s.toml: stacks.a.on: there is no stack `tape`; known here: `a`; `spindle disk list` shows the ready-made ones",
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

/// A device `s0` and `count` layers on it. `layer` gives the text of each layer, by the index of the stack
/// below it.
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
        "s.toml: stacks.a.size: is 1 TB, must be at most the drive's capacity, 80 GB",
    );
}

#[test]
fn an_unknown_key_of_a_stack_is_refused() {
    check_stack(
        "[stacks.a]\nprofile = \"null\"\ncolour = \"red\"",
        "a",
        "s.toml: stacks.a.colour: unknown key; known here: `profile`, `layer`, `on`, `size`, \
         `file_system`, `mkfs_options`, `mount_options`, `path`, `destroy_content` and `label`",
    );
}

#[test]
fn a_stroke_needs_an_arm() {
    check_stack(
        "[stacks.a]\nprofile = \"null\"\nstroke = \"short\"",
        "a",
        "s.toml: stacks.a.stroke: unknown key; known here: `profile`, `layer`, `on`, `size`, \
         `file_system`, `mkfs_options`, `mount_options`, `path`, `destroy_content` and `label`",
    );
}

#[test]
fn an_invalid_size_is_refused() {
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
    let Tree::Layer(Layer::Partition(partition), below) = part.tree() else { panic!("{part:?}") };
    assert_eq!((partition.offset_bytes, below[0].size_bytes), (1 << 30, 20 << 30));
    let outer = file.resolve("s.toml", "outer").unwrap();
    let Tree::Device(Parameters::Disk(disk)) = outer.tree() else { panic!("{outer:?}") };
    assert_eq!((disk.stroke, outer.label()), (Stroke::Short, "outer cylinders"));
}

#[test]
fn a_layer_shares_its_size_among_its_members() {
    let text = "[stacks.a]\nlayer = \"raid\"\nlevel = 10\non = \"hdd-7200\"\nmembers = 4\nsize = \"8 GiB\"";
    let stack = StackFile::parse("s.toml", text).unwrap().resolve("s.toml", "a").unwrap();
    let Tree::Layer(Layer::Raid(_), members) = stack.tree() else { panic!("{stack:?}") };
    assert_eq!((members.len(), members[0].size_bytes, stack.size_bytes()), (4, 4 << 30, 8 << 30));
    assert!(stack.tree().build(stack.size_bytes(), 1).is_ok());
}

#[test]
fn an_impossible_layer_is_refused_with_the_key() {
    let raid = "[stacks.a]\nlayer = \"raid\"\non = \"null\"\n";
    check_stack(
        &format!("{raid}level = 5\nmembers = 2"),
        "a",
        "s.toml: stacks.a.on: has 2 members, must have 3 to 64",
    );
    check_stack(
        &format!("{raid}level = 10\nmembers = 4\nchunk = \"5 KiB\""),
        "a",
        "s.toml: stacks.a.chunk: is 5 KiB, must be a power of two, 4 KiB to 1 GiB",
    );
    check_stack(
        &format!("{raid}level = 3\nmembers = 4"),
        "a",
        "s.toml: stacks.a.level: is 3, must be 0, 1, 5, 6 or 10",
    );
    check_stack(
        &format!("{raid}level = 0\nmembers = 4\nchunks = \"64 KiB\""),
        "a",
        "s.toml: stacks.a.chunks: unknown key; did you mean `chunk`?",
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
        "s.toml: stacks.a.data_space: does not fit the profile, whose `raw_capacity` is 160 GB, must be 161600 MB to 16 TB",
    );
}

#[test]
fn a_unit_for_a_key_is_answered_with_the_parameter_of_this_unit() {
    check_stack(
        "[stacks.a]\nprofile = \"hdd-7200\"\nrpm = 5400",
        "a",
        "s.toml: stacks.a.rpm: unknown key; did you mean `rotation`?",
    );
}

#[test]
fn a_data_space_needs_flash() {
    check_stack(
        "[stacks.a]\nprofile = \"hdd-7200\"\ndata_space = \"96 GB\"",
        "a",
        "s.toml: stacks.a.data_space: unknown key; `spindle disk show hdd-7200` shows the keys that it can have",
    );
}

#[test]
fn a_misspelt_ready_made_stack_is_named_with_the_right_one() {
    let refused = StackSpec::of_name("raid10-4x15k-w", None, "xfs").unwrap_err();
    assert!(refused.message.contains("there is no profile or stack `raid10-4x15k-w`"), "{}", refused.message);
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
fn read_ahead_needs_room() {
    let controller = |more: &str| {
        format!(
            "[stacks.a]\nlayer = \"cache\"\npolicy = \"write-back\"\ncache = \"1 MiB\"\non = \"null\"\n{more}"
        )
    };
    check_stack(&controller("read_cache = \"1 MiB\"\nread_ahead = \"128 KiB\""), "a", "accepted");
    check_stack(
        &controller("read_ahead = \"128 KiB\""),
        "a",
        "s.toml: stacks.a.read_ahead: is 128 KiB, must be at most `read_cache`, 0 B, where it is kept",
    );
}

#[test]
fn a_ready_made_stack_accepts_a_size_a_label_and_a_file_system() {
    let text = "[stacks.drbd]\nprofile = \"drbd-c-1g\"\nsize = \"2 GiB\"\nlabel = \"Mine\"\nfile_system = \"ext4\"\n\
         [stacks.slower]\nprofile = \"drbd-c-1g\"\nround_trip = \"1 ms\"\n[stacks.part]\nlayer = \"partition\"\non = \"drbd\"";
    let file = StackFile::parse("s.toml", text).unwrap();
    let drbd = file.resolve("s.toml", "drbd").unwrap();
    let ready_made = StackSpec::of_name("drbd-c-1g", Some("2 GiB"), "xfs").unwrap();
    assert_eq!(drbd.tree(), ready_made.tree());
    assert_eq!(
        (drbd.label(), drbd.head().file_system.as_str(), drbd.size_bytes()),
        ("Mine", "ext4", 2 << 30)
    );
    let slower = file.resolve("s.toml", "slower").unwrap();
    let Tree::Layer(Layer::Replicated(link), _) = slower.tree() else { panic!("{slower:?}") };
    assert_eq!((link.round_trip_ns, link.bytes_per_s, slower.label()), (1_000_000, 110_000_000, "slower"));
    let part = file.resolve("s.toml", "part").unwrap();
    assert_eq!(&part.tree().branches()[0].stack, drbd.tree());
    check_stack(
        "[stacks.a]\nprofile = \"drbd-c-1g\"\nlevel = 5",
        "a",
        "s.toml: stacks.a.level: unknown key; known here: `peer`, `protocol`, `link_rate`, `round_trip`, `jitter`, `send_buffer`, \
         `outages`, `congestions`, `timeout`, `resync_rate`, `active_extents`, `extent_size`, `survivor`, `profile`, `layer`, `on`, `size`, `file_system`, \
         `mkfs_options`, `mount_options`, `path`, `destroy_content` and `label`",
    );
}

#[test]
fn the_older_names_of_layers_mean_the_same() {
    let stack = |layer: &str, keys: &str| {
        let text = format!("[stacks.a]\nlayer = \"{layer}\"\non = \"null\"\n{keys}");
        StackFile::parse("s.toml", &text).unwrap().resolve("s.toml", "a").unwrap()
    };
    let tier = "fast = \"null\"\nfast_size = \"1 GiB\"\npolicy = \"write-back\"";
    assert_eq!(stack("tier", tier).tree(), stack("ssd-cache", tier).tree());
    let link = "protocol = \"A\"\nlink_rate = \"1 GB/s\"\nround_trip = \"50 us\"";
    assert_eq!(stack("mirror", link).tree(), stack("replicated", link).tree());
    let assumptions = stack("tier", tier).head().assumptions.clone();
    assert_eq!(
        assumptions[..2],
        ["block = 16 KiB: the page of InnoDB", "writeback = 10 %: bcache's, from memory"]
    );
    // Assumptions about write-back do not appear with another policy.
    assert_eq!(stack("tier", &tier.replace("back", "around")).head().assumptions.len(), 1);
}

#[test]
fn lists_have_rows_of_values_with_units() {
    let mirror = |more: &str| {
        format!(
            "[stacks.a]\nlayer = \"mirror\"\non = \"null\"\nprotocol = \"A\"\nlink_rate = \"1 GB/s\"\nround_trip = \"50 us\"\n{more}"
        )
    };
    let file =
        StackFile::parse("s.toml", &mirror("outages = [[\"30 s\", \"5 s\"], [\"1 min\", \"1 s\"]]")).unwrap();
    let stack = file.resolve("s.toml", "a").unwrap();
    let Tree::Layer(Layer::Replicated(link), _) = stack.tree() else { panic!("{stack:?}") };
    let outages: Vec<(u64, u64)> =
        link.outages.iter().map(|outage| (outage.starts_at_ns, outage.duration_ns)).collect();
    assert_eq!(outages, [(30_000_000_000, 5_000_000_000), (60_000_000_000, 1_000_000_000)]);
    check_stack(
        &mirror("outages = [[\"30 s\"]]"),
        "a",
        "s.toml: stacks.a.outages: `[\"30 s\"]` must be a list of entries such as [\"8.5 ms\", \"8.5 ms\"]",
    );
}
