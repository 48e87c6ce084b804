//! The library as `spindle` embeds it, and processes under it.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub(crate) const FACTOR: f64 = 4.0;
/// Time passes faster.
pub(crate) const FASTER: f64 = 0.25;
/// So long ago is the origin: a moment that is mapped by a wrong origin is far away.
const ORIGIN_SECONDS: i64 = 100;
pub(crate) const SECOND_NS: i64 = 1_000_000_000;

/// A clock of this process, which has no library before libc.
pub(crate) fn now_ns(clock: libc::clockid_t) -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: there is room for the time.
    assert_eq!(unsafe { libc::clock_gettime(clock, &raw mut now) }, 0);
    now.tv_sec * SECOND_NS + now.tv_nsec
}

/// Built by the compiler alone, with the options that the laboratory's build script gives. Cargo does not
/// build a library of this kind for tests.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libspindle_dilate.so");
        let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let options = "--edition 2024 --crate-name spindle_dilate --crate-type cdylib -O -C panic=abort";
        let status = Command::new(compiler)
            .args(options.split(' '))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs"))
            .arg("-o")
            .arg(&path)
            .status();
        assert!(status.unwrap().success());
        path
    })
}

/// One origin for this test process, as the starter of a trial takes one: (monotonic, realtime).
pub(crate) fn origins() -> (i64, i64) {
    static ORIGINS: OnceLock<(i64, i64)> = OnceLock::new();
    *ORIGINS.get_or_init(|| {
        let before = ORIGIN_SECONDS * SECOND_NS;
        (now_ns(libc::CLOCK_MONOTONIC) - before, now_ns(libc::CLOCK_REALTIME) - before)
    })
}

/// Puts a command under the library.
pub(crate) fn dilated(command: &mut Command, factor: f64) -> &mut Command {
    let (monotonic, realtime) = origins();
    command.env("LD_PRELOAD", library()).env("SPINDLE_DILATION", format!("{factor} {monotonic} {realtime}"))
}

/// This test's program again, for the probe of this name.
pub(crate) fn probe(name: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "child::child", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("PROBE", name).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Reads lines of a probe; the test harness in it writes lines of its own.
pub(crate) struct Lines(BufReader<ChildStdout>);

impl Lines {
    pub(crate) fn of(child: &mut Child) -> Lines {
        Lines(BufReader::new(child.stdout.take().unwrap()))
    }

    /// The rest of the next line that begins so; `None` at the end.
    pub(crate) fn next(&mut self, beginning: &str) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(rest) = line.strip_prefix(beginning) {
                return Some(rest.trim().to_owned());
            }
        }
    }
}

/// The real duration from a probe's "begin" to its "end", or what went wrong in it.
pub(crate) fn measure(mut command: Command) -> Result<Duration, String> {
    let mut child = command.spawn().unwrap();
    let mut lines = Lines::of(&mut child);
    let begin = lines.next("begin").map(|_| Instant::now());
    let end = lines.next("end").map(|_| Instant::now());
    // Without the rest of the output read, the probe could not write it.
    let mut rest = String::new();
    lines.0.read_to_string(&mut rest).unwrap();
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    let status = child.wait().unwrap();
    match (begin, end) {
        (Some(begin), Some(end)) if status.success() => Ok(end - begin),
        _ => Err(format!("{status}: {errors}{rest}")),
    }
}
