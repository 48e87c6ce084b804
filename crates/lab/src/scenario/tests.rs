mod memory;
mod more_trials;
mod published;
mod sizes;
mod sweeps;

use super::*;

const GOOD: &str = r#"
title = "A title"
question = "Why?"
[stacks.hdd]
profile = "hdd-7200"
size = "20 GB"
[stacks.iodrive]
profile = "iodrive-160"
size = "20 GB"
[servers.mariadb]
kind = "mariadb"
settings = { innodb_flush_method = "O_DIRECT", innodb_buffer_pool_size = "96M", innodb_flush_log_at_trx_commit = 1 }
[workloads.tpcc]
kind = "tpcc"
warehouses = 10
terminals = 16
[matrix]
stack = ["hdd", "iodrive"]
server = ["mariadb"]
workload = ["tpcc"]
[run]
trials = 3
start = "warm-fast"
warm_up = "10 s"
settle = "5 s"
measure = "30 s"
seed = 1
"#;

const BOUNDS: Bounds = Bounds { memory_bytes: 8 << 30, trust: Trust::MayRun };

/// The good scenario with one text replaced.
#[track_caller]
fn changed(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from:?} is not in the good scenario");
    GOOD.replacen(from, to, 1)
}

#[track_caller]
fn check(from: &str, to: &str, expect: &str) {
    let error = Scenario::parse("test", &changed(from, to), &BOUNDS).unwrap_err();
    assert_eq!(error.to_string(), expect);
}

#[track_caller]
fn parsed(text: &str) -> Scenario {
    Scenario::parse("test", text, &BOUNDS).unwrap()
}

#[test]
fn a_good_scenario_is_read_as_it_is_written() {
    let scenario = parsed(GOOD);
    assert_eq!(scenario.matrix.stack, ["hdd", "iodrive"]);
    assert_eq!(scenario.servers["mariadb"].settings["innodb_flush_log_at_trx_commit"], "1");
    let run = scenario.run;
    assert_eq!((run.trials, run.start, run.seed), (3, StartState::WarmFast, 1));
    assert_eq!((run.warm_up, run.settle, run.measure).2, Duration::from_secs(30));
}

#[test]
fn a_workload_of_transactions_needs_an_engine_that_has_them() {
    check(
        "innodb_flush_method = \"O_DIRECT\"",
        "default-storage-engine = \"MyISAM\"",
        "matrix.workload: `tpcc` is of kind `tpcc`, and server `mariadb` keeps its tables in MyISAM \
         (`default_storage_engine`), which has no transactions",
    );
}

#[test]
fn the_program_of_a_server_is_named_once_and_by_kinds_that_have_one() {
    let check = |keys: &str, expect: &str| check("kind = \"mariadb\"\n", &format!("{keys}\n"), expect);
    check(
        "kind = \"mysql\"\nversion = \"5.5\"\nprogram = \"/x\"",
        "servers.mariadb.version: cannot be there together with `program`: name one of the two",
    );
    check(
        "kind = \"mysql\"\nversion = \"5.4\"",
        "servers.mariadb.version: `5.4` is not known; there is `5.5` and `5.6`",
    );
    check(
        "kind = \"mariadb\"\nprogram = \"mariadbd\"",
        "servers.mariadb.program: mariadbd is not an absolute path",
    );
    check(
        "kind = \"sqlite\"\nversion = \"3\"",
        "servers.mariadb.version: has no meaning for kind = \"sqlite\"; servers that have it are `mariadb`, `mysql` and `postgresql`",
    );
}

#[test]
fn an_unknown_key_is_named_with_its_neighbour() {
    check(
        "measure = ",
        "mesure = ",
        "run.mesure: unknown key; did you mean `measure`? For example `measure = \"30 s\"`",
    );
    check(
        "warehouses",
        "warehouse",
        "workloads.tpcc.warehouse: unknown key; did you mean `warehouses`? For example `warehouses = 10`",
    );
    check(
        "title =",
        "titel =",
        "titel: unknown key; did you mean `title`? For example `title = \"Disk or SSD for the order database\"`",
    );
}

#[test]
fn a_missing_key_is_named() {
    check("measure = \"30 s\"\n", "", "run.measure: is missing; for example `measure = \"30 s\"`");
}

