//! `spindle disk show`, formerly `disk profile`: every parameter of a profile or a stack, with where it comes
//! from; and ready-made stacks by name.

use crate::emulated_support::Bench;
use insta::assert_snapshot;

#[test]
fn a_stack_is_shown_with_every_value_and_its_origin() {
    let bench = Bench::anywhere();
    let text = "[stacks.pair]\nlayer = \"replicated\"\nprotocol = \"C\"\nlink_rate = \"110 MB/s\"\n\
        round_trip = \"150 us\"\non = \"null\"\nsize = \"1 GiB\"\n";
    bench.write("mine.toml", text);
    let shown = bench.text(&["disk", "show", "pair", "--stacks", "mine.toml"]);
    assert_snapshot!(shown, @r"
    Replicated by protocol C over 110 MB/s with a round trip of 150 us: A device that answers at once.

    Figures of the model in virtual time:
      random read of 4 KiB                           0 us
      random reads of 4 KiB a second, 128 in flight  -
      write of 4 KiB and flush                       207 us
      a power cut may lose                           nothing

    pair, replicated, 1 GiB
      protocol        C         given
      link_rate       110 MB/s  given
      round_trip      150 us    given
      jitter          20 us     assumption: no text found
      send_buffer     2 MiB     assumption: DRBD tunes it by itself
      timeout         6 s       default
      resync_rate     30 MB/s   assumption: about a third of 1 Gb/s
      active_extents  0         default
      extent_size     4 MiB     default
      survivor        local     default
      not set: outages, congestions
      on: null, null of profile null, 1 GiB
      peer: another of the same as `on`
    ");
}

#[test]
fn keys_without_a_value_are_shown_too() {
    let shown = Bench::anywhere().text(&["disk", "show", "raid10-4x15k-wb"]);
    let line = shown.lines().find(|line| line.contains("  not set: ")).unwrap();
    assert!(line.contains("battery_out_at, battery_back_at"), "{line}");
    assert!(!shown.contains("KiB\n"), "{shown}");
}

#[test]
fn a_disk_below_the_least_of_its_file_system_is_refused_before_mkfs() {
    let up = |more: &[&str]| Bench::anywhere().talk(&[&["disk", "up", "ebs-gp3"], more].concat(), 2);
    assert_snapshot!(up(&["--size", "1M"]), @"spindle: --size: 1 MiB is too small: xfs needs at least 300 MiB");
    assert_snapshot!(
        up(&["--size", "100 MB", "--file-system", "btrfs"]),
        @"spindle: --size: 100 MB is too small: btrfs needs at least 109 MiB"
    );
}

#[test]
fn a_profile_says_the_source_of_each_value() {
    let shown = Bench::anywhere().json(&["disk", "show", "hdd-7200", "--json"]);
    let parameters = shown["parameters"].as_array().unwrap();
    let row = |key: &str| parameters.iter().find(|row| row["key"] == key).unwrap();
    assert_eq!(row("rotation")["value"], "7200 rpm");
    assert!(
        row("rotation")["origin"]["source"].is_string()
            || row("rotation")["origin"]["assumption"].is_string()
    );
    assert_eq!(row("stroke")["origin"], "default");
    assert!(parameters.len() > 20, "{shown}");
    assert!(shown["hash"].as_str().is_some_and(|hash| hash.len() == 16), "{shown}");
}

#[test]
fn a_known_deviation_is_shown() {
    let text = Bench::anywhere().text(&["disk", "profile", "850evo-250"]);
    assert!(text.contains("\nknown deviation, random-read (ublk-disksim: measured 850 EVO, 250 GB, a reader beside): A limit"), "{text}");
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_profile_or_stack() {
    let told = Bench::anywhere().talk(&["disk", "show", "drbd-c-1"], 2);
    assert!(told.contains("there is no profile or stack `drbd-c-1`; did you mean `drbd-c-1g`?"), "{told}");
    let told = Bench::anywhere().talk(&["disk", "up", "nvme"], 2);
    assert!(
        told.ends_with("did you mean `pm9a3`, `pm9a3-u2-1920`, `micron7300-pro` or `660p-1024`?\n"),
        "{told}"
    );
    let told = Bench::anywhere().talk(&["disk", "validate", "floppy"], 2);
    assert!(told.ends_with("`floppy`; `spindle disk list` shows them all\n"), "{told}");
    let told = Bench::anywhere().talk(&["disk", "show", "x25m-8"], 2);
    assert!(told.contains("did you mean `x25m-80`?"), "{told}");
}

#[test]
fn a_ready_made_stack_can_be_named_like_a_profile() {
    let bench = Bench::anywhere();
    let text = "[stacks.drbd]\nprofile = \"drbd-c-1g\"\nsize = \"1 GiB\"\n\
        [stacks.part]\nlayer = \"partition\"\non = \"drbd\"\noffset = \"sector-63\"\n";
    bench.write("mine.toml", text);
    let shown = bench.json(&["disk", "show", "part", "--stacks", "mine.toml", "--json"]);
    let drbd = &shown["below"][0]["stack"];
    assert_eq!((drbd["name"].as_str(), drbd["kind"].as_str()), (Some("drbd"), Some("replicated")));
    assert_eq!(drbd["size_bytes"], 1 << 30);
    assert_eq!(drbd["below"][0]["stack"]["name"], "x25e-32");
    let arguments = ["disk", "bench", "drbd", "--stacks", "mine.toml", "--virtual", "--hours", "0", "--json"];
    let measured = bench.json(&arguments);
    assert!(measured["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{measured}");
}

#[test]
fn the_reference_has_every_layer_and_kind_of_device() {
    let page = Bench::anywhere().text(&["disk", "show", "--reference"]);
    for heading in ["`kind = \"flash\"`", "`layer = \"raid\"`", "`layer = \"ssd-cache\"`, also `\"tier\"`"] {
        assert!(page.contains(&format!("\n### {heading}\n")), "{heading}");
    }
    assert!(
        page.contains("| `jitter` | duration, 0 s to 100 s | 20 us [assumption: no text found] |"),
        "{page}"
    );
}
