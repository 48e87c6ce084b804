//! The loop over events in virtual time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use spindle_model::{Counters, Instant, Operation, SECOND};

use super::cores::Cores;
use super::drive::{Drive, Owner};
use super::log::{Log, Step};
use super::outcome::{Outcome, Ran, Waits};
use super::rows::Rows;
use super::terminals::{Line, Row, Terminal, Waiting, Work};
use crate::draw::Draws;
use crate::facts::{Access, Arrivals, Drives, Facts, Window};
use crate::flushing::{Flusher, Phase, TICKS_PER_SECOND};

const NOWHERE: Access = Access { offset_bytes: 0, size_bytes: 0 };

/// Runs the database of `facts` on these drives.
///
/// # Panics
/// The facts name a mount that the drives do not have, or no kind of transaction.
pub fn simulate(facts: &Facts, drives: Drives, window: Window) -> Outcome {
    facts.check(&drives);
    let mut engine = Engine::new(facts, drives, window);
    engine.start();
    let settled = Instant(window.settle_ns);
    engine.run_until(settled, u64::MAX);
    engine.begin_window();
    engine.run_until(settled + window.measure_ns, window.enough);
    engine.outcome()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The burst of a terminal is over.
    Burst(usize),
    Arrival,
    /// Time passes for the flusher.
    Tick,
    /// A log that nobody waits for is written once a second.
    LogTimer,
}

struct Engine<'a> {
    facts: &'a Facts,
    now: Instant,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    event_count: u64,
    drives: Vec<Drive>,
    cores: Cores,
    rows: Rows,
    log: Log,
    flusher: Flusher,
    /// Requests of the cleaner that are under way.
    cleaner_outstanding: u64,
    terminals: Vec<Terminal>,
    /// Those that wait for a clean page, and those that wait for room in the log.
    wanting_pages: Line,
    wanting_room: Line,
    idle: Line,
    /// Intended starts of arrivals that found no connection free.
    backlog: VecDeque<Instant>,
    draws: Draws,
    weights: Vec<f64>,
    read_number: u64,
    ahead_number: u64,
    window: Measuring,
}

/// What is counted since the begin of the window.
struct Measuring {
    began: Instant,
    kinds: Vec<Ran>,
    count: u64,
    waits: Waits,
    counters: Vec<Counters>,
    busy_ns: u64,
    log_rounds: u64,
}

