//! `spindle study`: published studies, repeated.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use spindle_base::text;
use spindle_base::{Mistake, units};

use crate::claims::{Folder, find, folder, folders};
use crate::cmd::doctor::examine;
use crate::cmd::output::{check_output_directory, columns, print};
use crate::cmd::plan;
use crate::host::interrupt::{Interrupt, Interrupted};
use crate::record::records_file::{PAGE_NAME, RESULTS, Resume};
use crate::study::{Against, Answer, Counts, RepeatOptions, Summary, page, repeat, took};

/// Below the results of other runs.
const DIRECTORY: &str = "studies";
/// Of a smoke run, whose figures mean nothing.
const SMOKE: &str = "studies-smoke";

#[derive(Debug, Args)]
pub struct StudyArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the studies, with their scenarios and the time that each takes.
    List,
    /// Show a study's scenarios with the number of their cells and trials, and an estimate of their time.
    Plan(PlanArguments),
    /// Repeat studies: all of their scenarios, one after the other. A run that was stopped goes on where it stopped.
    Run(RunArguments),
    /// Tell which claims of a study the runs confirm.
    Report(ReportArguments),
}

#[derive(Debug, Args)]
struct Named {
    /// Studies by name, or by a part of it, such as `x25m`.
    #[arg(value_name = "ID", required_unless_present = "all")]
    names: Vec<String>,
    /// All studies.
    #[arg(long, conflicts_with = "names")]
    all: bool,
}

#[derive(Debug, Args)]
struct PlanArguments {
    #[command(flatten)]
    named: Named,
    /// Directory with the results of `study run`, whose times are shown [default: spindle-results/studies].
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct RunArguments {
    #[command(flatten)]
    named: Named,
    /// Directory for the results [default: spindle-results/studies].
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
    /// Time for each study, such as `90 min`. Its scenarios share it, and end with the last block that fits.
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    budget: Option<Duration>,
    /// Tiny data and short trials of a few cells, in about two minutes a study: shows that everything works, and measures nothing.
    #[arg(long, conflicts_with = "budget")]
    smoke: bool,
    /// Seed of all random choices, in place of the scenarios' own.
    #[arg(long)]
    seed: Option<u64>,
    /// Only the scenarios whose name has this part.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Run failed trials again.
    #[arg(long)]
    retry_failed: bool,
    /// Delete the records of earlier runs.
    #[arg(long, conflicts_with = "retry_failed")]
    fresh: bool,
}

#[derive(Debug, Args)]
struct ReportArguments {
    #[command(flatten)]
    named: Named,
    /// Directory with the results of `study run` [default: spindle-results/studies].
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
    /// Layout of the answer [default: html with --all, otherwise md].
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write `claims.md` of each study, and with --all the page `report.html`, beside the results.
    #[arg(long)]
    write: bool,
    /// Show the claims to which another run of the same studies, such as one with another `--seed`, gives another
    /// verdict.
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = ["write", "format"])]
    against: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One page for a browser.
    Html,
    /// A page for a document; with --all, the table of all studies.
    Md,
}

impl Named {
    fn folders(&self) -> Result<Vec<&'static Folder>, Mistake> {
        if self.all {
            Ok(folders().iter().collect())
        } else {
            self.names.iter().map(|name| folder(name)).collect()
        }
    }
}

/// Fails with a [`Mistake`] of the user.
pub fn run(arguments: &StudyArguments) -> Result<ExitCode> {
    match &arguments.command {
        Command::List => list().map(|()| ExitCode::SUCCESS),
        Command::Plan(arguments) => show_plan(arguments).map(|()| ExitCode::SUCCESS),
        Command::Run(arguments) => repeat_all(arguments),
        Command::Report(arguments) => report(arguments).map(|()| ExitCode::SUCCESS),
    }
}

fn list() -> Result<()> {
    let heads = ["study", "year", "claims", "scenarios", "title"].map(str::to_owned);
    let row = |folder: &Folder| -> Result<[String; 5], Mistake> {
        let study = find(folder.study)?.study;
        let source = &study.source;
        Ok([
            folder.study.to_owned(),
            source.year.to_string(),
            study.claims.len().to_string(),
            folder.scenarios.len().to_string(),
            source.title_en.clone().unwrap_or_else(|| source.title.clone()),
        ])
    };
    let rows = folders().iter().map(row).collect::<Result<Vec<_>, _>>()?;
    print(&columns(std::iter::once(heads).chain(rows)))
}