#[test]
fn a_scenario_needs_only_the_keys_that_nobody_can_guess() {
    let mut text = GOOD.to_owned();
    for line in [
        "question = \"Why?\"\n",
        "terminals = 16\n",
        "start = \"warm-fast\"\n",
        "warm_up = \"10 s\"\n",
        "settle = \"5 s\"\n",
        "seed = 1\n",
    ] {
        text = text.replacen(line, "", 1);
    }
    let scenario = parsed(&text);
    let run = scenario.run;
    assert_eq!(
        (run.start, run.warm_up, run.settle, run.seed),
        (StartState::Warm, WarmUp::For(run.measure), Settle::For(Duration::ZERO), 1)
    );
    let WorkloadSpec::Tpcc(spec) = &scenario.workloads["tpcc"] else { panic!("not TPC-C") };
    assert_eq!(spec.terminals, 8);
}

#[test]
fn a_missing_table_is_named() {
    let text = GOOD.split("[run]").next().unwrap();
    assert_eq!(
        Scenario::parse("test", text, &BOUNDS).unwrap_err().to_string(),
        "run: is missing; add the table `[run]` with `measure = \"30 s\"`"
    );
}

#[test]
fn broken_toml_is_told_with_its_line() {
    check("[matrix]", "[matrix", "line 17: not valid TOML: unclosed table, expected `]`");
}

#[test]
fn a_wrong_unit_is_told_with_the_right_ones() {
    check(
        "measure = \"30 s\"",
        "measure = \"30 sec\"",
        "run.measure: `30 sec` is not a duration; write for example \"8.5 ms\" or \"30 s\" (ns, us, ms, s, min, h, d), or \"once\"",
    );
}

#[test]
fn a_number_without_unit_is_refused() {
    let error = Scenario::parse("test", &changed("\"30 s\"", "30"), &BOUNDS).unwrap_err().to_string();
    assert!(error.starts_with("run.measure: ") && error.contains("30"), "{error}");
}

#[test]
fn a_name_that_is_not_defined_is_told_with_its_neighbour() {
    check(
        "[\"hdd\", \"iodrive\"]",
        "[\"hdd\", \"iodriv\"]",
        "matrix.stack: `iodriv` is not defined under [stacks]; did you mean `iodrive`?",
    );
    check(
        "workload = [\"tpcc\"]",
        "workload = [\"sysbench\"]",
        "matrix.workload: `sysbench` is not defined under [workloads]; known here: `tpcc`",
    );
}

#[test]
fn an_axis_must_not_be_empty_or_name_a_thing_twice() {
    check("server = [\"mariadb\"]", "server = []", "matrix.server: is empty; name at least one of `mariadb`");
    check("[\"hdd\", \"iodrive\"]", "[\"hdd\", \"hdd\"]", "matrix.stack: `hdd` is named twice");
}

#[test]
fn a_definition_must_not_appear_twice() {
    let error = Scenario::parse("test", &changed("[stacks.iodrive]", "[stacks.hdd]"), &BOUNDS).unwrap_err();
    assert_eq!(error.to_string(), "line 7: `[stacks.hdd]` is there already; each name is used once");
}

#[test]
fn a_buffer_pool_must_fit_into_memory() {
    check(
        "\"96M\"",
        "\"9G\"",
        "servers.mariadb.settings.innodb_buffer_pool_size: 9G is more than this machine's memory (8192 MiB)",
    );
    check(
        "\"96M\"",
        "\"96 megs\"",
        "servers.mariadb.settings.innodb_buffer_pool_size: `96 megs` is not a size; write for example \"96M\"",
    );
}

#[test]
fn the_data_must_fit_on_the_disk() {
    check(
        "warehouses = 10\n",
        "warehouses = 500\n",
        "stacks.hdd.size: 20 GB is too small for workload `tpcc`: 500 warehouses need at least 65.9 GB to be loaded; leave `size` out",
    );
    check(
        "innodb_flush_log_at_trx_commit = 1",
        "innodb_log_file_size = \"20G\"",
        "stacks.hdd.size: 20 GB is too small for workload `tpcc`: 10 warehouses and a redo log of 21.5 GB need at least 28.4 GB to be loaded; leave `size` out",
    );
}

#[test]
fn a_database_needs_a_file_system() {
    check(
        "size = \"20 GB\"",
        "size = \"20 GB\"\nfile_system = \"none\"",
        "stacks.hdd.file_system: is `none`, but workload `tpcc` runs a database, which needs one",
    );
}

