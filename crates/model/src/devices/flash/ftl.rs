//! The flash translation layer: the map and the choice of victims. It has no notion of time.
//!
//! Page mapping over superblocks, with separate write frontiers for the host and for garbage collection (and
//! one for an SLC cache). Victims are chosen greedily (fewest valid units) or by cost and benefit (Kawaguchi
//! et al., USENIX 1995). The host may not open a superblock while only the reserve is free, so collection
//! always has a superblock to write to. Together with more raw than user capacity, this guarantees that
//! collection never runs out of space.
//!
//! Wear: every superblock counts its erases. Free superblocks are used in the order of their erases. Static
//! wear levelling is missing.

use std::collections::VecDeque;

use super::geometry::{Address, Geometry, Superblock, Unit};
use super::map::{Location, Map};
use super::slc::Slc;
use super::victims::Victims;
use crate::devices::{FlashParameters, VictimChoice};
use crate::layers::Ageing;
use crate::rng::Rng;

/// Free superblocks that only garbage collection may open.
const RESERVE: u32 = 1;
/// The groups are chosen anew if a victim outside them is better by this ratio: 3/4.
const STALE: (u128, u128) = (3, 4);
/// Units of a victim that are looked up in the map as one batch.
const LOOK_AHEAD: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Open,
    Closed,
    /// Empty and not yet erased.
    Erasing,
}

/// The write position of one stream of data.
#[derive(Debug, Clone, Copy, Default)]
struct Frontier {
    superblock: Option<Superblock>,
    next_offset: u32,
    /// Number of units that fit into the superblock.
    end: u32,
}

impl Frontier {
    fn is_full(&self) -> bool {
        self.next_offset == self.end
    }
}

#[derive(Debug)]
struct Victim {
    superblock: Superblock,
    units: Vec<Unit>,
    /// The next units to move; valid at lookup.
    ahead: [Unit; LOOK_AHEAD],
    ahead_count: usize,
    /// Valid units at the time of choice.
    valid_units: u32,
}

impl Victim {
    /// The next unit that is still valid. Each map lookup is a cache miss. Lookups are batched, because
    /// independent misses overlap.
    #[inline]
    fn next_unit(&mut self, map: &Map) -> Option<Unit> {
        loop {
            while self.ahead_count > 0 {
                let unit = self.ahead[self.ahead_count - 1];
                if map.lies_in(unit, self.superblock) {
                    return Some(unit);
                }
                self.ahead_count -= 1;
            }
            if self.units.is_empty() {
                return None;
            }
            let from = self.units.len().saturating_sub(LOOK_AHEAD);
            for unit in self.units.drain(from..) {
                self.ahead[self.ahead_count] = unit;
                self.ahead_count += usize::from(map.lies_in(unit, self.superblock));
            }
        }
    }
}

/// The result of one step of garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A full program of moved units, read from `page_count` pages.
    Program { die: usize, unit_count: u32, page_count: u32 },
    /// A superblock is empty: see `to_erase`.
    Emptied,
    /// Collection gains nothing, or must wait for an erase.
    Stuck,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FtlCounters {
    pub(super) host_units: u64,
    pub(super) moved_units: u64,
    /// Units programmed without data.
    pub(super) padded_units: u64,
    pub(super) erases: u64,
    pub(super) most_erases: u32,
}

#[derive(Debug)]
pub(super) struct Ftl {
    pub(super) geometry: Geometry,
    choice: VictimChoice,
    map: Map,
    valid_units: Vec<u32>,
    states: Vec<State>,
    erases: Vec<u32>,
    /// `units_written` at the time of closing, for the superblock's age.
    closed_at: Vec<u64>,
    free: VecDeque<Superblock>,
    host: Frontier,
    moved: Frontier,
    pub(super) slc: Slc,
    /// The host's native frontier while the host uses the SLC cache, or the reverse.
    parked: Frontier,
    victims: Victims,
    /// Boxed, because each program takes it out and puts it back.
    victim: Option<Box<Victim>>,
    /// Superblocks to erase, oldest first.
    pub(super) to_erase: VecDeque<Superblock>,
    erasing_count: u32,
    /// Units and pages gathered for the program in preparation.
    gathered: (u32, u32),
    last_page: u32,
    units_written: u64,
    pub(super) counters: FtlCounters,
    low_watermark: u32,
    high_watermark: u32,
}

