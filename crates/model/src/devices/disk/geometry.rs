//! The place of a sector on the platters, and the time that the arm takes to reach it.
//!
//! Zones of equal width run from the outer, faster edge to the inner one; the rate falls linearly. A
//! datasheet gives sustained rates. A track therefore holds the sectors that pass in one rotation plus one
//! track switch. Each track starts later by that switch (skew), so a sequential stream loses no further
//! rotation.
//!
//! A seek to another head or the next cylinder takes `t1`. A longer seek takes `t(d) = t0 + 15/8 (average -
//! t0) sqrt(d)`, where `d` is the share of the full stroke, because the mean of `sqrt(d)` over uniformly
//! random pairs is 8/15. With `t0 = t1`, the formula needs only numbers that every datasheet prints. Against
//! measured seek tables of six drives (DiskSim), the rms error is 0.2 to 0.7 ms. A drive with slow short
//! seeks (quiet seeks, long settling) has a larger `t0` and gains less from sorting its commands.
//!
//! The choice among commands uses integers and tables only. Each seek time is stored with its remainder after
//! whole rotations, so the wait for the sector needs no division.
//!
//! # Divergence
//! No defects, no retries, no thermal recalibration: the 99.9th percentile of a measured drive is five times
//! the model's. A head switch takes as long as a seek to the next track. The actuator always arrives exactly
//! at the time of the curve.

use std::ops::Range;

use super::parameters::{DiskParameters, Stroke, sectors_per_track};
use crate::request::SECTOR_BYTES;
use crate::time::{Instant, SECOND};

#[derive(Debug)]
struct Zone {
    first_sector: u64,
    first_track: u64,
    sectors_per_track: u64,
    /// `2^64 / sectors_per_track`, rounded up: replaces a division by a multiplication.
    tracks_per_sector: u64,
    /// Time of one sector, in nanoseconds / 2^32.
    sector_fraction_ns: u64,
    /// Below `sectors_per_track`.
    skew_sectors: u64,
}

impl Zone {
    /// Returns tracks and remaining sectors. Exact while `sectors * sectors_per_track` is below 2^64: a zone
    /// has fewer than 2^37 sectors and a track fewer than 2^22.
    fn divide(&self, sectors: u64) -> (u64, u64) {
        let quotient = ((u128::from(sectors) * u128::from(self.tracks_per_sector)) >> 64) as u64;
        (quotient, sectors - quotient * self.sectors_per_track)
    }

    /// Time within a rotation at which a track's sector at this angle passes the head.
    fn angle_ns(&self, angle_sectors: u64) -> u64 {
        (angle_sectors * self.sector_fraction_ns) >> 32
    }
}

/// A sector on its track.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    zone: &'a Zone,
    track: u64,
    on_track: u64,
    /// Sectors between the index mark and this one, skew included.
    angle: u64,
}

/// Where a transfer starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) track: u32,
    cylinder: u32,
    /// Time within a rotation at which the sector passes the head.
    phase_ns: u32,
    /// Start of the part of the seek table for this kind of access.
    seeks_from: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) track: u32,
    cylinder: u32,
}

/// A seek time, with its remainder after whole rotations.
#[derive(Debug, Clone, Copy)]
struct Seek {
    seek_ns: u32,
    rest_ns: u32,
}

#[derive(Debug)]
pub(crate) struct Geometry {
    zones: Vec<Zone>,
    /// The zone of the first of every `1 << hint_shift` sectors.
    zone_hints: Vec<u16>,
    hint_shift: u32,
    tracks_per_cylinder: u64,
    rotation_ns: u32,
    /// Angle of the platter at power-on: drives of one kind do not turn in step.
    start_phase_ns: u32,
    /// The entry of the same track comes first, then entries by distance in cylinders: one by one up to
    /// `NEAR`, then in steps, so that the table of a large drive stays small. Reads first, then writes.
    seeks: Vec<Seek>,
    seeks_of_reads: u32,
}

/// A multiple of the step.
const NEAR: u32 = 1 << 11;
const STEP: u32 = 1 << 5;

/// Large enough that almost every lookup takes one step.
const ZONE_HINTS: u64 = 1 << 10;

