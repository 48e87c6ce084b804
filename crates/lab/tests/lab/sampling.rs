//! The samples of each second: which counters a server has for its charts, and what asking for them costs.

use std::time::{Duration, Instant};

use spindle_base::dilation::Dilation;
use spindle_base::proc::{CpuTimes, Memory, family_cpu_s};
use spindle_lab::observe::machine::{self, Drives, Processes};
use spindle_lab::server::Running;

use crate::in_check_all;
use crate::server_support::*;

static MARIADB: Bed = Bed::new("mariadb", &[("innodb_buffer_pool_size", "64M")]);
static MYSQL: Bed = Bed::new("mysql", &[("innodb_buffer_pool_size", "64M")]);
static POSTGRESQL: Bed = Bed::new("postgresql", &[("shared_buffers", "64MB")]);

/// The lines for which the server has counters.
fn lines(running: &mut dyn Running) -> Vec<&'static str> {
    let earlier = running.counters().unwrap();
    let later = running.counters().unwrap();
    let lines = running.telemetry().charts().iter().flat_map(|chart| chart.lines);
    let known = lines.filter(|line| line.value([&earlier, &later], 1.0).is_some_and(f64::is_finite));
    known.map(|line| line.name).collect()
}

const INNODB: [&str; 11] = [
    "checkpoint_age_bytes",
    "log_capacity_bytes",
    "history_list",
    "dirty_pages",
    "old_pages",
    "pages_written_per_s",
    "buffer_pool_hit_share",
    "buffer_pool_reads_per_s",
    "fsyncs_per_s",
    "log_waits_per_s",
    "row_lock_waits_per_s",
];

#[test]
fn mariadb_has_a_counter_for_every_chart() {
    let Some(mut server) = MARIADB.empty() else { return };
    assert_eq!(lines(&mut *server), INNODB);
}

#[test]
fn mysql_has_a_counter_for_every_chart() {
    let Some(mut server) = in_check_all(|| MYSQL.empty()) else { return };
    let mut found = lines(&mut *server);
    found.retain(|line| *line != "log_fsyncs_per_s");
    assert_eq!(found, INNODB);
}

#[test]
fn postgresql_has_a_counter_for_every_chart() {
    // Statistics are those of the workload's database, which loading creates.
    let Some(mut server) = in_check_all(|| POSTGRESQL.loaded()) else { return };
    let found = lines(&mut *server);
    let expect: Vec<&str> =
        server.telemetry().charts().iter().flat_map(|chart| chart.lines).map(|line| line.name).collect();
    assert_eq!(found, expect);
}

/// Processor time of this process and of the server.
fn spent_s(server_id: u32) -> [f64; 2] {
    [machine::own_cpu_s(), family_cpu_s(server_id)]
}

/// Pairs of stretches, one with samples and one without, on a server that does nothing else.
fn cost(title: &str, running: &mut dyn Running) {
    const PAIRS: u32 = 3;
    // `SPINDLE_SAMPLING_SECONDS=60` takes a sample a second for so long; by default they follow each other.
    let seconds =
        std::env::var("SPINDLE_SAMPLING_SECONDS").ok().and_then(|seconds| seconds.parse::<u32>().ok());
    let (samples, pause) =
        seconds.map_or((20, Duration::from_millis(50)), |seconds| (seconds, Duration::from_secs(1)));
    let server_id = running.process_id();
    let mut stretch = |is_sampled: bool| {
        let before = spent_s(server_id);
        let begun = Instant::now();
        for sample in 1..=samples {
            if is_sampled {
                running.counters().unwrap();
                let processes = Processes { server_s: family_cpu_s(server_id), ..Processes::default() };
                let readings =
                    machine::readings(processes, Memory::read(), Drives::default(), Dilation::NONE);
                assert!(CpuTimes::read().is_some() && readings.contains_key(machine::SAMPLING));
            }
            std::thread::sleep((pause * sample).saturating_sub(begun.elapsed()));
        }
        let after = spent_s(server_id);
        [after[0] - before[0], after[1] - before[1]].map(|spent_s| 1e3 * spent_s / f64::from(samples))
    };
    stretch(true);
    for _ in 0..PAIRS {
        let (with, without) = (stretch(true), stretch(false));
        let [own, server] = [with[0] - without[0], with[1] - without[1]];
        println!(
            "{title}, a sample: {own:.2} ms of this process (without: {:.2}), {server:.2} ms of the server (without: \
             {:.2}); once a second that is {:.2} % of a core",
            without[0],
            without[1],
            (own + server) / 10.0
        );
    }
}

/// Prints, and asserts no time: the machine may be busy.
#[test]
fn the_cost_of_a_sample_is_printed() {
    if let Some(mut server) = in_check_all(|| MARIADB.empty()) {
        cost("MariaDB", &mut *server);
    }
    if let Some(mut server) = in_check_all(|| POSTGRESQL.empty()) {
        cost("PostgreSQL", &mut *server);
    }
}
