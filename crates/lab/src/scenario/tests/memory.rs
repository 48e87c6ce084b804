//! The limit of a server's memory.

use super::*;

const KIND: &str = "kind = \"mariadb\"\n";

/// The good scenario with a limit.
fn limited(memory: &str) -> String {
    changed(KIND, &format!("{KIND}memory = \"{memory}\"\n"))
}

#[track_caller]
fn check_refused(memory: &str, expect: &str) {
    let error = Scenario::parse("test", &limited(memory), &BOUNDS).unwrap_err();
    assert_eq!(error.to_string(), format!("servers.mariadb.memory: {expect}"));
}

#[test]
fn a_limit_is_read_as_a_size_and_is_part_of_the_experiment() {
    let (limited, free) = (parsed(&limited("256 MB")), parsed(GOOD));
    assert_eq!(limited.servers["mariadb"].memory_bytes, Some(256_000_000));
    assert_ne!(limited.hash(), free.hash());
    let written = |scenario: &Scenario| serde_json::to_value(&scenario.servers["mariadb"]).unwrap();
    assert_eq!(written(&limited)["memory"], "256 MB");
    // Scenarios without a limit keep the hash of their earlier records.
    assert_eq!(written(&free).get("memory"), None);
}

#[test]
fn a_limit_is_within_what_a_server_needs_and_the_machine_has() {
    check_refused("32 MB", "32 MB is too little for a server; it can be 64 MB or more");
    check_refused("9 GiB", "9 GiB is more than this machine's memory (8192 MiB)");
    check_refused("96M", "96 MiB is no more than the 96 MiB that the server's settings reserve; raise it");
    check_refused(
        "much",
        "`much` is not a size in whole bytes; write for example \"20 GiB\", \"16 KiB\" or \"96M\" (B, KB, MB, GB, TB, KiB, MiB, \
         GiB, TiB)",
    );
}

#[test]
fn only_servers_that_are_started_have_a_limit() {
    check(
        KIND,
        "kind = \"sqlite\"\nmemory = \"256 MB\"\n",
        "servers.mariadb.memory: has no meaning for kind = \"sqlite\"; servers that have it are `adapter`, `mariadb`, \
         `mysql` and `postgresql`",
    );
}
