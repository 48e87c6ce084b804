//! Common handling of servers' settings: refusals, comparison of names, and settings that reserve memory.

use std::collections::BTreeMap;

use spindle_base::near::did_you_mean;

use super::catalog::KINDS;
use crate::host::provenance;

/// A mistake of the user's: a sentence with the setting and its bound. No work was begun.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// A server's settings by its own names and spelling.
pub type Settings = BTreeMap<String, String>;

/// A name as servers compare it: a dash equals an underscore, and case is ignored.
pub fn plain_name(name: &str) -> String {
    name.replace('-', "_").to_ascii_lowercase()
}

/// Whether a list of a data file has this name.
pub(super) fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|known| known == name)
}

/// The value of a setting, however its name is written.
pub(super) fn setting<'a>(settings: &'a Settings, plain: &str) -> Option<&'a str> {
    settings.iter().find(|(name, _)| plain_name(name) == plain).map(|(_, value)| value.as_str())
}

/// The refusal of a setting that the server does not know; `known` are the names that it has.
pub(super) fn unknown_setting(name: &str, server: &str, known: &[String]) -> Refusal {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let plain = plain_name(name);
    let own_cache = || caches().find(|cache| known.contains(cache));
    let hint = match own_cache().filter(|_| caches().any(|cache| cache == plain)) {
        Some(own) => format!("; its cache is `{own}`"),
        None => did_you_mean(&plain, &known),
    };
    Refusal(format!("setting `{name}`: {server} has no such setting{hint}"))
}

/// The settings of all kinds of servers that size a cache of the data.
fn caches() -> impl Iterator<Item = &'static str> {
    let advice = KINDS.iter().flat_map(|kind| kind.advice);
    advice.filter(|advice| advice.value == Advised::ShareOfData).map(|advice| advice.name)
}

/// Settings for loading a database: those whose plain name `shapes` the files, and `loading`.
pub(super) fn for_loading<'a>(
    settings: &'a Settings,
    shapes: impl Fn(&str) -> bool,
    loading: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Settings {
    let shaping = settings.iter().filter(|(name, _)| shapes(&plain_name(name)));
    shaping.chain(loading).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// A server's own setting that reserves memory. A setting by another server's name is left to the server to
/// refuse.
#[derive(Debug, Clone, Copy)]
pub struct MemorySetting {
    /// In plain spelling.
    pub name: &'static str,
    /// Bytes, as the server reads a size; `None` if it is not a size.
    pub bytes: fn(&str) -> Option<u64>,
    /// A size in the server's syntax.
    pub example: &'static str,
}

impl MemorySetting {
    /// The size in the server's syntax, rounded down to whole units of the example, one at least.
    pub fn written(&self, bytes: u64) -> String {
        let unit = self.example.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let unit_bytes = (self.bytes)(&format!("1{unit}")).expect("a test reads every example");
        format!("{}{unit}", (bytes / unit_bytes).max(1))
    }
}

/// A setting that a new scenario has, with its reason (`spindle new`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    pub name: &'static str,
    pub value: Advised,
    pub why: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advised {
    Value(&'static str),
    /// A share of the data, so that the storage is read. The setting is one of the server's
    /// [`MemorySetting`]s.
    ShareOfData,
}

/// A setting that reserves memory, as the user wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserved<'a> {
    pub name: &'a str,
    pub value: &'a str,
    /// `None` if the value is not a size.
    pub bytes: Option<u64>,
    pub example: &'static str,
}

pub fn reserved<'a>(settings: &'a Settings, known: &[MemorySetting]) -> Vec<Reserved<'a>> {
    let found = settings.iter().filter_map(|(name, value)| {
        let plain = plain_name(name);
        let MemorySetting { bytes, example, .. } = known.iter().find(|setting| setting.name == plain)?;
        Some(Reserved { name, value, bytes: bytes(value), example })
    });
    found.collect()
}

/// Prevents a server with more memory than the machine has: the trial would measure the swap.
///
/// # Errors
/// A setting whose value is not a size, or exceeds this machine's memory.
pub(super) fn check_memory(settings: &Settings, known: &[MemorySetting]) -> Result<(), Refusal> {
    let memory_bytes = provenance::memory_bytes();
    for Reserved { name, value, bytes, example } in reserved(settings, known) {
        let words = match bytes {
            None => format!("is not a size; write for example \"{example}\""),
            Some(bytes) if bytes > memory_bytes => {
                format!("is larger than this machine's memory of {} MiB; choose less", memory_bytes >> 20)
            }
            Some(_) => continue,
        };
        return Err(Refusal(format!("setting `{name}` = \"{value}\" {words}")));
    }
    Ok(())
}

/// Bytes of a number with one of these suffixes; the unit of a number without one is `unit_bytes`. `None` if
/// it is not a size.
pub(super) fn size_bytes(text: &str, unit_bytes: u64, suffixes: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" => unit_bytes,
        suffix => suffixes.iter().find(|(known, _)| *known == suffix)?.1,
    };
    digits.trim_end().parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_servers_cache_is_answered_with_the_own_one() {
        let check = |name: &str, known: &[&str], expect: &str| {
            let known: Vec<String> = known.iter().map(|&name| name.to_owned()).collect();
            let told = unknown_setting(name, "It", &known).0;
            assert_eq!(told, format!("setting `{name}`: It has no such setting{expect}"));
        };
        let of_postgres = ["shared_buffers", "work_mem"];
        check("innodb-buffer-pool-size", &of_postgres, "; its cache is `shared_buffers`");
        check("workmem", &of_postgres, "; did you mean `work_mem`?");
        check("shared_buffers", &["innodb_buffer_pool_size"], "; its cache is `innodb_buffer_pool_size`");
        check("shared_buffers", &["cache_size"], "");
    }

    #[test]
    fn memory_is_found_however_its_setting_is_written() {
        let known = [MemorySetting { name: "pool_size", bytes: |text| text.parse().ok(), example: "1" }];
        let check = |name: &str, value: &str| {
            check_memory(&BTreeMap::from([(name.to_owned(), value.to_owned())]), &known)
        };
        assert_eq!(check("pool_size", "4096"), Ok(()));
        assert_eq!(check("other", "many"), Ok(()));
        for name in ["pool_size", "Pool-Size"] {
            let words = check(name, "many").unwrap_err().0;
            assert_eq!(words, format!("setting `{name}` = \"many\" is not a size; write for example \"1\""));
            let words = check(name, &u64::MAX.to_string()).unwrap_err().0;
            assert!(words.contains("larger than this machine's memory"), "{words}");
        }
    }
}
