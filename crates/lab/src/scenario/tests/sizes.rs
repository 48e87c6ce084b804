//! The size of stacks without one, and the part that the data fill.

use super::*;

const MIB: u64 = 1 << 20;

/// The good scenario, whose stacks have no size, and one more line of tables.
fn without_sizes(more: &str) -> Scenario {
    parsed(
        &GOOD
            .replace("size = \"20 GB\"\n", "")
            .replace("[servers.mariadb]", &format!("{more}\n[servers.mariadb]")),
    )
}

fn sizes(scenario: &Scenario) -> Vec<(&str, u64)> {
    let size = |(name, stack): (&'static str, &StackSpec)| (name, stack.size_bytes() / MIB);
    let names = ["hdd", "iodrive", "more"];
    names.into_iter().filter_map(|name| Some(size((name, scenario.stacks.get(name)?)))).collect()
}

#[test]
fn a_stack_without_a_size_is_half_full_of_the_largest_database() {
    let scenario = without_sizes("");
    // Ten warehouses of 100 MiB, and 160 MiB of an empty server.
    assert_eq!(sizes(&scenario), [("hdd", 2560), ("iodrive", 2560)]);
    let filled = scenario.filled();
    assert!(filled.iter().all(|filled| filled.follows_data && filled.warning().is_none()), "{filled:?}");
    assert!(filled.iter().all(|filled| (0.42..=0.5).contains(&filled.filled_share.unwrap())), "{filled:?}");
    assert_eq!(
        scenario.fill_in_words().unwrap(),
        "1000 MiB of data (10 warehouses), and 160 MiB of the server's own files and redo log"
    );
    let larger = GOOD.replace("size = \"20 GB\"\n", "").replace("warehouses = 10", "warehouses = 100");
    assert_eq!(sizes(&parsed(&larger)), [("hdd", 20 * 1024), ("iodrive", 20 * 1024)]);
}

#[test]
fn a_profile_that_the_matrix_names_without_a_table_is_half_full_too() {
    let text = changed("[\"hdd\", \"iodrive\"]", "[\"hdd\", \"ebs-gp2\", \"drbd-c-1g\", \"x25m-80-used\"]");
    let scenario = parsed(&text);
    for name in ["ebs-gp2", "drbd-c-1g", "x25m-80-used"] {
        assert_eq!(scenario.stacks[name].size_bytes(), 2560 * MIB, "{name}");
    }
    // The rate of this volume follows from what was bought, not from what is emulated.
    let bought = |scenario: &Scenario| {
        let rows = scenario.stacks["ebs-gp2"].explained().parameters.clone();
        rows.into_iter().find(|row| row.key == "capacity").unwrap().value
    };
    assert_eq!(bought(&scenario), "100 GiB");
}

#[test]
fn a_log_that_is_larger_than_usual_counts() {
    let text = GOOD.replace("size = \"20 GB\"\n", "");
    let text = text.replace("innodb_flush_log_at_trx_commit = 1", "innodb_log_file_size = \"1120M\"");
    assert_eq!(sizes(&parsed(&text)), [("hdd", 5 * 1024), ("iodrive", 5 * 1024)]);
}

#[test]
fn a_usual_size_is_never_refused() {
    let check = |table: &str, size_mib: u64| {
        let scenario = without_sizes(&format!("[stacks.more]\n{table}"));
        assert_eq!(scenario.stacks["more"].size_bytes() / MIB, size_mib, "{table}");
    };
    check("layer = \"raid\"\nlevel = 5\nmembers = 4\nchunk = \"1 MiB\"\non = \"x25e-32\"", 2562);
    // A size below decides.
    check(
        "layer = \"raid\"\nlevel = 10\nmembers = 4\non = \"small\"\n[stacks.small]\nprofile = \"null\"\nsize = \"3 GiB\"",
        6144,
    );
    check("layer = \"partition\"\noffset = \"1 GiB\"\non = \"null\"", 2560);
    check(
        "layer = \"partition\"\noffset = \"1 GiB\"\non = \"small\"\n[stacks.small]\nprofile = \"null\"\nsize = \"2 GiB\"",
        1024,
    );
    // The drive has no more.
    check("profile = \"x25m-80\"\ndata_space = \"2 GB\"\nraw_capacity = \"2.2 GB\"", 1907);
    check("layer = \"ssd-cache\"\npolicy = \"write-around\"\non = \"hdd-7200\"\nfast = \"x25m-80\"", 2560);
    check(
        "layer = \"ssd-cache\"\npolicy = \"write-around\"\ncache = \"9 GiB\"\non = \"hdd-7200\"\nfast = \"x25m-80\"",
        2560,
    );
}

#[test]
fn a_size_that_is_not_half_full_says_why() {
    let why = |text: &str| parsed(text).filled()[0].why.clone();
    let text = GOOD.replace("size = \"20 GB\"\n", "");
    assert_eq!(why(&text), "no `size` is given: about half full");
    let few = text.replace("warehouses = 10", "warehouses = 1");
    assert_eq!(
        why(&few.replace("kind = \"mariadb\"", "kind = \"sqlite\"").replace("innodb_", "x_")),
        "no `size` is given: the smallest size"
    );
    let small = "profile = \"x25m-80\"\ndata_space = \"2 GB\"\nraw_capacity = \"2.2 GB\"";
    assert_eq!(why(&text.replace("profile = \"hdd-7200\"", small)), "no `size` is given: the whole drive");
    assert_eq!(why(GOOD), "the scenario's 20 GB, in whole blocks");
}

#[test]
fn a_nearly_empty_disk_is_told_with_the_remedy() {
    let warnings = |text: &str| -> Vec<String> {
        parsed(text).filled().iter().filter_map(|filled| filled.warning()).collect()
    };
    let words = "the data fill 6 % of 20 GB: a short-stroked disk and an empty SSD look faster than a full one; \
                 leave `size` out to fill half";
    assert_eq!(warnings(GOOD), [words, words]);
    assert_eq!(warnings(&GOOD.replace("warehouses = 10", "warehouses = 20")).len(), 0);
    assert_eq!(warnings(&GOOD.replace("size = \"20 GB\"\n", "")).len(), 0);
}

#[test]
fn a_disk_that_may_run_full_is_told_with_the_remedy_before_it_is_refused() {
    let of_size = |size: &str| GOOD.replace("size = \"20 GB\"", &format!("size = \"{size}\""));
    let warning = |size: &str| parsed(&of_size(size)).filled()[0].warning();
    assert_eq!(warning("2000 MiB"), None);
    let words = "the data, the log and the server's own files fill 68 % of 1700 MiB, and the load adds to them: \
                 the disk may run full; leave `size` out to fill half";
    assert_eq!(warning("1700 MiB").as_deref(), Some(words));
    // 1160 MiB of data and of the server's own files, a quarter more to load them, and the file system's 96
    // MiB.
    assert!(Scenario::parse("test", &of_size("1546 MiB"), &BOUNDS).is_ok());
    let expect = "stacks.hdd.size: 1.6 GB is too small for workload `tpcc`: 10 warehouses need at least 1.7 GB to \
                  be loaded; leave `size` out";
    check("20 GB", "1545 MiB", expect);
}

#[test]
fn a_scenario_with_sizes_has_the_hash_that_it_had() {
    assert_eq!(parsed(GOOD).hash(), "a8fdaca8f90b718b");
}
