//! The arguments of `spindle load`. Those of each workload come from its `Spec`; those of every run are here.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand};
use spindle_load::{Endpoint, WorkloadSpec};

use crate::server::endpoint;
use spindle_base::{near, units};

/// Sub-command of the load process.
const CLIENT: &str = "client";

#[derive(Debug, Args)]
pub struct LoadArgs {
    #[command(subcommand)]
    pub(super) command: LoadCommand,
}

#[derive(Debug)]
pub(super) enum LoadCommand {
    /// Reads a run's specification and commands, writes events.
    Client,
    Workload(Box<WorkloadSpec>, RunArgs),
}

impl FromArgMatches for LoadCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<LoadCommand, clap::Error> {
        match matches.subcommand() {
            Some((CLIENT, _)) => Ok(LoadCommand::Client),
            Some((_, of_workload)) => {
                let run = RunArgs::from_arg_matches(of_workload)?;
                Ok(LoadCommand::Workload(Box::new(WorkloadSpec::from_arg_matches(matches)?), run))
            }
            None => Err(clap::Error::new(clap::error::ErrorKind::MissingSubcommand)),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = LoadCommand::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for LoadCommand {
    fn augment_subcommands(command: Command) -> Command {
        let command = WorkloadSpec::augment_subcommands(command);
        let has_rate = |command: &&Command| command.get_arguments().any(|argument| argument.get_id() == RATE);
        let open_loops = command.get_subcommands().filter(|command| !command.is_hide_set()).filter(has_rate);
        let open_loops: Vec<String> = open_loops.map(|command| command.get_name().to_owned()).collect();
        let client = Command::new(CLIENT).hide(true).about("The load process itself");
        command.mut_subcommands(|of_workload| add_run_options(of_workload, &open_loops)).subcommand(client)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        LoadCommand::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        name == CLIENT || WorkloadSpec::has_subcommand(name)
    }
}

const RATE: &str = "rate";

/// Adds the options of every run. For a closed loop, `--rate` is refused with a list of the open loops.
fn add_run_options(command: Command, open_loops: &[String]) -> Command {
    let is_open_loop = command.get_arguments().any(|argument| argument.get_id() == RATE);
    let known = near::list(&open_loops.iter().map(String::as_str).collect::<Vec<_>>());
    let refusal = format!("has no meaning for `{}`; the open loops are {known}", command.get_name());
    let refused = Arg::new(RATE)
        .long(RATE)
        .value_name("RATE")
        .hide(true)
        .value_parser(move |_: &str| Err::<u32, String>(refusal.clone()));
    let command = if is_open_loop { command } else { command.arg(refused) };
    // Negative numbers are parsed as values, so that the option itself refuses them.
    let command = command.mut_args(|argument| match argument.get_action() {
        ArgAction::Set => argument.allow_negative_numbers(true),
        _ => argument,
    });
    let facts = WorkloadSpec::facts_of(command.get_name());
    let is_fixed_work = facts.is_some_and(|facts| facts.is_fixed_work);
    RunArgs::augment_args(command).mut_arg("once", |once| once.hide(!is_fixed_work))
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The server: `socket:/path`, `mysql://user:password@host:port/database`,
    /// `postgres:/directory-of-the-socket`, `postgresql://user:password@host:port/database` or
    /// `sqlite:/path`; for `fileio`, `directory:/path`. Every user of this machine can read a password in an
    /// option. A URL without a password takes it from the environment variable MYSQL_PWD or PGPASSWORD.
    #[arg(long, value_parser = parse_server)]
    pub(super) server: Endpoint,
    /// Length of the measured window, for example `30s`, `5m` or `500 ms` [default: 30 s].
    #[arg(long, value_parser = units::parse_duration, allow_hyphen_values = true)]
    pub(super) duration: Option<Duration>,
    /// Measure fixed work until it is done, at most for `--duration` [default: a week]. A workload of fixed
    /// work alone is prepared and done once, unless it has a duration.
    #[arg(long)]
    pub(super) once: bool,
    /// Time before the measured window. The same load runs in it, but is not measured.
    #[arg(long, default_value = "0s", value_parser = units::parse_duration, allow_hyphen_values = true)]
    pub(super) warm_up: Duration,
    /// Create the tables first. Existing ones are dropped.
    #[arg(long)]
    pub(super) prepare: bool,
    /// Check the consistency of the database afterwards.
    #[arg(long)]
    pub(super) verify: bool,
    /// Print one JSON object instead of a table (docs/load.md).
    #[arg(long)]
    pub(super) json: bool,
    /// Seed of all random choices, printed first. The default comes from the clock, because a run with the
    /// choices of an earlier one would write existing rows again.
    #[arg(long, default_value_t = seed_of_now(), hide_default_value = true)]
    pub(super) seed: u64,
}

/// In milliseconds, so that it is short enough to type again.
fn seed_of_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |since| since.as_millis() as u64)
}

/// Parses a server, or the endpoint of a workload without one.
fn parse_server(text: &str) -> Result<Endpoint, String> {
    match text.strip_prefix("directory:") {
        Some(path) if !path.is_empty() => Ok(Endpoint::Directory { path: path.into() }),
        Some(_) => Err("the path after `directory:` is missing".to_owned()),
        None if text == "mock" => Ok(Endpoint::Mock),
        None => endpoint::parse(text),
    }
}