impl Geometry {
    pub(crate) fn new(parameters: &DiskParameters, size_bytes: u64) -> Geometry {
        let laid_out_bytes = match parameters.stroke {
            Stroke::Full => size_bytes,
            Stroke::Short => parameters.capacity_bytes,
        };
        let rotation_ns = 60 * SECOND / parameters.rotation_per_minute;
        let tracks_per_cylinder = parameters.tracks_per_cylinder;
        let per_track: Vec<u64> =
            (0..parameters.zone_count).map(|zone| sectors_per_track(parameters, zone)).collect();
        let per_cylinder_of_each_zone = per_track.iter().sum::<u64>() * tracks_per_cylinder;
        let cylinders_per_zone = (laid_out_bytes / SECTOR_BYTES).div_ceil(per_cylinder_of_each_zone);
        let tracks_per_zone = cylinders_per_zone * tracks_per_cylinder;
        let mut first_sector = 0;
        let mut zones = Vec::with_capacity(per_track.len());
        for (index, sectors_per_track) in (0..).zip(per_track) {
            let skew_sectors = (parameters.seek_track_to_track_ns * sectors_per_track).div_ceil(rotation_ns);
            zones.push(Zone {
                first_sector,
                first_track: index * tracks_per_zone,
                sectors_per_track,
                tracks_per_sector: u64::MAX / sectors_per_track + 1,
                sector_fraction_ns: (rotation_ns << 32) / sectors_per_track,
                skew_sectors: skew_sectors % sectors_per_track,
            });
            first_sector += tracks_per_zone * sectors_per_track;
        }
        let hint_shift = (first_sector / ZONE_HINTS).max(1).ilog2();
        let zone_hints = (0..=first_sector >> hint_shift)
            .map(|hint| zones.partition_point(|zone| zone.first_sector <= hint << hint_shift) as u16 - 1)
            .collect();
        let cylinder_count = cylinders_per_zone * parameters.zone_count;
        let seeks = seek_table(parameters, cylinder_count, rotation_ns);
        Geometry {
            zones,
            zone_hints,
            hint_shift,
            tracks_per_cylinder,
            rotation_ns: rotation_ns as u32,
            start_phase_ns: 0,
            seeks_of_reads: seeks.len() as u32 / 2,
            seeks,
        }
    }

    pub(crate) fn head_at_rest(&self) -> Head {
        Head { track: 0, cylinder: 0 }
    }

    pub(crate) fn place(&self, sector: u64) -> Place<'_> {
        let mut index = usize::from(self.zone_hints[(sector >> self.hint_shift) as usize]);
        while self.zones.get(index + 1).is_some_and(|next| next.first_sector <= sector) {
            index += 1;
        }
        let zone = &self.zones[index];
        let (track_within, on_track) = zone.divide(sector - zone.first_sector);
        let (_, skew) = zone.divide(track_within * zone.skew_sectors);
        let unwrapped = on_track + skew;
        let turn = if unwrapped >= zone.sectors_per_track { zone.sectors_per_track } else { 0 };
        Place { zone, track: zone.first_track + track_within, on_track, angle: unwrapped - turn }
    }

    fn head_at(&self, track: u64) -> Head {
        Head { track: track as u32, cylinder: (track / self.tracks_per_cylinder) as u32 }
    }

    pub(crate) fn locate(&self, sector: u64, is_write: bool) -> Target {
        self.target(&self.place(sector), is_write)
    }

    pub(crate) fn target(&self, place: &Place, is_write: bool) -> Target {
        let head = self.head_at(place.track);
        Target {
            track: head.track,
            cylinder: head.cylinder,
            phase_ns: place.zone.angle_ns(place.angle) as u32,
            seeks_from: if is_write { self.seeks_of_reads } else { 0 },
        }
    }

    /// The platter's angle, as time within a rotation: a function of absolute time, not a random draw.
    pub(crate) fn phase_ns(&self, at: Instant) -> u32 {
        ((at.0 + u64::from(self.start_phase_ns)) % u64::from(self.rotation_ns)) as u32
    }

    /// Turns the platter before power-on by a number of nanoseconds.
    pub(crate) fn turn(&mut self, nanoseconds: u64) {
        self.start_phase_ns = (nanoseconds % u64::from(self.rotation_ns)) as u32;
    }

    /// Time of seek, settle and rotational wait until the first sector is under the head.
    pub(crate) fn positioning_ns(&self, phase_ns: u32, head: Head, target: &Target) -> u32 {
        let elsewhere = u32::from(head.track != target.track).wrapping_neg();
        let distance = (head.cylinder.abs_diff(target.cylinder) + 1) & elsewhere;
        let seek = self.seeks[(target.seeks_from + seek_index(distance)) as usize];
        let apart_ns = self.wrapped(target.phase_ns.wrapping_sub(phase_ns));
        // If the sector has passed when the head arrives, the wait is one rotation longer.
        seek.seek_ns + self.wrapped(apart_ns.wrapping_sub(seek.rest_ns))
    }

    /// A difference of two angles, plus one rotation if it is negative. Branch-free, because a branch would
    /// be mispredicted half of the time.
    fn wrapped(&self, difference_ns: u32) -> u32 {
        let is_negative = (difference_ns.cast_signed() >> 31).cast_unsigned();
        difference_ns.wrapping_add(is_negative & self.rotation_ns)
    }

    /// Transfers from the first sector, whose place is given, to the last one, track switches included.
    /// Returns the end time and the final position of the head.
    pub(crate) fn transfer(&self, begin: Instant, first: Place, sectors: Range<u64>) -> (Instant, Head) {
        let mut at = begin;
        let Range { start: mut sector, end: end_sector } = sectors;
        let mut place = first;
        loop {
            let count = (end_sector - sector).min(place.zone.sectors_per_track - place.on_track);
            at = at + self.pass_ns(&place, count);
            sector += count;
            let head = self.head_at(place.track);
            if sector == end_sector {
                return (at, head);
            }
            place = self.place(sector);
            let target = self.target(&place, false);
            at = at + u64::from(self.positioning_ns(self.phase_ns(at), head, &target));
        }
    }

    /// Computed as a difference of two angles, so that the next contiguous sector starts at exactly this
    /// nanosecond.
    fn pass_ns(&self, place: &Place, count: u64) -> u64 {
        let zone = place.zone;
        let end = place.angle + count;
        let end_ns = match end.checked_sub(zone.sectors_per_track) {
            Some(next_turn) => u64::from(self.rotation_ns) + zone.angle_ns(next_turn),
            None => zone.angle_ns(end),
        };
        end_ns - zone.angle_ns(place.angle)
    }

    /// The first sector that has not begun to pass at `now`, of a transfer that began earlier and ends at
    /// `end_sector`, and the position of the head.
    pub(crate) fn passed(&self, begin: Instant, start: u64, end_sector: u64, now: Instant) -> (u64, Head) {
        let mut at = begin;
        let mut sector = start;
        loop {
            let place = self.place(sector);
            let head = self.head_at(place.track);
            if now <= at || sector == end_sector {
                return (sector, head);
            }
            let count = (end_sector - sector).min(place.zone.sectors_per_track - place.on_track);
            let pass_ns = self.pass_ns(&place, count);
            if now - at < pass_ns {
                // The division may round up or down; the angles give the exact result.
                let guess = (((now - at) << 32) / place.zone.sector_fraction_ns).saturating_sub(1);
                let has_begun = |passed: &u64| at + self.pass_ns(&place, *passed) < now;
                let passed = (guess..count).find(|passed| !has_begun(passed)).unwrap_or(count);
                return (sector + passed, head);
            }
            at = at + pass_ns;
            sector += count;
            if sector < end_sector {
                at =
                    at + u64::from(self.positioning_ns(self.phase_ns(at), head, &self.locate(sector, false)));
            }
        }
    }

    pub(crate) fn is_seek(&self, head: Head, target: &Target) -> bool {
        head.cylinder != target.cylinder
    }

    pub(crate) fn rotation_ns(&self) -> u64 {
        u64::from(self.rotation_ns)
    }
}

