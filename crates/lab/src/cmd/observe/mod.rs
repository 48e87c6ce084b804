//! `spindle observe --server URL --for 30m`: a record from a server in production, by its counters alone.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use rustix::fs::{Access, access};
use spindle_base::{Mistake, proc, text, units};
use spindle_load::Endpoint;

use crate::advise::production::{
    self, Given, Moment, Options, check_trace, check_window, device_name, trace_path,
};
use crate::cmd::output::{allows_colour, check_output_file, print};
use crate::host::interrupt::{Interrupt, Interrupted};
use crate::report::{self, Format};
use crate::server::endpoint;

#[derive(Debug, Args)]
pub struct ObserveArguments {
    /// The server: `socket:/path`, `mysql://user:password@host:port`, `postgres:/directory-of-the-socket` or
    /// `postgresql://user:password@host:port`. Every user of this machine can read a password in an option. A
    /// URL without a password takes it from the environment variable MYSQL_PWD or PGPASSWORD. It goes into no
    /// record.
    #[arg(long, value_name = "URL", value_parser = parse_server)]
    server: Endpoint,
    /// Length of the window: as long as the server takes for a whole checkpoint, or longer.
    #[arg(
        long = "for",
        value_name = "DURATION",
        default_value = "10 min",
        value_parser = units::parse_duration,
        allow_hyphen_values = true
    )]
    duration: Duration,
    /// Time from sample to sample.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "1 s",
        value_parser = units::parse_duration,
        allow_hyphen_values = true
    )]
    every: Duration,
    /// File for the record. An existing one is replaced when the window is over.
    #[arg(long, value_name = "FILE", default_value = "observed.jsonl")]
    output: PathBuf,
    /// Block device of the server's data, such as `sda1` [default: the one under its data directory].
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Number of the server's process [default: the one in its file, or the only one of its name and age].
    #[arg(long, value_name = "NUMBER")]
    pid: Option<u32>,
    /// Keep a block trace of this device too, beside the record, in slices of time if it is busy. Needs root.
    #[arg(long, value_name = "DEVICE")]
    trace: Option<String>,
    /// Show no progress.
    #[arg(long)]
    quiet: bool,
}

fn parse_server(text: &str) -> Result<Endpoint, String> {
    let endpoint = endpoint::parse_to_observe(text)?;
    match endpoint.is_server() {
        true => Ok(endpoint),
        false => Err("is no server with counters; name a MariaDB, a MySQL or a PostgreSQL".to_owned()),
    }
}

/// Exit code 130 if the user ended it, also when the record was written.
pub fn run(arguments: &ObserveArguments) -> Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let options = options(arguments)?;
    let mut talk = Talk::begin(&options, arguments.quiet);
    let outcome = production::observe(&options, &interrupt, &mut |moment| talk.moment(moment));
    talk.end();
    let outcome = match outcome {
        Err(error) if error.is::<Interrupted>() => {
            eprintln!("spindle: interrupted; {error}");
            return Ok(ExitCode::from(130));
        }
        outcome => outcome?,
    };
    // As a reader of the file sees it.
    let records = report::read(&options.output)?;
    let colour = std::io::stdout().is_terminal() && allows_colour();
    let table = report::render(&records, Format::Text, colour)?;
    print(&format!("{table}\nrecord: {}\n", options.output.display()))?;
    if outcome.is_interrupted {
        eprintln!("spindle: interrupted; the record is of the window until then");
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
}

/// # Errors
/// [`Mistake`] that names the option. Nothing has been done yet.
fn options(arguments: &ObserveArguments) -> Result<Options, Mistake> {
    let ObserveArguments { server, duration, every, output, device, pid, trace, .. } = arguments;
    check_window(*duration, *every)?;
    check_output_file(output)?;
    check_writable(output)?;
    if let Some(pid) = pid.filter(|pid| !proc::is_there(*pid)) {
        return Err(Mistake::of_flag("pid", format!("there is no process {pid}")));
    }
    let device_at = |flag: &str, text: &Option<String>| {
        let name = text.as_deref().map(device_name).transpose();
        name.map_err(|words| Mistake::of_flag(flag, words))
    };
    let device = device_at("device", device)?;
    if trace.is_some() {
        check_trace()?;
        check_trace_file(output)?;
    }
    Ok(Options {
        endpoint: server.clone(),
        duration: *duration,
        every: *every,
        given: Given { process_id: *pid, device },
        trace: device_at("trace", trace)?,
        output: output.clone(),
    })
}

/// The record is written at the end, which would be too late to find out.
fn check_writable(output: &Path) -> Result<(), Mistake> {
    let directory = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    access(directory, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| {
        Mistake::of_flag("output", format!("{} cannot be written to: {error}", directory.display()))
    })
}

/// A trace replaces no file.
fn check_trace_file(output: &Path) -> Result<(), Mistake> {
    let path = trace_path(output);
    if path == output {
        let words = "its file would be that of the record; give `--output` another extension than `.trace`";
        return Err(Mistake::of_flag("trace", words));
    }
    match std::fs::symlink_metadata(&path) {
        Ok(_) => {
            let words = format!("{} exists; remove it, or give another `--output`", path.display());
            Err(Mistake::of_flag("trace", words))
        }
        Err(_) => Ok(()),
    }
}

/// The progress on standard error: a bar on a terminal, a line for each tenth of the window elsewhere.
#[derive(Debug)]
struct Talk {
    bar: ProgressBar,
    is_quiet: bool,
    tenths_told: u32,
}

impl Talk {
    fn begin(options: &Options, is_quiet: bool) -> Talk {
        let style = ProgressStyle::with_template("{bar:24} {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let seconds = options.duration.as_secs();
        let bar = if is_quiet { ProgressBar::hidden() } else { ProgressBar::new(seconds) };
        let bar = bar.with_style(style);
        if !is_quiet {
            let window = text::duration(options.duration);
            eprintln!("observing for {window}; Ctrl-C ends it, and keeps what was seen");
        }
        Talk { bar, is_quiet, tenths_told: 0 }
    }

    fn moment(&mut self, moment: Moment) {
        let Moment { elapsed, duration, transactions_per_s } = moment;
        let seconds = |time: Duration| text::duration(Duration::from_secs(time.as_secs()));
        let words = format!(
            "{} of {}, {transactions_per_s:.1} transactions per second",
            seconds(elapsed),
            seconds(duration)
        );
        self.bar.set_position(elapsed.as_secs());
        let tenths = (elapsed.as_secs_f64() / duration.as_secs_f64() * 10.0) as u32;
        if self.bar.is_hidden() && !self.is_quiet && tenths > self.tenths_told {
            eprintln!("{words}");
            self.tenths_told = tenths;
        }
        self.bar.set_message(words);
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}
