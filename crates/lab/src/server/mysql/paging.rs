//! Pages and log of InnoDB by its counters, and the settings of its page cleaner with their defaults.
//!
//! Defaults: MariaDB 10.11, storage/innobase/handler/ha_innodb.cc; MySQL 8.4 and 5.5, Reference Manual, "InnoDB
//! Startup Options and System Variables".

use std::collections::BTreeMap;

use spindle_twin::trace::Midpoint;
use spindle_twin::{InnodbRules, Neighbors};

use super::files::{LOG_BIN, is_off, redo_bytes};
use super::release::{Flavour, Release};
use super::settings::size_bytes;
use super::telemetry::{FLUSHED, REDO};
use crate::server::settings::{Settings, setting};
use crate::server::telemetry::{Paging, Rules};

const POOL: &str = "innodb_buffer_pool_size";
const POOL_BYTES: u64 = 128 << 20;
const PAGE_BYTES: u64 = 16 << 10;

pub(super) fn pool_bytes(settings: &Settings) -> u64 {
    setting(settings, POOL).and_then(size_bytes).unwrap_or(POOL_BYTES)
}

/// `None` without counters of InnoDB.
pub(super) fn paging(moved: &BTreeMap<String, f64>, settings: &Settings, version: &str) -> Option<Paging> {
    let count = |names: &[&str]| names.iter().find_map(|name| moved.get(*name).copied());
    let foreground_reads = count(&["Innodb_buffer_pool_reads"])?;
    let page_bytes = setting(settings, "innodb_page_size").and_then(size_bytes).unwrap_or(PAGE_BYTES);
    let or_zero = |names: &[&str]| count(names).unwrap_or(0.0);
    // The log's are among those of the files. From MariaDB 10.8 on they have no count of their own; a write for a
    // commit that waits is followed by one.
    let log_syncs = match count(&["Innodb_os_log_fsyncs"]) {
        Some(log_syncs) => log_syncs,
        None if flushes_commits(settings) => or_zero(&["Innodb_log_writes"]),
        None => 0.0,
    };
    let defaults = defaults(version);
    Some(Paging {
        page_bytes,
        pool_pages: pool_bytes(settings) / page_bytes.max(1),
        pool_setting: POOL,
        foreground_reads: Some(foreground_reads),
        written_pages: or_zero(&["Innodb_buffer_pool_pages_flushed"]),
        written_for_room: or_zero(&[
            "Innodb_buffer_pool_pages_lru_flushed",
            "Innodb_buffer_pool_pages_LRU_flushed",
        ]),
        written_by_time: 0.0,
        log_bytes: or_zero(&["Innodb_lsn_current", "Innodb_os_log_written"]),
        log_writes: count(&["Innodb_log_writes"]),
        data_syncs: (or_zero(&["Innodb_data_fsyncs"]) - log_syncs).max(0.0),
        doublewrite_batches: or_zero(&["Innodb_dblwr_writes"]),
        groups_commits: groups_commits(settings, version),
        midpoint: Some(midpoint(settings, &defaults)),
        moved_to_head: count(&["Innodb_buffer_pool_pages_made_young"]),
        rules: Rules::Innodb(rules(settings, &defaults)),
    })
}

/// Whether the redo log is flushed for each commit, as it is by default.
fn flushes_commits(settings: &Settings) -> bool {
    setting(settings, REDO).is_none_or(|value| FLUSHED.contains(&value))
}

fn release(version: &str) -> Option<Release> {
    let number = version.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    Release::parse(&format!("Ver {number}"))
}

/// Up to MySQL 5.5 and MariaDB 5.2 a binary log keeps commits from sharing a flush (`prepare_commit_mutex` in
/// ha_innodb.cc; MySQL bug 13669).
fn groups_commits(settings: &Settings, version: &str) -> bool {
    let has_binlog = setting(settings, LOG_BIN).is_some_and(|value| !is_off(value));
    let is_old = release(version).is_some_and(|release| match release.flavour {
        Flavour::MariaDb => release.version < (5, 3, 0),
        Flavour::MySql | Flavour::Percona => release.version < (5, 6, 0),
    });
    !(has_binlog && is_old)
}