#[test]
fn without_a_number_of_trials_they_are_repeated_until_the_answer_is_known() {
    let until = |text: &str| parsed(&GOOD.replace("trials = 3", text)).run.until;
    let rule = |half_width, at_most_s| Some(Until { half_width, at_most_s });
    assert_eq!(until("trials = 3"), None);
    assert_eq!(until(""), rule(0.1, 2400.0));
    assert_eq!(until("until = \"2.5 %\"\nat_most = \"3 h\""), rule(0.025, 10_800.0));
    let hash = |text: &str| parsed(&GOOD.replace("trials = 3", text)).hash();
    assert_eq!(hash("trials = 3"), hash("until = \"1 %\""), "the finished trials are kept");
    let both = "run.until: decides how many trials there are; leave out either `until` or `trials`";
    check("trials = 3", "trials = 3\nuntil = \"5 %\"", both);
    let range = "run.until: 0 % is out of range; it can be 0.1 % to 100 %";
    check("trials = 3", "until = \"0 %\"", range);
}

#[test]
fn counts_have_bounds() {
    check("trials = 3", "trials = 0", "run.trials: 0 is out of range; it can be 1 to 1000");
    check(
        "terminals = 16",
        "terminals = 0",
        "workloads.tpcc.terminals: 0 is out of range; it can be 1 to 10000",
    );
    check("seed = 1", "seed = -1", "run.seed: -1 is out of range; it can be 0 or more");
}

#[test]
fn durations_have_bounds() {
    check(
        "measure = \"30 s\"",
        "measure = \"0 s\"",
        "run.measure: 0 s is out of range; it can be 100 ms to 24 h",
    );
    check(
        "warm_up = \"10 s\"",
        "warm_up = \"100 h\"",
        "run.warm_up: 4 d 4 h is out of range; it can be 0 s to 24 h",
    );
}

#[test]
fn a_cold_start_has_no_warm_up() {
    check("\"warm-fast\"", "\"cold\"", "run.warm_up: has no meaning with start = \"cold\"; leave it out");
    check("\"warm-fast\"", "\"warm\"", "run.settle: has no meaning with start = \"warm\"; leave it out");
    check(
        "\"warm-fast\"",
        "\"hot\"",
        "run.start: `hot` is not known; known here: `cold`, `warm` and `warm-fast`",
    );
}

#[test]
fn an_unknown_kind_is_told() {
    check(
        "kind = \"mariadb\"",
        "kind = \"mariadbd\"",
        "servers.mariadb.kind: server `mariadbd` is not known; did you mean `mariadb`?",
    );
    check(
        "kind = \"tpcc\"",
        "kind = \"tpc\"",
        "workloads.tpcc.kind: `tpc` is not known; did you mean `tpcc`?",
    );
}

#[track_caller]
fn check_oltp(from: &str, to: &str, expect: &str) {
    let oltp =
        "kind = \"oltp\"\nscript = \"read-write\"\ntables = 4\nrows = 100000\ndistribution = \"uniform\"\n";
    assert!(oltp.contains(from), "{from:?}");
    check("kind = \"tpcc\"\nwarehouses = 10\n", &oltp.replacen(from, to, 1), expect);
}

#[test]
fn an_oltp_workload_names_its_script_and_its_distribution() {
    check_oltp(
        "distribution = \"uniform\"\n",
        "",
        "workloads.tpcc.distribution: is missing; for example `distribution = \"uniform\"`",
    );
    check_oltp(
        "\"uniform\"",
        "\"uniforn\"",
        "workloads.tpcc.distribution: `uniforn` is not known; did you mean `uniform`?",
    );
    check_oltp(
        "\"uniform\"\n",
        "\"uniform\"\nrand_zipfian_exp = 0.8\n",
        "workloads.tpcc.rand_zipfian_exp: is for the distribution `zipfian` only; leave it out",
    );
    check_oltp(
        "\"uniform\"\n",
        "\"zipfian\"\nrand_zipfian_exp = -1.0\n",
        "workloads.tpcc.rand_zipfian_exp: -1 is out of range; it can be 0 to 10",
    );
    check_oltp(
        "\"read-write\"",
        "\"read_write\"",
        "workloads.tpcc.script: `read_write` is not known; did you mean `read-write`?",
    );
    check_oltp("tables = 4", "tables = 0", "workloads.tpcc.tables: 0 is out of range; it can be 1 to 1000");
    check_oltp(
        "rows = 100000",
        "rows = 100000000",
        "stacks.hdd.size: 20 GB is too small for workload `tpcc`: 4 tables of 100000000 rows need at least 120.4 GB to be loaded; leave `size` out",
    );
}

