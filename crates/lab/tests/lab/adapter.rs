//! Whole runs of servers that are not ours: one driven by the adapter of the documentation, and one that runs
//! already.

use std::path::Path;
use std::time::Duration;

use crate::emulated_support::{Bench, measured, scenario};
use crate::in_check_all;
use crate::server_support::{installed, instance, start};
use spindle_load::Endpoint;

#[test]
fn the_adapter_of_the_documentation_runs_tpcc_on_an_emulated_disk() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/adapters/mariadb.toml");
    let server = format!("kind = \"adapter\"\nfile = {:?}", file.canonicalize().expect("it is there"));
    bench.write("test.toml", &scenario(&[("kind = \"mariadb\"", &server)]));
    let (trial, measurement) = bench.run_one_tpcc();
    assert!(measurement.cpu.server_s > 0.0, "{:?}", measurement.cpu);
    assert!(measurement.server_counters["Innodb_data_fsyncs"] > 0.0, "{:?}", measurement.server_counters);
    assert!(trial.provenance.server_version.contains("MariaDB"), "{:?}", trial.provenance);
    assert_eq!(trial.provenance.settings["innodb_buffer_pool_size"], "12582912");
    bench.assert_clean();
}

#[test]
fn an_adapter_that_is_missing_or_wrong_is_refused_before_any_work() {
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

/// Two trials, the second on the database of the first.
#[test]
fn a_server_that_runs_already_is_measured_and_left_running() {
    let Some(server) = in_check_all(|| installed("mariadb")) else { return };
    let bench = Bench::anywhere();
    let theirs = instance(&bench.path("theirs"), &[]);
    server.prepare(&theirs).expect("an empty database");
    let mut running = start(&*server, &theirs);
    let Endpoint::MysqlSocket { path, .. } = running.endpoint() else { panic!("no socket") };

    let text = |url: &str, start: &str, stack: &str| {
        format!(
            "title = \"Test\"\nquestion = \"\"\n[stacks.theirs]\n{stack}\n[servers.theirs]\nkind = \"running\"\nurl = \"{url}\"\n\
             [workloads.commits]\nkind = \"fsync-loop\"\nterminals = 2\n[matrix]\nstack = [\"theirs\"]\nserver = [\"theirs\"]\n\
             workload = [\"commits\"]\n[run]\ntrials = 2\nstart = \"{start}\"\n{}measure = \"3 s\"\nseed = 1\n",
            if start == "cold" { "" } else { "warm_up = \"200 ms\"\n" }
        )
    };
    let (url, stack) = (format!("socket:{}", path.display()), format!("path = {:?}", bench.path("theirs")));
    bench.write("test.toml", &text(&url, "warm", &stack));
    let talk = bench.run_scenario(&[], &[], 0);
    let trials = bench.trials();
    assert_eq!(trials.len(), 2, "{talk}");
    for trial in &trials {
        let measurement = measured(trial);
        assert!(measurement.server_counters["Innodb_data_fsyncs"] > 0.0, "{:?}", measurement.server_counters);
        assert!(trial.provenance.server_version.contains("MariaDB"), "{:?}", trial.provenance);
    }
    running.check_alive(Duration::ZERO).expect("it still runs");

    let check = |text: String, expect: &str| {
        bench.write("test.toml", &text);
        let talk = bench.run_scenario(&[], &[], 2);
        assert!(talk.contains(expect), "{talk}");
    };
    check(text(&url, "cold", &stack), "run.start: must be \"warm\": server `theirs` runs already");
    check(text("here", "warm", &stack), "servers.theirs.url: write `socket:/path`");
    check(
        text(&url, "warm", "profile = \"null\"\nsize = \"1 GB\""),
        "stacks.theirs: is emulated, and server `theirs` is on storage of its own",
    );
}
