//! One run of fio, and its figures.
//!
//! fio measures, so that the judge is independent of the emulator. Its output is treated as untrusted text:
//! when fio is missing, dies or prints something else, the error is one sentence with the last line of its
//! output.

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use itertools::Itertools as _;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use spindle_stats::QuantileFunction;

use super::{Access, Question, Row};
use crate::host::interrupt::Interrupt;
use crate::host::patience::Wait;
use spindle_base::child::die_with_parent;
use spindle_base::dilation::Dilation;

/// Allowance beyond the requested runtime, for fio to start its jobs and to complete its last requests.
const PATIENCE: Duration = Duration::from_secs(120);
const LAST_WORDS_LENGTH: usize = 200;
const MISSING: &str = "fio is not installed, and it makes the measurements; `spindle doctor` prints the command that installs it";

#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// A block device or a file.
    pub path: &'a Path,
    pub question: Question,
    /// Start of the range of requests, from the start of the file.
    pub offset_bytes: u64,
    pub span_bytes: u64,
    /// Dilation of the disk. The clock of fio is real. All times here and all figures are in dilated time.
    pub dilation: Dilation,
    pub seconds: u64,
    /// Runtime before the measurement, not counted.
    pub ramp: Duration,
    /// Bypasses the page cache.
    pub direct: bool,
    pub seed: u64,
    /// Runs fio under SCHED_FIFO, at a lower priority than the emulator: the time that fio waits for a core
    /// belongs to the host and not to the disk.
    pub real_time: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    pub row: Row,
    /// Histogram: latency in nanoseconds (the middle of fio's bins, which are 1.6 % wide) and number of
    /// requests. It excludes the latencies of fsync.
    pub latencies_ns: Vec<(u64, u64)>,
}

impl Figures {
    /// In microseconds; `None` without latencies.
    pub fn distribution(&self) -> Option<QuantileFunction> {
        let counts = self.latencies_ns.iter().map(|&(latency_ns, count)| (latency_ns as f64 / 1e3, count));
        QuantileFunction::of_counts(&counts.collect_vec())
    }

    /// What was measured on the real clock, in dilated time.
    fn dilated(self, dilation: Dilation) -> Figures {
        let of_bin =
            |(real_ns, count): (u64, u64)| ((real_ns as f64 / dilation.factor()).round() as u64, count);
        let latencies_ns = self.latencies_ns.into_iter().map(of_bin).collect();
        Figures { row: self.row.dilated(dilation), latencies_ns }
    }
}

/// The version of fio in its own words, for example `fio-3.33`.
///
/// # Errors
/// fio is missing, or prints no version.
pub fn version() -> Result<String> {
    let output = match Command::new("fio").arg("--version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(MISSING),
        other => other.context("asking fio for its version")?,
    };
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    ensure!(output.status.success() && text.starts_with("fio"), "fio does not print its version: {}", {
        last_words(&output.stderr, &output.stdout)
    });
    Ok(text)
}

/// # Errors
/// fio is missing, fails, hangs or prints no figures; or the user asked to stop.
pub fn run(job: &Job<'_>, interrupt: &Interrupt) -> Result<Figures> {
    let ended =
        execute(&mut command(job), job, interrupt).with_context(|| format!("measuring {}", job.question))?;
    let figures = figures(&job.question, &ended).with_context(|| format!("measuring {}", job.question))?;
    Ok(figures.dilated(job.dilation))
}