impl Ftl {
    pub(super) fn new(parameters: &FlashParameters, size_bytes: u64) -> Ftl {
        let geometry = Geometry::new(parameters, size_bytes);
        let count = geometry.superblock_count as usize;
        let share = |percent: u64| (u64::from(geometry.spare_superblocks) * percent / 100) as u32;
        let low_watermark = RESERVE + 1 + share(parameters.gc_low_percent);
        let slc = Slc::new(parameters.slc.as_ref(), parameters.capacity_bytes, &geometry);
        Ftl {
            choice: parameters.gc_victim,
            map: Map::new(geometry.unit_count, geometry.offset_bits),
            valid_units: vec![0; count],
            states: vec![State::Free; count],
            erases: vec![0; count],
            closed_at: vec![0; count],
            free: (0..geometry.superblock_count).collect(),
            host: Frontier::default(),
            moved: Frontier::default(),
            slc,
            parked: Frontier::default(),
            victims: Victims::new(geometry.superblock_count),
            victim: None,
            to_erase: VecDeque::new(),
            erasing_count: 0,
            gathered: (0, 0),
            last_page: u32::MAX,
            units_written: 0,
            counters: FtlCounters::default(),
            low_watermark,
            high_watermark: low_watermark.max(RESERVE + 1 + share(parameters.gc_high_percent)),
            geometry,
        }
    }

    #[inline]
    pub(super) fn locate(&self, unit: Unit) -> Location {
        self.map.get(unit)
    }

    /// Prefetches a map entry. The map of a large drive exceeds the processor's caches, and a miss on which
    /// no code depends is cheap.
    #[inline]
    pub(super) fn glance(&self, offset_bytes: u64) -> u32 {
        let unit = (offset_bytes >> self.geometry.unit_bits) as usize;
        self.map.superblock_or_beyond(unit.min(self.map.len() - 1))
    }

    /// Sets a location off NAND (unmapped or buffered). The unit's data on NAND becomes garbage.
    pub(super) fn leave_nand(&mut self, unit: Unit, location: Location) {
        if let Location::Nand(address) = self.map.get(unit) {
            self.invalidate(address >> self.geometry.offset_bits);
        }
        self.map.set(unit, location);
    }

    fn invalidate(&mut self, superblock: Superblock) {
        let valid_units = &mut self.valid_units[superblock as usize];
        *valid_units -= 1;
        if *valid_units == 0 && self.states[superblock as usize] == State::Closed {
            self.retire(superblock);
        }
    }

    /// Queues a superblock without valid units for erase. A victim is retired at the end of its list.
    fn retire(&mut self, superblock: Superblock) {
        if self.victim.as_ref().is_some_and(|victim| victim.superblock == superblock) {
            return;
        }
        assert!(self.valid_units[superblock as usize] == 0, "superblock {superblock} still holds data");
        self.victims.leave(superblock);
        self.slc.note_retired(superblock);
        self.states[superblock as usize] = State::Erasing;
        self.to_erase.push_back(superblock);
        self.erasing_count += 1;
    }

    /// Superblocks that are free now or after their erase.
    fn available(&self) -> u32 {
        self.free.len() as u32 + self.erasing_count
    }

    /// Whether collection must keep pace with the host.
    pub(super) fn is_short(&self) -> bool {
        self.available() <= self.low_watermark
    }

    /// Whether collection is worthwhile on an idle drive.
    fn could_be_emptier(&self) -> bool {
        self.available() < self.high_watermark + self.slc.unused_static_superblocks()
    }

    /// Whether an idle drive should collect.
    pub(super) fn has_idle_work(&self) -> bool {
        self.could_be_emptier() || self.slc.can_be_folded()
    }

    /// Whether an idle period would change the state.
    pub(super) fn wants_idleness(&self) -> bool {
        self.has_idle_work() || self.slc.is_used_up()
    }

    /// Whether the host may write another program now.
    pub(super) fn has_room(&self) -> bool {
        !self.host.is_full() || self.free.len() as u32 > RESERVE
    }

    /// The die of the host's next program. Requires [`Ftl::has_room`].
    pub(super) fn open_host_program(&mut self) -> usize {
        if self.host.is_full() {
            self.host = self.open_after(self.host, self.slc.is_open);
        }
        self.die_at(self.host)
    }

    fn die_at(&self, frontier: Frontier) -> usize {
        let superblock = frontier.superblock.expect("an open superblock");
        let program = frontier.next_offset / self.geometry.units_per_program;
        self.geometry.die_of_program(superblock, program)
    }