/// Defaults that differ between servers.
struct Defaults {
    io_capacity: u64,
    io_capacity_max_least: u64,
    log_files: u64,
    log_bytes: u64,
    max_dirty_low_water_percent: f64,
    scan_depth: u64,
    old_blocks_ms: f64,
    has_neighbors: bool,
    /// With `innodb_flush_neighbors`.
    neighbors: Neighbors,
}

fn defaults(version: &str) -> Defaults {
    let mariadb = Defaults {
        io_capacity: 200,
        io_capacity_max_least: 2_000,
        log_files: 1,
        log_bytes: 96 << 20,
        max_dirty_low_water_percent: 0.0,
        scan_depth: 1_536,
        old_blocks_ms: 1_000.0,
        has_neighbors: true,
        // From 10.4 on (MDEV-17380).
        neighbors: Neighbors::OnDisks,
    };
    match release(version) {
        Some(release) if release.flavour != Flavour::MariaDb => Defaults {
            // 8.4 assumes flash.
            io_capacity: if release.version >= (8, 4, 0) { 10_000 } else { 200 },
            log_files: 2,
            log_bytes: if release.version >= (5, 6, 8) { 96 << 20 } else { 10 << 20 },
            max_dirty_low_water_percent: if release.version >= (8, 0, 0) { 10.0 } else { 0.0 },
            scan_depth: 1_024,
            old_blocks_ms: if release.version >= (5, 6, 6) { 1_000.0 } else { 0.0 },
            // 8.0 assumes flash. Servers before 5.6.3 lack the setting, and do as if it was on.
            has_neighbors: release.version < (8, 0, 0),
            neighbors: Neighbors::Always,
            ..mariadb
        },
        Some(release) if release.version < (10, 4, 0) => Defaults {
            old_blocks_ms: if release.version < (10, 0, 0) { 0.0 } else { mariadb.old_blocks_ms },
            neighbors: Neighbors::Always,
            ..mariadb
        },
        _ => mariadb,
    }
}

fn number(settings: &Settings, name: &str) -> Option<f64> {
    setting(settings, name).and_then(|value| value.parse().ok())
}

fn midpoint(settings: &Settings, defaults: &Defaults) -> Midpoint {
    Midpoint {
        older_share: number(settings, "innodb_old_blocks_pct").unwrap_or(37.0) / 100.0,
        not_within_s: number(settings, "innodb_old_blocks_time").unwrap_or(defaults.old_blocks_ms) / 1e3,
    }
}

