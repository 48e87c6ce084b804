//! Where the processes of a trial run, with `cpu_affinity` in the scenario.

use std::fs;

use spindle_base::{affinity, proc};
use spindle_lab::report;

use crate::emulated_support::{Bench, scenario};
use crate::{in_check_all, wait_until};

/// The command line of a process, and the cores that it may use, as the kernel lists them.
fn placed(process: u32) -> Option<(String, String)> {
    let read = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).ok();
    let status = read("status")?;
    let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().to_owned();
    Some((read("cmdline")?.replace('\0', " "), cores))
}

#[test]
fn server_and_client_stay_on_one_core_and_the_emulator_leaves_it_to_them() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    bench.write("test.toml", &scenario(&[("measure = \"3 s\"", "measure = \"3 s\"\ncpu_affinity = 1")]));
    let run = bench.start_scenario();
    let find = |words: &str| {
        let mut placed = proc::children(run.id()).into_iter().filter_map(placed);
        placed.find_map(|(command, cores)| command.contains(words).then_some(cores))
    };
    wait_until("the load process", || find(" load client").is_some());
    let [client, server, emulator] =
        [" load client", "mariadbd ", " disk serve "].map(|words| find(words).unwrap_or_default());
    let talk = bench.finish(run, 0);
    let cores: Vec<String> = affinity::cores().unwrap().iter().map(usize::to_string).collect();
    assert_eq!([&client, &server], [&cores[0]; 2], "{talk}");
    // The others, or on a machine of one core that one.
    assert!(emulator.starts_with(cores.get(1).unwrap_or(&cores[0])), "{emulator}");
    let records = report::read(&bench.records()).unwrap();
    assert_eq!(records.header.cpu_count(), 1);
    let measurement = bench.trials().remove(0).measurement.expect(&talk);
    assert_eq!(measurement.bottleneck.evidence.unwrap().cpu_count, 1);
}
