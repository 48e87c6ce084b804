//! `spindle study`: every study's pipeline with tiny data, what a machine lacks, and the committed answers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::run_in;
use crate::emulated_support::Bench;
use crate::in_check_all;
use crate::server_support::get;
use spindle_lab::claims::folders;
use spindle_lab::record::{Measurement, Trial, Warning};
use spindle_lab::report::{self, Records};

fn studies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies")
}

/// Runs a study with tiny data, and returns its `claims.md`.
fn smoke(study: &str) {
    let Some(bench) = in_check_all(Bench::new) else { return };
    get("mysql-5.5");
    get("postgresql-18");
    let output = bench.path("studies");
    let told = bench.talk(&["study", "run", study, "--smoke", "--output", output.to_str().unwrap()], 0);
    assert!(!told.contains("not run here"), "{told}");
    let claims = fs::read_to_string(output.join(study).join("claims.md")).unwrap();
    assert!(!claims.contains("not run here"), "{claims}");
    let folder = folders().iter().find(|folder| folder.study == study).unwrap();
    for (name, _) in folder.scenarios {
        let records = report::read(&output.join(study).join(name)).unwrap();
        let failed: Vec<_> = records.trials.iter().filter_map(|trial| trial.error.as_deref()).collect();
        assert!(!records.trials.is_empty() && failed.is_empty(), "{name}: {failed:?}");
    }
    bench.assert_clean();
}

#[test]
fn the_study_of_wide_tables_runs_with_tiny_data() {
    smoke("cubrid-2010-ssd");
}

#[test]
fn the_study_of_deployment_runs_with_tiny_data() {
    smoke("matsunobu-2010-ssd-deployment");
}

#[test]
fn the_study_of_flushing_runs_with_tiny_data() {
    smoke("percona-2009-adaptive-flushing");
}

#[test]
fn the_study_of_alignment_runs_with_tiny_data() {
    smoke("percona-2011-io-alignment");
}

#[test]
fn the_study_of_shard_query_runs_with_tiny_data() {
    smoke("percona-2011-shard-query");
}

#[test]
fn the_thesis_runs_with_tiny_data() {
    smoke("thesis-2012-ssd-mysql");
}

#[test]
fn the_study_of_connections_runs_with_tiny_data() {
    smoke("x25m-2009-tpcc-mysql");
}

#[test]
fn what_a_machine_lacks_is_named_and_its_claims_are_not_run_here() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let output = bench.path("studies");
    let mut command = bench.command(&["study", "run", "x25m", "--output", output.to_str().unwrap()]);
    let told = command.env("SPINDLE_CACHE_DIRECTORY", bench.path("empty")).output().unwrap();
    let words = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.status.success() && words.contains("1-connections: not run here"), "{words}");
    assert!(words.contains("spindle server get mysql-5.5"), "{words}");
    let claims = fs::read_to_string(output.join("x25m-2009-tpcc-mysql/claims.md")).unwrap();
    assert!(
        claims.contains("| X-01 | X25-M with the write cache off") && claims.contains("| not run here |"),
        "{claims}"
    );
    bench.assert_clean();
}

#[test]
fn a_study_that_is_not_there_is_answered_with_the_nearest() {
    let directory = tempfile::tempdir().unwrap();
    let told = |name: &str| run_in(directory.path(), &["study", "report", name]);
    assert!(told("x25m-2009-tpc-mysql").contains("did you mean `x25m-2009-tpcc-mysql`?"));
    assert!(told("percona").contains("`percona` is a part of `percona-2009-adaptive-flushing`"));
}

#[test]
fn committed_answers_are_what_the_program_says_of_the_committed_records() {
    for folder in folders() {
        let path = studies().join(folder.study).join("claims.md");
        let written = fs::read_to_string(&path).unwrap_or_default();
        let told = run_in(&studies(), &["study", "report", folder.study, "--output", "."]);
        let told = told.split_once("--- stdout\n").unwrap().1;
        assert!(
            told.trim_end() == written.trim_end(),
            "run `spindle study report --all --write --output studies`: {}",
            path.display()
        );
    }
}

