use insta::assert_snapshot;

use super::*;

/// Enough for any cache below.
const MEMORY_BYTES: u64 = 8 << 30;

fn draft(server: &str, storage: &str, workload: &str, precision: Precision) -> Draft {
    let server = ServerChoice::of_name(server).unwrap();
    Draft {
        stacks: offers::storage_list(storage).unwrap(),
        workload: server.workload(workload, 256 << 20).unwrap(),
        server: server.name,
        kind: server.kind,
        version: server.version,
        precision,
        memory_bytes: MEMORY_BYTES,
    }
}

#[track_caller]
fn read_whole(draft: &Draft) -> Scenario {
    let scenario = read(draft, Path::new("x.toml"));
    scenario.unwrap_or_else(|mistake| panic!("{mistake}:\n{}", draft.text()))
}

#[test]
fn every_server_with_every_workload_that_it_runs_is_a_valid_scenario() {
    for (offer, _) in offers::servers() {
        let server = ServerChoice::of_name(&offer.name).unwrap();
        assert!(!server.workloads().is_empty(), "{}", offer.name);
        for workload in server.workloads() {
            for precision in Precision::value_variants() {
                let scenario = read_whole(&draft(&offer.name, STORAGE, workload, *precision));
                assert_eq!(plan(&scenario).cells.len(), 2);
                assert_eq!(scenario.run.trials, precision.trials());
            }
        }
    }
}

#[test]
fn every_storage_is_a_valid_stack() {
    let names: Vec<String> = offers::storages().into_iter().map(|offer| offer.name).collect();
    let scenario = read_whole(&draft("sqlite", &names.join(","), "tpcc", Precision::Quick));
    assert_eq!(scenario.layouts.len(), names.len());
}

#[test]
fn a_new_scenario_explains_each_of_its_keys() {
    let text = draft("mysql-5.6", "hdd-7200,./mine.toml,/mnt/ssd", "oltp", Precision::Normal).text();
    assert_snapshot!(text);
}

#[test]
fn the_cache_is_a_part_of_the_data_and_of_the_memory() {
    let pool = |bytes: u64, memory_bytes: u64| {
        let mut draft = draft("mariadb", STORAGE, "tpcc", Precision::Quick);
        draft.workload = ServerChoice::of_name("mariadb").unwrap().workload("tpcc", bytes).unwrap();
        draft.memory_bytes = memory_bytes;
        let text = draft.text();
        let line = text.lines().find(|line| line.starts_with("innodb_buffer_pool_size")).unwrap();
        line.split_once(" = ").unwrap().1.to_owned()
    };
    assert_eq!(pool(8 << 30, MEMORY_BYTES), "\"1000M\"");
    assert_eq!(pool(100 << 20, MEMORY_BYTES), "\"16M\"");
    assert_eq!(pool(8 << 30, 1 << 30), "\"510M\"");
}

#[test]
fn a_title_with_one_storage_is_no_choice() {
    let title = |storage: &str| {
        let text = draft("sqlite", storage, "scan", Precision::Quick).text();
        text.lines().find_map(|line| line.strip_prefix("title = ")).unwrap().to_owned()
    };
    assert_eq!(title("ebs-gp3"), "\"scan on sqlite and ebs-gp3\"");
    assert_eq!(title("ebs-gp3,pm9a3"), "\"scan on sqlite: ebs-gp3 or pm9a3?\"");
}

#[track_caller]
fn check_storage(given: &str, expect: &str) {
    let stacks = offers::storage_list(given).map_err(|mistake| mistake.to_string());
    let stacks = stacks.map(|stacks| {
        let text = |stack: &DraftStack| format!("{}: {} = {}", stack.name, stack.key, stack.value);
        stacks.iter().map(text).collect::<Vec<_>>().join("; ")
    });
    assert_eq!(stacks.unwrap_or_else(|words| words), expect);
}

#[test]
fn a_storage_is_a_name_or_a_path() {
    check_storage(
        "ebs-gp3, raid10-4x15k",
        "ebs-gp3: profile = ebs-gp3; raid10-4x15k: profile = raid10-4x15k",
    );
    check_storage("my/own.toml", "own: profile = my/own.toml");
    check_storage("/mnt/fast ssd,/dev/sdb", "fast-ssd: path = /mnt/fast ssd; sdb: path = /dev/sdb");
    check_storage("/", "disk: path = /");
    check_storage("ebs-gp3,ebs-gp3", "--storage: `ebs-gp3` is named twice");
    check_storage(" ,", "--storage: is empty; name at least one, better two to compare");
}

#[track_caller]
fn check_server(name: &str, workload: &str, expect: &str) {
    let workload = ServerChoice::of_name(name).and_then(|server| server.workload(workload, 10 << 20));
    assert_eq!(workload.unwrap_err().to_string(), expect);
}

#[test]
fn a_server_or_workload_that_cannot_be_is_refused_with_the_nearest() {
    check_server("mariadbb", "tpcc", "--server: `mariadbb` is not known; did you mean `mariadb`?");
    check_server("mysql-5.7", "tpcc", "--server: `mysql-5.7` is not known; did you mean `mysql-5.5`?");
    check_server(
        "running",
        "tpcc",
        "--server: `running` needs more than a name; docs/servers.md has an example to copy",
    );
    check_server("mariadb", "tpc", "--workload: `tpc` is not known; did you mean `tpcc`?");
    check_server("files", "tpcc", "--workload: `tpcc` does not run on files, which runs `fileio`");
    check_server(
        "sqlite",
        "custom",
        "--workload: `custom` needs a file of your own; docs/custom-workloads.md has an example to copy",
    );
    check_server(
        "sqlite",
        "tpcc",
        "--data: 10.5 MB is less than the smallest database of this workload, 104.9 MB (1 warehouse)",
    );
}
