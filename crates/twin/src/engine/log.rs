//! Group commit: one terminal writes and flushes the log, and those that come meanwhile share the next round
//! (MariaDB: `log_write_up_to` in log0log.cc; PostgreSQL: `XLogFlush` in xlog.c).

use std::collections::VecDeque;

use crate::facts::{Access, Commit, Region, Stage};

/// What a round of the log does next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Step {
    Write { mount: usize, access: Access },
    Flush { mount: usize },
}

#[derive(Debug)]
pub(super) struct Log {
    is_grouped: bool,
    stages: Vec<Stage>,
    /// Bytes of all changes.
    pub(super) end: f64,
    durable: f64,
    round: Option<Round>,
    /// Terminals, each with the end of its changes.
    waiting: VecDeque<(f64, usize)>,
    pub(super) round_count: u64,
}

#[derive(Debug)]
struct Round {
    end: f64,
    /// What is left, the next step last.
    steps: Vec<Step>,
}

impl Log {
    pub(super) fn new(commit: &Commit) -> Log {
        Log {
            is_grouped: commit.is_grouped,
            stages: commit.stages.clone(),
            end: 0.0,
            durable: 0.0,
            round: None,
            waiting: VecDeque::new(),
            round_count: 0,
        }
    }

    pub(super) fn wait(&mut self, terminal: usize) {
        self.waiting.push_back((self.end, terminal));
    }

    /// Whether a round is to begin: none is under way, and there is something to make durable.
    pub(super) fn is_idle(&self) -> bool {
        self.round.is_none()
    }

    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Begins a round for all changes until now, or for those of the first that waits.
    pub(super) fn begin(&mut self) {
        self.round_count += 1;
        let alone = self.waiting.front().map(|(end, _)| *end).filter(|_| !self.is_grouped);
        let end = alone.unwrap_or(self.end);
        let steps = self.stages.iter().flat_map(|stage| {
            let access = part(stage.region, self.durable, end, stage.block_bytes);
            [Step::Write { mount: stage.mount, access }, Step::Flush { mount: stage.mount }]
        });
        let steps = steps.rev().collect();
        self.round = Some(Round { end, steps });
    }

    /// The next step of the round; `None` when it is over.
    pub(super) fn next(&mut self) -> Option<Step> {
        let round = self.round.as_mut()?;
        let step = round.steps.pop();
        if step.is_none() {
            self.durable = round.end;
            self.round = None;
        }
        step
    }

    /// A terminal whose changes are durable.
    pub(super) fn answered(&mut self) -> Option<usize> {
        let &(end, terminal) = self.waiting.front()?;
        (end <= self.durable).then(|| {
            self.waiting.pop_front();
            terminal
        })
    }
}

/// The blocks of a circular log between two positions. The block with the last round's end is written again.
fn part(region: Region, begin: f64, end: f64, block_bytes: u64) -> Access {
    let first = (begin as u64) / block_bytes * block_bytes;
    let last = (end.ceil() as u64).max(first + 1).next_multiple_of(block_bytes);
    let size_bytes = (last - first).min(region.size_bytes);
    let room = (region.size_bytes - size_bytes) / block_bytes + 1;
    let offset_bytes = region.offset_bytes + (first / block_bytes) % room * block_bytes;
    Access { offset_bytes, size_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(is_grouped: bool) -> Log {
        let region = Region { offset_bytes: 1 << 20, size_bytes: 1 << 20 };
        let stage = Stage { mount: 0, region, block_bytes: 512 };
        Log::new(&Commit { is_waited_for: true, is_grouped, stages: vec![stage] })
    }

    #[test]
    fn those_that_come_during_a_round_share_the_next() {
        let mut log = log(true);
        log.end = 700.0;
        log.wait(1);
        log.begin();
        let access = Access { offset_bytes: 1 << 20, size_bytes: 1_024 };
        assert_eq!(log.next(), Some(Step::Write { mount: 0, access }));
        for terminal in [2, 3] {
            log.end += 100.0;
            log.wait(terminal);
        }
        assert_eq!([log.next(), log.next()], [Some(Step::Flush { mount: 0 }), None]);
        assert_eq!([log.answered(), log.answered()], [Some(1), None]);
        log.begin();
        while log.next().is_some() {}
        assert_eq!([log.answered(), log.answered(), log.answered()], [Some(2), Some(3), None]);
    }

    #[test]
    fn commits_that_are_not_grouped_go_one_by_one() {
        let mut log = log(false);
        for terminal in [1, 2] {
            log.end += 100.0;
            log.wait(terminal);
        }
        for terminal in [1, 2] {
            log.begin();
            while log.next().is_some() {}
            assert_eq!([log.answered(), log.answered()], [Some(terminal), None]);
        }
    }

    #[test]
    fn the_log_writes_its_last_block_again() {
        let region = Region { offset_bytes: 0, size_bytes: 8_192 };
        assert_eq!(part(region, 700.0, 900.0, 512), Access { offset_bytes: 512, size_bytes: 512 });
        assert_eq!(part(region, 700.0, 1_100.0, 512), Access { offset_bytes: 512, size_bytes: 1_024 });
    }
}