#[test]
fn a_scenario_that_names_no_server_gets_one() {
    let without = GOOD
        .lines()
        .filter(|line| {
            !line.starts_with("[servers") && *line != "kind = \"mariadb\"" && !line.starts_with("settings")
        })
        .filter(|line| !line.starts_with("server = "))
        .collect::<Vec<_>>()
        .join("\n");
    let scenario = parsed(&without);
    let name = &scenario.matrix.server[0];
    assert!(["mariadb", "postgresql", "sqlite"].contains(&name.as_str()), "{name}");
    assert_eq!(scenario.servers[name].kind, *name);
    check("server = [\"mariadb\"]\n", "", "matrix.server: is empty; name at least one of `mariadb`");
}

#[test]
fn a_preset_has_the_settings_of_its_kit_unless_others_are_given() {
    let dbt2 = GOOD
        .replace("warehouses = 10\n", "preset = \"dbt2\"\n")
        .replace("size = \"20 GB\"", "size = \"60 GB\"");
    let scenario = parsed(&dbt2.replace("warm_up = \"10 s\"\n", ""));
    assert_eq!(scenario.run.warm_up.most(), Duration::from_secs(1_000));
    let WorkloadSpec::Tpcc(spec) = &scenario.workloads["tpcc"] else { panic!("not TPC-C") };
    assert_eq!(spec.warehouses, 200);
    check(
        "warehouses = 10\n",
        "",
        "workloads.tpcc: needs `warehouses`, for example `warehouses = 10`, or a `preset`",
    );
    check(
        "warehouses = 10\n",
        "warehouses = 10\nrate = 0\n",
        "workloads.tpcc.rate: 0 is out of range; it can be 1 to 1000000",
    );
    check(
        "warehouses = 10\n",
        "warehouses = 10\nrate = 5\nwait_times = true\n",
        "workloads.tpcc: `rate` has no place beside `wait_times`: the pauses make the rate",
    );
    check(
        "warehouses = 10\n",
        "preset = \"dbt3\"\n",
        "workloads.tpcc.preset: `dbt3` is not known; did you mean `dbt2`?",
    );
}

#[test]
fn workloads_that_differ_in_their_clients_share_a_data_set() {
    let second = "[workloads.reads]\nkind = \"oltp\"\nscript = \"read-only\"\ntables = 4\nrows = 1000\ndistribution = \"uniform\"\nterminals = 8\n";
    let first = second.replace("reads]", "writes]").replace("read-only", "write-only").replace("= 8", "= 16");
    let text = format!("{second}{first}[matrix]");
    let text =
        changed("[matrix]", &text).replace("workload = [\"tpcc\"]", "workload = [\"reads\", \"writes\"]");
    let scenario = parsed(&text);
    let data_set = |name: &str| scenario.workloads[name].data_set();
    assert_eq!(data_set("reads"), data_set("writes"));
    assert_ne!(data_set("reads"), data_set("tpcc"));
}

#[test]
fn a_name_that_cannot_be_a_file_name_is_refused() {
    check(
        "[stacks.hdd]",
        "[stacks.\"../hdd\"]",
        "stacks.\"../hdd\": a name has 1 to 40 letters, digits, `-`, `_` or `.`",
    );
}

/// The good scenario, settling in this way.
fn settling(start: &str, keys: &str) -> String {
    changed(
        "start = \"warm-fast\"\nwarm_up = \"10 s\"\nsettle = \"5 s\"\n",
        &format!("start = \"{start}\"\n{keys}\n"),
    )
}

#[test]
fn a_warm_up_can_end_when_the_cache_is_warm() {
    let words = |keys: &str| parsed(&settling("warm-fast", keys)).run.warm_up.words();
    assert_eq!(words("warm_up = \"until warm\""), "until warm, at most 5 min");
    assert_eq!(words("warm_up = \"until warm\"\nwarm_up_at_most = \"20 s\""), "until warm, at most 20 s");
    assert_eq!(words("warm_up = \"20 s\""), "20 s");
    assert!(parsed(GOOD).run.warms_up() && !parsed(&settling("cold", "")).run.warms_up());
    let untold = parsed(&settling("warm-fast", "warm_up = \"until warm\"").replace("trials = 3\n", "")).run;
    assert_eq!(untold.settle.words(), "until steady, at most 5 min");
    let given = "start = \"warm-fast\"\nwarm_up = \"10 s\"\nsettle = \"5 s\"\n";
    check(
        given,
        "start = \"warm\"\nwarm_up = \"until warm\"\n",
        "run.warm_up: \"until warm\" needs start = \"warm-fast\": on the emulated storage it can take hours; give a time",
    );
    check(
        given,
        "start = \"warm-fast\"\nwarm_up = \"10 s\"\nwarm_up_at_most = \"1 min\"\n",
        "run.warm_up_at_most: has no meaning unless warm_up = \"until warm\"; leave it out",
    );
    check(
        given,
        "start = \"warm-fast\"\nwarm_up = \"until warm\"\nwarm_up_at_most = \"100 ms\"\n",
        "run.warm_up_at_most: 100 ms is out of range; it can be 1 s to 24 h",
    );
}

