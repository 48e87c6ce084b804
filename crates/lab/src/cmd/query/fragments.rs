//! How fragments are asked for, by the options that all commands with queries share.

use std::time::Duration;

use clap::Args;
use spindle_base::units;
use spindle_scatter::split::Options;

#[derive(Debug, Args)]
pub(super) struct FragmentsArguments {
    /// Fragments that a server answers at a time, of each client.
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    connections: u16,
    /// Let all fragments of a query read what was committed at one moment. It needs the right to lock all tables
    /// for that moment (RELOAD).
    #[arg(long)]
    snapshot: bool,
    /// Longest time of a query's fragments.
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    timeout: Option<Duration>,
}

impl FragmentsArguments {
    pub(super) fn options(&self) -> Options {
        Options {
            connections: self.connections.into(),
            is_snapshot: self.snapshot,
            timeout: self.timeout,
            ..Options::default()
        }
    }
}