fn command(job: &Job<'_>) -> Command {
    let mut command = Command::new(if job.real_time { "chrt" } else { "fio" });
    if job.real_time {
        command.args(["--fifo", "5", "fio"]);
    }
    let question = job.question;
    let (pattern, jobs, depth, engine) = match question.access {
        Access::RandomRead => ("randread", question.iodepth, 1, "psync"),
        Access::RandomWrite => ("randwrite", question.iodepth, 1, "psync"),
        Access::SequentialRead => ("read", 1, question.iodepth, "libaio"),
        Access::SequentialWrite => ("write", 1, question.iodepth, "libaio"),
        Access::Fsync => ("write", 1, 1, "psync"),
    };
    command.args(["--name=spindle", "--thread", "--group_reporting", "--time_based", "--norandommap"]);
    command.args(["--lat_percentiles=1", "--clat_percentiles=0", "--output-format=json+"]);
    command.args([
        format!("--ioengine={engine}"),
        format!("--rw={pattern}"),
        format!("--bs={}", question.block_bytes),
        format!("--numjobs={jobs}"),
        format!("--iodepth={depth}"),
        format!("--offset={}", job.offset_bytes),
        format!("--size={}", job.span_bytes),
        format!("--runtime={}", job.dilation.real(Duration::from_secs(job.seconds)).as_secs_f64().ceil()),
        format!("--ramp_time={}ms", job.dilation.real(job.ramp).as_millis()),
        format!("--direct={}", u8::from(job.direct)),
        format!("--randseed={}", job.seed),
    ]);
    // fio separates file names by colons.
    command.arg(format!("--filename={}", job.path.display().to_string().replace(':', "\\:")));
    match question.access {
        Access::Fsync => command.arg("--fsync=1"),
        access if !access.is_write() => command.arg("--readonly"),
        _ => &mut command,
    };
    command
}

fn execute(command: &mut Command, job: &Job<'_>, interrupt: &Interrupt) -> Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = match die_with_parent(command).spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(MISSING),
        other => other.context("starting fio")?,
    };
    let process_id = child.id();
    let patience = job.dilation.real(Duration::from_secs(job.seconds) + job.ramp) + PATIENCE;
    let wait = Wait { patience, who: "fio", interrupt: Some(interrupt) };
    let work = move || child.wait_with_output().context("waiting for fio");
    let output = interrupt.kill_on_signal(process_id, || wait.for_work(work));
    // Ctrl-C reaches fio as well. It then ends early, with figures of a shorter run.
    interrupt.check()?;
    if let (Err(_), Some(process)) = (&output, Pid::from_raw(process_id.cast_signed())) {
        let _ = kill_process(process, Signal::KILL);
    }
    output
}

fn figures(question: &Question, ended: &Output) -> Result<Figures> {
    let words = || last_words(&ended.stderr, &ended.stdout);
    if let Some(signal) = ended.status.signal() {
        bail!("fio was killed by signal {signal}; its last words: {}", words());
    }
    ensure!(ended.status.success(), "fio failed: {}", words());
    let text = String::from_utf8_lossy(&ended.stdout);
    // fio prints remarks before its JSON.
    let json = text.find('{').zip(text.rfind('}')).filter(|(start, end)| start < end);
    let value: Option<Value> = json.and_then(|(start, end)| serde_json::from_str(&text[start..=end]).ok());
    let Some(value) = value else { bail!("fio printed no figures; its last words: {}", words()) };
    let job = &value["jobs"][0];
    ensure!(job["error"].as_i64().unwrap_or(0) == 0, "fio failed: {}", words());
    read_figures(question, job)
}

fn read_figures(question: &Question, job: &Value) -> Result<Figures> {
    let direction = &job[if question.access.is_write() { "write" } else { "read" }];
    let number = |value: &Value, name: &str| {
        let number = value.as_f64().filter(|number| number.is_finite());
        number.with_context(|| format!("fio's output lacks `{name}`"))
    };
    let requests = direction["total_ios"].as_u64().context("fio's output lacks `total_ios`")?;
    ensure!(requests > 0, "fio completed no request");
    let per_second = number(&direction["iops"], "iops")?;
    let own_mean_ns = number(&direction["lat_ns"]["mean"], "lat_ns.mean")?;
    let is_fsync = question.access == Access::Fsync;
    // fio reports a write and its fsync separately. Means can be added, quantiles cannot.
    let sync_mean_ns =
        if is_fsync { number(&job["sync"]["lat_ns"]["mean"], "sync.lat_ns.mean")? } else { 0.0 };
    let quantile_us = |name: &str| {
        let quantile_ns = direction["lat_ns"]["percentile"][name].as_f64().filter(|_| !is_fsync);
        quantile_ns.map(|quantile_ns| quantile_ns / 1e3)
    };
    let row = Row {
        question: *question,
        per_second,
        bytes_per_s: per_second * question.block_bytes as f64,
        latency_us_mean: (own_mean_ns + sync_mean_ns) / 1e3,
        latency_us_p50: quantile_us("50.000000"),
        latency_us_p99: quantile_us("99.000000"),
        latency_us_p999: quantile_us("99.900000"),
        requests,
        seconds: number(&direction["runtime"], "runtime")? / 1e3,
    };
    let bins = direction["lat_ns"]["bins"].as_object();
    let bin = |(latency, count): (&String, &Value)| Some((latency.parse().ok()?, count.as_u64()?));
    let latencies_ns = bins.into_iter().flatten().filter_map(bin).sorted_unstable().collect();
    Ok(Figures { row, latencies_ns })
}