    /// The next frontier of a stream whose present frontier is full.
    fn open_after(&mut self, full: Frontier, in_slc_mode: bool) -> Frontier {
        if let Some(superblock) = full.superblock {
            self.close(superblock);
        }
        let superblock = self.free.pop_front().expect("the reserve is never used up");
        self.states[superblock as usize] = State::Open;
        let end = match in_slc_mode {
            true => self.slc.begin_superblock(superblock),
            false => self.geometry.units_per_superblock,
        };
        Frontier { superblock: Some(superblock), next_offset: 0, end }
    }

    fn close(&mut self, superblock: Superblock) {
        self.states[superblock as usize] = State::Closed;
        self.slc.note_closed(superblock);
        self.closed_at[superblock as usize] = self.units_written;
        if self.valid_units[superblock as usize] == 0 {
            self.retire(superblock);
        }
    }

    /// Puts a unit into the host's open program. NAND holds no valid data of it.
    #[inline]
    pub(super) fn place_host(&mut self, unit: Unit) {
        let address = self.next_address(self.host);
        self.host.next_offset += 1;
        self.map.set(unit, Location::Nand(address));
        self.valid_units[(address >> self.geometry.offset_bits) as usize] += 1;
        self.units_written += 1;
        self.counters.host_units += 1;
    }

    #[inline]
    fn next_address(&self, frontier: Frontier) -> Address {
        let superblock = frontier.superblock.expect("an open superblock");
        superblock << self.geometry.offset_bits | frontier.next_offset
    }

    /// Leaves the rest of the open program empty.
    pub(super) fn pad_host_program(&mut self) {
        let padded = self.host.next_offset.next_multiple_of(self.geometry.units_per_program);
        self.counters.padded_units += u64::from(padded - self.host.next_offset);
        self.host.next_offset = padded;
        self.scan_ahead();
        self.leave_slc_if_full();
    }

    #[inline]
    pub(super) fn is_slc(&self, address: Address) -> bool {
        self.slc.holds(address >> self.geometry.offset_bits)
    }

    fn leave_slc_if_full(&mut self) {
        if self.slc.is_open
            && self.host.is_full()
            && (self.is_short() || !self.slc.may_grow(self.native_units()))
        {
            self.slc.is_open = false;
            self.exchange_host_frontiers();
        }
    }

    /// Returns the host to the SLC cache after idleness, if the cache has room again.
    pub(super) fn return_to_slc(&mut self) {
        if self.slc.is_used_up() && !self.is_short() && self.slc.may_grow(self.native_units()) {
            self.slc.is_open = true;
            self.exchange_host_frontiers();
        }
    }

    fn exchange_host_frontiers(&mut self) {
        if self.host.is_full()
            && let Some(superblock) = self.host.superblock
        {
            self.close(superblock);
            self.host = Frontier::default();
        }
        std::mem::swap(&mut self.host, &mut self.parked);
    }

    /// Valid units outside the SLC cache.
    fn native_units(&self) -> u32 {
        let valid_units = self.valid_units.iter().enumerate();
        valid_units.filter(|&(index, _)| !self.slc.holds(index as Superblock)).map(|(_, units)| units).sum()
    }

    /// The price of collection with the present victim: units to move, and units gained for the host. `None`
    /// if nothing can be gained.
    pub(super) fn price(&mut self) -> Option<(u32, u32)> {
        self.choose_victim();
        let victim = self.victim.as_ref()?;
        Some((victim.valid_units, self.geometry.units_per_superblock - victim.valid_units))
    }

    /// Moves valid units of the victim until a program is full or the victim is empty.
    pub(super) fn collect(&mut self) -> Step {
        self.choose_victim();
        let Some(mut victim) = self.victim.take() else { return Step::Stuck };
        let step = self.move_units(&mut victim);
        let superblock = victim.superblock;
        if step == Step::Emptied {
            self.victims.give_back(victim.units);
            self.retire(superblock);
        } else {
            self.victim = Some(victim);
        }
        step
    }

    fn move_units(&mut self, victim: &mut Victim) -> Step {
        while let Some(unit) = victim.next_unit(&self.map) {
            if self.moved.is_full() {
                if self.free.is_empty() {
                    return Step::Stuck;
                }
                self.moved = self.open_after(self.moved, false);
            }
            victim.ahead_count -= 1;
            self.move_unit(unit, victim.superblock);
            if self.moved.next_offset.is_multiple_of(self.geometry.units_per_program) {
                return self.finish_moving_program();
            }
        }
        assert!(self.valid_units[victim.superblock as usize] == 0, "a unit is missing from a victim's list");
        Step::Emptied
    }

