//! The rates by which adaptive flushing reckons: `page_cleaner_flush_pages_recommendation` in buf0flu.cc.

use crate::flushing::TICKS_PER_SECOND;

/// `innodb_flushing_avg_loops`: rounds, and seconds.
const AVERAGE_LOOPS: u64 = 30;

/// Means over the last rounds of the cleaner.
#[derive(Debug, Default)]
pub(super) struct Averages {
    rounds: u64,
    pub(super) ticks: u64,
    pub(super) written_pages: u64,
    first_log_end: f64,
    pub(super) page_rate: f64,
    pub(super) log_rate: f64,
    has_period: bool,
}

impl Averages {
    pub(super) fn begin_period(&mut self, log_end: f64) {
        self.rounds = 0;
        self.ticks = 0;
        self.written_pages = 0;
        self.first_log_end = log_end;
    }

    pub(super) fn count_round(&mut self, log_end: f64) {
        self.rounds += 1;
        let seconds = (self.ticks as f64 / TICKS_PER_SECOND as f64).max(1.0);
        let page_rate = self.written_pages as f64 / seconds;
        let log_rate = (log_end - self.first_log_end) / seconds;
        let is_period = self.rounds >= AVERAGE_LOOPS || self.ticks >= AVERAGE_LOOPS * TICKS_PER_SECOND;
        if !self.has_period {
            // Before the first full period the rates of what there is, so that a simulation needs no 30 s to begin.
            (self.page_rate, self.log_rate) = (page_rate, log_rate);
        } else if is_period {
            self.page_rate = (page_rate + self.page_rate) / 2.0;
            self.log_rate = (log_rate + self.log_rate) / 2.0;
        }
        if is_period {
            self.has_period = true;
            self.begin_period(log_end);
        }
    }
}
