//! What runs under the library: one probe, chosen by name.

use std::env;

use crate::{clocks, cost, files, kernel, remains, sleeps, threads, timers, waits};

/// A name, and what it does in the process under the library.
pub(crate) type Probe = (&'static str, fn());

#[test]
#[ignore = "the other tests start it, each in a process of its own"]
fn child() {
    let name = env::var("PROBE").unwrap();
    let waits = waits::all();
    let tables = [&waits[..], clocks::CHECKS, cost::CHECKS, remains::CHECKS];
    if let Some((_, probe)) = tables.iter().copied().flatten().find(|(known, _)| *known == name) {
        return probe();
    }
    clocks::tell(&name);
}

/// The tables of waits, by kind.
pub(crate) const WAITS: &[&[Probe]] =
    &[sleeps::WAITS, files::WAITS, threads::WAITS, timers::WAITS, kernel::WAITS];
