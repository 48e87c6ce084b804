//! `spindle advise` on the records of this repository.

use std::path::Path;

use serde_json::Value;

use crate::cli::run_in;
use crate::in_check_all;

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn advise(line: &str) -> String {
    run_in(root(), &["advise"].into_iter().chain(line.split_whitespace()).collect::<Vec<_>>())
}

fn json(line: &str) -> Value {
    let told = advise(line);
    let begin = told.find('{').unwrap_or_else(|| panic!("{told}"));
    let end = told.rfind('}').unwrap() + 1;
    serde_json::from_str(&told[begin..end]).unwrap_or_else(|error| panic!("{error}: {told}"))
}

#[test]
fn the_twin_predicts_the_cells_of_the_quickstart() {
    let found = json("records/quickstart --validate --json");
    let comparisons = found["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 9, "three storages from each of three");
    for one in comparisons {
        let error = one["predicted"].as_f64().unwrap() / one["measured"].as_f64().unwrap() - 1.0;
        let most = if one["from"] == one["of"] { 0.15 } else { 0.35 };
        assert!(error.abs() <= most, "{one}");
    }
    assert_eq!(found["errors"]["in_order"], 1.0);
}

/// The page's figures of a record without its traces. `words` has them in place of MEDIAN and WITHIN.
#[track_caller]
fn check_page_of_twin(record: &str, words: &str) -> Option<Value> {
    in_check_all(|| Some(()))?;
    let found = json(&format!("docs/results/twin/{record} --validate --json"));
    let percent =
        |key: &str, digits: usize| format!("{:.digits$} %", found["errors"][key].as_f64().unwrap() * 100.0);
    let words = words.replace("MEDIAN", &percent("median", 1)).replace("WITHIN", &percent("within_fifth", 0));
    let page = std::fs::read_to_string(root().join("docs/results/twin.md")).unwrap();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&words), "{words}");
    assert_eq!(found["left_out"].as_array().unwrap().len(), 0);
    Some(found)
}

#[test]
fn the_page_of_the_twin_has_what_mariadbs_records_give() {
    for (record, most, least_in_order, words) in [
        ("mariadb.jsonl", 0.08, 0.97, "for the three workloads of the earlier record MEDIAN and WITHIN"),
        (
            "mariadb-oltp.jsonl",
            0.08,
            0.97,
            "for `oltp` the median error is then MEDIAN and WITHIN are within 20 %",
        ),
        (
            "mariadb-insert.jsonl",
            0.09,
            0.96,
            "for the inserts MEDIAN and WITHIN, with 96 % in the right order",
        ),
    ] {
        let Some(found) = check_page_of_twin(record, words) else { return };
        let figure = |key: &str| found["errors"][key].as_f64().unwrap();
        assert!(figure("median") <= most && figure("in_order") >= least_in_order, "{record}");
        if let Some(tpcc) = found["experiments"].get("mariadb, tpcc") {
            let percent = |key: &str| format!("{:.1} %", tpcc[key].as_f64().unwrap() * 100.0);
            let row = format!(
                "| TPC-C | 15 | {} | {} | {} |",
                tpcc["predictions"],
                percent("median"),
                percent("within_fifth")
            );
            let page = std::fs::read_to_string(root().join("docs/results/twin.md")).unwrap();
            assert!(page.contains(&row), "docs/results/twin.md lacks {row}");
        }
    }
}

#[test]
fn the_page_of_the_twin_has_what_postgresqls_records_give() {
    for (record, words) in [
        ("postgresql-tpcc.jsonl", "for TPC-C a median error of MEDIAN and WITHIN within 20 %"),
        ("postgresql-oltp.jsonl", "for `oltp` MEDIAN and WITHIN"),
        ("postgresql-insert.jsonl", "for the inserts MEDIAN and WITHIN"),
        ("postgresql-1g", "the median error is MEDIAN, and WITHIN are within 20 %"),
    ] {
        let Some(found) = check_page_of_twin(record, words) else { return };
        assert!(found["errors"]["in_order"].as_f64().unwrap() >= 0.97);
    }
}

#[test]
fn a_cell_that_the_machine_limited_counts_in_no_error() {
    let told = advise("docs/results/file-locks.jsonl --validate");
    assert!(
        told.contains("counted in no error") && told.contains("limited them, not the storage: ext4"),
        "{told}"
    );
    assert!(told.contains("xfs") && !told.contains("median error"), "{told}");
}

