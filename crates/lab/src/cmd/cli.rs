//! The command line: the sub-commands, and the exit code of each outcome.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Error, Result};
use clap::{Parser, Subcommand};

use crate::cmd::{
    advise, clean, compare, dataset, disk, docs, doctor, load, new, observe, plan, published, query, report,
    run, server, study, watch,
};
use crate::host::interrupt::Interrupted;
use spindle_base::Mistake;
use spindle_base::passwords;
use spindle_base::text;

/// Runs your real database on emulated disks, and tells you which storage to buy.
#[derive(Debug, Parser)]
#[command(name = "spindle", version, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a scenario: a server, storages to compare, a workload. Asks for what no option gives.
    New(new::NewArguments),
    /// Run a scenario. A run that was stopped continues where it stopped.
    Run(run::RunArguments),
    /// Show the run that goes on in another terminal: progress, throughput, latency, storage, cores.
    ///
    /// Without a name it is the newest run of this machine. `q` or Ctrl-C leaves, and the run goes on. A
    /// terminal shows a screen; elsewhere a line every five seconds does.
    Watch(watch::WatchArguments),
    /// Show the cells of a scenario and an estimate of the time.
    Plan(plan::PlanArguments),
    /// Print the report of a records file.
    Report(report::ReportArguments),
    /// Compare cells of one run or of two: ratio, interval, verdict.
    ///
    /// `compare RUN` compares every cell with the first. `compare RUN:a b` compares two cells of a run.
    /// `compare A B` compares the cells that two runs share. A run is a records file or its directory. Cells
    /// of different experiments are refused: only the storage may differ, and the axes of one scenario.
    Compare(compare::CompareArguments),
    /// List published studies, show their claims, and hold a run against them.
    Published(published::PublishedArguments),
    /// Repeat published studies on emulated storage, and tell which of their claims hold.
    Study(study::StudyArguments),
    /// Predict a measured database on other storage.
    Advise(advise::AdviseArguments),
    /// Record what a server in production does, by its counters alone.
    ///
    /// One connection asks for the server's counters once a second, and the kernel is asked for those of its
    /// process and its disk. Nothing is put on the server, and none of it needs root. The record has the form
    /// of a run's, without latencies.
    Observe(observe::ObserveArguments),
    /// Answer a query in fragments on several connections to a server that is already running.
    ///
    /// One query reads with one core and one request at a time. Its fragments each read a part of its largest
    /// table, side by side, and a SELECT over what they return has the same answer. A query that cannot be split,
    /// or would gain nothing, is answered on one connection, and the reason is told.
    Query(query::QueryArguments),
    /// Bring up, measure, clone and take down emulated disks.
    Disk(disk::DiskArguments),
    /// Run a workload against a server that is already running.
    Load(load::LoadArgs),
    /// List real sample data that packages ship, and load them into a server.
    Dataset(dataset::DatasetArguments),
    /// List the database servers of this machine, and fetch others.
    Server(server::ServerArguments),
    /// List what Spindle has on the disk, and remove it: snapshots, fetched servers, old results.
    ///
    /// Without a kind it only lists. What a run uses is never removed.
    Clean(clean::CleanArguments),
    /// Print a reference page: scenario, profiles, parameters, servers.
    Docs(docs::DocsArguments),
    /// Check whether this machine can run scenarios, and how to install what is missing.
    Doctor(doctor::DoctorArguments),
}

impl Cli {
    /// Parses the arguments of this process. On an error it ends the process, as clap does, but prints
    /// nothing that a terminal would act upon.
    pub fn of_process() -> Cli {
        Cli::try_parse().unwrap_or_else(|error| {
            let plain = error.render().to_string();
            let shown = text::lines(&passwords::masked(&plain));
            // The coloured error consists of escape sequences itself, so the arguments are checked in its
            // place.
            let acts = |argument: OsString| argument.to_string_lossy().contains(text::acts);
            if shown == plain && !std::env::args_os().any(acts) {
                error.exit();
            }
            eprint!("{shown}");
            std::process::exit(error.exit_code());
        })
    }

    pub fn execute(self) -> Result<ExitCode> {
        let done = |()| ExitCode::SUCCESS;
        match self.command {
            Command::New(arguments) => new::run(&arguments).map(done),
            Command::Run(arguments) => run::run(&arguments),
            Command::Watch(arguments) => watch::run(&arguments).map(done),
            Command::Plan(arguments) => plan::run(&arguments).map(done),
            Command::Report(arguments) => report::run(&arguments).map(done),
            Command::Compare(arguments) => compare::run(&arguments),
            Command::Published(arguments) => published::run(&arguments).map(done),
            Command::Study(arguments) => study::run(&arguments),
            Command::Advise(arguments) => advise::run(&arguments).map(done),
            Command::Observe(arguments) => observe::run(&arguments),
            Command::Query(arguments) => query::run(&arguments).map(done),
            Command::Disk(arguments) => disk::run(arguments).map(done),
            Command::Load(arguments) => load::run(arguments).map(done),
            Command::Dataset(arguments) => dataset::run(&arguments).map(done),
            Command::Server(arguments) => server::run(&arguments).map(done),
            Command::Clean(arguments) => clean::run(&arguments).map(done),
            Command::Docs(arguments) => docs::run(&arguments).map(done),
            Command::Doctor(arguments) => doctor::run(&arguments),
        }
    }
}

/// Prints the error and returns the exit code: 2 for a mistake of the user, 130 after Ctrl-C, 1 for
/// everything else.
pub fn fail(error: &Error) -> ExitCode {
    // `spindle plan ... | head`: the reader closed the pipe. The error of a pipe to a child process has
    // context around it.
    if error.chain().count() == 1 && error.downcast_ref().is_some_and(is_closed_pipe) {
        return ExitCode::SUCCESS;
    }
    if error.is::<Interrupted>() {
        eprintln!("spindle: interrupted");
        return ExitCode::from(130);
    }
    eprintln!("spindle: {}", text::one_line(&passwords::masked(&text::causes(error))));
    let mistake = error.downcast_ref::<Mistake>();
    for other in mistake.iter().flat_map(|mistake| &mistake.others) {
        eprintln!("spindle: {}", text::one_line(&passwords::masked(&other.to_string())));
    }
    ExitCode::from(if mistake.is_some() { 2 } else { 1 })
}

fn is_closed_pipe(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::BrokenPipe
}
