//! Provenance of a number: version, revision, machine, time of day.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spindle_base::proc;
pub use spindle_base::proc::kernel;
use spindle_base::text::plural;

use crate::host::control_group;
use crate::host::summary::Summary;

pub const SPINDLE_VERSION: &str = env!("CARGO_PKG_VERSION");
/// `unknown` when the source was not a git checkout.
pub const GIT_REVISION: &str = env!("SPINDLE_GIT_REVISION");

/// The machine that produced a result. Records are sent to others: it has no host name, no serial number and
/// no name of a user.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct Machine {
    pub kernel: String,
    pub cpu_model: String,
    pub cpu_count: u32,
    pub memory_bytes: u64,
    pub operating_system: String,
    /// Everything else that can make two machines differ. `None` in earlier records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Box<Summary>>,
}

impl Machine {
    pub fn processor(&self) -> String {
        format!("{}, {}", self.cpu_model, plural(self.cpu_count as usize, "core"))
    }
}

pub fn machine() -> Machine {
    let system = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    Machine {
        kernel: kernel(),
        cpu_model: proc::cpu_model().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        cpu_count: cpu_count(),
        memory_bytes: memory_bytes(),
        operating_system: proc::field(&system, "PRETTY_NAME", '=').unwrap_or_else(|| "Linux".to_owned()),
        summary: Some(Box::new(Summary::read(Path::new("/")))),
    }
}

/// Cores available to this process.
pub fn cpu_count() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

/// Whether memory reclaim can make an emulator wait for writeback to its own disk. This happens when the
/// emulator lacks PR_SET_IO_FLUSHER and a control group of version 1 limits its memory. Otherwise reclaim
/// skips pages under writeback (Linux, mm/vmscan.c, `shrink_folio_list`).
pub fn emulators_can_wait_for_themselves() -> bool {
    let limit = control_group::memory_limit_bytes_of_version_1(Path::new("/"));
    !spindle_mount::has_io_flusher() && limit.is_some_and(|limit| limit < proc::Memory::read().total_bytes)
}

/// The machine's memory, or the limit of the control groups if that is lower (containers).
pub fn memory_bytes() -> u64 {
    let total = proc::Memory::read().total_bytes;
    control_group::memory_limit_bytes(Path::new("/")).map_or(total, |limit| total.min(limit))
}

/// The current time in UTC, RFC 3339, in whole seconds.
pub fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    rfc3339(seconds)
}

/// Converts days to a civil date after Howard Hinnant, "chrono-compatible low-level date algorithms" (2013),
/// `civil_from_days`.
fn rfc3339(unix_seconds: u64) -> String {
    let (days, second_of_day) = (unix_seconds / 86_400 + 719_468, unix_seconds % 86_400);
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        let check = |seconds: u64, expect: &str| assert_eq!(rfc3339(seconds), expect);
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(1_735_689_599, "2024-12-31T23:59:59Z");
        check(4_107_542_400, "2100-03-01T00:00:00Z");
    }

    #[test]
    fn the_machine_is_described() {
        let machine = machine();
        assert!(
            machine.cpu_count > 0 && machine.memory_bytes > 0 && !machine.kernel.is_empty(),
            "{machine:?}"
        );
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(memory_bytes() > 1 << 20);
    }
}
