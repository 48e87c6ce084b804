//! The last words of a server.

const QUOTED_LINES: usize = 3;

/// The first error lines, because later ones follow from them. Without an error line, the last lines.
pub(in crate::server) fn quote(log: &str) -> String {
    let errors: Vec<&str> =
        log.lines().filter_map(|line| Some(line.split_once("[ERROR]")?.1.trim())).collect();
    quote_errors(log, &errors)
}

/// The first of the errors that were found in the log, or else its last lines.
pub(in crate::server) fn quote_errors(log: &str, errors: &[&str]) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let quoted = match errors.is_empty() {
        true => &lines[lines.len().saturating_sub(QUOTED_LINES)..],
        false => &errors[..errors.len().min(QUOTED_LINES)],
    };
    if quoted.is_empty() { "its log is empty".to_owned() } else { quoted.join(" | ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_lines_are_quoted_before_all_others() {
        let log = "2026-11-21 2:00:00 0 [Note] starting\n\
                   2026-11-21 2:00:00 0 [ERROR] /usr/sbin/mariadbd: unknown variable 'inodb=1'\n\
                   2026-11-21 2:00:00 0 [ERROR] Aborting\n\
                   2026-11-21 2:00:01 0 [Note] bye\n";
        assert_eq!(quote(log), "/usr/sbin/mariadbd: unknown variable 'inodb=1' | Aborting");
    }

    #[test]
    fn the_first_errors_are_quoted() {
        let log =
            ["disk full", "no engine", "no tables", "Aborting"].map(|error| format!("[ERROR] {error}\n"));
        assert_eq!(quote(&log.concat()), "disk full | no engine | no tables");
    }

    #[test]
    fn a_log_without_errors_is_quoted_from_its_end() {
        assert_eq!(quote("a\nb\nc\n\nd\n"), "b | c | d");
        assert_eq!(quote(""), "its log is empty");
    }
}
