//! `spindle plan` refuses what `spindle run` refuses before its first trial, with the same sentence and exit
//! code. And it shows how full the data make each stack.

use insta::assert_snapshot;

use crate::emulated_support::{Bench, scenario};

const MARIADB: &str = "kind = \"mariadb\"";
const SETTINGS: &str = "innodb_buffer_pool_size = \"12M\"";
const TPCC: &str = "kind = \"tpcc\"\nwarehouses = 1\nterminals = 4";
const SYSBENCH: &str = "kind = \"sysbench\"\nscript = \"read-write\"\ndistribution = \"uniform\"\ntables = 1\nrows = 100\nterminals = 1";

/// The sentence of both commands. `environment` replaces variables of both.
#[track_caller]
fn refusal_of_both(text: &str, environment: &[(&str, &str)], exit_code: i32) -> Option<String> {
    let bench = Bench::new()?;
    bench.write("test.toml", text);
    let refusal = |arguments: &[&str]| {
        let output = bench.command(arguments).envs(environment.iter().copied()).output().unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(exit_code), "{arguments:?}: {talk}");
        let mut sentences = talk.lines().filter_map(|line| line.strip_prefix("spindle: "));
        sentences.find(|sentence| !sentence.contains("a plan does not run")).unwrap().to_owned()
    };
    let (planned, run) =
        (refusal(&["plan", "test.toml"]), refusal(&["run", "test.toml", "--output", "results"]));
    assert_eq!(planned, run);
    assert!(!bench.path("results").exists(), "work was begun");
    bench.assert_clean();
    Some(planned)
}

#[track_caller]
fn check_both(text: &str, environment: &[(&str, &str)], exit_code: i32, expect: &str) {
    if let Some(refusal) = refusal_of_both(text, environment, exit_code) {
        assert_eq!(refusal, expect);
    }
}

#[test]
fn a_misspelt_setting_is_refused_with_the_right_name() {
    check_both(
        &scenario(&[("innodb_buffer_pool_size", "innodb_bufer_pool_size")]),
        &[],
        2,
        "test.toml: servers.mariadb.settings: setting `innodb_bufer_pool_size`: mariadbd has no such setting; \
         did you mean `innodb_buffer_pool_size`?",
    );
    check_both(
        &scenario(&[(SETTINGS, "Innodb-flush-log-at-trx-comit = 1")]),
        &[],
        2,
        "test.toml: servers.mariadb.settings: setting `Innodb-flush-log-at-trx-comit`: mariadbd has no such setting; \
         did you mean `innodb_flush_log_at_trx_commit`?",
    );
    let settings = "innodb_flush_method = \"O_DIRECT\", innodb_buffer_pool_size = \"12M\"";
    check_both(
        &scenario(&[
            (MARIADB, "kind = \"postgresql\""),
            (settings, "max_wal_size = \"96MB\", work_men = \"12MB\""),
        ]),
        &[],
        2,
        "test.toml: servers.mariadb.settings: setting `work_men`: PostgreSQL has no such setting; did you mean `work_mem`?",
    );
    check_both(
        &scenario(&[(MARIADB, "kind = \"sqlite\""), (settings, "synchronus = \"FULL\"")]),
        &[],
        2,
        "test.toml: servers.mariadb.settings: setting `synchronus`: SQLite has no such setting; did you mean `synchronous`?",
    );
}

#[test]
fn a_wrong_value_of_a_setting_is_refused_in_the_servers_words() {
    let Some(refusal) = refusal_of_both(&scenario(&[("\"O_DIRECT\"", "\"O_DIRECTLY\"")]), &[], 2) else {
        return;
    };
    assert!(
        refusal.starts_with("test.toml: servers.mariadb.settings: the server refuses them: "),
        "{refusal}"
    );
    assert!(refusal.contains("Error while setting value 'O_DIRECTLY' to 'innodb-flush-method'"), "{refusal}");
}