/// Up to `NEAR` the index is the distance.
fn seek_index(distance: u32) -> u32 {
    distance.min(distance / STEP + NEAR - NEAR / STEP)
}

/// A head switch and a step to the next cylinder take the time that the skew allows. A stream of writes
/// therefore needs no settling there.
fn seek_table(parameters: &DiskParameters, cylinder_count: u64, rotation_ns: u64) -> Vec<Seek> {
    let shortest_ns = parameters.seek_minimum_ns as f64;
    let slope_ns = 15.0 / 8.0 * (parameters.seek_average_ns as f64 - shortest_ns);
    let full_stroke = cylinder_count.saturating_sub(2).max(1) as f64;
    let seek_ns = |distance: u64, settle_ns: u64| match distance {
        0 | 1 => parameters.seek_track_to_track_ns,
        _ => {
            (shortest_ns + slope_ns * ((distance - 1) as f64 / full_stroke).sqrt()).round() as u64 + settle_ns
        }
    };
    let near = u64::from(NEAR);
    let curve = |settle_ns: u64| {
        // The first entry is the same track, so an index is one more than the distance. A step is represented
        // by its middle.
        let far = (near..=cylinder_count).step_by(STEP as usize).map(|entry| entry + u64::from(STEP) / 2);
        let by_distance = (1..near.min(cylinder_count + 1)).chain(far);
        std::iter::once(0).chain(by_distance.map(move |entry| seek_ns(entry - 1, settle_ns)))
    };
    curve(0)
        .chain(curve(parameters.write_settle_ns))
        .map(|seek_ns| Seek { seek_ns: seek_ns as u32, rest_ns: (seek_ns % rotation_ns) as u32 })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::disk::tests::parameters;

    fn check_mean_seek(minimum_ns: u64) {
        let parameters = DiskParameters { seek_minimum_ns: minimum_ns, ..parameters() };
        let count = 50_001;
        let table = seek_table(&parameters, count, 60 * SECOND / 7_200);
        let (reads, writes) = table.split_at(table.len() / 2);
        let seek_ns = |seeks: &[Seek], distance: u64| {
            f64::from(seeks[seek_index(distance as u32 + 1) as usize].seek_ns)
        };
        // Mean over uniformly random pairs: distance n has weight 2 (1 - n/count) / count.
        let mean_ns = |seeks: &[Seek]| -> f64 {
            let weight = |distance: u64| 2.0 * (1.0 - distance as f64 / count as f64) / count as f64;
            (0..count).map(|distance| seek_ns(seeks, distance) * weight(distance)).sum()
        };
        assert!((mean_ns(reads) / 8_500_000.0 - 1.0).abs() < 0.005, "{}", mean_ns(reads));
        assert!((mean_ns(writes) / 9_500_000.0 - 1.0).abs() < 0.005, "{}", mean_ns(writes));
        assert_eq!([seek_ns(reads, 1), seek_ns(writes, 1)], [1e6, 1e6]);
        assert!((2..count).all(|distance| seek_ns(reads, distance) >= minimum_ns as f64));
        assert!((2..count).all(|distance| seek_ns(reads, distance) >= seek_ns(reads, distance - 1)));
        assert!((2..count).all(|distance| seek_ns(writes, distance) - seek_ns(reads, distance) == 1e6));
    }

    #[test]
    fn the_seek_table_meets_the_datasheet() {
        check_mean_seek(1_000_000);
    }

    #[test]
    fn slow_short_seeks_leave_the_average_as_it_is() {
        check_mean_seek(5_000_000);
    }

    #[test]
    fn contiguous_sectors_need_no_positioning() {
        let geometry = Geometry::new(&parameters(), 1 << 30);
        for start in (0..1_000_000).step_by(777) {
            let target = geometry.locate(start, false);
            let begin = Instant(u64::from(target.phase_ns));
            let (end, head) = geometry.transfer(begin, geometry.place(start), start..start + 8);
            let next = geometry.locate(start + 8, false);
            let positioning_ns = geometry.positioning_ns(geometry.phase_ns(end), head, &next);
            let on_same_track = next.track == head.track;
            assert!(!on_same_track || positioning_ns == 0, "sector {start}: {positioning_ns}");
            assert!(
                u64::from(positioning_ns) < geometry.rotation_ns() / 4,
                "sector {start}: {positioning_ns}"
            );
        }
    }

    #[test]
    fn a_transfer_has_passed_what_it_had_time_for() {
        let geometry = Geometry::new(&parameters(), 1 << 30);
        let (start, end) = (12_345, 30_000);
        let begin = Instant(u64::from(geometry.locate(start, false).phase_ns));
        for count in (0..end - start).step_by(61) {
            let (at, _) = geometry.transfer(begin, geometry.place(start), start..start + count.max(1));
            let (passed, head) = geometry.passed(begin, start, end, at);
            assert_eq!(passed, start + count.max(1));
            let place = geometry.place(passed);
            assert_eq!(u64::from(head.track), place.track);
            // At the end of a track the next sector waits for the switch.
            let has_begun = place.on_track > 0;
            assert_eq!(geometry.passed(begin, start, end, at + 1).0, passed + u64::from(has_begun));
        }
        assert_eq!(geometry.passed(begin, start, end, Instant::FAR_FUTURE).0, end);
        assert_eq!(geometry.passed(begin, start, end, Instant::ZERO).0, start);
    }

    #[test]
    fn zones_cover_the_size_and_slow_down_inwards() {
        let geometry = Geometry::new(&parameters(), 20 << 30);
        let last = geometry.locate((20 << 30) / SECTOR_BYTES - 1, false);
        assert_eq!(geometry.zones.len(), 16);
        let cylinders = 16 * (geometry.zones[1].first_track / geometry.tracks_per_cylinder) as u32;
        assert!((cylinders * 99 / 100..cylinders).contains(&last.cylinder), "{last:?} of {cylinders}");
        assert!(geometry.zones.windows(2).all(|pair| pair[0].sectors_per_track > pair[1].sectors_per_track));
    }

    #[test]
    fn every_sector_is_in_the_zone_that_holds_it() {
        let geometry = Geometry::new(&parameters(), 20 << 30);
        for sector in (0..(20 << 30) / SECTOR_BYTES).step_by(99_991) {
            let place = geometry.place(sector);
            let zone = geometry.zones.iter().rfind(|zone| zone.first_sector <= sector).unwrap();
            let within = sector - zone.first_sector;
            assert_eq!(
                (place.track, place.on_track),
                (zone.first_track + within / zone.sectors_per_track, within % zone.sectors_per_track)
            );
        }
    }
}
