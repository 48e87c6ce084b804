//! Where a sector is on the platters, and how long the arm takes to get there.
//!
//! Zones of equal width run from the outer, faster edge to the inner one; the rate falls linearly. A datasheet gives
//! sustained rates, so a track holds what passes in one rotation plus one track switch, and each track starts
//! later by that switch (skew), so that a sequential stream loses no further rotation.
//!
//! Seek: `t(d) = t1 + 15/8 (average - t1) sqrt(d)`, `d` the share of the full stroke, because the mean of `sqrt(d)` over
//! uniformly random pairs is 8/15. It needs only what every datasheet prints; against measured seek tables
//! of six drives (DiskSim) the rms error is 0.2 to 0.7 ms.
//!
//! # Divergence
//! No defects, no thermal recalibration; a head switch takes as long as a seek to the next track; the actuator
//! always arrives exactly when the curve says.

use crate::profile::{DiskParameters, Stroke};
use crate::request::SECTOR_BYTES;
use crate::time::{Instant, SECOND};

#[derive(Debug)]
struct Zone {
    first_sector: u64,
    first_track: u64,
    sectors_per_track: u64,
    skew_sectors: u64,
}

/// Where a transfer starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) track: u64,
    cylinder: u32,
    /// Time within a rotation at which the sector passes the head.
    phase_ns: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) track: u64,
    cylinder: u32,
}

#[derive(Debug)]
pub(crate) struct Geometry {
    zones: Vec<Zone>,
    tracks_per_cylinder: u64,
    rotation_ns: u32,
    switch_ns: u32,
    settle_ns: u32,
    /// By distance in cylinders.
    seek_ns: Vec<u32>,
}

impl Geometry {
    pub(crate) fn new(parameters: &DiskParameters, size_bytes: u64) -> Geometry {
        let laid_out_bytes = match parameters.stroke {
            Stroke::Full => size_bytes,
            Stroke::Short => parameters.capacity_bytes,
        };
        let rotation_ns = 60 * SECOND / parameters.rotation_per_minute;
        let switch_ns = parameters.seek_track_to_track_ns;
        let sectors_per_track: Vec<u64> = (0..parameters.zone_count)
            .map(|zone| {
                let last = (parameters.zone_count - 1).max(1);
                let fall = parameters.outer_bytes_per_s - parameters.inner_bytes_per_s;
                let rate = parameters.outer_bytes_per_s - fall * zone / last;
                (rate * (rotation_ns + switch_ns)).div_ceil(SECOND * SECTOR_BYTES)
            })
            .collect();
        let per_cylinder_of_each_zone: u64 =
            sectors_per_track.iter().sum::<u64>() * parameters.tracks_per_cylinder;
        let cylinders_per_zone = (laid_out_bytes / SECTOR_BYTES).div_ceil(per_cylinder_of_each_zone);
        let tracks_per_zone = cylinders_per_zone * parameters.tracks_per_cylinder;
        let mut first_sector = 0;
        let zones = sectors_per_track
            .into_iter()
            .enumerate()
            .map(|(index, sectors_per_track)| {
                let zone = Zone {
                    first_sector,
                    first_track: index as u64 * tracks_per_zone,
                    sectors_per_track,
                    skew_sectors: (switch_ns * sectors_per_track).div_ceil(rotation_ns),
                };
                first_sector += tracks_per_zone * sectors_per_track;
                zone
            })
            .collect();
        Geometry {
            zones,
            tracks_per_cylinder: parameters.tracks_per_cylinder,
            rotation_ns: rotation_ns as u32,
            switch_ns: switch_ns as u32,
            settle_ns: parameters.write_settle_ns as u32,
            seek_ns: seek_table(parameters, cylinders_per_zone * parameters.zone_count),
        }
    }

    pub(crate) fn head_at_rest(&self) -> Head {
        Head { track: 0, cylinder: 0 }
    }

    fn zone_of(&self, sector: u64) -> &Zone {
        let index = self.zones.partition_point(|zone| zone.first_sector <= sector);
        &self.zones[index - 1]
    }

    pub(crate) fn locate(&self, sector: u64) -> Target {
        let zone = self.zone_of(sector);
        let within = sector - zone.first_sector;
        let track_within = within / zone.sectors_per_track;
        let place = within % zone.sectors_per_track + track_within * zone.skew_sectors;
        let angle = place % zone.sectors_per_track;
        let track = zone.first_track + track_within;
        Target {
            track,
            cylinder: (track / self.tracks_per_cylinder) as u32,
            phase_ns: (angle * u64::from(self.rotation_ns) / zone.sectors_per_track) as u32,
        }
    }

    /// The platter's angle, as time within a rotation: a function of absolute time, never a random draw.
    pub(crate) fn phase_ns(&self, at: Instant) -> u32 {
        (at.0 % u64::from(self.rotation_ns)) as u32
    }

    /// Seek and settle, without the rotational wait.
    pub(crate) fn seek_ns(&self, head: Head, target: &Target, is_write: bool) -> u32 {
        if head.track == target.track {
            0
        } else if head.cylinder == target.cylinder || head.track + 1 == target.track {
            // The skew was chosen for this step, so a stream of writes takes it without settling either.
            self.switch_ns
        } else {
            let distance = head.cylinder.abs_diff(target.cylinder);
            self.seek_ns[distance as usize] + if is_write { self.settle_ns } else { 0 }
        }
    }

