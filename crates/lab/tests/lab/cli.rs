//! The command line as its user meets it: exit code, standard output, standard error.

use std::path::Path;
use std::process::{Command, Output};

use insta::assert_snapshot;

const SCENARIO: &str = include_str!("../../../../scenarios/quickstart-full.toml");

fn text(output: &Output) -> String {
    let mut text = format!("exit code {}\n", output.status.code().unwrap());
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if !bytes.is_empty() {
            text.push_str(&format!("--- {name}\n{}", String::from_utf8_lossy(bytes)));
        }
    }
    text
}

pub(crate) fn run_in(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(arguments)
        .current_dir(directory)
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    text(&output)
}

pub(crate) fn spindle(arguments: &[&str]) -> String {
    run_in(Path::new("."), arguments)
}

/// The quickstart with one text replaced, given to `spindle run`: a mistake must be found before any work.
#[track_caller]
fn with_mistake(from: &str, to: &str) -> String {
    assert!(SCENARIO.contains(from), "{from:?} is not in the quickstart");
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("x.toml"), SCENARIO.replacen(from, to, 1)).unwrap();
    let told = run_in(directory.path(), &["run", "x.toml"]);
    let entries = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(entries, 1, "the run has begun its work");
    told
}

#[test]
fn a_misspelt_key_is_refused() {
    assert_snapshot!(with_mistake("measure =", "mesure ="), @r#"
    exit code 2
    --- stderr
    spindle: x.toml: run.mesure: unknown key; did you mean `measure`? For example `measure = "30 s"`
    "#);
}

#[test]
fn a_wrong_unit_is_refused() {
    let told = with_mistake("settle = \"8 s\"", "settle = \"8 sec\"");
    assert!(
        told.starts_with("exit code 2\n--- stderr\nspindle: x.toml: run.settle: `8 sec` is not a duration"),
        "{told}"
    );
}

#[test]
fn an_unknown_stack_is_refused() {
    assert_snapshot!(with_mistake("[\"hdd\", \"x25m\"", "[\"hdd\", \"x25\""), @r"
    exit code 2
    --- stderr
    spindle: x.toml: matrix.stack: `x25` is not defined under [stacks]; did you mean `x25m`?
    ");
}

#[test]
fn a_run_without_trials_is_refused() {
    assert_snapshot!(with_mistake("trials = 3", "trials = 0"), @r"
    exit code 2
    --- stderr
    spindle: x.toml: run.trials: 0 is out of range; it can be 1 to 1000
    ");
}

#[test]
fn more_data_than_the_disk_holds_is_refused() {
    let told = with_mistake("warehouses = 10", "warehouses = 1000");
    assert!(told.starts_with("exit code 2\n--- stderr\nspindle: x.toml: stacks.hdd.size: "), "{told}");
    assert!(told.contains("too small for workload `tpcc`: 1,000 warehouses need at least"), "{told}");
}

#[test]
fn a_buffer_pool_larger_than_memory_is_refused() {
    let told = with_mistake("\"96M\"", "\"900T\"");
    let place = "spindle: x.toml: servers.mariadb.settings.innodb_buffer_pool_size: 900T is more than this machine's memory";
    assert!(told.starts_with(&format!("exit code 2\n--- stderr\n{place}")), "{told}");
}

#[test]
fn a_setting_that_spindle_decides_is_refused() {
    assert_snapshot!(with_mistake("[servers.mariadb.settings]", "[servers.mariadb.settings]\ndatadir = \"/var/lib/mysql\""), @r"
    exit code 2
    --- stderr
    spindle: x.toml: servers.mariadb.settings: setting `datadir`: the server is private, so Spindle decides this one; remove it
    ");
}

#[test]
fn a_workload_that_the_server_cannot_run_is_refused() {
    assert_snapshot!(with_mistake("kind = \"mariadb\"", "kind = \"mock\""), @r"
    exit code 2
    --- stderr
    spindle: x.toml: matrix.workload: `tpcc` is of kind `tpcc`, but server `mariadb` runs only `mock`
    ");
}

#[test]
fn a_missing_scenario_is_named() {
    assert_snapshot!(spindle(&["plan", "nothing.toml"]), @r"
    exit code 2
    --- stderr
    spindle: nothing.toml: cannot be read: No such file or directory (os error 2)
    ");
}

#[test]
fn contradicting_flags_are_refused() {
    assert_snapshot!(spindle(&["run", "x.toml", "--fresh", "--retry-failed"]), @r"
    exit code 2
    --- stderr
    error: the argument '--fresh' cannot be used with '--retry-failed'

    Usage: spindle run --fresh <SCENARIO>

    For more information, try '--help'.
    ");
}

/// Bad input gives exit code 2 and one sentence, and no work is done.
#[track_caller]
fn check_refused(line: &str, expect: &str) {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    file("a-file", "not records\n");
    file("mock.toml", include_str!("../../../../scenarios/mock.toml"));
    std::fs::create_dir(directory.path().join("results")).unwrap();
    file("results/records.jsonl", "not records\n");
    let told = run_in(directory.path(), &line.split_whitespace().collect::<Vec<_>>());
    let sentence = told.strip_prefix("exit code 2\n--- stderr\n").unwrap_or_else(|| panic!("{line}: {told}"));
    assert_eq!(sentence.lines().next(), Some(expect), "{line}: {told}");
    assert_eq!(
        std::fs::read_dir(directory.path()).unwrap().count(),
        3,
        "{line}: the command has begun its work"
    );
    assert_eq!(sentence.lines().count() == 1, expect.starts_with("spindle: "), "{line}: {told}");
}

#[test]
fn a_load_with_a_bad_option_is_refused() {
    let check = |options: &str, expect: &str| {
        let server = if options.contains("--server") { "" } else { " --server socket:/nowhere" };
        check_refused(&format!("load {options}{server}"), expect);
    };
    check("tpcc --terminals 0", "spindle: --terminals: 0 is out of range; it can be 1 to 10000");
    check("tpcc --terminals 10001", "spindle: --terminals: 10001 is out of range; it can be 1 to 10000");
    check("tpcc --rate 0", "spindle: --rate: 0 is out of range; it can be 1 to 1000000");
    check("tpcc --rate -5", "error: invalid value '-5' for '--rate <RATE>': write a whole number from 1 on");
    check(
        "tpcc --duration -3s",
        "error: invalid value '-3s' for '--duration <DURATION>': `-3s` is not a duration; write for example \"8.5 ms\" or \"30 s\" (ns, us, ms, s, min, h, d)",
    );
    check("tpcc --preset tpc", "error: invalid value 'tpc' for '--preset <PRESET>'");
    check(
        "scan --rows 5000000000",
        "error: invalid value '5000000000' for '--rows <ROWS>': no count can be that large",
    );
    check(
        "scan --rate 5",
        "error: invalid value '5' for '--rate <RATE>': has no meaning for `scan`; the open loops are `tpcc` and `oltp`",
    );
    check("oltp --distribution even", "error: invalid value 'even' for '--distribution <DISTRIBUTION>'");
    check(
        "oltp --distribution zipfian --rand-zipfian-exp -1",
        "spindle: --rand-zipfian-exp: -1 is out of range; it can be 0 to 10",
    );
    check(
        "oltp --distribution uniform --range-size 0",
        "spindle: --range-size: 0 is out of range; it can be 1 to 1000000",
    );
    check(
        "sysbench --distribution zipfian",
        "spindle: --distribution: `zipfian` came to sysbench after version 1.0; the native workload `oltp` has it",
    );
    check(
        "sysbench --distribution uniform --server sqlite:/nowhere",
        "spindle: --server: sysbench cannot reach /nowhere",
    );
    check(
        "sysbench --distribution uniform --duration 1500ms",
        "spindle: --duration: 1.5 s is not a whole number of seconds, which `sysbench` needs",
    );
    check(
        "insert-growth --engine myisam --server sqlite:/nowhere",
        "spindle: --engine: only MariaDB and MySQL have storage engines; leave it out",
    );
    check("slap --load-type key", "spindle: --load-type: `key` needs the key that `autoincrement` makes");
    check("sql-bench --divisor 0", "spindle: --divisor: 0 is out of range; it can be 1 to 10000");
    check(
        "sql-bench --tests connect --engine myisam --server sqlite:/nowhere",
        "spindle: --engine: only MariaDB and MySQL have storage engines; leave it out",
    );
    check(
        "scan --once",
        "spindle: --once: needs fixed work, and `scan` has no end; the workloads of fixed work are `insert-growth`, `sql-bench`, `ontime` and `ssb`",
    );
    check(
        "sql-bench --warm-up 1s",
        "spindle: --warm-up: has no meaning for fixed work that is done once; leave it out, or give a `--duration`",
    );
    check(
        "fileio --mode rndrw --total-mib 1 --block-bytes 4096 --terminals 1 --fsync-every 0",
        "spindle: --server: socket /nowhere is no directory for files",
    );
    check(
        "tpcc --server directory:/nowhere",
        "spindle: --server: `tpcc` cannot run on the directory /nowhere",
    );
    check(
        "mock --latency-us -1 --server mock",
        "error: invalid value '-1' for '--latency-us <LATENCY_US>': write a whole number from 1 on",
    );
    check(
        "custom nothing.sql",
        "spindle: nothing.sql cannot be read: No such file or directory (os error 2)",
    );
}

/// The names of docs/load.md: latencies in milliseconds, and no histogram.
#[test]
fn the_json_of_a_load_has_the_names_of_its_documentation() {
    let directory = tempfile::tempdir().unwrap();
    let load = |line: &str| {
        let line = format!("load {line} --json");
        let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
            .args(line.split_whitespace())
            .current_dir(directory.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let page = include_str!("../../../../docs/load.md");
    let check_names = |object: &serde_json::Value| {
        for name in object.as_object().unwrap().keys() {
            assert!(
                page.contains(&format!("`{name}`")) || page.contains(&format!("`summary.{name}`")),
                "{name} is not on the page"
            );
        }
    };
    let mock = load("mock --server mock --terminals 2 --latency-us 2000 --duration 3s --verify --seed 7");
    assert_eq!((mock["workload"].as_str(), mock["seed"].as_u64()), (Some("mock"), Some(7)));
    assert_eq!(mock["verification"][0]["passed"], true);
    let kind = &mock["summary"]["kinds"][0];
    let [mean_ms, p50_ms, p99_ms, max_ms] =
        ["mean_ms", "p50_ms", "p99_ms", "max_ms"].map(|name| kind[name].as_f64().unwrap());
    // The mock answers nothing in less than half of its mean latency.
    assert!(1.0 <= p50_ms && p50_ms <= p99_ms && p99_ms <= max_ms && mean_ms >= 1.0, "{kind}");
    let list = load("sql-bench --server sqlite:database --tests big-tables --divisor 1000");
    let summary = &list["summary"];
    assert_eq!(summary["metric"]["lower_is_better"], true);
    assert_eq!(summary["kinds"][1]["name"], "insert_many_fields");
    assert_eq!(
        (&summary["kinds"][1]["committed"], &summary["kinds"][1]["is_durable"]),
        (&2.into(), &true.into())
    );
    for output in [&mock, &list] {
        [output, &output["summary"], &output["summary"]["metric"], &output["summary"]["kinds"][0]]
            .into_iter()
            .for_each(check_names);
    }
}

/// It must not say `loaded in 0.0 s` before.
#[test]
fn a_load_that_cannot_connect_gives_one_sentence() {
    let told = spindle(&["load", "scan", "--server", "socket:/nowhere", "--prepare", "--seed", "1"]);
    assert!(
        told.starts_with("exit code 1\n--- stderr\nseed 1\nspindle: connecting to socket /nowhere: "),
        "{told}"
    );
}

#[test]
fn a_disk_with_a_bad_name_size_or_dilation_is_refused() {
    for command in ["status", "age", "secure-erase", "down"] {
        check_refused(
            &format!("disk {command} no-such-disk"),
            "spindle: there is no disk called no-such-disk; `spindle disk status` lists the disks that are up",
        );
    }
    check_refused(
        "disk timing ../etc off",
        "spindle: a disk cannot be called \"../etc\": use up to 64 letters, digits, `-`, `_` and `.`",
    );
    check_refused(
        "disk up null --name a/b",
        "spindle: a disk cannot be called \"a/b\": use up to 64 letters, digits, `-`, `_` and `.`",
    );
    check_refused(
        "disk up null --name real",
        "spindle: a disk cannot be called \"real\": the directory about real disks has that name",
    );
    for (command, k, problem) in [
        ("up", "0.2", "0.2 is out of range; it can be 0.25 to 64"),
        ("up", "-2", "-2 is out of range; it can be 0.25 to 64"),
        ("validate", "65", "65 is out of range; it can be 0.25 to 64"),
        ("validate", "fast", "`fast` is not a number; write for example 4"),
    ] {
        let sentence = format!("spindle: --dilation: {problem}");
        check_refused(&format!("disk {command} null --dilation {k}"), &sentence);
    }
    check_refused("disk age no-such-disk --fill 101", "spindle: --fill: is 101 %, must be 0 % to 100 %");
    check_refused(
        "disk alignment --extent-alignment 2TiB",
        "spindle: --extent-alignment: is 2 TiB, must be 1 B to 1 TiB",
    );
    check_refused(
        "disk bench null --virtual --output a-file",
        "spindle: --output: a-file is not a directory",
    );
}

#[test]
fn an_iodepth_or_a_block_size_out_of_bounds_is_refused() {
    for bad in ["0", "201"] {
        check_refused(
            &format!("disk bench null --virtual --iodepth {bad},1"),
            &format!("error: invalid value '{bad}' for '--iodepth <1,4,16,...>': {bad} is not in 1..=200"),
        );
    }
    check_refused(
        "disk bench null --virtual --block-sizes 3K",
        "error: invalid value '3K' for '--block-sizes <4K,16K,...>': 3072 bytes must be a power of two from 512 \
         bytes to 1 MiB",
    );
}

#[test]
fn an_impossible_output_is_refused() {
    check_refused("run mock.toml --output a-file", "spindle: --output: a-file is not a directory");
    check_refused(
        "run mock.toml --output results",
        "spindle: results/records.jsonl:1: not a record (expected ident at line 1 column 2); is this a records file of `spindle run`?",
    );
    check_refused(
        "report a-file --output nowhere/page.html",
        "spindle: --output: nowhere is not a directory",
    );
    check_refused(
        "report a-file --output results",
        "spindle: --output: results is a directory; name a file in it",
    );
}

#[test]
fn help_of_run() {
    assert_snapshot!(spindle(&["run", "--help"]), @r"
    exit code 0
    --- stdout
    Run a scenario. A run that was stopped continues where it stopped

    Usage: spindle run [OPTIONS] <SCENARIO>

    Arguments:
      <SCENARIO>  Scenario file (TOML)

    Options:
          --output <DIRECTORY>  Directory for records, report and snapshots [default:
                                spindle-results/NAME-HASH]
          --retry-failed        Run failed trials again
          --fresh               Delete the records of earlier runs in the output directory
          --wait                Begin when no other run is active on this machine. By default both go
                                on, and their records say so
          --keep-disturbed      Do not repeat trials that the host disturbed, such as by other programs
          --a-a                 Run the first cell twice instead of the matrix: two names for one
                                storage, which a comparison should not tell apart
          --trace               Keep a block trace of each measured window beside the records
          --trace-limit <SIZE>  Size at which a trace ends. Predictions for other storage need its first
                                part, for more memory all of it [default: 64MiB]
      -h, --help                Print help

    Environment:
      TMPDIR                  Directory for sockets, logs, and disk contents beyond the memory limit
                              [default: /tmp]
      SPINDLE_OVERLAY_MEMORY  Memory for data that is written to an emulated disk, for example 4G
                              [default: half of the machine's memory]
      SPINDLE_LOCK_DIRECTORY  Directory in which runs see each other [default: /tmp/spindle-runs]
    ");
}

#[test]
fn help_names_every_sub_command() {
    let help = spindle(&["--help"]);
    for name in ["run", "plan", "report", "compare", "clean", "load", "doctor"] {
        assert!(
            help.lines().any(|line| line.trim_start().starts_with(&format!("{name} "))),
            "{name} in {help}"
        );
    }
}

#[test]
fn the_plan_of_the_mock_scenario() {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/mock.toml");
    let plan = spindle(&["plan", scenario.to_str().unwrap()]);
    // The sentences about the storage belong to the profiles.
    let plan: Vec<&str> =
        plan.lines().map(|line| line.split("  mock      ").next().unwrap().trim_end()).collect();
    assert_snapshot!(plan.join("\n"), @r"
    exit code 0
    --- stdout
    The pipeline without a database

    cell    server  workload  storage
    first   mock
    second  mock

    stack   size  filled  why this size
    first   1 GB  -       the scenario's 1 GB, in whole blocks
    second  1 GB  -       the scenario's 1 GB, in whole blocks

    4 trials in 2 shuffled blocks, start warm-fast: 100 ms warm-up, 100 ms settling, 1.2 s measured
    about 5.7 s (1.4 s a trial, 0 s to load), seed 1
    ");
}

#[test]
fn every_scenario_of_the_repository_is_accepted_and_short() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
            .arg("plan")
            .arg(&path)
            .arg("--json")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let seconds = plan["estimate_s"]["total"].as_f64().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        // What a dilation as needed takes at most is about twice what it takes. The limit of fixed work is that of the slowest cell.
        let most = match text {
            _ if text.contains("measure = \"once\"") => 120.0,
            _ if text.contains("dilation = \"as needed\"") => 30.0,
            _ => 15.0,
        };
        assert!(seconds <= most * 60.0, "{}: {seconds} s", path.display());
    }
}

#[test]
fn the_plan_as_json_lists_trials_in_their_order() {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/mock.toml");
    let output =
        Command::new(env!("CARGO_BIN_EXE_spindle")).arg("plan").arg(scenario).arg("--json").output().unwrap();
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let blocks: Vec<u64> =
        plan["trials"].as_array().unwrap().iter().map(|trial| trial["block"].as_u64().unwrap()).collect();
    assert_eq!(blocks, [1, 1, 2, 2]);
    assert_eq!(plan["cells"].as_array().unwrap().len(), 2);
}

#[test]
fn the_doctor_has_the_same_lines_as_text_and_as_json() {
    let directory = Path::new(".");
    let output = Command::new(env!("CARGO_BIN_EXE_spindle")).args(["doctor", "--json"]).output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let ready = found["ready"].as_bool().unwrap();
    assert_eq!(output.status.code(), Some(if ready { 0 } else { 1 }));
    let said = run_in(directory, &["doctor"]);
    for check in found["checks"].as_array().unwrap() {
        assert!(said.contains(check["name"].as_str().unwrap()), "{check} in {said}");
    }
    assert!(said.starts_with(if ready { "exit code 0" } else { "exit code 1" }), "{said}");
}

#[test]
fn the_doctor_describes_the_machine_as_text_and_as_json() {
    let json = Command::new(env!("CARGO_BIN_EXE_spindle")).args(["doctor", "--summary", "--json"]).output();
    let machine: serde_json::Value = serde_json::from_slice(&json.unwrap().stdout).unwrap();
    assert!(machine["summary"]["processor"]["threads"].as_u64().unwrap() > 0, "{machine}");
    let said = run_in(Path::new("."), &["doctor", "--summary"]);
    assert!(said.starts_with("exit code 0\n--- stdout\nSystem\n"), "{said}");
    assert!(said.contains(machine["kernel"].as_str().unwrap()), "{said}");
    for title in ["Platform", "Processor", "Memory"] {
        assert!(said.lines().any(|line| line == title), "{title} in {said}");
    }
}

#[test]
fn without_root_a_bench_runs_in_virtual_time() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;

    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: not root, so root cannot be given up");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // In a directory that the user `nobody` can read.
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_spindle"), directory.path().join("spindle")).unwrap();
    std::fs::write(directory.path().join("x.toml"), SCENARIO).unwrap();
    let output = Command::new(directory.path().join("spindle"))
        .args(["run", "x.toml"])
        .current_dir(directory.path())
        .uid(65534)
        .output()
        .unwrap();
    let told = text(&output);
    assert!(told.starts_with("exit code 0\n--- stdout\nWould an SSD help this database?"), "{told}");
    assert!(told.contains("spindle: no emulated disk can be mounted here (it is not run as root"), "{told}");
    assert!(told.contains("virtual time, raw storage only, seed 1"), "{told}");
}

#[test]
fn sample_data_are_listed_and_an_unknown_name_is_refused() {
    let spindle = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_spindle")).arg("dataset").args(arguments).output().unwrap()
    };
    let list: serde_json::Value = serde_json::from_slice(&spindle(&["list", "--json"]).stdout).unwrap();
    let flights = &list.as_array().unwrap()[0];
    assert_eq!((flights["name"].as_str(), flights["rows"].as_u64()), (Some("flights"), Some(336_776)));
    assert_eq!(flights["licence"], "CC0");
    assert_eq!(flights["get"], "spindle dataset load flights --server URL");
    let refused = spindle(&["load", "flihgts", "--server", "sqlite:/nowhere"]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(refused.stderr).unwrap(),
        "spindle: `flihgts` is no data set; did you mean `flights`?\n"
    );
}