#[test]
fn every_contradicted_claim_says_what_was_found() {
    let mut count = 0;
    for folder in folders() {
        let written = fs::read_to_string(studies().join(folder.study).join("claims.md")).unwrap();
        let is_contradicted =
            |line: &&str| line.split(" | ").nth(2).is_some_and(|verdict| verdict.starts_with("contradicted"));
        let contradicted: Vec<&str> = written.lines().filter(is_contradicted).collect();
        count += contradicted.len();
        let left: Vec<&&str> = contradicted.iter().filter(|line| !line.contains("Found (")).collect();
        assert!(left.is_empty(), "{}: `[[finding]]` is missing in claims.toml: {left:#?}", folder.study);
        let without_figure = written.lines().find(|line| line.contains("not measured"));
        assert_eq!(without_figure, None, "{}: the records lack a figure of a `[[finding]]`", folder.study);
    }
    assert!(count > 0, "the pages have another form");
}

/// METHODOLOGY.md, "Writes that a window puts off", and deployment's `study.md` say so.
#[test]
fn windows_with_all_data_in_memory_put_off_no_writes_and_those_of_the_insert_buffer_do() {
    let cells_warned = |scenario: &str| {
        let records = report::read(&studies().join("matsunobu-2010-ssd-deployment").join(scenario)).unwrap();
        let is_warned =
            |trial: &&Trial| trial.warnings.iter().any(|it| matches!(it, Warning::WritesPutOff { .. }));
        let warned = records.trials.iter().filter(is_warned).map(|trial| trial.cell.clone());
        warned.collect::<BTreeSet<String>>().len()
    };
    for scenario in ["08-dbt2-cached", "10-dbt2-slower-cores-cached", "20-dbt2-newer-mysql-cached"] {
        assert_eq!(cells_warned(scenario), 0, "{scenario}");
    }
    assert_eq!(cells_warned("15-insert-buffer"), 2);
}

#[test]
fn another_run_is_asked_for_other_verdicts() {
    let study = "percona-2009-adaptive-flushing";
    let against = |directory: &Path| {
        let directory = directory.to_str().unwrap();
        run_in(&studies(), &["study", "report", study, "--output", ".", "--against", directory])
    };
    let told = against(&studies());
    assert!(told.contains("that both runs test, 0 have another verdict"), "{told}");
    let other = tempfile::tempdir().unwrap();
    let told = against(other.path());
    assert!(told.contains("--against: no claim is tested both there and in ."), "{told}");
    // The trials of the two cells trade places.
    let records = fs::read_to_string(studies().join(study).join("1-steady/records.jsonl")).unwrap();
    let (header, trials) = records.split_once('\n').unwrap();
    let [off, on] = [0, 1].map(|value| format!("\"cell\":\"pool/innodb_adaptive_flushing={value}\""));
    let trials = trials.replace(&off, "\"cell\":\"\"").replace(&on, &off).replace("\"cell\":\"\"", &on);
    fs::create_dir_all(other.path().join(study).join("1-steady")).unwrap();
    let path = other.path().join(study).join("1-steady/records.jsonl");
    let processor =
        header.split_once("\"cpu_model\":\"").and_then(|(_, rest)| rest.split_once('"')).unwrap().0;
    let header = header.replace(processor, "Pentium III");
    fs::write(path, format!("{header}\n{trials}")).unwrap();
    let told = against(other.path());
    assert!(told.contains(&format!("| {study} | F-04 | confirmed | contradicted |")), "{told}");
    let words = format!("* {study}: {processor} here, Pentium III in the other run");
    assert!(told.contains(&words), "{told}");
}

#[test]
fn the_page_of_another_seed_is_that_of_the_committed_records() {
    let results = studies().join("../docs/results");
    let other = results.join("another-seed");
    let arguments = ["study", "report", "--all", "--output", ".", "--against", other.to_str().unwrap()];
    let told = run_in(&studies(), &arguments);
    let answer = told.split_once("--- stdout\n").unwrap().1.trim_end();
    let page = fs::read_to_string(results.join("another-seed.md")).unwrap();
    assert!(page.contains(answer), "docs/results/another-seed.md lacks\n{answer}");
}

#[test]
fn readme_has_the_table_of_the_committed_records() {
    let told = run_in(&studies(), &["study", "report", "--all", "--format", "md", "--output", "."]);
    let table = told.split_once("--- stdout\n").unwrap().1.trim_end();
    let readme = fs::read_to_string(studies().join("../README.md")).unwrap();
    assert!(readme.contains(table), "README.md lacks\n{table}");
}

