//! How far a load is.

use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use spindle_base::text::size;
use spindle_scatter::load::Input;

use crate::host::progress::Standing;

/// How often a line tells the progress where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// A bar with the time left on a terminal, a line now and then elsewhere.
pub(super) struct Progress {
    pub(super) bar: ProgressBar,
    pub(super) began: Instant,
    /// Bytes that an earlier start has read.
    before: Option<u64>,
    last_line: Instant,
}

impl Progress {
    /// The size of what is no file is not known.
    pub(super) fn new(inputs: &[Input]) -> Progress {
        let size = |input: &Input| match input {
            Input::File(path) => size_of(path),
            Input::Standard => None,
        };
        let total: Option<u64> = inputs.iter().map(size).sum();
        let template = match total {
            Some(_) => "{bar:24} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
            None => "{bytes}, {bytes_per_sec}",
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new).with_style(style);
        Progress { bar, began: Instant::now(), before: None, last_line: Instant::now() }
    }

    pub(super) fn at(&mut self, bytes: u64) {
        if self.before.is_none() {
            self.before = Some(bytes);
            self.bar.set_position(bytes);
            self.bar.reset_eta();
        }
        self.bar.set_position(bytes);
        if self.bar.is_hidden() && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            eprintln!("{}", self.line(bytes));
        }
    }

    fn line(&self, bytes: u64) -> String {
        let read = bytes - self.before.unwrap_or(0);
        let Some(total) = self.bar.length().filter(|_| read > 0) else {
            return format!("{} read", size(bytes));
        };
        let per_byte_s = self.began.elapsed().as_secs_f64() / read as f64;
        let left_s = per_byte_s * total.saturating_sub(bytes) as f64;
        let left = Standing { left_s, ..Standing::default() }.left_words();
        format!("{} of {} read, {left}", size(bytes), size(total))
    }
}

fn size_of(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|found| found.len())
}