/// The last non-empty line of the errors, or else of the output.
fn last_words(errors: &[u8], output: &[u8]) -> String {
    let last = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        Some(line.chars().take(LAST_WORDS_LENGTH).collect::<String>())
    };
    match last(errors).or_else(|| last(output)) {
        Some(words) => format!("`{words}`"),
        None => "none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use super::*;
    use crate::bench::Place;

    const READ: Question =
        Question { place: Place::Raw, access: Access::RandomRead, block_bytes: 4_096, iodepth: 1 };

    fn check(raw_status: i32, output: &str, errors: &str) -> Result<Figures> {
        let status = ExitStatus::from_raw(raw_status);
        figures(&READ, &Output { status, stdout: output.into(), stderr: errors.into() })
    }

    fn complaint(raw_status: i32, output: &str, errors: &str) -> String {
        format!("{:#}", check(raw_status, output, errors).unwrap_err())
    }

    /// Output of fio 3.33, shortened.
    const GOOD: &str = r#"note: both iodepth >= 1 and synchronous I/O engine are selected
{"fio version": "fio-3.33", "jobs": [{"error": 0, "read": {"iops": 1000.5, "runtime": 2000, "total_ios": 2001,
"lat_ns": {"mean": 999000.0, "percentile": {"50.000000": 980000, "99.000000": 2000000, "99.900000": 3000000},
"bins": {"980000": 1500, "1010000": 501}}}}]}"#;

    #[test]
    fn figures_are_found_behind_remarks() {
        let figures = check(0, GOOD, "").unwrap();
        assert_eq!((figures.row.per_second, figures.row.latency_us_mean), (1000.5, 999.0));
        assert_eq!((figures.row.latency_us_p99, figures.row.seconds), (Some(2000.0), 2.0));
        assert_eq!(figures.latencies_ns, [(980_000, 1500), (1_010_000, 501)]);
    }

    #[test]
    fn under_dilation_times_are_a_kth_and_rates_k_times_those_on_the_clock() {
        let figures = check(0, GOOD, "").unwrap().dilated("4".parse().unwrap());
        let Row { per_second, latency_us_mean, latency_us_p99, requests, seconds, .. } = figures.row;
        assert_eq!((per_second, latency_us_mean, latency_us_p99), (4002.0, 249.75, Some(500.0)));
        assert_eq!((requests, seconds), (2001, 0.5));
        assert_eq!(figures.latencies_ns, [(245_000, 1500), (252_500, 501)]);
    }

    #[test]
    fn a_fio_that_fails_is_quoted() {
        assert_eq!(
            complaint(256, "", "fio: looks like your file system does not support direct=1\n\n"),
            "fio failed: `fio: looks like your file system does not support direct=1`"
        );
        assert_eq!(complaint(9, "", ""), "fio was killed by signal 9; its last words: none");
        let failed = GOOD.replace("\"error\": 0", "\"error\": 5");
        assert_eq!(complaint(0, &failed, "fio: io_u error: EIO"), "fio failed: `fio: io_u error: EIO`");
    }

    #[test]
    fn garbage_is_no_figure() {
        for garbage in ["segmentation fault", "}{", "{\"jobs\": [", "{ not json }"] {
            assert_eq!(
                complaint(0, garbage, ""),
                format!("fio printed no figures; its last words: `{garbage}`")
            );
        }
        assert_eq!(complaint(0, "", ""), "fio printed no figures; its last words: none");
    }

    #[test]
    fn figures_that_lack_a_figure_are_none() {
        assert_eq!(complaint(0, "{}", ""), "fio's output lacks `total_ios`");
        assert_eq!(complaint(0, &GOOD.replace("iops\": 1000.5", "x\": 1"), ""), "fio's output lacks `iops`");
        assert_eq!(complaint(0, &GOOD.replace("ios\": 2001", "ios\": 0"), ""), "fio completed no request");
    }
}