#[test]
fn a_settling_can_end_when_the_load_is_steady() {
    let check = |start: &str, keys: &str, warm_up_s: u64, words: &str| {
        let run = parsed(&settling(start, keys)).run;
        assert_eq!(
            (run.warm_up.most().as_secs(), run.settle.words().as_str()),
            (warm_up_s, words),
            "{start}, {keys}"
        );
    };
    check("warm-fast", "settle = \"5 s\"", 30, "5 s");
    check("warm-fast", "settle = \"until steady\"", 30, "until steady, at most 5 min");
    check("warm", "settle = \"until steady\"\nsettle_at_most = \"1 min\"", 0, "until steady, at most 1 min");
    check("warm", "settle = \"until steady\"\nwarm_up = \"8 s\"", 8, "until steady, at most 5 min");
    // What is left to the run ends by a rule: the settling as the trials.
    let left = |start: &str, keys: &str| {
        let run = parsed(&settling(start, keys).replace("trials = 3\n", "")).run;
        (run.warm_up.most().as_secs(), run.settle.words())
    };
    let steady = |warm_up_s: u64| (warm_up_s, "until steady, at most 5 min".to_owned());
    assert_eq!(left("warm", ""), steady(0));
    assert_eq!(left("warm-fast", ""), steady(30));
    assert_eq!(left("warm", "settle_at_most = \"2 min\""), (0, "until steady, at most 2 min".to_owned()));
    assert_eq!(left("warm", "warm_up = \"8 s\""), (8, "0 s".to_owned()));
    assert_eq!(left("warm-fast", "settle = \"5 s\""), (30, "5 s".to_owned()));
    assert_eq!(left("cold", ""), (0, "0 s".to_owned()));
    let hash = |keys: &str| parsed(&settling("warm", keys)).hash();
    let longer = hash("settle = \"until steady\"\nsettle_at_most = \"6 min\"");
    assert_ne!(hash("settle = \"until steady\""), longer);
}

#[track_caller]
fn check_settling(start: &str, keys: &str, expect: &str) {
    let mistake = Scenario::parse("test", &settling(start, keys), &BOUNDS).unwrap_err();
    assert_eq!(mistake.to_string(), expect);
}

#[test]
fn a_settling_without_a_meaning_is_refused() {
    let steady = "settle = \"until steady\"";
    check_settling("cold", steady, "run.settle: has no meaning with start = \"cold\"; leave it out");
    check_settling(
        "warm-fast",
        &format!("{steady}\nsettle_at_most = \"59 s\""),
        "run.settle_at_most: 59 s is out of range; it can be 1 min to 24 h",
    );
    check_settling(
        "warm-fast",
        "settle = \"5 s\"\nsettle_at_most = \"2 min\"",
        "run.settle_at_most: has no meaning unless settle = \"until steady\"; leave it out",
    );
    check_settling(
        "warm-fast",
        "settle = \"until it is steady\"",
        "run.settle: `until it is steady` is not a duration; write for example \"8.5 ms\" or \"30 s\" (ns, us, ms, s, min, \
         h, d), or \"until steady\"",
    );
}

#[test]
fn prose_and_the_number_of_trials_do_not_change_the_hash() {
    let hash = parsed(GOOD).hash();
    assert_eq!(parsed(&changed("Why?", "Why not?")).hash(), hash);
    assert_eq!(parsed(&changed("trials = 3", "trials = 5")).hash(), hash);
    assert_eq!(parsed(&format!("# A comment.\n{GOOD}")).hash(), hash);
}

#[test]
fn everything_that_changes_a_result_changes_the_hash() {
    let hash = parsed(GOOD).hash();
    for (from, to) in [
        ("size = \"20 GB\"", "size = \"21 GB\""),
        ("\"96M\"", "\"97M\""),
        ("terminals = 16", "terminals = 17"),
        ("[\"hdd\", \"iodrive\"]", "[\"iodrive\", \"hdd\"]"),
        ("measure = \"30 s\"", "measure = \"31 s\""),
        ("seed = 1", "seed = 2"),
        ("\"O_DIRECT\"", "\"fsync\""),
    ] {
        assert_ne!(parsed(&changed(from, to)).hash(), hash, "{from} -> {to}");
    }
}

