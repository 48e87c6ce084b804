//! The reservations about a server that was observed in production.

use super::{Warning, rounded_up};

pub(super) const SERVER_ELSEWHERE: &str = "The server runs on another machine, so its cores and its storage are unknown: run \
    `spindle observe` on the machine of the server.";

pub(super) const SERVER_PROCESS_UNKNOWN: &str = "The server's process was not found on this machine, so its processor time is \
    unknown: name it with `--pid`.";

pub(super) const STORAGE_UNKNOWN: &str = "The block device of the server's data was not found, so what the storage did is \
    unknown: name it with `--device`.";

/// The fact and the remedy.
pub(super) fn no_whole_checkpoint(needed_s: Option<f64>) -> String {
    const FACT: &str = "No whole checkpoint was in the window";
    const WHY: &str = "what the server writes at the end of one is not in the figures";
    match needed_s {
        Some(needed_s) => {
            let needed = rounded_up(needed_s).replace(" min", "m").replace(" s", "s");
            format!("{FACT}: {WHY}. At this rate `--for {needed}` has one.")
        }
        None => format!("{FACT}, or the server does not show its checkpoints: {WHY}. Observe it for longer."),
    }
}

pub(super) fn not_warm(turnovers: f64) -> String {
    format!(
        "From its start to the window the server had read {turnovers:.1} times what fills its cache: until {} times, it reads more \
         than it will later. Observe it again when it has run for longer.",
        Warning::TURNOVERS_ENOUGH
    )
}

pub(super) fn transactions_uncertain(least_per_s: f64, most_per_s: f64) -> String {
    format!(
        "The counters leave open which statements were transactions of their own: there were {least_per_s:.1} to \
         {most_per_s:.1} transactions per second. The server counts them with `innodb_monitor_enable = module_trx`, or with \
         the instrument `transaction` of its performance schema."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_was_just_started_is_to_be_observed_again() {
        insta::assert_snapshot!(not_warm(0.42), @"From its start to the window the server had read 0.4 times what fills its cache: until 2.5 times, it reads more than it will later. Observe it again when it has run for longer.");
    }

    #[test]
    fn a_window_that_has_a_checkpoint_is_written_as_the_option_takes_it() {
        insta::assert_snapshot!(no_whole_checkpoint(Some(1234.0)), @"No whole checkpoint was in the window: what the server writes at the end of one is not in the figures. At this rate `--for 21m` has one.");
        insta::assert_snapshot!(no_whole_checkpoint(Some(61.0)), @"No whole checkpoint was in the window: what the server writes at the end of one is not in the figures. At this rate `--for 70s` has one.");
        insta::assert_snapshot!(no_whole_checkpoint(None), @"No whole checkpoint was in the window, or the server does not show its checkpoints: what the server writes at the end of one is not in the figures. Observe it for longer.");
    }
}
