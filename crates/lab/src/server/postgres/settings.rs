//! Facts about PostgreSQL's settings that the server itself does not report.

use std::sync::LazyLock;

use serde::Deserialize;
use spindle_twin::BackgroundWriting;

use super::telemetry::PostgresTelemetry;
use crate::server::settings::{
    self, MemorySetting, Refusal, Settings, check_memory, has, plain_name, setting,
};
use crate::server::telemetry::Telemetry as _;

/// See `settings.toml`. A scenario must not name a setting of `own` or `fixed`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    own: Vec<String>,
    pub(super) shaping: Vec<String>,
    pub(super) fixed: Settings,
    pub(super) loading: Settings,
}

pub(super) static KNOWN: LazyLock<Known> =
    LazyLock::new(|| toml::from_str(include_str!("settings.toml")).expect("a test reads it"));

pub(in crate::server) const MEMORY_SETTINGS: [MemorySetting; 1] = [MemorySetting {
    name: "shared_buffers",
    // A number without a unit counts pages.
    bytes: |text| size_bytes(text, PAGE_BYTES),
    example: "96MB",
}];
const PAGE_BYTES: u64 = 8192;

/// # Errors
/// A setting that the instance decides, in any spelling, or a name with more than a name in it.
pub(super) fn check(settings: &Settings) -> Result<(), Refusal> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    for name in settings.keys() {
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(Refusal(format!("setting `{name}`: is not a valid name of a setting")));
        }
        let plain = plain_name(name);
        if has(&KNOWN.own, &plain) || KNOWN.fixed.contains_key(&plain) {
            return Err(Refusal(format!(
                "setting `{name}`: the server is private, so Spindle decides this one; remove it"
            )));
        }
    }
    check_memory(settings, &MEMORY_SETTINGS)
}

/// Approximate size of the write-ahead log between checkpoints.
pub(super) fn log_bytes(settings: &Settings) -> u64 {
    /// Unit of a number without one.
    const UNIT_BYTES: u64 = 1 << 20;
    /// The server's default.
    const DEFAULT_BYTES: u64 = 1 << 30;
    let value = setting(settings, "max_wal_size");
    value.and_then(|value| size_bytes(value, UNIT_BYTES)).unwrap_or(DEFAULT_BYTES)
}

/// Size of the server's own cache of pages.
pub(super) fn pool_bytes(settings: &Settings) -> u64 {
    /// Unit of a number without one: a page.
    const UNIT_BYTES: u64 = 8 << 10;
    /// The server's default.
    const DEFAULT_BYTES: u64 = 128 << 20;
    let value = setting(settings, "shared_buffers");
    value.and_then(|value| size_bytes(value, UNIT_BYTES)).unwrap_or(DEFAULT_BYTES)
}

/// From version 16 on (PostgreSQL's documentation, 20.17).
pub(super) const DIRECT: &str = "debug_io_direct";

/// Whether data files are read and written past the page cache.
pub(super) fn goes_past_page_cache(settings: &Settings) -> bool {
    let of_data = |kinds: &str| kinds.split(',').any(|kind| kind.trim().eq_ignore_ascii_case("data"));
    setting(settings, DIRECT).is_some_and(of_data)
}

/// What the background writer does (PostgreSQL's documentation, 20.4.5).
pub(super) fn background_writing(settings: &Settings) -> BackgroundWriting {
    const MILLISECOND_NS: u64 = 1_000_000;
    let suffixes = [("us", 1_000), ("ms", MILLISECOND_NS), ("s", 1_000 * MILLISECOND_NS)];
    let delay = setting(settings, "bgwriter_delay")
        .and_then(|text| settings::size_bytes(text, MILLISECOND_NS, &suffixes));
    let most = setting(settings, "bgwriter_lru_maxpages").and_then(|text| text.trim().parse().ok());
    let flush_after = setting(settings, "bgwriter_flush_after").and_then(|text| size_bytes(text, PAGE_BYTES));
    // The server's defaults.
    BackgroundWriting {
        delay_ns: delay.unwrap_or(200 * MILLISECOND_NS),
        most_pages: most.unwrap_or(100),
        flush_after_pages: flush_after.unwrap_or(512 << 10) / PAGE_BYTES,
    }
}

