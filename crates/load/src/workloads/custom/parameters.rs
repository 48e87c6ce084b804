//! Whole numbers that replace the file's own parameters: a table in a scenario, or repeated options
//! `--parameter NAME=NUMBER`.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, Serialize, Deserialize, PartialEq, JsonSchema)]
#[serde(transparent)]
pub struct Parameters(pub BTreeMap<String, i64>);

/// The key in a scenario.
const KEY: &str = "parameters";

fn parse(text: &str) -> Result<(String, i64), String> {
    let parsed = text.split_once('=').and_then(|(name, value)| Some((name.to_owned(), value.parse().ok()?)));
    parsed.ok_or_else(|| "write NAME=NUMBER".to_owned())
}

impl FromArgMatches for Parameters {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Parameters, clap::Error> {
        let given = matches.get_many::<(String, i64)>(KEY);
        Ok(Parameters(given.into_iter().flatten().cloned().collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Parameters::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Parameters {
    fn augment_args(command: Command) -> Command {
        let option = Arg::new(KEY)
            .long("parameter")
            .value_name("NAME=NUMBER")
            .value_parser(parse)
            .action(ArgAction::Append)
            .help("Replaces a parameter of the file; can be repeated");
        command.arg(option)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Parameters::augment_args(command)
    }
}
