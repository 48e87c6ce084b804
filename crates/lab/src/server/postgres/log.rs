//! The last words of PostgreSQL, whose log has a level, words and sometimes a hint.

use crate::server::process::log::quote_errors;

/// Lines that ended the server. A refused connection ends only itself.
fn complaints(log: &str) -> Vec<&str> {
    const OF_A_CONNECTION: [&str; 3] =
        ["the database system is", "terminating connection", "connection to client"];
    let end = |line| -> Option<&str> {
        let (_, words) = ["PANIC:", "FATAL:"].iter().find_map(|level| str::split_once(line, level))?;
        Some(words.trim()).filter(|words| !OF_A_CONNECTION.iter().any(|known| words.starts_with(known)))
    };
    let lines = log.lines();
    lines
        .filter_map(|line| end(line).or_else(|| line.strip_prefix("postgres: ")).or_else(|| hint(line)))
        .collect()
}

fn hint(line: &str) -> Option<&str> {
    line.split_once("HINT:").map(|(_, words)| words.trim())
}

/// The first complaints of a log, because later ones follow from them. Without complaints, its last lines.
pub(super) fn quote(log: &str) -> String {
    let found = complaints(log);
    // A lone hint belongs to a line that did not end the server.
    let first = found.iter().position(|words| !log.lines().any(|line| hint(line) == Some(words)));
    quote_errors(log, first.map_or(&[], |first| &found[first..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fatal_error_is_quoted_with_its_hint() {
        let log = "2026-11-22 01:00:00.000 UTC [1] LOG:  starting PostgreSQL\n\
                   2026-11-22 01:00:00.100 UTC [9] FATAL:  the database system is starting up\n\
                   2026-11-22 01:00:00.200 UTC [1] FATAL:  invalid value for parameter \"shared_buffers\": \"12M\"\n\
                   2026-11-22 01:00:00.200 UTC [1] HINT:  Valid units are \"kB\", \"MB\".\n\
                   2026-11-22 01:00:00.300 UTC [1] LOG:  database system is shut down\n";
        assert_eq!(
            quote(log),
            "invalid value for parameter \"shared_buffers\": \"12M\" | Valid units are \"kB\", \"MB\"."
        );
    }

    #[test]
    fn an_error_before_the_log_is_quoted() {
        assert_eq!(quote("postgres: a must be less than b\n"), "a must be less than b");
    }

    #[test]
    fn a_log_without_an_end_is_quoted_from_its_end() {
        let log = "1 LOG:  a\n2 ERROR:  deadlock detected\n2 HINT:  See server log.\n3 LOG:  b\n4 LOG:  c\n";
        assert_eq!(quote(log), "2 HINT:  See server log. | 3 LOG:  b | 4 LOG:  c");
        assert_eq!(quote(""), "its log is empty");
    }
}