/// Mean seconds of each statement over the trials of a cell.
fn statement_seconds(records: &Records, workload: &str) -> Vec<(String, f64)> {
    let trials: Vec<&Measurement> = records
        .trials
        .iter()
        .filter(|trial| trial.cell == format!("array/{workload}"))
        .map(|trial| trial.measurement.as_ref().unwrap())
        .collect();
    let mean_s = |index: usize| {
        let sum: f64 = trials.iter().map(|measured| measured.transactions[index].latency.mean_ms).sum();
        sum / 1e3 / trials.len() as f64
    };
    let names = trials[0].transactions.iter().map(|kind| kind.name.clone());
    names.enumerate().map(|(index, name)| (name, mean_s(index))).collect()
}

#[test]
fn the_table_of_split_queries_is_that_of_the_committed_records() {
    let records = report::read(&studies().join("percona-2011-shard-query/1-flights")).unwrap();
    let [whole, up, out] =
        ["baseline", "scale-up", "scale-out"].map(|workload| statement_seconds(&records, workload));
    let mut rows = Vec::new();
    let (mut up_gains, mut out_gains) = (1.0_f64, 1.0_f64);
    for (((name, whole), (_, up)), (_, out)) in whole.iter().zip(&up).zip(&out) {
        let (up_times, out_times) = (whole / up, whole / out);
        rows.push(format!("| {name} | {whole:.2} | {up:.2} | {up_times:.1} | {out:.2} | {out_times:.1} |"));
        (up_gains, out_gains) = (up_gains * up_times, out_gains * out_times);
    }
    let mean = |product: f64| product.powf(1.0 / whole.len() as f64);
    rows.push(format!("| geometric mean | | | {:.1} | | {:.1} |", mean(up_gains), mean(out_gains)));
    let table = rows.join("\n");
    let page = fs::read_to_string(studies().join("../docs/query.md")).unwrap();
    assert!(page.contains(&table), "docs/query.md lacks\n{table}");
}

#[test]
fn the_table_of_splitting_on_each_storage_is_that_of_the_committed_records() {
    let records = report::read(&studies().join("../records/split-queries")).unwrap();
    let mean = |stack: &str, split: u32, figure: fn(&Measurement) -> f64| {
        let cell = format!("{stack}/split={split}");
        let trials = records.trials.iter().filter(|trial| trial.cell == cell);
        let figures: Vec<f64> = trials.map(|trial| figure(trial.measurement.as_ref().unwrap())).collect();
        figures.iter().sum::<f64>() / figures.len() as f64
    };
    let row = |(stack, label): (&str, &str)| {
        let seconds = [1, 4].map(|split| mean(stack, split, |measured| measured.metric.value));
        let [alone, split] = [1, 4].map(|split| {
            mean(stack, split, |measured| measured.mounts[0].emulator.as_ref().unwrap().queue_depth_mean)
        });
        let times = seconds[0] / seconds[1];
        format!("| {label} | {:.2} | {alone:.1} | {:.2} | {split:.1} | {times:.2} |", seconds[0], seconds[1])
    };
    let stacks = [
        ("card", "PCIe card"),
        ("sata", "SATA SSD"),
        ("raid10", "4 disks, RAID 10"),
        ("hdd", "7200 rpm disk"),
    ];
    let table = stacks.map(row).join("\n");
    let page = fs::read_to_string(studies().join("../docs/query.md")).unwrap();
    assert!(page.contains(&table), "docs/query.md lacks\n{table}");
}

/// The page links to the reports that lie beside the records; the committed one has none.
#[test]
fn the_committed_page_is_what_the_program_says_of_the_committed_records() {
    let copy = tempfile::tempdir().unwrap();
    for folder in folders() {
        for (name, _) in folder.scenarios {
            let part = Path::new(folder.study).join(name);
            let records = part.join("records.jsonl");
            if studies().join(&records).exists() {
                fs::create_dir_all(copy.path().join(part)).unwrap();
                fs::copy(studies().join(&records), copy.path().join(&records)).unwrap();
            }
        }
    }
    let told = run_in(copy.path(), &["study", "report", "--all", "--output", "."]);
    let page = told.split_once("--- stdout\n").unwrap().1;
    let committed = fs::read_to_string(studies().join("report.html")).unwrap();
    assert!(
        page.trim_end() == committed.trim_end(),
        "run `spindle study report --all --write --output studies`"
    );
}

#[test]
fn the_page_of_all_studies_has_every_claim_and_asks_nothing_of_the_network() {
    let told = run_in(&studies(), &["study", "report", "--all", "--output", "."]);
    let claims: usize = spindle_lab::claims::studies().iter().map(|study| study.claims.len()).sum();
    assert_eq!(told.matches("<tr class=\"claim ").count(), claims);
    assert!(!told.contains("http://") && !told.contains("https://"));
}