    /// Seek, settle and rotational wait until the first sector is under the head, if that is less than `limit_ns`.
    pub(crate) fn positioning_below(
        &self,
        limit_ns: u32,
        phase_ns: u32,
        head: Head,
        target: &Target,
        is_write: bool,
    ) -> Option<u32> {
        let seek_ns = self.seek_ns(head, target, is_write);
        if seek_ns >= limit_ns {
            return None;
        }
        let arrival_phase_ns = (phase_ns + seek_ns) % self.rotation_ns;
        let wait_ns = if target.phase_ns >= arrival_phase_ns {
            target.phase_ns - arrival_phase_ns
        } else {
            target.phase_ns + self.rotation_ns - arrival_phase_ns
        };
        Some(seek_ns + wait_ns).filter(|&positioning_ns| positioning_ns < limit_ns)
    }

    /// Seek, settle and rotational wait until the first sector is under the head.
    pub(crate) fn positioning_ns(&self, phase_ns: u32, head: Head, target: &Target, is_write: bool) -> u32 {
        self.positioning_below(u32::MAX, phase_ns, head, target, is_write)
            .expect("no seek takes four seconds")
    }

    /// From the first sector under the head to the last one passed, track switches included; and where the head
    /// is then.
    pub(crate) fn transfer(&self, begin: Instant, start_sector: u64, end_sector: u64) -> (Instant, Head) {
        let rotation_ns = u64::from(self.rotation_ns);
        let mut at = begin;
        let mut sector = start_sector;
        loop {
            let zone = self.zone_of(sector);
            let within = sector - zone.first_sector;
            let track_within = within / zone.sectors_per_track;
            let on_track = within % zone.sectors_per_track;
            let count = (end_sector - sector).min(zone.sectors_per_track - on_track);
            // As a difference of two phases, so that the next contiguous sector starts at this very nanosecond.
            let from = (on_track + track_within * zone.skew_sectors) % zone.sectors_per_track;
            at = at
                + ((from + count) * rotation_ns / zone.sectors_per_track
                    - from * rotation_ns / zone.sectors_per_track);
            sector += count;
            let track = zone.first_track + track_within;
            let head = Head { track, cylinder: (track / self.tracks_per_cylinder) as u32 };
            if sector == end_sector {
                return (at, head);
            }
            let next = self.locate(sector);
            at = at + u64::from(self.positioning_ns(self.phase_ns(at), head, &next, false));
        }
    }

    pub(crate) fn is_seek(&self, head: Head, target: &Target) -> bool {
        head.cylinder != target.cylinder
    }

    #[cfg(test)]
    pub(crate) fn rotation_ns(&self) -> u64 {
        u64::from(self.rotation_ns)
    }
}

/// One cylinder is the track-to-track time itself; from there the curve runs to the full stroke.
fn seek_table(parameters: &DiskParameters, cylinder_count: u64) -> Vec<u32> {
    let shortest_ns = parameters.seek_track_to_track_ns as f64;
    let slope_ns = 15.0 / 8.0 * (parameters.seek_average_ns as f64 - shortest_ns);
    let full_stroke = cylinder_count.saturating_sub(2).max(1) as f64;
    (0..cylinder_count)
        .map(|distance| match distance {
            0 => 0,
            _ => (shortest_ns + slope_ns * ((distance - 1) as f64 / full_stroke).sqrt()).round() as u32,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::tests::parameters;

    #[test]
    fn the_seek_table_meets_the_datasheet() {
        let table = seek_table(&parameters(), 50_001);
        let count = table.len() as f64;
        // Mean over uniformly random pairs: distance n has weight 2 (1 - n/count) / count.
        let mean: f64 = table
            .iter()
            .enumerate()
            .map(|(distance, &ns)| f64::from(ns) * 2.0 * (1.0 - distance as f64 / count) / count)
            .sum();
        assert!((mean / 8_500_000.0 - 1.0).abs() < 0.005, "{mean}");
        assert_eq!(table[1], 1_000_000);
    }

    #[test]
    fn contiguous_sectors_need_no_positioning() {
        let geometry = Geometry::new(&parameters(), 1 << 30);
        for start in (0..1_000_000).step_by(777) {
            let target = geometry.locate(start);
            let begin = Instant(u64::from(target.phase_ns));
            let (end, head) = geometry.transfer(begin, start, start + 8);
            let next = geometry.locate(start + 8);
            let positioning_ns = geometry.positioning_ns(geometry.phase_ns(end), head, &next, false);
            let on_same_track = next.track == head.track;
            assert!(!on_same_track || positioning_ns == 0, "sector {start}: {positioning_ns}");
            assert!(
                u64::from(positioning_ns) < geometry.rotation_ns() / 4,
                "sector {start}: {positioning_ns}"
            );
        }
    }

    #[test]
    fn zones_cover_the_size_and_slow_down_inwards() {
        let geometry = Geometry::new(&parameters(), 20 << 30);
        let last = geometry.locate((20 << 30) / SECTOR_BYTES - 1);
        assert_eq!(geometry.zones.len(), 16);
        assert!(last.cylinder as usize > geometry.seek_ns.len() * 99 / 100);
        assert!(geometry.zones.windows(2).all(|pair| pair[0].sectors_per_track > pair[1].sectors_per_track));
    }
}
