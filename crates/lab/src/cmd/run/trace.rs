//! Which storage of a scenario `--trace` can trace, and how much of it.

use itertools::Itertools as _;
use spindle_base::Mistake;
use spindle_base::units::{format_size_bytes, parse_size_bytes};
use spindle_mount::trace::LIMIT_BYTES;

use crate::scenario::Scenario;

/// Some eight thousand requests.
const LIMIT_BYTES_LEAST: u64 = 64 << 10;

/// Most bytes of a trace; the error is a sentence.
pub(super) fn parse_limit(words: &str) -> Result<u64, String> {
    let bytes = parse_size_bytes(words)?;
    if (LIMIT_BYTES_LEAST..=LIMIT_BYTES).contains(&bytes) {
        Ok(bytes)
    } else {
        let (least, most) = (format_size_bytes(LIMIT_BYTES_LEAST), format_size_bytes(LIMIT_BYTES));
        Err(format!("a trace ends at {least} to {most}"))
    }
}

/// The sentence about what has no trace; `None` if everything has one.
///
/// # Errors
/// Nothing has one.
pub(super) fn left_out(scenario: &Scenario) -> Result<Option<String>, Mistake> {
    let (servers, stacks) = (on_directories(scenario), not_emulated(scenario));
    let is_none = servers.len() == scenario.matrix.server.len()
        || stacks.len() == stacks_of_first_servers(scenario).len();
    let replicas = scenario.replica_layouts().next().map(|_| "replicas have disks of their own".to_owned());
    let reasons = servers.into_iter().chain(stacks).chain(replicas).join(", ");
    if is_none {
        let message =
            format!("only requests to emulated disks are traced, and this scenario has none: {reasons}");
        return Err(Mistake::of_flag("trace", message));
    }
    let words = || format!("--trace has only requests to the emulated disks of the first server: {reasons}");
    Ok((!reasons.is_empty()).then(words))
}

/// A reason for each server for tests.
fn on_directories(scenario: &Scenario) -> Vec<String> {
    let servers = scenario.matrix.server.iter();
    let for_tests = servers.filter(|name| scenario.servers[*name].facts().is_for_tests);
    for_tests.map(|name| format!("the server `{name}` has directories in place of disks")).collect()
}

/// A reason for each stack that is no emulated disk with an ordinary file system.
fn not_emulated(scenario: &Scenario) -> Vec<String> {
    let reason = |name: &str| {
        let stack = &scenario.stacks[name];
        let kind = match (stack.real(), stack.pool()) {
            (Some(_), _) => "real storage",
            (None, Some(_)) => "a ZFS pool",
            (None, None) => return None,
        };
        Some(format!("`{name}` is {kind}"))
    };
    stacks_of_first_servers(scenario).into_iter().filter_map(reason).collect()
}

/// Without those of replicas.
fn stacks_of_first_servers(scenario: &Scenario) -> Vec<&str> {
    let mounts = scenario.layouts.iter().flat_map(|layout| &layout.mounts);
    mounts.map(|mount| mount.stack.as_str()).unique().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Bounds;
    use crate::server::Trust;

    #[track_caller]
    fn check(stacks: &str, kind: &str, expect: Result<Option<&str>, &str>) {
        let names = stacks.lines().filter_map(|line| line.strip_prefix("[stacks.")?.strip_suffix("]"));
        let names: Vec<&str> = names.collect();
        let text = format!(
            "title = \"t\"\n{stacks}\n[servers.s]\nkind = \"{kind}\"\n[workloads.w]\nkind = \"tpcc\"\n\
             warehouses = 1\n[matrix]\nstack = {names:?}\nserver = [\"s\"]\nworkload = [\"w\"]\n\
             [run]\ntrials = 1\nmeasure = \"1 s\"\n"
        );
        let bounds = Bounds { memory_bytes: 8 << 30, trust: Trust::ReadOnly };
        let scenario = Scenario::parse("test", &text, &bounds).unwrap();
        let found = left_out(&scenario).map_err(|mistake| mistake.to_string());
        assert_eq!(found.as_ref().map(Option::as_deref).map_err(String::as_str), expect);
    }

    const DISK: &str = "[stacks.disk]\nprofile = \"null\"\nsize = \"4 GB\"\n";
    const REAL: &str = "[stacks.usb]\npath = \"/tmp\"\n";
    const POOL: &str = "[stacks.tank]\nprofile = \"null\"\nsize = \"4 GB\"\nfile_system = \"zfs\"\n";

    #[test]
    fn a_trace_has_bounds() {
        for (words, expect) in
            [("64 KiB", Some(64 << 10)), ("64M", Some(64 << 20)), ("1 KiB", None), ("65 MiB", None)]
        {
            assert_eq!(parse_limit(words).ok(), expect, "{words}");
        }
        assert_eq!(parse_limit("1 GiB").unwrap_err(), "a trace ends at 64 KiB to 64 MiB");
    }

    #[test]
    fn every_emulated_disk_is_traced() {
        check(DISK, "mariadb", Ok(None));
    }

    #[test]
    fn what_is_not_traced_is_told() {
        let words = "--trace has only requests to the emulated disks of the first server: \
                     `usb` is real storage, `tank` is a ZFS pool";
        check(&[DISK, REAL, POOL].concat(), "mariadb", Ok(Some(words)));
    }

    #[test]
    fn a_scenario_without_anything_to_trace_is_refused() {
        let words = "--trace: only requests to emulated disks are traced, and this scenario has none: \
                     `usb` is real storage, `tank` is a ZFS pool";
        check(&[REAL, POOL].concat(), "mariadb", Err(words));
    }
}