impl<'a> Engine<'a> {
    fn new(facts: &'a Facts, drives: Drives, window: Window) -> Engine<'a> {
        let terminals = match facts.arrivals {
            Arrivals::Closed { terminals } => terminals,
            Arrivals::Open { connections, .. } => connections,
        };
        let drives: Vec<Drive> = drives.mounts.into_iter().map(Drive::new).collect();
        let measuring = Measuring {
            began: Instant::ZERO,
            kinds: vec![Ran::default(); facts.kinds.len()],
            count: 0,
            waits: Waits::default(),
            counters: drives.iter().map(Drive::counters).collect(),
            busy_ns: 0,
            log_rounds: 0,
        };
        Engine {
            facts,
            now: Instant::ZERO,
            events: BinaryHeap::new(),
            event_count: 0,
            drives,
            cores: Cores::new(facts.core_count),
            rows: Rows::new(facts.locks.map_or(0, |locks| locks.row_count)),
            log: Log::new(&facts.commit),
            flusher: Flusher::new(&facts.flushing),
            cleaner_outstanding: 0,
            terminals: (0..terminals).map(|_| Terminal::idle()).collect(),
            wanting_pages: Line::new(),
            wanting_room: Line::new(),
            idle: Line::new(),
            backlog: VecDeque::new(),
            draws: Draws::new(window.seed),
            weights: facts.kinds.iter().map(|kind| kind.weight).collect(),
            read_number: 0,
            ahead_number: 0,
            window: measuring,
        }
    }

    fn start(&mut self) {
        // A recorded stream starts anywhere, so that two seeds are two histories.
        self.read_number = self.draws.below(1 << 32);
        self.schedule(SECOND / TICKS_PER_SECOND, Event::Tick);
        if !self.facts.commit.is_waited_for {
            self.schedule(SECOND, Event::LogTimer);
        }
        match self.facts.arrivals {
            Arrivals::Closed { .. } => {
                for terminal in 0..self.terminals.len() {
                    self.begin(terminal, self.now);
                }
            }
            Arrivals::Open { .. } => {
                self.idle = (0..self.terminals.len()).collect();
                self.next_arrival();
            }
        }
    }

    fn run_until(&mut self, end: Instant, enough: u64) {
        while self.window.count < enough {
            let drive = self.drives.iter().filter_map(Drive::next_at).min();
            let event = self.events.peek().map(|Reverse((at, ..))| *at);
            let Some(at) = [drive, event].into_iter().flatten().min() else { break };
            if at > end {
                break;
            }
            self.now = self.now.max(at);
            if drive == Some(at) {
                self.take_completions();
            } else if let Some(Reverse((_, _, event))) = self.events.pop() {
                self.happen(event);
            }
        }
        if self.window.count < enough {
            self.now = self.now.max(end);
        }
    }

    fn take_completions(&mut self) {
        for mount in 0..self.drives.len() {
            while let Some(owner) = self.drives[mount].take(self.now) {
                match owner {
                    Owner::Terminal(terminal) => self.burst(terminal),
                    Owner::Nobody => {}
                    Owner::Log => self.go_on_with_log(),
                    Owner::Cleaner => {
                        self.cleaner_outstanding -= 1;
                        self.go_on_with_flushing();
                    }
                }
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Burst(terminal) => {
                if let Some((next, burst_ns)) = self.cores.end() {
                    self.schedule(burst_ns, Event::Burst(next));
                }
                self.go_on(terminal);
            }
            Event::Arrival => {
                match self.idle.pop_front() {
                    Some(terminal) => self.begin(terminal, self.now),
                    None => self.backlog.push_back(self.now),
                }
                self.next_arrival();
            }
            Event::Tick => {
                self.flusher.tick();
                self.go_on_with_flushing();
                self.schedule(SECOND / TICKS_PER_SECOND, Event::Tick);
            }
            Event::LogTimer => {
                if self.log.is_idle() {
                    self.begin_log_round();
                }
                self.schedule(SECOND, Event::LogTimer);
            }
        }
    }

    fn schedule(&mut self, after_ns: u64, event: Event) {
        self.event_count += 1;
        self.events.push(Reverse((self.now + after_ns, self.event_count, event)));
    }

    fn next_arrival(&mut self) {
        if let Arrivals::Open { per_second, .. } = self.facts.arrivals {
            let after_ns = self.draws.exponential(1e9 / per_second);
            self.schedule(after_ns as u64, Event::Arrival);
        }
    }

    fn wait_for(&mut self, terminal: usize, waiting: Waiting) {
        let terminal = &mut self.terminals[terminal];
        let waits = &mut self.window.waits;
        let field = match terminal.waiting {
            Waiting::Idle => &mut waits.idle_ns,
            Waiting::Cpu => &mut waits.cpu_ns,
            Waiting::Read => &mut waits.read_ns,
            Waiting::Lock => &mut waits.lock_ns,
            Waiting::Commit => &mut waits.commit_ns,
            Waiting::Flushing => &mut waits.flushing_ns,
        };
        *field += self.now - terminal.since.max(self.window.began);
        terminal.waiting = waiting;
        terminal.since = self.now;
    }

    /// A terminal gets a transaction.
    fn begin(&mut self, terminal: usize, intended: Instant) {
        let work = self.draw_work(intended);
        let writes = work.log_bytes > 0.0;
        self.terminals[terminal].work = work;
        if writes && self.flusher.is_full(self.log.end) {
            self.wait_for(terminal, Waiting::Flushing);
            self.wanting_room.push_back(terminal);
            self.go_on_with_flushing();
        } else {
            self.burst(terminal);
        }
        self.read_ahead();
    }

    fn draw_work(&mut self, intended: Instant) -> Work {
        let facts = self.facts;
        let draws = &mut self.draws;
        let index = draws.weighted(&self.weights);
        let kind = &facts.kinds[index];
        let reads = draws.poisson(kind.reads);
        // As many bursts as the mean transaction of its kind has reads, so that its cores' time stays the mean.
        let cpu_ns = kind.cpu_ns * (reads as f64 + 1.0) / (kind.reads + 1.0);
        let row = match facts.locks {
            Some(locks) if kind.takes_lock => Row::Later {
                row: usize::try_from(draws.below(locks.row_count)).expect("a row in memory"),
                at_reads_left: (reads as f64 * (1.0 - locks.taken_after)) as u64,
            },
            _ => Row::None,
        };
        Work {
            kind: index,
            intended,
            reads_left: reads,
            burst_ns: (cpu_ns / (reads as f64 + 1.0)) as u64,
            log_bytes: kind.log_bytes,
            dirtied_pages: draws.rounded(kind.dirtied_pages),
            row,
        }
    }

    fn read_ahead(&mut self) {
        let reading = &self.facts.reading;
        for _ in 0..self.draws.poisson(reading.ahead_requests) {
            let mut access = self.facts.places.reads.place(self.ahead_number, self.draws.any());
            self.ahead_number += 1;
            access.size_bytes = (reading.ahead_pages * reading.page_bytes as f64) as u64;
            self.drives[reading.mount].send(self.now, Operation::Read, access, Owner::Nobody);
        }
    }

    fn burst(&mut self, terminal: usize) {
        self.wait_for(terminal, Waiting::Cpu);
        let burst_ns = self.terminals[terminal].work.burst_ns;
        if let Some(burst_ns) = self.cores.begin(terminal, burst_ns) {
            self.schedule(burst_ns, Event::Burst(terminal));
        }
    }

    /// After a burst: the row that many change, then the next read, then the commit.
    fn go_on(&mut self, terminal: usize) {
        let work = &mut self.terminals[terminal].work;
        if let Row::Later { row, at_reads_left } = work.row
            && work.reads_left <= at_reads_left
        {
            work.row = Row::Held(row);
            if !self.rows.take(row, terminal) {
                self.wait_for(terminal, Waiting::Lock);
                return;
            }
        }
        self.read_or_commit(terminal);
    }

    fn read_or_commit(&mut self, terminal: usize) {
        if self.terminals[terminal].work.reads_left == 0 {
            self.commit(terminal);
        } else if self.flusher.takes_page() {
            self.read(terminal);
        } else {
            self.wait_for(terminal, Waiting::Flushing);
            self.wanting_pages.push_back(terminal);
        }
        self.go_on_with_flushing();
    }

    fn read(&mut self, terminal: usize) {
        self.wait_for(terminal, Waiting::Read);
        self.terminals[terminal].work.reads_left -= 1;
        let access = self.facts.places.reads.place(self.read_number, self.draws.any());
        self.read_number += 1;
        let drive = &mut self.drives[self.facts.reading.mount];
        drive.send(self.now, Operation::Read, access, Owner::Terminal(terminal));
    }

    fn commit(&mut self, terminal: usize) {
        let Work { log_bytes, dirtied_pages, .. } = self.terminals[terminal].work;
        if log_bytes == 0.0 {
            self.finish(terminal);
            return;
        }
        self.log.end += log_bytes;
        self.flusher.changed(self.log.end, dirtied_pages);
        if !self.facts.commit.is_waited_for {
            self.finish(terminal);
            return;
        }
        self.wait_for(terminal, Waiting::Commit);
        self.log.wait(terminal);
        if self.log.is_idle() {
            self.begin_log_round();
        }
    }

    fn finish(&mut self, terminal: usize) {
        let Work { row, kind, intended, .. } = self.terminals[terminal].work;
        if let Row::Held(row) = row
            && let Some(next) = self.rows.release(row)
        {
            self.read_or_commit(next);
        }
        self.window.kinds[kind].latencies_ns.push(self.now - intended);
        self.window.count += 1;
        match self.facts.arrivals {
            Arrivals::Closed { .. } => self.begin(terminal, self.now),
            Arrivals::Open { .. } => match self.backlog.pop_front() {
                Some(intended) => self.begin(terminal, intended),
                None => {
                    self.wait_for(terminal, Waiting::Idle);
                    self.idle.push_back(terminal);
                }
            },
        }
    }

    fn begin_log_round(&mut self) {
        self.log.begin();
        self.go_on_with_log();
    }

    fn go_on_with_log(&mut self) {
        match self.log.next() {
            Some(Step::Write { mount, access }) => {
                self.drives[mount].send(self.now, Operation::Write, access, Owner::Log);
            }
            Some(Step::Flush { mount }) => {
                self.drives[mount].send(self.now, Operation::Flush, NOWHERE, Owner::Log);
            }
            None => {
                // All at once: what they do next may begin a round of its own.
                let answered: Vec<usize> = std::iter::from_fn(|| self.log.answered()).collect();
                if self.log.is_waited_for() {
                    self.begin_log_round();
                }
                for terminal in answered {
                    self.finish(terminal);
                }
            }
        }
    }

    fn go_on_with_flushing(&mut self) {
        while self.cleaner_outstanding == 0 {
            let next = self.flusher.next(self.log.end, &self.facts.places, &mut self.draws);
            self.release_waiting();
            match next {
                Some(Phase::Write { mount, accesses }) => {
                    self.cleaner_outstanding = accesses.len() as u64;
                    for access in accesses {
                        self.drives[mount].send(self.now, Operation::Write, access, Owner::Cleaner);
                    }
                }
                Some(Phase::Flush { mount }) => {
                    self.cleaner_outstanding = 1;
                    self.drives[mount].send(self.now, Operation::Flush, NOWHERE, Owner::Cleaner);
                }
                None => break,
            }
        }
    }

    /// Those for whom there is room now.
    fn release_waiting(&mut self) {
        while !self.wanting_pages.is_empty() && self.flusher.takes_page() {
            if let Some(terminal) = self.wanting_pages.pop_front() {
                self.read(terminal);
            }
        }
        while !self.wanting_room.is_empty() && !self.flusher.is_full(self.log.end) {
            if let Some(terminal) = self.wanting_room.pop_front() {
                self.burst(terminal);
            }
        }
    }

    fn begin_window(&mut self) {
        let measuring = &mut self.window;
        measuring.began = self.now;
        measuring.kinds.iter_mut().for_each(|kind| kind.latencies_ns.clear());
        measuring.count = 0;
        measuring.waits = Waits::default();
        measuring.counters = self.drives.iter().map(Drive::counters).collect();
        measuring.busy_ns = self.cores.busy_ns;
        measuring.log_rounds = self.log.round_count;
    }

    fn outcome(mut self) -> Outcome {
        for terminal in 0..self.terminals.len() {
            let waiting = self.terminals[terminal].waiting;
            self.wait_for(terminal, waiting);
        }
        let elapsed_ns = self.now - self.window.began;
        let busy = (self.cores.busy_ns - self.window.busy_ns) as f64;
        let of_cores = busy / (elapsed_ns.max(1) * self.facts.core_count) as f64;
        Outcome {
            elapsed_ns,
            kinds: self.window.kinds,
            waits: self.window.waits,
            cpu_busy: (of_cores + self.facts.background_cores / self.facts.core_count as f64).min(1.0),
            mounts: self
                .drives
                .iter()
                .zip(&self.window.counters)
                .map(|(drive, at)| moved(drive.counters(), at))
                .collect(),
            log_rounds: self.log.round_count - self.window.log_rounds,
            backlog: self.backlog.len() as u64,
        }
    }
}

/// Totals since an earlier look.
fn moved(now: Counters, earlier: &Counters) -> Counters {
    Counters {
        reads: now.reads - earlier.reads,
        writes: now.writes - earlier.writes,
        flushes: now.flushes - earlier.flushes,
        discards: now.discards - earlier.discards,
        read_bytes: now.read_bytes - earlier.read_bytes,
        write_bytes: now.write_bytes - earlier.write_bytes,
        seeks: now.seeks - earlier.seeks,
        nand_write_bytes: now.nand_write_bytes - earlier.nand_write_bytes,
        nand_moved_bytes: now.nand_moved_bytes - earlier.nand_moved_bytes,
        erases: now.erases - earlier.erases,
        ..now
    }
}