#[test]
fn a_server_that_is_not_here_is_refused_with_the_command_that_fetches_it() {
    check_both(
        &scenario(&[(MARIADB, "kind = \"mysql\"\nversion = \"5.5\"")]),
        &[("SPINDLE_CACHE_DIRECTORY", "/nowhere")],
        1,
        "looking for server `mariadb`: mysql 5.5.9 is not here; fetch it with `spindle server get mysql-5.5`",
    );
    check_both(
        &scenario(&[(MARIADB, "kind = \"mysql\"\nprogram = \"/nowhere/mysqld\"")]),
        &[],
        2,
        "test.toml: servers.mariadb: /nowhere/mysqld: No such file or directory (os error 2)",
    );
}

#[test]
fn a_tool_that_is_not_here_is_refused_with_its_package() {
    let words =
        "is not installed: it comes with the package `sysbench`, which `tools/install tools` installs";
    check_both(
        &scenario(&[(TPCC, SYSBENCH)]),
        &[("PATH", "/nowhere")],
        1,
        &format!("looking for the tool of workload `tpcc`: sysbench {words}"),
    );
    check_both(
        &scenario(&[(TPCC, &format!("{SYSBENCH}\nprogram = \"/nowhere/sysbench\""))]),
        &[],
        1,
        &format!("looking for the tool of workload `tpcc`: /nowhere/sysbench {words}"),
    );
}

#[test]
fn a_real_disk_that_is_not_there_is_refused() {
    check_both(
        &scenario(&[("profile = \"iodrive-160\"\nsize = \"1 GiB\"", "path = \"/nowhere/disk\"")]),
        &[],
        2,
        "test.toml: stacks.card.path: /nowhere/disk does not exist",
    );
}

#[test]
fn an_option_that_mkfs_refuses_is_refused() {
    let Some(bench) = Bench::new() else { return };
    bench.write(
        "test.toml",
        &scenario(&[("size = \"1 GiB\"", "size = \"1 GiB\"\nmkfs_options = [\"-b\", \"size=3000\"]")]),
    );
    let told = ["plan", "run"].map(|verb| bench.talk(&[verb, "test.toml"], 2));
    assert!(told[0].starts_with("spindle: test.toml: stacks.card.mkfs_options: "), "{}", told[0]);
    assert_eq!(told[0], told[1]);
    bench.assert_clean();
}

#[test]
fn a_plan_shows_how_full_the_data_make_each_stack() {
    let bench = Bench::anywhere();
    let stacks = "[stacks.half]\nprofile = \"hdd-7200\"\nseek_average = \"12 ms\"\n\
                  [stacks.empty]\nprofile = \"x25m-80\"\nsize = \"20 GB\"";
    bench.write(
        "test.toml",
        &scenario(&[
            ("[servers.mariadb]", &format!("{stacks}\n[servers.mariadb]")),
            ("[\"card\"]", "[\"card\", \"half\", \"empty\", \"ebs-gp3\"]"),
        ]),
    );
    let output = bench.run(&["plan", "test.toml"]);
    let (plan, told) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let storage: Vec<&str> = plan.split("\n\n").filter(|part| part.starts_with("stack ")).collect();
    assert_snapshot!(storage.join("\n"), @r"
    stack    size     filled  why this size
    card     1 GiB    25 %    the scenario's
    half     640 MiB  41 %    no `size` is given: about half full
    empty    20 GB    1 %     the scenario's 20 GB, in whole blocks
    ebs-gp3  640 MiB  41 %    no `size` is given: about half full
    freshly loaded: 100 MiB of data (1 warehouse), and 160 MiB of the server's own files and redo log
    ");
    assert_snapshot!(told, @"spindle: warning: stacks.empty: the data fill 1 % of 20 GB: a short-stroked disk and an empty SSD look faster than a full one; leave `size` out to fill half");
    assert!(plan.contains("honouring FLUSH. With seek_average = 12 ms instead of 8.5 ms."), "{plan}");
    let json = bench.json(&["plan", "test.toml", "--json"]);
    assert_eq!(json["storage"][1]["follows_data"], true);
    assert_eq!(json["storage"][2]["size_bytes"], 19_999_997_952_u64);
}