    #[inline]
    fn move_unit(&mut self, unit: Unit, from: Superblock) {
        if let Location::Nand(address) = self.map.get(unit) {
            let page = self.geometry.page_of(address);
            self.gathered.1 += u32::from(page != self.last_page);
            self.last_page = page;
        }
        let address = self.next_address(self.moved);
        self.moved.next_offset += 1;
        self.map.set(unit, Location::Nand(address));
        self.valid_units[from as usize] -= 1;
        self.valid_units[(address >> self.geometry.offset_bits) as usize] += 1;
        self.gathered.0 += 1;
    }

    fn finish_moving_program(&mut self) -> Step {
        let program = self.moved.next_offset / self.geometry.units_per_program - 1;
        let superblock = self.moved.superblock.expect("an open superblock");
        let (unit_count, page_count) = std::mem::take(&mut self.gathered);
        self.units_written += u64::from(unit_count);
        self.counters.moved_units += u64::from(unit_count);
        self.scan_ahead();
        Step::Program { die: self.geometry.die_of_program(superblock, program), unit_count, page_count }
    }

    /// Extends the next group's lists with each program. They are complete before the present group is used
    /// up.
    fn scan_ahead(&mut self) {
        if self.victims.is_being_scanned() {
            // A group lasts for the units of its superblocks. The margin is a quarter.
            let group_units = self.victims.group_size() * self.geometry.units_per_superblock as usize;
            let per_unit = self.map.len() * 5 / 4 / group_units + 1;
            self.victims.scan(&self.map, per_unit * self.geometry.units_per_program as usize);
        }
    }

    fn choose_victim(&mut self) {
        if self.victim.is_some() {
            return;
        }
        let best = (0..self.geometry.superblock_count).map(|superblock| self.score(superblock)).max();
        let Some(best) = best.filter(|&score| score > 0) else { return };
        let mut found = self.best_ready();
        if found.is_none() && self.victims.is_being_scanned() {
            self.victims.complete(&self.map);
            self.begin_group();
            found = self.best_ready();
        }
        if found.is_none_or(|(_, score)| score * STALE.1 < best * STALE.0) {
            self.victims.clear();
            self.begin_group();
            self.victims.complete(&self.map);
            self.begin_group();
            found = self.best_ready();
        }
        let Some((index, _)) = found else { return };
        let list = self.victims.take(index);
        let valid_units = self.valid_units[list.superblock as usize];
        let (superblock, units) = (list.superblock, list.units);
        let victim = Victim { superblock, units, ahead: [0; LOOK_AHEAD], ahead_count: 0, valid_units };
        self.victim = Some(Box::new(victim));
    }

    fn best_ready(&self) -> Option<(usize, u128)> {
        let scores = self.victims.ready.iter().map(|list| self.score(list.superblock)).enumerate();
        scores.max_by_key(|&(index, score)| (score, usize::MAX - index)).filter(|&(_, score)| score > 0)
    }

    fn begin_group(&mut self) {
        let mut candidates: Vec<(u128, Superblock)> = (0..self.geometry.superblock_count)
            .filter(|&superblock| !self.victims.is_ready(superblock))
            .map(|superblock| (self.score(superblock), superblock))
            .filter(|&(score, _)| score > 0)
            .collect();
        candidates.sort_unstable_by_key(|&(score, superblock)| (std::cmp::Reverse(score), superblock));
        candidates.truncate(self.victims.group_size());
        self.victims.begin(candidates.into_iter().map(|(_, superblock)| superblock));
    }

    /// The quality of a superblock as a victim; zero if its collection gains nothing.
    fn score(&self, superblock: Superblock) -> u128 {
        if self.states[superblock as usize] != State::Closed {
            return 0;
        }
        let valid = self.valid_units[superblock as usize];
        let gain = u128::from(self.geometry.units_per_superblock - valid);
        match self.choice {
            VictimChoice::Greedy => gain,
            // (1 - u) / 2u times age. The factor preserves resolution in integers.
            VictimChoice::CostBenefit => {
                // Data in the SLC cache is meant to be moved.
                let is_slc = self.slc.holds(superblock);
                let closed_at = if is_slc { 0 } else { self.closed_at[superblock as usize] };
                let age = u128::from(self.units_written - closed_at) + 1;
                gain * age * 1_024 / (2 * u128::from(valid) + 1)
            }
        }
    }

