//! Axes of values.

use super::*;
use crate::host::provenance::cpu_count;
use crate::scenario::plan::plan;

/// The good scenario with these lines at the end of its matrix.
#[track_caller]
fn with_axes(lines: &str) -> String {
    changed("workload = [\"tpcc\"]\n", &format!("workload = [\"tpcc\"]\n{lines}\n"))
}

#[track_caller]
fn check(lines: &str, expect: &str) {
    let error = Scenario::parse("test", &with_axes(lines), &BOUNDS).unwrap_err();
    assert_eq!(error.to_string(), expect);
}

#[test]
fn each_value_of_a_key_is_a_cell_of_every_storage() {
    let scenario = parsed(&with_axes("terminals = [1, 8, 64]"));
    let cells = plan(&scenario).cells;
    let names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "hdd/terminals=1",
            "iodrive/terminals=1",
            "hdd/terminals=8",
            "iodrive/terminals=8",
            "hdd/terminals=64",
            "iodrive/terminals=64"
        ]
    );
    let last = cells.last().unwrap();
    assert_eq!((last.storage_label(), last.bases()), ("iodrive", ("mariadb", "tpcc")));
    assert_eq!((last.sweep[0].value.as_str(), last.sweep[0].number), ("64", Some(64.0)));
    let WorkloadSpec::Tpcc(spec) = &scenario.workloads[&last.workload] else { panic!("not TPC-C") };
    assert_eq!((spec.terminals, spec.warehouses), (64, 10));
}

#[test]
fn each_value_of_a_setting_is_a_server() {
    let scenario = parsed(&with_axes("innodb-buffer-pool-size = [\"64M\", \"128M\"]\nterminals = [1, 16]"));
    let cells = plan(&scenario).cells;
    assert_eq!(cells.len(), 8);
    let last = cells.last().unwrap();
    assert_eq!(last.name, "iodrive/terminals=16/innodb-buffer-pool-size=128M");
    assert_eq!((last.sweep[1].number, last.sweep[1].is_memory), (Some((128 << 20) as f64), true));
    let settings = &scenario.servers[&last.server].settings;
    assert_eq!(settings["innodb-buffer-pool-size"], "128M");
    // The value of the table is replaced, however its name is written.
    assert_eq!(settings.get("innodb_buffer_pool_size"), None);
}

#[test]
fn cores_look_as_fast_as_told_by_those_that_the_trials_stay_on() {
    let pinned = |keys: &str| changed("seed = 1", &format!("seed = 1\ncpu_affinity = 1\n{keys}"));
    let scenario = parsed(&pinned("cores = 3"));
    assert_eq!((scenario.run.cpu_count(), scenario.dilation().unwrap().factor()), (1, 3.0));
    assert_eq!(parsed(GOOD).run.cpu_count(), cpu_count());
    assert_ne!(scenario.hash(), parsed(&changed("seed = 1", "seed = 1\ncores = 3")).hash());
    let own = cpu_count();
    let cores = spindle_base::text::plural(own as usize, "core");
    let words = format!("run.cpu_affinity: {} is out of range; with {cores} it can be 1 to {own}", own + 1);
    super::check("seed = 1", &format!("seed = 1\ncpu_affinity = {}", own + 1), &words);
}

#[test]
fn each_number_of_cores_has_a_dilation() {
    let own = cpu_count();
    let axis = format!("cores = [{own}, {}]", 3 * own);
    let scenario = parsed(&with_axes(&axis));
    let cells = plan(&scenario).cells;
    let dilations: Vec<f64> =
        cells.iter().map(|cell| scenario.dilation_of(&cell.server).unwrap().factor()).collect();
    assert_eq!(dilations, [1.0, 1.0, 3.0, 3.0]);
    assert_eq!((scenario.dilation(), scenario.dilation_at_most().factor()), (None, 3.0));
    assert!(scenario.is_dilated() && !parsed(GOOD).is_dilated());
    let (swept, plain) = (plan(&scenario).estimate, plan(&parsed(GOOD)).estimate);
    assert_eq!(swept.load, plain.load);
    let run = scenario.run;
    let undilated = run.warm_up.most() + run.settle.most() + run.measure;
    assert_eq!(
        swept.per_trial,
        plain.per_trial + undilated,
        "one trial takes as long as undilated, the next three times"
    );
    check("cores = [2, 2.5]", "matrix.cores: `2.5` must be a whole number, for example `cores = [4, 8]`");
    let most = 64 * own;
    let refused =
        format!("{} is out of range; with {own} cores it can be {} to {most}", most + 1, own.div_ceil(4));
    check(&format!("cores = [{own}, {}]", most + 1), &format!("matrix.cores: {refused}"));
    let table = changed("kind = \"mariadb\"\n", &format!("kind = \"mariadb\"\ncores = {}\n", most + 1));
    let error = Scenario::parse("test", &table, &BOUNDS).unwrap_err();
    assert_eq!(error.to_string(), format!("servers.mariadb.cores: {refused}"));
    let as_needed = with_axes(&axis).replace("[run]\n", "[run]\ndilation = \"as needed\"\n");
    let error = Scenario::parse("test", &as_needed, &BOUNDS).unwrap_err();
    assert_eq!(
        error.to_string(),
        "matrix.cores: means a dilation too; leave out either `cores` or `dilation = \"as needed\"`"
    );
}

