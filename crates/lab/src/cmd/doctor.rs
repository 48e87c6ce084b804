//! `spindle doctor`: the abilities of this machine, the missing programs, and the command that installs them.

pub mod examine;

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::output::print_answer;
use spindle_base::text;

#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Print the checks as JSON.
    #[arg(long)]
    json: bool,
}

/// Exit code 0 if a scenario can run on emulated disks here, 1 otherwise.
pub fn run(arguments: &DoctorArguments) -> Result<ExitCode> {
    let checks = examine::examine();
    let ready = examine::can_run_scenarios(&checks);
    let install = examine::install_command(&checks);
    let all = json!({ "ready": ready, "checks": checks, "install": install });
    print_answer(arguments.json, &all, || {
        let rows = checks.iter().map(|check| {
            let state = match (check.passed, check.required) {
                (true, _) => "ok",
                (false, true) => "missing",
                (false, false) => "optional",
            };
            format!("{state:8}  {:18}  {}\n", check.name, text::one_line(&check.detail))
        });
        let conclusion = match (ready, &install) {
            (true, None) => "Ready: every scenario can run here.".to_owned(),
            (true, Some(install)) => format!("Ready. To install the optional programs: {install}"),
            (false, Some(install)) => format!("Not ready. To install the missing programs: {install}"),
            (false, None) => "Not ready: see the lines marked `missing`.".to_owned(),
        };
        format!("{}\n{conclusion}\n", rows.collect::<String>())
    })?;
    Ok(if ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
