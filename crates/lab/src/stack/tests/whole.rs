//! A stack as a whole: its hash, its text for the emulator, its description.

use spindle_model::{Branch, ClosedLoop, Order, VirtualTime, counters_of_all};

use super::*;
use crate::stack::values::Origin;

fn stack(text: &str) -> StackSpec {
    StackFile::parse("s.toml", text).unwrap().resolve("s.toml", "a").unwrap()
}

const ARRAY: &str = "[stacks.a]\nlayer = \"raid\"\nlevel = 1\non = \"b\"\nmembers = 2\nsize = \"1 GiB\"\n\
     missing_members = [1]\nmkfs_options = [\"-K\"]\n[stacks.b]\nprofile = \"null\"\n";

/// A change here restarts every interrupted run from the beginning.
#[test]
fn the_format_behind_the_hash_is_pinned() {
    let array = stack(ARRAY);
    insta::assert_snapshot!(canonical::text(&array), @r#"
    {
      "file_system": "xfs",
      "mkfs_options": [
        "-K"
      ],
      "stack": {
        "below": [
          {
            "kind": "null",
            "parameters": {},
            "size": "1073741824 B"
          },
          {
            "kind": "null",
            "parameters": {},
            "size": "1073741824 B"
          }
        ],
        "layer": "raid",
        "parameters": {
          "chunk": "65536 B",
          "host_latency": "0 ns",
          "host_write": "0 ns",
          "level": 1,
          "missing_members": [
            1
          ],
          "rebuild_idle": "20000000 ns",
          "rebuild_least": "1024000 B/s",
          "rebuild_most": "204800000 B/s",
          "resync": "never"
        },
        "size": "1073741824 B"
      }
    }
    "#);
    assert_eq!(array.hash(), "227b2df7914a5968");
}

#[test]
fn a_hash_is_independent_of_names_and_spelling() {
    let hash = |text: &str| stack(text).hash();
    let array = hash(ARRAY);
    assert_eq!(hash(&ARRAY.replace("stacks.a]", "stacks.a]\nlabel = \"Pair\"")), array);
    assert_eq!(hash(&ARRAY.replace("1 GiB", "1024 MiB")), array);
    assert_eq!(hash(&ARRAY.replace("level = 1\n", "level = 1\nchunk = \"64 KiB\"\n")), array);
    for (from, to) in
        [("1 GiB", "2 GiB"), ("[1]", "[0]"), ("-K", "-q"), ("level = 1\n", "level = 1\nchunk = \"4 KiB\"\n")]
    {
        assert_ne!(hash(&ARRAY.replace(from, to)), array, "{from} -> {to}");
    }
    let tier = |layer: &str| {
        hash(&format!(
            "[stacks.a]\nlayer = \"{layer}\"\npolicy = \"write-around\"\nfast = \"null\"\non = \"null\""
        ))
    };
    assert_eq!(tier("tier"), tier("ssd-cache"));
}

#[test]
fn the_emulator_builds_every_built_in_stack_unchanged() {
    for name in built_in_names() {
        let stack = StackSpec::of_name(name, Some("2 GiB"), StackSpec::usual_file_system(name)).unwrap();
        let Branch { size_bytes, stack: tree } = canonical::parse(&stack.to_served()).unwrap();
        assert_eq!((&tree, size_bytes), (stack.tree(), stack.size_bytes()), "{name}");
        let device = served_device(&stack.to_served(), size_bytes, 1).unwrap();
        assert_eq!(device.size_bytes(), stack.size_bytes(), "{name}");
    }
}

#[test]
fn every_built_in_stack_can_have_the_smallest_usual_size() {
    for name in built_in_names() {
        let table = built_in_stack(name).unwrap();
        let stack = StackSpec::resolve_with(name, &table, &Default::default(), Some(512 << 20)).unwrap();
        assert!(stack.has_usual_size() != table.size.is_some(), "{name}");
        assert!((512 << 20..=1 << 30).contains(&stack.size_bytes()), "{name}: {}", stack.size_bytes());
        assert_eq!(stack.build(1).size_bytes(), stack.size_bytes(), "{name}");
    }
}

#[test]
fn every_part_of_a_built_in_stack_is_counted_under_its_name() {
    for name in built_in_names() {
        let stack = StackSpec::of_name(name, Some("2 GiB"), StackSpec::usual_file_system(name)).unwrap();
        let (outline, counted) = (stack.tree().outline(), counters_of_all(&*stack.build(1)));
        assert_eq!(outline.len(), counted.len(), "{name}: {outline:?}");
    }
    let outline = |name: &str| {
        let places = StackSpec::of_name(name, Some("2 GiB"), "ext4").unwrap().tree().outline();
        places.iter().map(|place| format!("{} {}", place.depth, place.name)).collect::<Vec<_>>()
    };
    let array = ["0 cache", "1 raid", "2 flash 1", "2 flash 2", "2 flash 3", "2 flash 4"];
    assert_eq!(outline("raid5-4x-x25e-controller"), array);
    let logged = ["0 intent-log", "1 ssd-cache", "2 disk", "2 flash (fast)", "1 flash (fast)"];
    assert_eq!(outline("barracuda-logged-cached"), logged);
    assert_eq!(outline("iodrive-160"), ["0 flash"]);
}

#[test]
fn only_drives_called_disks_seek() {
    for name in built_in_names() {
        let stack = StackSpec::of_name(name, Some("2 GiB"), StackSpec::usual_file_system(name)).unwrap();
        let mut driver = VirtualTime::new(stack.build(1));
        let reads = ClosedLoop {
            read_percent: 100,
            size_bytes: 4096,
            queue_depth: 1,
            order: Order::Random,
            span_bytes: 1 << 30,
            flush_after_write: false,
            request_count: 100,
            time_limit_ns: u64::MAX,
            seed: 1,
        };
        reads.run(&mut driver);
        let (outline, counted) = (stack.tree().outline(), counters_of_all(&**driver.device()));
        let is_drive =
            |index: usize| outline.get(index + 1).is_none_or(|next| next.depth <= outline[index].depth);
        for (index, counters) in counted.iter().enumerate().filter(|(index, _)| is_drive(*index)) {
            let is_disk = outline[index].name.starts_with("disk");
            assert_eq!(counters.seeks > 0, is_disk && counters.reads > 0, "{name}: {outline:?} {counted:?}");
        }
    }
}

#[test]
fn the_emulator_refuses_an_unknown_stack() {
    let served = stack(ARRAY).to_served();
    let refusal = |text: &str| served_device(text, 1 << 30, 1).err().unwrap().to_string();
    assert_eq!(
        refusal(&served.replace("\"chunk\"", "\"chunks\"")),
        "chunks: unknown key; did you mean `chunk`?"
    );
    assert_eq!(refusal(&served.replace("\"raid\"", "\"raids\"")), "`raids` is unknown");
    assert!(served_device(&served, 1 << 20, 1).is_err());
}

#[test]
fn every_parameter_is_told_with_where_it_comes_from() {
    let used = stack(
        "[stacks.a]\nlayer = \"aged\"\nfill = \"50 %\"\non = \"b\"\n[stacks.b]\nprofile = \"x25m-80\"\nwrite_cache = \"off\"",
    );
    let explained = used.explained();
    let row = |explained: &Explained, key: &str| {
        let row = explained.parameters.iter().find(|row| row.key == key).unwrap();
        (row.value.clone(), row.origin.clone())
    };
    assert_eq!(row(explained, "fill"), ("50 %".to_owned(), Origin::Given));
    assert_eq!(row(explained, "overwrite"), ("300 %".to_owned(), Origin::Default));
    let drive = &explained.below[0].stack;
    let (value, origin) = row(drive, "write_cache");
    assert_eq!(value, "off");
    assert!(matches!(origin, Origin::Override { instead_of: Some(other), .. } if other == "volatile"));
    assert!(matches!(row(drive, "capacity").1, Origin::Source(_)), "{drive:?}");
    assert_eq!(drive.parameters.len(), 25);
}

#[test]
fn a_pool_is_told_with_its_devices() {
    let pool = StackSpec::of_name("barracuda-zfs-log-cache", None, "zfs").unwrap();
    let explained = pool.explained();
    let record = explained.parameters.iter().find(|row| row.key == "recordsize").unwrap();
    assert_eq!((record.value.as_str(), &record.origin), ("16 KiB", &Origin::Given));
    let below: Vec<(&str, &str)> =
        explained.below.iter().map(|below| (below.key.as_str(), below.stack.name.as_str())).collect();
    assert_eq!(below, [("log", "agility3-1g"), ("cache", "agility3-1g")]);
    assert!(explained.table().contains("cache: another of the same as `log`"), "{}", explained.table());
}

#[test]
fn a_summary_tells_what_is_out_of_order() {
    let check = |keys: &str, expect: &str| {
        let summary = stack(&format!("[stacks.a]\n{keys}\non = \"barracuda-160\"")).head().summary.clone();
        assert!(summary.starts_with(expect), "{summary}");
    };
    let cache = "layer = \"cache\"\npolicy = \"write-back\"\ncache = \"1 MiB\"\n";
    let controller = "A controller with 1 MiB of battery-backed cache, write-back";
    check(cache, &format!("{controller}, on: "));
    check(
        &format!("{cache}battery_out_at = \"0 s\""),
        &format!("{controller} (its battery is out, so it writes through), on: "),
    );
    check(
        &format!("{cache}battery_out_at = \"20 s\"\nbattery_back_at = \"80 s\""),
        &format!(
            "{controller} (its battery is out from 20 s until 80 s, and it writes through meanwhile), on: "
        ),
    );
    let array = "layer = \"raid\"\nlevel = 6\nmembers = 4\nchunk = \"4 KiB\"\n";
    check(array, "RAID 6 of 4, chunk 4 KiB, of: ");
    check(
        &format!("{array}missing_members = [1]\nrebuilding_members = [2]"),
        "RAID 6 of 4, degraded (1 missing, 1 being rebuilt), chunk 4 KiB, of: ",
    );
}
