//! The settings of a scenario that a private server accepts.
//!
//! The server accepts several names for a setting: any unambiguous beginning, and prefixes
//! (mysys/my_getopt.c: `skip`, `disable`, `enable`, `maximum`, `loose`, in MariaDB `autoset`;
//! sql/sql_plugin.cc: `plugin`). A refused setting is refused by each of these names.

use std::sync::LazyLock;

use serde::Deserialize;

use super::telemetry::MysqlTelemetry;
use crate::server::settings::{self, Refusal, Settings, has, plain_name};
use crate::server::telemetry::Telemetry as _;

/// See `settings.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    own: Names,
    own_families: Names,
    placing: Names,
    file_names: Names,
    beginnings: Names,
    prefixes: Names,
    without_prefix: Names,
    pub(super) shaping: Names,
    pub(super) for_tables: Names,
    pub(super) filters: Names,
    pub(super) loading: Settings,
    pub(super) decided: Settings,
}

type Names = Vec<String>;

pub(super) static KNOWN: LazyLock<Known> =
    LazyLock::new(|| toml::from_str(include_str!("settings.toml")).expect("a test reads it"));

/// Bytes, with binary suffixes: `134217728`, `128M`, `1g`.
pub(super) fn size_bytes(text: &str) -> Option<u64> {
    let suffixes = [("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40)];
    settings::size_bytes(&text.to_ascii_uppercase(), 1, &suffixes)
}

/// The reason why a scenario may not set it, as the end of a sentence; `None` if it may.
pub(in crate::server) fn objection(name: &str) -> Option<String> {
    let plain = plain_name(name);
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.');
    if !plain.starts_with(|letter: char| letter.is_ascii_lowercase()) || !plain.chars().all(is_name) {
        return Some("is not a valid name of a setting".to_owned());
    }
    let has_prefix =
        |prefix: &&String| plain.starts_with(prefix.as_str()) && !has(&KNOWN.without_prefix, &plain);
    if let Some(prefix) = KNOWN.prefixes.iter().find(has_prefix) {
        return Some(format!("write the setting's own name, without `{prefix}`"));
    }
    let names = [Some(plain.as_str()), plain.strip_prefix("skip_")];
    names.into_iter().flatten().find_map(objection_to_plain)
}

fn objection_to_plain(name: &str) -> Option<String> {
    let Known { own, own_families, placing, beginnings, .. } = &*KNOWN;
    if has(own, name) || own_families.iter().any(|family| name.starts_with(family)) {
        return Some("the server is private, so Spindle decides this one; remove it".to_owned());
    }
    if has(placing, name) {
        return Some("a layout decides the location of files; remove it".to_owned());
    }
    let is_beginning = |whole: &&String| whole.starts_with(name) && !has(beginnings, name);
    let whole = own.iter().chain(placing).chain(own_families).find(is_beginning)?;
    Some(format!("is an abbreviation, which the server could take for `{}`", whole.trim_end_matches('_')))
}

/// # Errors
/// A setting that would open the private server to others, or would move files away from their place in the
/// layout.
pub(super) fn check(settings: &Settings) -> Result<(), Refusal> {
    for (name, value) in settings {
        if let Some(objection) = objection(name) {
            return Err(Refusal(format!("setting `{name}`: {objection}")));
        }
        if has(&KNOWN.file_names, &plain_name(name)) && value.contains('/') {
            return Err(Refusal(format!(
                "setting `{name}` = \"{value}\": has a path; a layout decides the location of files, so name files only"
            )));
        }
    }
    Ok(())
}

/// The lists of `settings.toml` by their treatment, in any spelling. A family ends with `*`.
pub(super) fn special() -> Vec<(&'static str, Vec<String>)> {
    let Known { own, own_families, placing, prefixes, filters, .. } = &*KNOWN;
    let families = |names: &Names| names.iter().map(|name| format!("{name}*")).collect::<Names>();
    let loading = KNOWN.loading.iter().map(|(name, value)| format!("{name} = {value}"));
    let decided = [KNOWN.decided.keys().cloned().collect(), families(filters)].concat();
    vec![
        (
            "refused: the server is private, so Spindle decides them",
            [own.clone(), families(own_families)].concat(),
        ),
        ("refused: a layout decides the location of files", placing.clone()),
        (
            "refused with a path in the value: a layout decides the location of files",
            KNOWN.file_names.clone(),
        ),
        ("refused prefixes of a setting's own name", families(prefixes)),
        ("refused with replicas: Spindle decides them", decided),
        ("shape the files, so that databases with other values are loaded apart", KNOWN.shaping.clone()),
        (
            "choose the engine of the tables, so that databases with other values are loaded apart",
            KNOWN.for_tables.clone(),
        ),
        ("have these values while a database is loaded", loading.collect()),
        (
            "say what a commit waits for, and what is left to the kernel",
            MysqlTelemetry.commit_settings().iter().map(|&name| name.to_owned()).collect(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[track_caller]
    fn check_refused(name: &str, expect: &str) {
        let objection = objection(name).unwrap_or_else(|| panic!("{name} is taken"));
        assert!(objection.contains(expect), "{name}: {objection}");
    }

    #[test]
    fn sizes_are_read_as_the_server_reads_them() {
        let check = |text: &str, expect: Option<u64>| assert_eq!(size_bytes(text), expect, "{text}");
        check("134217728", Some(134_217_728));
        check("128M", Some(134_217_728));
        check("1g", Some(1 << 30));
        check("2T", Some(2 << 40));
        check("many", None);
        check("12MB", None);
        check("99999999999999999999", None);
    }

    #[test]
    fn a_setting_of_the_instance_is_refused_however_it_is_written() {
        for name in KNOWN.own.iter().chain(&KNOWN.placing) {
            for written in [name.clone(), name.replace('_', "-"), name.to_ascii_uppercase()] {
                check_refused(&written, "remove it");
                check_refused(&format!("skip-{written}"), "remove it");
            }
        }
        for name in ["mysqlx-port", "admin_address", "wsrep_on", "group-replication-local-address"] {
            check_refused(name, "remove it");
        }
    }

    #[test]
    fn a_prefix_of_the_servers_own_making_is_refused() {
        for prefix in ["loose", "enable", "disable", "maximum", "autoset", "plugin", "LOOSE"] {
            check_refused(&format!("{prefix}-innodb_log_group_home_dir"), "write the setting's own name");
            check_refused(&format!("{prefix}_skip_networking"), "write the setting's own name");
        }
    }

    #[test]
    fn every_abbreviation_is_refused_unless_it_is_a_setting_of_its_own() {
        for whole in KNOWN.own.iter().chain(&KNOWN.placing) {
            for length in 1..whole.len() {
                let name = &whole[..length];
                assert!(objection(name).is_some() || has(&KNOWN.beginnings, name), "{name}");
            }
        }
        check_refused(
            "innodb-log-group",
            "abbreviation, which the server could take for `innodb_log_group_home_dir`",
        );
    }

    #[test]
    fn a_name_that_is_more_than_a_name_is_refused() {
        for name in ["port=3307 x", "port=3307", "", "-x", "a b", "a\nb", "ä"] {
            check_refused(name, "is not a valid name");
        }
    }

    #[test]
    fn other_settings_are_taken() {
        let plain = [
            "innodb_buffer_pool_size",
            "max-connections",
            "skip_name_resolve",
            "skip-innodb-doublewrite",
            "log_bin",
        ];
        let odd = [
            "hot.key_buffer_size",
            "tmp_table_size",
            "log_error_verbosity",
            "port_open_timeout",
            "init_file",
        ];
        let known = KNOWN.without_prefix.iter().chain(&KNOWN.beginnings).map(String::as_str);
        for name in plain.into_iter().chain(odd).chain(known) {
            assert_eq!(objection(name), None, "{name}");
        }
    }

    #[test]
    fn a_file_of_innodb_cannot_lie_elsewhere() {
        let check =
            |value: &str| check(&BTreeMap::from([("innodb-data-file-path".to_owned(), value.to_owned())]));
        assert_eq!(check("ibdata1:12M;ibdata2:12M:autoextend"), Ok(()));
        for value in ["/tmp/ibdata1:12M", "../../ibdata1:12M", "ibdata1:12M;x/y:1M"] {
            assert!(check(value).unwrap_err().to_string().contains("has a path"), "{value}");
        }
    }
}
