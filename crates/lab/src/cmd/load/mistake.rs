//! What the options of `spindle load` ask for and cannot have. Found before anything is connected or loaded.

use anyhow::Result;
use spindle_load::foreign::Length;
use spindle_load::{Endpoint, WorkloadSpec};

use super::arguments::RunArgs;
use spindle_base::Mistake;
use spindle_base::text;

fn mistake(key: &str, message: &str) -> Mistake {
    Mistake::new(format!("--{}: {message}", key.replace('_', "-")))
}

/// # Errors
/// A [`Mistake`] that names the option.
pub(super) fn check(workload: &WorkloadSpec, args: &RunArgs) -> Result<()> {
    check_parameters(workload, &args.server)?;
    let kind = workload.kind();
    if args.rate.is_some() && workload.rate().is_none() {
        let message = format!("has no meaning for `{kind}`; of open loops there are `tpcc` and `oltp`");
        return Err(mistake("rate", &message).into());
    }
    let built = workload.build()?;
    let Some(tool) = built.tool() else { return Ok(()) };
    tool.command(&args.server, args.seed, Length::Endless)
        .map_err(|error| mistake("server", &error.to_string()))?;
    if args.duration.subsec_nanos() > 0 {
        let duration = text::duration(args.duration);
        let message =
            format!("{duration} is not a number of whole seconds, and `{kind}` can measure no other");
        return Err(mistake("duration", &message).into());
    }
    Ok(())
}

/// What every workload has: parameters within their bounds, and a storage engine only where the server has any.
pub(super) fn check_parameters(workload: &WorkloadSpec, server: &Endpoint) -> Result<(), Mistake> {
    if let Some((key, message)) = workload.complaint() {
        return Err(mistake(key, &message));
    }
    let has_engines = matches!(server, Endpoint::MysqlSocket { .. } | Endpoint::MysqlTcp { .. });
    match workload.engine() {
        Some(_) if !has_engines => {
            Err(mistake("engine", "only MariaDB and MySQL have storage engines; leave it out"))
        }
        _ => Ok(()),
    }
}