/// The good scenario with a workload file of its own.
fn with_workload_file(directory: &Path, weight: u32) -> Scenario {
    let file = format!("\\transaction look {weight}\nSELECT 1;\n\\check one\nSELECT 1;\n");
    std::fs::write(directory.join("look.sql"), file).unwrap();
    let scenario = changed("kind = \"tpcc\"\nwarehouses = 10\n", "kind = \"custom\"\nfile = \"look.sql\"\n");
    std::fs::write(directory.join("test.toml"), scenario).unwrap();
    Scenario::read(&directory.join("test.toml"), &BOUNDS).unwrap()
}

#[test]
fn the_content_of_a_workload_file_is_in_the_hash() {
    let directory = tempfile::tempdir().unwrap();
    let hash = with_workload_file(directory.path(), 1).hash();
    assert_eq!(with_workload_file(directory.path(), 1).hash(), hash);
    assert_ne!(with_workload_file(directory.path(), 2).hash(), hash);
}

#[test]
fn a_mistake_in_a_workload_file_names_file_and_line() {
    let directory = tempfile::tempdir().unwrap();
    with_workload_file(directory.path(), 1);
    let read = |file: &str| {
        std::fs::write(directory.path().join("look.sql"), file).unwrap();
        let error = Scenario::read(&directory.path().join("test.toml"), &BOUNDS).unwrap_err().to_string();
        error.split_once("test.toml: ").unwrap().1.to_owned()
    };
    assert_eq!(
        read("\\transaction look 1\nSELECT :id;\n"),
        "workloads.tpcc.file: look.sql, line 2: `:id` is neither a \\parameter nor \\set before"
    );
    std::fs::remove_file(directory.path().join("look.sql")).unwrap();
    let error = Scenario::read(&directory.path().join("test.toml"), &BOUNDS).unwrap_err().to_string();
    assert!(error.contains("workloads.tpcc.file: ") && error.contains("look.sql cannot be read"), "{error}");
}

#[test]
fn the_workloads_have_the_defaults_of_their_studies() {
    let scenario = parsed(&changed(
        "kind = \"tpcc\"\nwarehouses = 10\nterminals = 16\n",
        "kind = \"wide-tables\"\nmode = \"insert\"\nrows = 1000\n",
    ));
    let WorkloadSpec::WideTables(spec) = &scenario.workloads["tpcc"] else { panic!("wide tables") };
    assert_eq!((spec.tables, spec.terminals, spec.rows()), (40, 40, 1_000));
    check(
        "kind = \"tpcc\"\nwarehouses = 10\n",
        "kind = \"scan\"\n",
        "workloads.tpcc.rows: is missing; for example `rows = 1000000`",
    );
}

#[test]
fn a_storage_engine_is_refused_where_there_are_none() {
    let text = changed(
        "kind = \"tpcc\"\nwarehouses = 10\nterminals = 16\n",
        "kind = \"sql-bench\"\nengine = \"myisam\"\n",
    );
    parsed(&text);
    let text = text.replace("kind = \"mariadb\"", "kind = \"sqlite\"");
    assert_eq!(
        Scenario::parse("test", &text, &BOUNDS).unwrap_err().to_string(),
        "workloads.tpcc.engine: server `mariadb` has no storage engines; leave it out"
    );
}

/// The good scenario with flights over so many servers in the place of TPC-C.
fn sharded(count: u32) -> String {
    changed(
        "kind = \"tpcc\"\nwarehouses = 10\nterminals = 16\n",
        &format!("kind = \"ontime\"\nrows = 20000\nshards = {count}\n"),
    )
    .replace(
        "start = \"warm-fast\"\nwarm_up = \"10 s\"\nsettle = \"5 s\"\nmeasure = \"30 s\"",
        "measure = \"once\"\nat_most = \"1 min\"",
    )
}

#[test]
fn a_database_is_on_several_servers_only_where_each_is_our_own() {
    assert_eq!(parsed(&sharded(2)).workloads["tpcc"].shards(), 2);
    let check = |text: String, expect: &str| {
        let error = Scenario::parse("test", &text, &BOUNDS).unwrap_err();
        assert_eq!(error.to_string(), format!("workloads.tpcc.shards: {expect}"));
    };
    check(sharded(9), "9 is out of range; it can be 1 to 8");
    check(
        sharded(2)
            .replace("kind = \"mariadb\"", "kind = \"sqlite\"")
            .replace("innodb_buffer_pool_size", "cache_size"),
        "server `mariadb` is of kind = \"sqlite\"; servers that hold a database together are `adapter`, `mariadb` and `mysql`",
    );
    let replicas = "[servers.mariadb.replication]\nmode = \"async\"\nreplicas = [\"hdd\"]\n[workloads.tpcc]";
    check(
        sharded(2).replace("[workloads.tpcc]", replicas),
        "server `mariadb` has replicas; a server of several has none",
    );
    check(
        sharded(8).replace("96M", "2G"),
        "8 servers `mariadb` reserve 16384 MiB of memory, more than this machine's 8192 MiB",
    );
}

