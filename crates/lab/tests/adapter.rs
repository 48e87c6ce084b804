//! A whole run of a server that is driven by an adapter: the one of the documentation.

mod emulated_support;

use std::path::Path;

use emulated_support::{Bench, scenario};

#[test]
fn the_adapter_of_the_documentation_runs_tpcc_on_an_emulated_disk() {
    let Some(bench) = Bench::new() else { return };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/adapters/mariadb.toml");
    let server = format!("kind = \"adapter\"\nfile = {:?}", file.canonicalize().expect("it is there"));
    bench.write("test.toml", &scenario(&[("kind = \"mariadb\"", &server)]));
    let talk = bench.run_scenario(&[], &[], 0);
    let trials = bench.trials();
    assert_eq!(trials.len(), 1, "{talk}");
    let trial = &trials[0];
    let measurement = trial.measurement.as_ref().unwrap_or_else(|| panic!("{:?}", trial.error));
    assert!(measurement.verification.len() >= 12, "{:?}", measurement.verification);
    assert!(measurement.verification.iter().all(|check| check.passed), "{:?}", measurement.verification);
    assert!(measurement.cpu.server_s > 0.0, "{:?}", measurement.cpu);
    assert!(measurement.server_counters["Innodb_data_fsyncs"] > 0.0, "{:?}", measurement.server_counters);
    assert!(trial.provenance.server_version.contains("MariaDB"), "{:?}", trial.provenance);
    assert_eq!(trial.provenance.settings["innodb_buffer_pool_size"], "12582912");
    bench.assert_clean();
}

#[test]
fn an_adapter_that_cannot_be_read_or_is_none_is_refused_before_any_work() {
    let bench = Bench::anywhere();
    let broken =
        bench.write("broken.toml", "version = [\"a\"]\nurl = \"here\"\nprepare = [\"b\"]\nstart = [\"c\"]\n");
    let check = |server: &str, expect: &str| {
        bench.write("test.toml", &scenario(&[("kind = \"mariadb\"", server)]));
        let talk = bench.run_scenario(&[], &[], 2);
        assert!(talk.contains(expect), "{talk}");
        assert!(!bench.records().exists());
    };
    check("kind = \"adapter\"", "servers.mariadb.file: is missing");
    check(
        "kind = \"adapter\"\nfile = \"/no/such.toml\"",
        "servers.mariadb.file: /no/such.toml: No such file",
    );
    check(&format!("kind = \"adapter\"\nfile = {broken:?}"), "broken.toml: url: write `socket:/path`");
    check("kind = \"mariadb\"\nfile = \"/x\"", "servers.mariadb.file: belongs to kind = \"adapter\"");
}