#[test]
fn the_page_of_the_twin_has_what_the_record_of_pools_gives() {
    let found = json("docs/results/twin/pools --validate --json");
    let page = std::fs::read_to_string(root().join("docs/results/twin.md")).unwrap();
    let pools = found["pools"].as_array().unwrap();
    assert_eq!(pools.len(), 12);
    for one in pools {
        let figure = |key: &str| one[key].as_f64().unwrap();
        let error =
            |predicted, measured| format!("{:+.0} %", (figure(predicted) / figure(measured) - 1.0) * 100.0);
        let workload = if one["of"].as_str().unwrap().contains("tpcc") { "TPC-C" } else { "`oltp`" };
        let (cell, pool) = one["from"].as_str().unwrap().split_once('=').unwrap();
        let storage = cell.split('/').next().unwrap();
        let row = format!(
            "| `{storage}` | {workload} | {pool} | {:.0} times | {:.2} | {:.2} | {} | {} | {} |",
            figure("times"),
            figure("predicted_reads"),
            figure("measured_reads"),
            error("predicted_reads", "measured_reads"),
            error("predicted_writes", "measured_writes"),
            error("predicted", "measured")
        );
        assert!(page.contains(&row), "docs/results/twin.md lacks {row}");
    }
    let known = pools.iter().filter(|one| one["is_known"] == true);
    let above = known.map(|one| one["measured"].as_f64().unwrap() / one["predicted"].as_f64().unwrap());
    let range = format!("a range up to {:.2} times the prediction", above.fold(0.0, f64::max));
    assert!(page.contains(&range), "docs/results/twin.md lacks {range}");
}

#[test]
fn a_need_ranks_those_that_meet_it_by_price() {
    let need = "1500 new orders a minute";
    let arguments =
        ["advise", "records/quickstart", "--cell", "hdd", "--on", "hdd-7200,x25m-80,870evo", "--need", need];
    let told = run_in(root(), &arguments);
    assert!(told.contains("The cheapest storage for 1500 new orders a minute is "), "{told}");
    let rank = |name: &str| told.lines().position(|line| line.contains(&format!("  {name} "))).unwrap();
    assert!(rank("870evo") < rank("hdd-7200") && rank("x25m-80") < rank("hdd-7200"), "{told}");
}

#[test]
fn a_need_that_nothing_meets_names_the_nearest() {
    let need = "900000 new orders a minute";
    let arguments =
        ["advise", "records/quickstart", "--cell", "hdd", "--on", "hdd-7200,x25m-80", "--need", need];
    let told = run_in(root(), &arguments);
    assert!(told.contains("No storage meets 900000 new orders a minute. The nearest is x25m-80: "), "{told}");
}

#[test]
fn a_server_that_hardly_worked_is_doubted() {
    let told =
        |cell: &str| run_in(root(), &["advise", "records/quickstart", "--cell", cell, "--on", "870evo"]);
    let doubt = "The server used 2.2 % of a core.";
    assert!(told("hdd").contains(doubt) && !told("iodrive").contains("of a core."));
}

/// Bad input gives exit code 2 and one sentence.
#[track_caller]
fn check_refused(arguments: &[&str], expect: &str) {
    let told = run_in(root(), &[&["advise"], arguments].concat());
    let sentence = told.strip_prefix("exit code 2\n--- stderr\n").unwrap_or_else(|| panic!("{told}"));
    assert!(sentence.contains(expect), "{told}");
    assert_eq!(sentence.trim().lines().count(), 1, "{told}");
}

#[test]
fn what_cannot_be_predicted_is_refused_with_one_sentence() {
    let quickstart = "records/quickstart";
    check_refused(&["nowhere"], "nowhere: does not exist");
    check_refused(&[quickstart, "--cell", "hd"], "--cell: the record has no cell `hd`; did you mean `hdd`?");
    check_refused(&[quickstart, "--on", "hdd-720"], "`hdd-720`; did you mean `hdd-7200`?");
    check_refused(&[quickstart, "--need", "fast"], "--need: `fast` is no rate");
    check_refused(
        &[quickstart, "--buffer-pool", "1G"],
        "--buffer-pool: another buffer pool needs a block trace",
    );
    check_refused(
        &[quickstart, "--today", "hdd-7200"],
        "--today: is for the record of a server in production",
    );
    check_refused(&["records/zfs-log-and-cache"], "its storage is a ZFS pool, of which there is no model");
    check_refused(
        &["records/replication", "--cell", "ssd/async-ssd"],
        "it has replicas, of which there is no model",
    );
    let fixed_work = "studies/thesis-2012-ssd-mysql/1-sql-bench";
    check_refused(&[fixed_work], "a prediction needs the counters of InnoDB");
}