/// The good scenario with these lines as its server's replication.
fn replicated(lines: &str) -> String {
    changed("[workloads.tpcc]", &format!("[servers.mariadb.replication]\n{lines}\n[workloads.tpcc]"))
}

#[track_caller]
fn check_replication(lines: &str, expect: &str) {
    let error = Scenario::parse("test", &replicated(lines), &BOUNDS).unwrap_err();
    assert_eq!(error.to_string(), format!("servers.mariadb.replication{expect}"));
}

#[test]
fn replicas_lie_on_layouts_or_stacks() {
    let lines = "mode = \"semi-sync\"\nreplicas = [\"hdd\", \"x25m-80\", \"split\"]\nwait_point = \"after-sync\"\n\
                 timeout = \"5 s\"\nsettings = { sync_relay_log = 1 }\n[layouts.split]\ndata = \"hdd\"\nbinlog = \"iodrive\"";
    let scenario = parsed(&replicated(lines));
    let spec = &scenario.servers["mariadb"];
    assert_eq!((spec.settings["log_bin"].as_str(), spec.settings["binlog_format"].as_str()), ("ON", "ROW"));
    let replication = spec.replication.as_ref().unwrap();
    let layouts: Vec<(&str, usize)> =
        replication.replicas.iter().map(|layout| (layout.name.as_str(), layout.mounts.len())).collect();
    assert_eq!(layouts, [("hdd", 1), ("x25m-80", 1), ("split", 2)]);
    assert_eq!(replication.settings["innodb_buffer_pool_size"], "96M");
    assert_eq!(replication.settings["sync_relay_log"], "1");
    assert_eq!(
        (replication.timeout, replication.catch_up),
        (Some(Duration::from_secs(5)), Duration::from_secs(60))
    );
    assert!(scenario.stacks_in_use().contains(&"x25m-80"));
    assert_ne!(scenario.hash(), parsed(GOOD).hash());
}

#[test]
fn impossible_replication_is_refused() {
    let replicas = "replicas = [\"hdd\"]\n";
    let check = |lines: &str, expect: &str| check_replication(&format!("{replicas}{lines}"), expect);
    check("mode = \"sync\"", ".mode: `sync` is not known; did you mean `async`?");
    check(
        "mode = \"async\"\ntimeout = \"1 s\"",
        ".timeout: has no meaning with mode = \"async\"; leave it out",
    );
    check(
        "mode = \"async\"\nwait_point = \"after-sync\"",
        ".wait_point: has no meaning with mode = \"async\"; leave it out",
    );
    check(
        "mode = \"semi-sync\"\ntimeout = \"25 h\"",
        ".timeout: 25 h is out of range; it can be 1 ms to 24 h",
    );
    check("mode = \"async\"\ncatch_up = \"2 h\"", ".catch_up: 2 h is out of range; it can be 0 s to 1 h");
    check(
        "mode = \"async\"\nsettings = { server_id = 3 }",
        ": setting `server_id`: every server of a set has one of its own; remove it",
    );
    check(
        "mode = \"async\"\nsettings = { innodb_buffer_pool_size = \"8150M\" }",
        ": the primary and its replicas reserve 8246 MiB of memory, more than this machine's 8192 MiB",
    );
    check_replication(
        "mode = \"async\"\nreplicas = [\"hdd\", \"ssd\"]",
        ".replicas: `ssd` is not defined under [layouts] or [stacks]; known here: `hdd` and `iodrive`; \
         `spindle disk list` shows the ready-made ones",
    );
    let many = ["\"hdd\""; 9].join(", ");
    check_replication(
        &format!("mode = \"async\"\nreplicas = [{many}]"),
        ".replicas: has 9 names; it can have 1 to 8, one for each replica",
    );
    check_replication(
        "mode = \"async\"\nreplicas = []",
        ".replicas: has 0 names; it can have 1 to 8, one for each replica",
    );
}