/// Bytes of a whole number with `B`, `kB`, `MB`, `GB` or `TB`, in powers of 1024. The unit of a number
/// without one is `unit_bytes`.
fn size_bytes(text: &str, unit_bytes: u64) -> Option<u64> {
    let suffixes = [("B", 1), ("kB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30), ("TB", 1 << 40)];
    settings::size_bytes(text, unit_bytes, &suffixes)
}

/// The lists of `settings.toml` by their treatment.
pub(super) fn special() -> Vec<(&'static str, Vec<String>)> {
    let refused = KNOWN.own.iter().chain(KNOWN.fixed.keys()).cloned().collect();
    let loading = KNOWN.loading.iter().map(|(name, value)| format!("{name} = {value}"));
    vec![
        ("refused: the server is private, so Spindle decides them", refused),
        ("shape the files, so that databases with other values are loaded apart", KNOWN.shaping.clone()),
        ("have these values while a database is loaded", loading.collect()),
        (
            "say what a commit waits for, and what is left to the kernel",
            PostgresTelemetry.commit_settings().iter().map(|&name| name.to_owned()).collect(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn data_files_go_past_the_page_cache_if_the_setting_names_them() {
        let check = |value: &str, expect| {
            let settings = BTreeMap::from([("Debug_IO_Direct".to_owned(), value.to_owned())]);
            assert_eq!(goes_past_page_cache(&settings), expect, "{value}");
        };
        check("data", true);
        check("wal, DATA", true);
        check("wal,wal_init", false);
        check("", false);
        assert!(!goes_past_page_cache(&BTreeMap::new()));
    }

    #[test]
    fn sizes_are_read_as_the_server_reads_them() {
        let check = |text: &str, expect| assert_eq!(size_bytes(text, PAGE_BYTES), expect, "{text}");
        check("128MB", Some(128 << 20));
        check("16 kB", Some(16 << 10));
        check("16384", Some(128 << 20));
        check("12M", None);
        check("mb", None);
        check("99999999999999999999TB", None);
    }

    #[test]
    fn the_log_grows_as_the_settings_or_the_server_say() {
        let log = |pairs: &[(&str, &str)]| {
            log_bytes(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        };
        assert_eq!(log(&[]), 1 << 30);
        assert_eq!(log(&[("max_wal_size", "2GB")]), 2 << 30);
        assert_eq!(log(&[("max_wal_size", "96")]), 96 << 20);
    }

    #[test]
    fn the_background_writer_does_what_its_settings_say() {
        let found = |pairs: &[(&str, &str)]| {
            let settings =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let BackgroundWriting { delay_ns, most_pages, flush_after_pages } = background_writing(&settings);
            (delay_ns / 1_000_000, most_pages, flush_after_pages)
        };
        assert_eq!(found(&[]), (200, 100, 64));
        let all =
            [("bgwriter_delay", "1s"), ("BGWriter_LRU_maxpages", "0"), ("bgwriter_flush_after", "256kB")];
        assert_eq!(found(&all), (1_000, 0, 32));
        assert_eq!(found(&[("bgwriter_delay", "50"), ("bgwriter_flush_after", "16")]), (50, 100, 16));
    }

    #[test]
    fn a_setting_of_the_instance_is_refused_however_it_is_written() {
        let refused = |name: &str| {
            let settings = BTreeMap::from([(name.to_owned(), "x".to_owned())]);
            check(&settings).expect_err(name).0
        };
        for name in KNOWN.own.iter().chain(KNOWN.fixed.keys()) {
            for written in [name.clone(), name.replace('_', "-"), name.to_ascii_uppercase()] {
                assert!(refused(&written).contains("the server is private"), "{written}");
            }
        }
        for name in ["work_mem=4MB listen_addresses", "port=1", "", "a b"] {
            assert!(refused(name).contains("is not a valid name"), "{name}");
        }
    }

    #[test]
    fn buffers_larger_than_memory_are_refused() {
        let settings = |value: &str| BTreeMap::from([("Shared_Buffers".to_owned(), value.to_owned())]);
        assert_eq!(check(&settings("16MB")), Ok(()));
        for value in ["64TB", "1073741823"] {
            assert!(
                check(&settings(value))
                    .unwrap_err()
                    .to_string()
                    .contains("larger than this machine's memory")
            );
        }
        let dashed = BTreeMap::from([("shared-buffers".to_owned(), "64TB".to_owned())]);
        assert!(check(&dashed).is_err());
    }
}