    pub(super) fn finish_erase(&mut self, superblock: Superblock) {
        let erases = &mut self.erases[superblock as usize];
        *erases += 1;
        self.counters.erases += 1;
        self.counters.most_erases = self.counters.most_erases.max(*erases);
        self.states[superblock as usize] = State::Free;
        self.slc.note_erased(superblock);
        self.erasing_count -= 1;
        self.free.push_back(superblock);
    }

    /// Writes one unit of the host in zero time, collection and erases included.
    pub(super) fn write_at_once(&mut self, unit: Unit) {
        while !self.has_room() || (self.is_short() && self.host.is_full()) {
            let step = self.collect();
            self.erase_at_once();
            if step == Step::Stuck {
                assert!(self.has_room(), "garbage collection has run dry");
                break;
            }
        }
        self.open_host_program();
        self.leave_nand(unit, Location::Unmapped);
        self.place_host(unit);
        if self.host.next_offset.is_multiple_of(self.geometry.units_per_program) {
            self.pad_host_program();
        }
        self.erase_at_once();
    }

    pub(super) fn erase_at_once(&mut self) {
        while let Some(superblock) = self.to_erase.pop_front() {
            self.finish_erase(superblock);
        }
    }

    /// Sets the state after this prior use. Of the counters, only the wear changes.
    pub(super) fn age(&mut self, ageing: &Ageing) {
        let before = self.counters;
        let unit_count = u64::from(self.geometry.unit_count);
        let filled = unit_count * ageing.fill_percent.min(100) / 100;
        for unit in 0..filled as Unit {
            if self.locate(unit) == Location::Unmapped {
                self.write_at_once(unit);
            }
        }
        let mut rng = Rng::new(ageing.seed);
        for _ in 0..if filled > 0 { unit_count * ageing.overwrite_percent / 100 } else { 0 } {
            self.write_at_once(rng.below(filled) as Unit);
        }
        self.pad_host_program();
        let FtlCounters { erases, most_erases, .. } = self.counters;
        self.counters = FtlCounters { erases, most_erases, ..before };
    }

    /// Repeats erases interrupted by a power cut, in zero time, before the drive is ready.
    pub(super) fn finish_erases_at_power_on(&mut self, running: impl Iterator<Item = Superblock>) {
        for superblock in running {
            self.finish_erase(superblock);
        }
        self.erase_at_once();
    }

    /// Erases every superblock and clears the map. Wear stays.
    pub(super) fn secure_erase(&mut self) {
        self.map.clear();
        self.victims.clear();
        self.victim = None;
        self.host = Frontier::default();
        self.moved = Frontier::default();
        self.parked = Frontier::default();
        self.slc.reset();
        self.gathered = (0, 0);
        self.to_erase.clear();
        self.erasing_count = 0;
        self.valid_units.fill(0);
        for superblock in 0..self.geometry.superblock_count {
            if self.states[superblock as usize] != State::Free {
                self.erasing_count += 1;
                self.finish_erase(superblock);
            }
        }
    }

    /// Checks the invariants between any two calls.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut valid_units = vec![0; self.valid_units.len()];
        let mut addresses = std::collections::BTreeSet::new();
        for unit in 0..self.geometry.unit_count {
            if let Location::Nand(address) = self.map.get(unit) {
                assert!(addresses.insert(address), "two units at address {address}");
                valid_units[(address >> self.geometry.offset_bits) as usize] += 1;
            }
        }
        assert_eq!(valid_units, self.valid_units);
        for (superblock, state) in self.states.iter().enumerate() {
            let is_empty = valid_units[superblock] == 0;
            assert!(is_empty || !matches!(state, State::Free | State::Erasing), "{superblock} {state:?}");
        }
        let in_slc_mode = |superblock: &usize| self.slc.holds(*superblock as Superblock);
        let slc_superblocks: Vec<usize> = (0..self.states.len()).filter(in_slc_mode).collect();
        let closed = slc_superblocks.iter().filter(|index| self.states[**index] == State::Closed).count();
        assert_eq!(self.slc.counts(), (slc_superblocks.len() as u32, closed as u32));
        assert!(slc_superblocks.iter().all(|index| self.states[*index] != State::Free));
        let free = self.states.iter().filter(|state| **state == State::Free).count();
        assert_eq!(free, self.free.len());
        assert!(!self.free.is_empty() || self.erasing_count > 0 || self.moved.superblock.is_some());
    }
}
