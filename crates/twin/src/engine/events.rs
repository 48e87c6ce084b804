//! The loop over events in virtual time.

use spindle_model::{Counters, Instant, Operation, SECOND};

use super::agenda::{Agenda, Event};
use super::background::Background;
use super::cores::Cores;
use super::drive::{Drive, Owner};
use super::file::{File, Use};
use super::generator::Generator;
use super::log::{Log, Step};
use super::outcome::{Outcome, Ran, Waits};
use super::rows::Rows;
use super::terminals::{Lines, Row, Terminal, Waiting, Work};
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

struct Engine<'a> {
    facts: &'a Facts,
    agenda: Agenda,
    drives: Vec<Drive>,
    cores: Cores,
    rows: Rows,
    file: File,
    log: Log,
    flusher: Flusher,
    background: Option<Background>,
    /// Requests of the cleaner that are under way, and those of the log that go through the same page cache.
    cleaner_outstanding: u64,
    /// Writes of the log that wait behind the write-back.
    held_back: Vec<(usize, Access)>,
    /// The background writer waits until the kernel has sent what it asked for.
    is_background_held_back: bool,
    terminals: Vec<Terminal>,
    lines: Lines,
    generator: Generator,
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
        let mut generator = Generator::new(facts, window.seed);
        let (first_write, draws) = (generator.first_write, &mut generator.draws);
        let flusher = Flusher::new(&facts.flushing, first_write, &drives.mounts, &facts.places, draws);
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
            agenda: Agenda::new(),
            drives,
            cores: Cores::new(facts.core_count),
            rows: Rows::new(facts.locks.map_or(0, |locks| locks.row_count)),
            file: File::default(),
            log: Log::new(&facts.commit),
            flusher,
            background: facts.flushing.background().map(|(rules, share)| Background::new(rules, share)),
            cleaner_outstanding: 0,
            held_back: Vec::new(),
            is_background_held_back: false,
            terminals: (0..terminals).map(|_| Terminal::idle()).collect(),
            lines: Lines::default(),
            generator,
            window: measuring,
        }
    }

    fn start(&mut self) {
        self.agenda.schedule(SECOND / TICKS_PER_SECOND, Event::Tick);
        if !self.facts.commit.is_waited_for {
            self.agenda.schedule(SECOND, Event::LogTimer);
        }
        self.end_background_round();
        match self.facts.arrivals {
            Arrivals::Closed { .. } => {
                for terminal in 0..self.terminals.len() {
                    self.begin(terminal, self.agenda.now);
                }
            }
            Arrivals::Open { .. } => {
                self.lines.idle = (0..self.terminals.len()).collect();
                self.next_arrival();
            }
        }
    }

    fn run_until(&mut self, end: Instant, enough: u64) {
        while self.window.count < enough {
            let event_at = self.agenda.next_at().filter(|at| *at <= end);
            if let Some((at, owner)) = self.take_completion(event_at.unwrap_or(end)) {
                self.agenda.now = at;
                self.complete(owner);
            } else if let Some(at) = event_at {
                self.agenda.now = self.agenda.now.max(at);
                if let Some(event) = self.agenda.pop() {
                    self.happen(event);
                }
            } else {
                self.agenda.now = self.agenda.now.max(end);
                return;
            }
        }
    }

    /// The next request that is done until `limit`, of any drive.
    fn take_completion(&mut self, limit: Instant) -> Option<(Instant, Owner)> {
        loop {
            let (mut first, mut first_at) = (0, Instant::FAR_FUTURE);
            // What it does may come after the next event of another.
            let mut other_at = limit;
            for (mount, drive) in self.drives.iter().enumerate() {
                let next_at = drive.next_at().unwrap_or(Instant::FAR_FUTURE);
                if next_at < first_at {
                    other_at = other_at.min(first_at);
                    (first, first_at) = (mount, next_at);
                } else {
                    other_at = other_at.min(next_at);
                }
            }
            if first_at > limit {
                return None;
            }
            let taken = self.drives[first].take(self.agenda.now, other_at);
            if taken.is_some() {
                return taken;
            }
        }
    }

    fn complete(&mut self, owner: Owner) {
        match owner {
            Owner::Terminal(terminal) => self.end_read(terminal),
            Owner::Nobody => {}
            Owner::Log => self.go_on_with_log(),
            Owner::Cleaner => {
                self.cleaner_outstanding -= 1;
                self.go_on_with_flushing();
            }
            Owner::BufferedLog => {
                self.cleaner_outstanding -= 1;
                self.go_on_with_log();
                self.go_on_with_flushing();
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Burst(terminal) => {
                if let Some((next, burst_ns)) = self.cores.end() {
                    self.agenda.schedule(burst_ns, Event::Burst(next));
                }
                self.go_on(terminal);
            }
            Event::Arrival => {
                match self.lines.idle.pop_front() {
                    Some(terminal) => self.begin(terminal, self.agenda.now),
                    None => self.lines.backlog.push_back(self.agenda.now),
                }
                self.next_arrival();
            }
            Event::Tick => {
                self.flusher.tick();
                self.look_at_drives();
                self.go_on_with_flushing();
                self.agenda.schedule(SECOND / TICKS_PER_SECOND, Event::Tick);
            }
            Event::Background => {
                if let Some(background) = &mut self.background {
                    background.begin_round();
                }
                self.go_on_with_background();
            }
            Event::LogTimer => {
                if self.log.is_idle() {
                    self.begin_log_round();
                }
                self.agenda.schedule(SECOND, Event::LogTimer);
            }
        }
    }

    fn next_arrival(&mut self) {
        if let Arrivals::Open { per_second, .. } = self.facts.arrivals {
            let after_ns = self.generator.draws.exponential(1e9 / per_second);
            self.agenda.schedule(after_ns as u64, Event::Arrival);
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
            Waiting::File => &mut waits.file_ns,
            Waiting::Commit => &mut waits.commit_ns,
            Waiting::Flushing => &mut waits.flushing_ns,
        };
        *field += self.agenda.now - terminal.since.max(self.window.began);
        terminal.waiting = waiting;
        terminal.since = self.agenda.now;
    }

    /// A terminal gets a transaction.
    fn begin(&mut self, terminal: usize, intended: Instant) {
        let work = self.generator.transaction(self.facts, intended);
        let writes = work.log_bytes > 0.0;
        self.terminals[terminal].work = work;
        if writes && self.flusher.is_full(self.log.end) {
            self.wait_for(terminal, Waiting::Flushing);
            self.lines.room.push_back(terminal);
            self.go_on_with_flushing();
        } else {
            self.burst(terminal);
        }
        self.read_ahead();
    }

    fn read_ahead(&mut self) {
        for access in self.generator.reads_ahead(self.facts) {
            self.read_page(access, Owner::Nobody);
        }
    }

    fn burst(&mut self, terminal: usize) {
        self.wait_for(terminal, Waiting::Cpu);
        let burst_ns = self.terminals[terminal].work.burst_ns;
        if let Some(burst_ns) = self.cores.begin(terminal, burst_ns) {
            self.agenda.schedule(burst_ns, Event::Burst(terminal));
        }
    }

    /// After a burst: the row that many change, then the next read or write of the file, then the commit.
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
        let Work { reads_left, file_writes_left, .. } = self.terminals[terminal].work;
        if self.generator.writes_file_next(reads_left, file_writes_left) {
            self.write_file(terminal);
        } else if reads_left == 0 {
            self.commit(terminal);
        } else if self.flusher.takes_page() {
            self.read(terminal);
        } else {
            self.wait_for(terminal, Waiting::Flushing);
            self.lines.pages.push_back(terminal);
        }
        self.go_on_with_flushing();
    }

    fn write_file(&mut self, terminal: usize) {
        if self.file.write(terminal) {
            self.end_file_write(terminal);
        } else {
            self.wait_for(terminal, Waiting::File);
        }
    }

    fn end_file_write(&mut self, terminal: usize) {
        self.terminals[terminal].work.file_writes_left -= 1;
        self.burst(terminal);
    }

    fn read(&mut self, terminal: usize) {
        let reads_file = self.generator.uses_file(self.facts);
        let work = &mut self.terminals[terminal].work;
        work.reads_left -= 1;
        work.reads_file = reads_file;
        if reads_file && !self.file.read(terminal) {
            self.wait_for(terminal, Waiting::File);
        } else {
            self.send_read(terminal);
        }
    }

    fn send_read(&mut self, terminal: usize) {
        self.wait_for(terminal, Waiting::Read);
        let (access, behind) = self.generator.read(self.facts);
        self.read_page(access, Owner::Terminal(terminal));
        for access in behind {
            self.read_page(access, Owner::Nobody);
        }
    }

    fn read_page(&mut self, access: Access, owner: Owner) {
        let mount = self.facts.reading.mount;
        self.flusher.read(mount, access.size_bytes);
        self.drives[mount].send(self.agenda.now, Operation::Read, access, owner);
    }

    fn end_read(&mut self, terminal: usize) {
        if std::mem::take(&mut self.terminals[terminal].work.reads_file) {
            for (using, next) in self.file.end_read() {
                match using {
                    Use::Read => self.send_read(next),
                    Use::Write if next == self.terminals.len() => {
                        self.end_background_write();
                        self.go_on_with_background();
                    }
                    Use::Write => self.end_file_write(next),
                }
            }
        }
        self.burst(terminal);
    }

    /// The pages of a round, each with the lock of its file. In the file's line the background writer comes after the
    /// last terminal.
    fn go_on_with_background(&mut self) {
        while self.background.as_ref().is_some_and(Background::has_work) {
            self.is_background_held_back = self.flusher.is_asked();
            if self.is_background_held_back {
                return;
            }
            if self.generator.uses_file(self.facts) && !self.file.write(self.terminals.len()) {
                return;
            }
            self.end_background_write();
        }
        self.end_background_round();
    }

    fn end_background_write(&mut self) {
        let Some(background) = &mut self.background else { return };
        let page_bytes = self.facts.reading.page_bytes;
        let page = self.facts.places.any_written_page(page_bytes, &mut self.generator.draws);
        self.flusher.ask_for(background.wrote(page));
        self.go_on_with_flushing();
    }

    fn end_background_round(&mut self) {
        if let Some(background) = &self.background {
            self.agenda.schedule(background.rules.delay_ns, Event::Background);
        }
    }

    fn commit(&mut self, terminal: usize) {
        let Work { log_bytes, dirtied_pages, .. } = self.terminals[terminal].work;
        if log_bytes == 0.0 {
            self.finish(terminal);
            return;
        }
        self.log.end += log_bytes;
        self.flusher.changed(self.log.end, dirtied_pages, &mut self.generator.draws);
        if let Some(background) = &mut self.background {
            background.changed(dirtied_pages);
        }
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
        self.window.kinds[kind].latencies_ns.push(self.agenda.now - intended);
        self.window.count += 1;
        match self.facts.arrivals {
            Arrivals::Closed { .. } => self.begin(terminal, self.agenda.now),
            Arrivals::Open { .. } => match self.lines.backlog.pop_front() {
                Some(intended) => self.begin(terminal, intended),
                None => {
                    self.wait_for(terminal, Waiting::Idle);
                    self.lines.idle.push_back(terminal);
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
            Some(Step::Write { mount, access }) => match self.flusher.throttle(mount) {
                None => self.drives[mount].send(self.agenda.now, Operation::Write, access, Owner::Log),
                Some(throttle) if throttle.is_waiting() => self.held_back.push((mount, access)),
                Some(_) => self.send_buffered_log(mount, access),
            },
            Some(Step::Flush { mount }) => {
                self.drives[mount].send(self.agenda.now, Operation::Flush, NOWHERE, Owner::Log);
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

    fn send_buffered_log(&mut self, mount: usize, access: Access) {
        self.cleaner_outstanding += 1;
        self.drives[mount].send(self.agenda.now, Operation::Write, access, Owner::BufferedLog);
    }

    /// The kernel's look at how long reads take. Its window is a tick.
    fn look_at_drives(&mut self) {
        for (mount, drive) in self.drives.iter_mut().enumerate() {
            if let Some(throttle) = self.flusher.throttle(mount) {
                throttle.end_window(drive.take_seen(self.agenda.now), self.cleaner_outstanding);
            }
        }
    }

    fn go_on_with_flushing(&mut self) {
        let mut is_let_through = false;
        while self.flusher.sends_beside(self.cleaner_outstanding) {
            is_let_through = true;
            let next = self.flusher.next(self.log.end, &self.facts.places, &mut self.generator.draws);
            self.release_waiting();
            match next {
                Some(Phase::Write { mount, access }) => {
                    self.cleaner_outstanding += 1;
                    self.drives[mount].send(self.agenda.now, Operation::Write, access, Owner::Cleaner);
                }
                Some(Phase::Batch { mount, accesses }) => {
                    self.cleaner_outstanding += accesses.len() as u64;
                    for access in accesses {
                        self.drives[mount].send(self.agenda.now, Operation::Write, access, Owner::Cleaner);
                    }
                }
                Some(Phase::Flush { mount }) => {
                    self.cleaner_outstanding += 1;
                    self.drives[mount].send(self.agenda.now, Operation::Flush, NOWHERE, Owner::Cleaner);
                }
                None => break,
            }
        }
        if is_let_through {
            for (mount, access) in std::mem::take(&mut self.held_back) {
                self.send_buffered_log(mount, access);
            }
        }
        if self.is_background_held_back && !self.flusher.is_asked() {
            self.go_on_with_background();
        }
    }

    /// Those for whom there is room now.
    fn release_waiting(&mut self) {
        while !self.lines.pages.is_empty() && self.flusher.takes_page() {
            if let Some(terminal) = self.lines.pages.pop_front() {
                self.read(terminal);
            }
        }
        while !self.lines.room.is_empty() && !self.flusher.is_full(self.log.end) {
            if let Some(terminal) = self.lines.room.pop_front() {
                self.burst(terminal);
            }
        }
    }

    fn begin_window(&mut self) {
        let measuring = &mut self.window;
        measuring.began = self.agenda.now;
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
        let elapsed_ns = self.agenda.now - self.window.began;
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
            backlog: self.lines.backlog.len() as u64,
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
