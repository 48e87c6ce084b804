//! `spindle doctor`: the abilities of this machine, the missing programs, and the command that installs them.

pub mod examine;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

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
    let mut output = std::io::stdout().lock();
    if arguments.json {
        let all = json!({ "ready": ready, "checks": checks, "install": install });
        writeln!(output, "{}", text::json(&all)?)?;
    } else {
        for check in &checks {
            let state = match (check.passed, check.required) {
                (true, _) => "ok",
                (false, true) => "missing",
                (false, false) => "optional",
            };
            writeln!(output, "{state:8}  {:18}  {}", check.name, text::one_line(&check.detail))?;
        }
        writeln!(output)?;
        match (ready, &install) {
            (true, None) => writeln!(output, "Ready: every scenario can run here.")?,
            (true, Some(install)) => writeln!(output, "Ready. For the optional rest: {install}")?,
            (false, Some(install)) => writeln!(output, "Not ready. Install what is missing with: {install}")?,
            (false, None) => writeln!(output, "Not ready: see the lines that say `missing`.")?,
        }
    }
    Ok(if ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
