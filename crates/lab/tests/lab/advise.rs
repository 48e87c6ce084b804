//! `spindle advise` on the records of this repository.

use std::collections::BTreeSet;
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

fn page_of_twin() -> String {
    std::fs::read_to_string(root().join("docs/results/twin.md")).unwrap()
}

/// `1,582`, with a comma.
fn grouped(count: u64) -> String {
    if count < 1_000 { count.to_string() } else { format!("{},{:03}", count / 1_000, count % 1_000) }
}

/// Holds a record to the bars, and its row of the page to the record.
#[track_caller]
fn check_row_of_twin(record: &str, workload: &str) {
    let Some(()) = in_check_all(|| Some(())) else { return };
    let found = json(&format!("docs/results/twin/{record} --validate --json"));
    let errors = &found["errors"];
    let figure = |key: &str| errors[key].as_f64().unwrap();
    let percent = |key: &str| format!("{:.1} %", figure(key) * 100.0);
    let cells = found["comparisons"].as_array().unwrap().iter().filter(|one| one["is_limited"] == false);
    let storages: BTreeSet<&str> = cells.map(|one| one["of"].as_str().unwrap()).collect();
    let count = |key: &str| grouped(errors[key].as_u64().unwrap());
    let row = format!(
        "| `{record}` | {workload} | {} | {} | {} | {} | {} % of {} | {} |",
        storages.len(),
        count("predictions"),
        percent("median"),
        percent("within_fifth"),
        (figure("in_order") * 1_000.0).round() / 10.0,
        count("pairs"),
        percent("p99_median")
    );
    assert!(page_of_twin().contains(&row), "docs/results/twin.md lacks {row}");
    assert!(storages.len() >= 14, "{storages:?}");
    assert!(figure("median") <= 0.08 && figure("within_fifth") >= 0.9 && figure("in_order") >= 0.97, "{row}");
    assert_eq!(found["left_out"].as_array().unwrap().len(), 0);
}

#[test]
fn the_page_of_the_twin_has_what_mariadbs_records_give() {
    check_row_of_twin("mariadb-tpcc", "TPC-C");
    check_row_of_twin("mariadb-oltp.jsonl", "`oltp` read-write");
    check_row_of_twin("mariadb-insert", "`insert-growth`");
}

#[test]
fn the_page_of_the_twin_has_what_postgresqls_records_give() {
    check_row_of_twin("postgresql-tpcc.jsonl", "TPC-C");
    check_row_of_twin("postgresql-oltp.jsonl", "`oltp` read-write");
    check_row_of_twin("postgresql-insert.jsonl", "`insert-growth`");
}

/// The rows themselves are held to the records.
#[test]
fn the_pages_add_up_the_rows_of_the_twin() {
    let page = page_of_twin();
    let rows =
        page.lines().filter(|line| line.starts_with("| `mariadb-") || line.starts_with("| `postgresql-"));
    let number = |cell: &str| cell.trim().trim_end_matches(" %").replace(',', "").parse::<f64>().unwrap();
    let rows: Vec<(f64, f64)> = rows
        .map(|row| row.split('|').collect::<Vec<_>>())
        .filter(|cells| cells.len() > 8)
        .map(|cells| (number(cells[4]), number(cells[6])))
        .collect();
    assert_eq!(rows.len(), 6);
    let all: f64 = rows.iter().map(|(predictions, _)| predictions).sum();
    let within = rows.iter().map(|(predictions, percent)| predictions * percent).sum::<f64>() / all;
    let words = format!("Of these {} predictions {within:.0} % are within 20 %", grouped(all as u64));
    assert!(page.contains(&words), "docs/results/twin.md lacks {words}");
    let advice = std::fs::read_to_string(root().join("docs/advice.md")).unwrap();
    let words = format!("{within:.0} % of {} predictions are within them", grouped(all as u64));
    assert!(advice.contains(&words), "docs/advice.md lacks {words}");
}

#[test]
fn the_page_of_the_twin_has_what_the_record_of_more_memory_gives() {
    let Some(()) = in_check_all(|| Some(())) else { return };
    let found = json("docs/results/twin/postgresql-1g --validate --json");
    let errors = &found["errors"];
    let percent = |key: &str, digits: usize| format!("{:.digits$} %", errors[key].as_f64().unwrap() * 100.0);
    let words = format!(
        "the median error is {}, and {} are within 20 %",
        percent("median", 1),
        percent("within_fifth", 0)
    );
    let page = page_of_twin().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&words), "docs/results/twin.md lacks {words}");
    assert!(errors["in_order"].as_f64().unwrap() >= 0.97);
}

#[test]
fn a_cell_that_the_machine_limited_counts_in_no_error() {
    let Some(()) = in_check_all(|| Some(())) else { return };
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
    let page = page_of_twin();
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
        let reads = figure("predicted_reads") / figure("measured_reads");
        assert!((reads - 1.0).abs() <= 0.15, "{row}");
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
