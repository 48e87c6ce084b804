//! The NAND side: what each die does, and who gets it next.

use std::collections::VecDeque;

use super::{Event, Flash};
use crate::commands::Slot;
use crate::profile::transfer_ns;
use crate::request::SECTOR_BYTES;
use crate::time::Instant;
use crate::volatile::Taken;

/// The part of one page that a read wants.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageRead {
    slot: Slot,
    bytes: u64,
}

/// A page to program; without a page it is what write amplification costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program {
    number: u64,
    page: Option<u64>,
}

#[derive(Debug, Default)]
enum Work {
    #[default]
    Idle,
    Reading(PageRead),
    Programming {
        program: Program,
        taken: Vec<Taken>,
    },
}

#[derive(Debug, Default)]
pub(super) struct Die {
    reads: VecDeque<PageRead>,
    work: Work,
    /// A read was the last thing it did: when programs are urgent, the next turn is theirs.
    has_just_read: bool,
}

impl Flash {
    pub(super) fn start_read(&mut self, at: Instant, slot: Slot) {
        let request = self.commands.get(slot).request;
        let pages = self.pages(slot);
        self.missing_pages[slot] = pages.end - pages.start;
        if pages.is_empty() {
            self.schedule(at, Event::Done(slot));
            return;
        }
        for page in pages {
            let page_start = page * self.parameters.page_bytes;
            let start = page_start.max(request.offset_bytes);
            let end = (page_start + self.parameters.page_bytes).min(request.end_bytes());
            let read = PageRead { slot, bytes: end - start };
            if self.buffer.covers(start / SECTOR_BYTES, end / SECTOR_BYTES) {
                self.send_to_host(at, read);
                continue;
            }
            let die = (page % self.dies.len() as u64) as usize;
            self.dies[die].reads.push_back(read);
            if matches!(self.dies[die].work, Work::Idle) {
                self.give_work(at, die);
            }
        }
    }

    fn channel_of(&self, die: usize) -> usize {
        die % self.channel_free_at.len()
    }

    fn cross_channel(&mut self, at: Instant, die: usize, bytes: u64) -> Instant {
        let channel = self.channel_of(die);
        let free_at = &mut self.channel_free_at[channel];
        *free_at = (*free_at).max(at) + transfer_ns(bytes, self.parameters.channel_bytes_per_s);
        *free_at
    }

    pub(super) fn read_out(&mut self, at: Instant, die: usize) {
        if let Work::Reading(read) = self.dies[die].work {
            let out_at = self.cross_channel(at, die, read.bytes);
            self.schedule(out_at, Event::ReadOut(die));
        }
    }

    pub(super) fn finish_read_out(&mut self, at: Instant, die: usize) {
        if let Work::Reading(read) = std::mem::take(&mut self.dies[die].work) {
            self.idle_die_count += 1;
            self.dies[die].has_just_read = true;
            self.send_to_host(at, read);
            self.give_work(at, die);
        }
    }

    fn send_to_host(&mut self, at: Instant, read: PageRead) {
        let sent_at = self.cross_link(at, read.bytes);
        self.missing_pages[read.slot] -= 1;
        if self.missing_pages[read.slot] == 0 {
            self.schedule(sent_at, Event::Done(read.slot));
        }
    }

    pub(super) fn queue_program(&mut self, page: Option<u64>) {
        self.programs.push_back(Program { number: self.next_program_number, page });
        self.next_program_number += 1;
        if page.is_some() {
            self.amplification_debt += self.parameters.write_amplification_permille - 1_000;
            while self.amplification_debt >= 1_000 {
                self.amplification_debt -= 1_000;
                self.queue_program(None);
            }
        }
    }

    /// Idle dies take queued programs, in turn.
    pub(super) fn wake_dies(&mut self, at: Instant) {
        let mut seen = 0;
        while self.idle_die_count > 0 && !self.programs.is_empty() && seen < self.dies.len() {
            let die = self.next_die;
            self.next_die = (die + 1) % self.dies.len();
            seen += 1;
            if matches!(self.dies[die].work, Work::Idle) {
                self.give_work(at, die);
            }
        }
    }

    /// The die is idle: reads first, unless programs are urgent and it is their turn.
    fn give_work(&mut self, at: Instant, die: usize) {
        let programs_are_urgent = !self.waiting_for_room.is_empty() || !self.drain_waiters.is_empty();
        let yields = programs_are_urgent && self.dies[die].has_just_read && !self.programs.is_empty();
        if !yields && let Some(read) = self.dies[die].reads.pop_front() {
            self.idle_die_count -= 1;
            self.dies[die].work = Work::Reading(read);
            self.schedule(at + self.parameters.page_read_ns, Event::ArrayRead(die));
            return;
        }
        if let Some(program) = self.programs.pop_front() {
            self.idle_die_count -= 1;
            let taken = match program.page {
                Some(page) => {
                    let (first, last) = self.page_sectors(page);
                    self.buffer.take(first, last)
                }
                None => Vec::new(),
            };
            self.dies[die].has_just_read = false;
            self.nand_write_bytes += self.parameters.page_bytes;
            let in_register_at = self.cross_channel(at, die, self.parameters.page_bytes);
            self.dies[die].work = Work::Programming { program, taken };
            self.schedule(in_register_at + self.parameters.page_program_ns, Event::Programmed(die));
        }
    }

    pub(super) fn finish_program(&mut self, at: Instant, die: usize) {
        if let Work::Programming { program, taken } = std::mem::take(&mut self.dies[die].work) {
            self.idle_die_count += 1;
            self.buffer.settle(&taken);
            if program.page.is_some() {
                self.used_pages -= 1;
            }
            self.admit_to_buffer(at);
            self.release_drained(at);
            self.give_work(at, die);
        }
    }

    /// Every program with a lower number is done.
    pub(super) fn oldest_program_number(&self) -> u64 {
        let running = self.dies.iter().filter_map(|die| match &die.work {
            Work::Programming { program, .. } => Some(program.number),
            Work::Idle | Work::Reading(_) => None,
        });
        let queued = self.programs.front().map(|program| program.number);
        running.chain(queued).min().unwrap_or(self.next_program_number)
    }

    /// The power is gone: every die stops. Returns the data that was being programmed.
    pub(super) fn forget_die_work(&mut self) -> Vec<Taken> {
        self.idle_die_count = self.dies.len();
        self.next_die = 0;
        let mut taken_by_all = Vec::new();
        for die in &mut self.dies {
            if let Work::Programming { taken, .. } = std::mem::take(&mut die.work) {
                taken_by_all.extend(taken);
            }
            *die = Die::default();
        }
        taken_by_all
    }
}