#[test]
fn all_values_of_an_axis_start_from_one_database() {
    let load = |lines: &str| plan(&parsed(&with_axes(lines))).estimate.load;
    assert_eq!(load("terminals = [1, 8]\ninnodb_buffer_pool_size = [\"64M\", \"128M\"]"), load(""));
    assert!(load("warehouses = [5, 10]") > load(""));
}

#[test]
fn a_sweep_has_a_hash_of_its_own() {
    let hashes = ["", "terminals = [1, 2]", "terminals = [1, 4]", "terminals = [1, 4, 2]"];
    let hashes: std::collections::BTreeSet<String> =
        hashes.iter().map(|lines| parsed(&with_axes(lines)).hash()).collect();
    assert_eq!(hashes.len(), 4);
}

#[test]
fn a_value_is_checked_as_in_its_table() {
    check("terminals = [1, 0]", "matrix.terminals: 0 is out of range; it can be 1 to 10000");
    check(
        "terminals = [1, \"two\"]",
        "matrix.terminals: `\"two\"` must be a whole number, for example `terminals = 8`",
    );
    check("terminals = 4", "matrix.terminals: `4` must be a list; write `terminals = [4]`");
    check("preset = [\"tpcc-mysql\", \"dbt3\"]", "matrix.preset: `dbt3` is not known; did you mean `dbt2`?");
    check(
        "innodb_buffer_pool_size = [\"64M\", \"64X\"]",
        "matrix.innodb_buffer_pool_size: `64X` is not a size; write for example \"96M\"",
    );
    check(
        "innodb_buffer_pool_size = [\"64M\", \"64G\"]",
        "matrix.innodb_buffer_pool_size: 64G is more than this machine's memory (8192 MiB)",
    );
}

#[test]
fn an_axis_has_a_known_key() {
    check("terminal = [1, 2]", "matrix.terminal: unknown key; did you mean `terminals`?");
    check("stak = [\"hdd\", \"iodrive\"]", "matrix.stak: unknown key; did you mean `stack`?");
    let text = with_axes("terminals = [1, 2]").replace(
        "{ innodb_flush_method = \"O_DIRECT\"",
        "{ terminals = 4, innodb_flush_method = \"O_DIRECT\"",
    );
    let words = "matrix.terminals: is a key of workload `tpcc` and a setting of server `mariadb`; \
                 give each value a table of its own";
    assert_eq!(Scenario::parse("test", &text, &BOUNDS).unwrap_err().to_string(), words);
    let text = with_axes("warehouses = [1, 2]").replace("[\"tpcc\"]", "[\"tpcc\", \"s\"]")
        + "[workloads.s]\nkind = \"scan\"\nrows = 1000\n";
    assert_eq!(
        Scenario::parse("test", &text, &BOUNDS).unwrap_err().to_string(),
        "matrix.warehouses: is a key of workload `tpcc`, and `s` of kind `scan` has no such key"
    );
}

#[test]
fn an_axis_is_bounded() {
    check(
        "terminals = [4]",
        "matrix.terminals: an axis has two values or more; a single one belongs into the table",
    );
    check("terminals = [4, 4]", "matrix.terminals: `4` is there twice");
    check(
        "a = [1, 2]\nb = [1, 2]\nterminals = [1, 2]",
        "matrix.terminals: is one axis too many; a matrix has at most 2 axes of values",
    );
    let many: Vec<String> = (1..=33).map(|value| value.to_string()).collect();
    check(
        &format!("terminals = [{}]", many.join(", ")),
        "matrix.terminals: the matrix has 66 cells; with axes of values it has at most 64",
    );
    check(
        "innodb_log_group_home_dir = [\"/a\", \"/b\"]",
        "matrix.innodb_log_group_home_dir: \"/a\": a value on an axis has 1 to 40 letters, digits, `-`, `_` or `.`",
    );
}

#[test]
fn a_published_row_is_reproduced_by_one_value() {
    let scenario = parsed(
        &(with_axes("terminals = [1, 16]")
            + "[[published]]\nstudy = \"x25m-2009-tpcc-mysql\"\ntable = \"tpcc-peak\"\nrow = { scenario = \"hdd\" }\n\
               stack = \"hdd\"\nworkload = \"tpcc/terminals=16\"\n"),
    );
    let cells = plan(&scenario).cells;
    let of_tag = cells.iter().filter(|cell| scenario.published[0].is_of(cell)).map(|cell| cell.name.as_str());
    assert_eq!(of_tag.collect::<Vec<_>>(), ["hdd/terminals=16"]);
}

#[test]
fn a_limit_of_memory_is_an_axis_of_the_servers() {
    let scenario = parsed(&with_axes("memory = [\"256M\", \"1GiB\"]"));
    let cells = plan(&scenario).cells;
    let last = cells.last().unwrap();
    assert_eq!(last.name, "iodrive/memory=1GiB");
    assert_eq!((last.sweep[0].number, last.sweep[0].is_memory), (Some(f64::from(1 << 30)), true));
    assert_eq!(scenario.servers[&last.server].memory_bytes, Some(1 << 30));
    check(
        "memory = [\"1M\", \"256M\"]",
        "matrix.memory: 1 MiB is too little for a server; it can be 64 MB or more",
    );
    check(
        "memory = [\"much\", \"256M\"]",
        "matrix.memory: `much` is not a size in whole bytes; write for example \"20 GiB\", \"16 KiB\" or \"96M\" \
         (B, KB, MB, GB, TB, KiB, MiB, GiB, TiB)",
    );
}