fn rules(settings: &Settings, defaults: &Defaults) -> InnodbRules {
    let number = |name: &str| number(settings, name);
    let count = |name: &str| number(name).map(|value| value as u64);
    let is_on = |name: &str| setting(settings, name).is_none_or(|value| !is_off(value));
    let io_capacity = count("innodb_io_capacity").unwrap_or(defaults.io_capacity);
    let io_capacity_max = (2 * io_capacity).max(defaults.io_capacity_max_least);
    let has_neighbors = setting(settings, "innodb_flush_neighbors");
    let has_neighbors = has_neighbors.map_or(defaults.has_neighbors, |value| !is_off(value));
    InnodbRules {
        io_capacity,
        io_capacity_max: count("innodb_io_capacity_max").unwrap_or(io_capacity_max),
        log_bytes: redo_bytes(settings, defaults.log_files).unwrap_or(defaults.log_bytes),
        max_dirty_percent: number("innodb_max_dirty_pages_pct").unwrap_or(90.0),
        max_dirty_low_water_percent: number("innodb_max_dirty_pages_pct_lwm")
            .unwrap_or(defaults.max_dirty_low_water_percent),
        is_adaptive: is_on("innodb_adaptive_flushing"),
        adaptive_low_water_percent: number("innodb_adaptive_flushing_lwm").unwrap_or(10.0),
        scan_depth: count("innodb_lru_scan_depth").unwrap_or(defaults.scan_depth),
        has_doublewrite: is_on("innodb_doublewrite"),
        neighbors: if has_neighbors { defaults.neighbors } else { Neighbors::Never },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules_of(version: &str, settings: &[(&str, &str)]) -> InnodbRules {
        let settings =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let moved = BTreeMap::from([("Innodb_buffer_pool_reads".to_owned(), 1.0)]);
        match paging(&moved, &settings, version).unwrap().rules {
            Rules::Innodb(rules) => rules,
            Rules::PageCache(_) => panic!("InnoDB writes its pages itself"),
        }
    }

    #[test]
    fn each_server_has_its_own_defaults() {
        let of = |version: &str| {
            let rules = rules_of(version, &[]);
            (rules.io_capacity, rules.io_capacity_max, rules.scan_depth, rules.log_bytes >> 20)
        };
        assert_eq!(of("10.11.19-MariaDB-0+deb12u1"), (200, 2_000, 1_536, 96));
        assert_eq!(of("MySQL 9.7.4-2"), (10_000, 20_000, 1_024, 96));
        assert_eq!(of("MySQL 5.5.9"), (200, 2_000, 1_024, 10));
    }

    #[test]
    fn neighbors_are_written_by_the_servers_rule() {
        let check = |version: &str, given: &[(&str, &str)], expect: Neighbors| {
            assert_eq!(rules_of(version, given).neighbors, expect, "{version}, {given:?}");
        };
        check("10.11.19-MariaDB", &[], Neighbors::OnDisks);
        check("10.11.19-MariaDB", &[("innodb-flush-neighbors", "0")], Neighbors::Never);
        check("10.3.39-MariaDB", &[], Neighbors::Always);
        check("MySQL 9.7.4-2", &[], Neighbors::Never);
        check("MySQL 9.7.4-2", &[("innodb_flush_neighbors", "1")], Neighbors::Always);
        check("MySQL 5.5.9", &[], Neighbors::Always);
    }

    #[test]
    fn a_page_that_was_read_waits_at_the_midpoint() {
        let check = |version: &str, given: &[(&str, &str)], older_share: f64, not_within_s: f64| {
            let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let expect = Midpoint { older_share, not_within_s };
            assert_eq!(midpoint(&given, &defaults(version)), expect, "{version}");
        };
        check("10.11.19-MariaDB", &[], 0.37, 1.0);
        check("MySQL 5.5.9", &[], 0.37, 0.0);
        check(
            "MySQL 9.7.4-2",
            &[("innodb_old_blocks_pct", "20"), ("innodb-old-blocks-time", "500")],
            0.2,
            0.5,
        );
    }

    #[test]
    fn settings_replace_defaults() {
        let given =
            [("innodb_io_capacity", "1500"), ("innodb_log_file_size", "32M"), ("innodb-doublewrite", "OFF")];
        let rules = rules_of("10.11.19-MariaDB", &given);
        assert_eq!((rules.io_capacity, rules.io_capacity_max), (1_500, 3_000));
        assert_eq!((rules.log_bytes >> 20, rules.has_doublewrite), (32, false));
    }

    #[test]
    fn an_old_server_with_a_binary_log_commits_one_by_one() {
        let check = |version: &str, log_bin: &str, expect: bool| {
            let settings = Settings::from([("log_bin".to_owned(), log_bin.to_owned())]);
            assert_eq!(groups_commits(&settings, version), expect, "{version}, {log_bin}");
        };
        check("MySQL 5.5.9", "ON", false);
        check("MySQL 5.5.9", "OFF", true);
        check("MySQL 5.6.24", "ON", true);
        check("10.11.19-MariaDB", "ON", true);
    }

    #[test]
    fn the_logs_flushes_are_not_the_datas() {
        let moved = |log: &str| {
            let counters = [("Innodb_buffer_pool_reads", 1.0), ("Innodb_data_fsyncs", 50.0), (log, 40.0)];
            BTreeMap::from(counters.map(|(name, value)| (name.to_owned(), value)))
        };
        let check = |log: &str, at_commit: &str, expect: f64| {
            let settings =
                Settings::from([("innodb_flush_log_at_trx_commit".to_owned(), at_commit.to_owned())]);
            let paging = paging(&moved(log), &settings, "10.11.19-MariaDB").unwrap();
            assert_eq!(paging.data_syncs, expect, "{log}, {at_commit}");
        };
        check("Innodb_os_log_fsyncs", "2", 10.0);
        check("Innodb_log_writes", "1", 10.0);
        check("Innodb_log_writes", "2", 50.0);
    }

    #[test]
    fn a_server_without_innodb_tells_nothing() {
        assert_eq!(paging(&BTreeMap::new(), &Settings::new(), "10.11.19-MariaDB"), None);
    }
}
