//! The parameters. A preset has its own default for the number of warehouses, so the parameters are read as
//! `Written` first.

use clap::{ArgMatches, Args, Command, FromArgMatches};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Preset;
use crate::workload::{RATE_MAX, TERMINALS_MAX, default_number, whole_number};

/// The default of `spindle load`. A scenario must name the number, or a preset.
const WAREHOUSES: u32 = 10;

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, JsonSchema)]
#[serde(try_from = "Written")]
pub struct Spec {
    pub warehouses: u32,
    pub terminals: u32,
    /// The standard's rules, or a kit's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wait_times: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
}

impl Spec {
    /// The standard's rules, without keying and think times.
    pub fn new(warehouses: u32, terminals: u32) -> Spec {
        Spec { warehouses, terminals, preset: None, wait_times: false, rate: None }
    }
}

/// TPC-C.
#[derive(Deserialize, JsonSchema, Args)]
#[serde(deny_unknown_fields)]
struct Written {
    /// Number of warehouses, about 100 MB each. Default: the preset's number, or 10 without a preset.
    #[arg(long, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 10_000), example = 10)]
    warehouses: Option<u32>,
    /// Number of concurrent connections. Each sends one transaction after the other.
    #[serde(default = "default_number::<8, u32>")]
    #[arg(long, default_value_t = 8, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = TERMINALS_MAX))]
    terminals: u32,
    /// The rules of another kit.
    #[arg(long, value_enum)]
    preset: Option<Preset>,
    /// Keying and think times of the standard. Use ten terminals per warehouse.
    #[serde(default)]
    #[arg(long, conflicts_with = "rate")]
    wait_times: bool,
    /// Open loop: transactions of all kinds started per second, independent of earlier answers. A transaction
    /// waits if all connections are busy. Latency counts from the scheduled start.
    #[arg(long, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = RATE_MAX))]
    rate: Option<u32>,
}

impl TryFrom<Written> for Spec {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Spec, &'static str> {
        let Written { warehouses, terminals, preset, wait_times, rate } = written;
        if wait_times && rate.is_some() {
            return Err("`rate` has no place beside `wait_times`: the pauses make the rate");
        }
        let warehouses = warehouses
            .or(preset.map(Preset::warehouses))
            .ok_or("needs `warehouses`, for example `warehouses = 10`, or a `preset`")?;
        Ok(Spec { warehouses, terminals, preset, wait_times, rate })
    }
}

impl FromArgMatches for Spec {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Spec, clap::Error> {
        let mut written = Written::from_arg_matches(matches)?;
        if written.preset.is_none() {
            written.warehouses.get_or_insert(WAREHOUSES);
        }
        Spec::try_from(written)
            .map_err(|words| clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, words))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Spec::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Spec {
    fn augment_args(command: Command) -> Command {
        Written::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Written::augment_args_for_update(command)
    }
}
