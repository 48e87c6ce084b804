//! A token bucket in exact integers, so that a rate holds over days of model time.

use crate::time::{Instant, SECOND};

/// Tokens that arrive at a rate and are kept up to a capacity.
///
/// A request for more tokens than the capacity goes when the bucket is full, and leaves a debt. The long-run
/// rate therefore holds for requests of any size.
#[derive(Debug, Clone)]
pub(crate) struct TokenBucket {
    rate_per_s: u64,
    /// In thousand-millionths of a token: a rate of one per second gives one unit per nanosecond.
    capacity: i128,
    level: i128,
    /// Time of the last update of the level.
    at: Instant,
}

const TOKEN: i128 = SECOND as i128;

impl TokenBucket {
    /// A full bucket; `rate_per_s` and `capacity_tokens` are above zero.
    pub(crate) fn new(rate_per_s: u64, capacity_tokens: u64) -> TokenBucket {
        assert!(rate_per_s > 0 && capacity_tokens > 0, "a bucket that gives nothing");
        let capacity = i128::from(capacity_tokens) * TOKEN;
        TokenBucket { rate_per_s, capacity, level: capacity, at: Instant::ZERO }
    }

    pub(crate) fn fill_to_percent(&mut self, percent: u64) {
        self.level = self.capacity * i128::from(percent) / 100;
    }

    fn level_at(&self, now: Instant) -> i128 {
        // Start times are rounded up to the nanosecond. The tokens of that nanosecond are kept.
        let most = self.capacity + i128::from(self.rate_per_s);
        (self.level + i128::from(self.rate_per_s) * i128::from(now - self.at)).min(most)
    }

    /// The first time at or after `now` with enough tokens.
    pub(crate) fn earliest(&self, now: Instant, tokens: u64) -> Instant {
        let now = now.max(self.at);
        let missing = (i128::from(tokens) * TOKEN).min(self.capacity) - self.level_at(now);
        if missing <= 0 {
            return now;
        }
        let rate = i128::from(self.rate_per_s);
        now + u64::try_from((missing + rate - 1) / rate).unwrap_or(u64::MAX)
    }

    /// Takes the tokens at `now`. `now` must not decrease between calls.
    pub(crate) fn take(&mut self, now: Instant, tokens: u64) {
        self.level = self.level_at(now) - i128::from(tokens) * TOKEN;
        self.at = self.at.max(now);
    }

    /// Whole tokens in the bucket at `now`; zero during a debt.
    pub(crate) fn tokens(&self, now: Instant) -> u64 {
        (self.level_at(now.max(self.at)).max(0) / TOKEN) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_bucket_is_a_burst_and_then_the_rate_holds() {
        let mut bucket = TokenBucket::new(3, 2);
        let mut starts = Vec::new();
        let mut now = Instant::ZERO;
        for _ in 0..5 {
            now = bucket.earliest(now, 1);
            bucket.take(now, 1);
            starts.push(now.0);
        }
        assert_eq!(starts, [0, 0, 333_333_334, 666_666_667, 1_000_000_000]);
    }

    #[test]
    fn more_than_the_bucket_holds_leaves_a_debt() {
        let mut bucket = TokenBucket::new(10, 5);
        assert_eq!(bucket.earliest(Instant::ZERO, 20), Instant::ZERO);
        bucket.take(Instant::ZERO, 20);
        assert_eq!(bucket.tokens(Instant::ZERO), 0);
        // Fifteen of debt and one token: 1.6 s.
        assert_eq!(bucket.earliest(Instant::ZERO, 1), Instant(1_600_000_000));
    }
}