#[test]
fn a_kind_without_replication_is_refused() {
    for kind in ["mysql", "postgresql", "sqlite", "mock", "files"] {
        let text = replicated("mode = \"async\"\nreplicas = [\"hdd\"]")
            .replace("kind = \"mariadb\"", &format!("kind = \"{kind}\""));
        let error = Scenario::parse("test", &text, &BOUNDS).unwrap_err();
        let expect = format!(
            "servers.mariadb.replication: kind = \"{kind}\" has no replication that Spindle sets up; those that have are `mariadb`"
        );
        assert_eq!(error.to_string(), expect);
    }
}

#[test]
fn a_real_disk_is_not_shared_by_a_primary_and_its_replica() {
    let real = replicated("mode = \"async\"\nreplicas = [\"hdd\"]").replacen(
        "profile = \"hdd-7200\"\nsize = \"20 GB\"",
        "path = \"/\"",
        1,
    );
    let error = Scenario::parse("test", &real, &BOUNDS).unwrap_err();
    assert_eq!(
        error.to_string(),
        "servers.mariadb.replication.replicas: `hdd` is a real disk, which two servers of a set cannot share"
    );
}

#[test]
fn fixed_work_is_measured_once_within_a_time_limit() {
    let list =
        changed("kind = \"tpcc\"\nwarehouses = 10\nterminals = 16\n", "kind = \"sql-bench\"\ndivisor = 10\n")
            .replace("start = \"warm-fast\"\nwarm_up = \"10 s\"\nsettle = \"5 s\"\n", "start = \"cold\"\n");
    let once = list.replace("measure = \"30 s\"", "measure = \"once\"\nat_most = \"2 h\"");
    let (window, run) = (parsed(&list), parsed(&once));
    assert_eq!((run.run.once, run.run.measure), (true, Duration::from_secs(7_200)));
    assert!(!window.run.once && window.hash() != run.hash());

    let check = |text: &str, expect: &str| {
        assert_eq!(Scenario::parse("test", text, &BOUNDS).unwrap_err().to_string(), expect);
    };
    check(
        &once.replace("at_most = \"2 h\"", ""),
        "run.at_most: is missing; measure = \"once\" needs it, so that a trial ends on slow storage too",
    );
    check(
        &once.replace("\"once\"", "\"30 s\""),
        "run.at_most: has no meaning with `trials`, unless measure = \"once\"; leave it out",
    );
    check(
        &once.replace("seed = ", "enough = 1000\nseed = "),
        "run.enough: has no meaning with measure = \"once\", whose window ends with the work; leave it out",
    );
    check(
        &once.replace("\"once\"", "\"30 s\"").replace("at_most", "at_least"),
        "run.at_least: has a meaning with `enough` only: without it every window has its full length; leave it out",
    );
    check(
        &once.replace("\"once\"", "\"30 s\"").replace("at_most", "enough = 1000\nat_least"),
        "run.at_least: must be at most 30 s, the length of the window",
    );
    check(
        &once.replace("\"2 h\"", "\"30 h\""),
        "run.at_most: 30 h is out of range; it can be 100 ms to 24 h",
    );
    check(
        &once.replace("start = \"cold\"", "start = \"warm\""),
        "run.start: must be \"cold\" with measure = \"once\": workload `tpcc` of kind `sql-bench` is done from its beginning; the kinds that only read are `ontime` and `ssb`",
    );
    check(
        &once.replace("start = \"cold\"", "start = \"warm\"\nwarm_up = \"10 s\""),
        "run.warm_up: has no meaning with measure = \"once\", which is warm after a pass; leave it out",
    );
    check(
        &once.replace("start = \"cold\"", "start = \"warm\"\nsettle = \"until steady\""),
        "run.settle: has no meaning with measure = \"once\", before which there is no load; leave it out",
    );
    let reads = once.replace("kind = \"sql-bench\"\ndivisor = 10\n", "kind = \"ontime\"\nrows = 2000\n");
    for start in ["cold", "warm", "warm-fast"] {
        let run = parsed(&reads.replace("\"cold\"", &format!("\"{start}\""))).run;
        assert_eq!((run.once, run.warm_up.most(), run.settle.most()), (true, Duration::ZERO, Duration::ZERO));
        assert!(!run.warms_up(), "no load goes on before fixed work, from whatever start");
    }
    check(
        &once.replace("kind = \"sql-bench\"\ndivisor = 10\n", "kind = \"scan\"\nrows = 10\n"),
        "run.measure: \"once\" needs fixed work, and workload `tpcc` of kind `scan` has no end; the kinds of fixed work are `insert-growth`, `sql-bench`, `ontime` and `ssb`",
    );
}
