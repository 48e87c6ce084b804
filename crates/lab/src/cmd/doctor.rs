//! `spindle doctor`: the abilities of this machine, the missing programs, and the command that installs them;
//! or a summary of the machine.

pub mod examine;

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::output::{columns, print_answer};
use crate::host::provenance::{self, Machine};
use crate::host::summary::Section;
use spindle_base::text;

#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Print the checks, or the summary, as JSON.
    #[arg(long)]
    json: bool,
    /// Describe the machine instead: processor, memory, block devices with queues and alignment, file
    /// systems. A record's header has the same. It names no host, no user and no serial number.
    #[arg(long)]
    summary: bool,
}

/// Exit code 0 with `--summary`. Otherwise 0 if a scenario can run on emulated disks here, 1 otherwise.
pub fn run(arguments: &DoctorArguments) -> Result<ExitCode> {
    if arguments.summary {
        let machine = provenance::machine();
        print_answer(arguments.json, &machine, || summary(&machine))?;
        return Ok(ExitCode::SUCCESS);
    }
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

/// Names and values below the title of each section.
fn summary(machine: &Machine) -> String {
    let system = Section {
        title: "System".to_owned(),
        lines: [
            ("operating system", machine.operating_system.clone()),
            ("kernel", machine.kernel.clone()),
            (
                "processor",
                format!(
                    "{}, {} usable",
                    machine.cpu_model,
                    text::plural(machine.cpu_count as usize, "thread")
                ),
            ),
            ("memory", format!("{} usable", text::size(machine.memory_bytes))),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec(),
    };
    let of_summary = machine.summary.iter().flat_map(|summary| summary.sections());
    let sections = std::iter::once(system).chain(of_summary).map(|section| {
        let rows = section.lines.into_iter().map(|(name, value)| [format!("  {name}"), value]);
        format!("{}\n{}", section.title, columns(rows))
    });
    sections.collect::<Vec<_>>().join("\n")
}