fn show_plan(arguments: &PlanArguments) -> Result<()> {
    let output = output(arguments.output.as_deref(), DIRECTORY);
    let mut all = Duration::ZERO;
    for folder in arguments.named.folders()? {
        let heads = ["scenario", "cells", "trials", "at most", "last time", "title"].map(str::to_owned);
        let mut rows = vec![heads];
        let mut refused = String::new();
        let mut total = Duration::ZERO;
        for (name, content) in folder.scenarios {
            match plan::of_text(name, content) {
                Ok((scenario, plan)) => {
                    let time = plan.estimate.total;
                    total += time;
                    let took = took(&output, folder, name).map_or_else(|| "-".to_owned(), text::duration);
                    rows.push([
                        (*name).to_owned(),
                        plan.cells.len().to_string(),
                        plan.trials.len().to_string(),
                        text::duration(time),
                        took,
                        text::one_line(&scenario.title),
                    ]);
                }
                Err(mistake) => {
                    refused += &format!("{name}: not run here: {}\n", text::one_line(&mistake.to_string()));
                }
            }
        }
        all += total;
        let table = if rows.len() > 1 { columns(rows) } else { String::new() };
        print(&format!("{}: at most {}\n{table}{refused}\n", folder.study, text::duration(total)))?;
    }
    print(&format!(
        "all together at most {}; `spindle plan` shows the cells of a file in `studies`\n",
        text::duration(all)
    ))
}

fn repeat_all(arguments: &RunArguments) -> Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let folders = arguments.named.folders()?;
    let output = output(arguments.output.as_deref(), if arguments.smoke { SMOKE } else { DIRECTORY });
    check_output_directory(&output)?;
    let blockers = examine::emulation_blockers();
    if !blockers.is_empty() {
        let words = format!(
            "no emulated disk can be mounted here ({}); `spindle doctor` says what is missing",
            blockers.join(", ")
        );
        return Err(Mistake::new(words).into());
    }
    let options = RepeatOptions {
        output: output.clone(),
        budget: arguments.budget,
        smoke: arguments.smoke,
        seed: arguments.seed,
        only: arguments.only.clone(),
        resume: Resume { fresh: arguments.fresh, retry_failed: arguments.retry_failed },
        program: std::env::current_exe().context("looking for our own binary")?,
    };
    for folder in &folders {
        match repeat(folder, &options, &interrupt) {
            Err(error) if error.is::<Interrupted>() => {
                eprintln!("spindle: interrupted; finished trials are kept, and the same command goes on");
                return Ok(ExitCode::from(130));
            }
            result => result?,
        }
        let answer = Answer::read(folder, &output)?;
        let path = write_claims(&answer, &output)?;
        print(&format!("{}: {}; {}\n", folder.study, Counts::of(&answer).words(), path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn output(given: Option<&Path>, default: &str) -> PathBuf {
    given.map_or_else(|| Path::new(RESULTS).join(default), Path::to_owned)
}

fn write_claims(answer: &Answer, output: &Path) -> Result<PathBuf> {
    let path = output.join(answer.folder.study).join("claims.md");
    std::fs::write(&path, answer.markdown()).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

fn report(arguments: &ReportArguments) -> Result<()> {
    let output = output(arguments.output.as_deref(), DIRECTORY);
    let folders = arguments.named.folders()?;
    let read = |output: &Path| -> Result<Vec<Answer>, Mistake> {
        folders.iter().map(|folder| Answer::read(folder, output)).collect()
    };
    let answers = read(&output)?;
    if let Some(directory) = &arguments.against {
        let others = read(directory)?;
        let against = Against { answers: &answers, others: &others };
        if against.is_empty() {
            let words = format!("no claim is tested both there and in {}", output.display());
            return Err(Mistake::of_flag("against", words).into());
        }
        return print(&against.markdown());
    }
    if arguments.write {
        for answer in &answers {
            let path = write_claims(answer, &output)?;
            eprintln!("{}", path.display());
        }
        if arguments.named.all {
            let path = output.join(PAGE_NAME);
            std::fs::write(&path, page(&answers)?).with_context(|| format!("writing {}", path.display()))?;
            eprintln!("{}", path.display());
        }
        return Ok(());
    }
    let format = arguments.format.unwrap_or(if arguments.named.all { Format::Html } else { Format::Md });
    match format {
        Format::Html => print(&page(&answers)?),
        Format::Md if arguments.named.all => print(&Summary { answers: &answers }.markdown()),
        Format::Md => print(&answers.iter().map(Answer::markdown).collect::<Vec<_>>().join("\n")),
    }
}
