//! What an array is made of.

use super::layout::Layout;
use super::members;
use super::resync::Resync;
use crate::profile::{Invalid, within};
use crate::time::{MILLISECOND, SECOND};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaidLevel {
    Raid0,
    Raid1,
    Raid5,
    Raid6,
    Raid10,
}

impl RaidLevel {
    pub(super) fn parity_count(self) -> u64 {
        match self {
            RaidLevel::Raid0 | RaidLevel::Raid1 | RaidLevel::Raid10 => 0,
            RaidLevel::Raid5 => 1,
            RaidLevel::Raid6 => 2,
        }
    }

    /// The smallest array that this model accepts: what md does.
    pub fn least_member_count(self) -> usize {
        match self {
            RaidLevel::Raid0 | RaidLevel::Raid1 | RaidLevel::Raid10 => 2,
            RaidLevel::Raid5 => 3,
            RaidLevel::Raid6 => 4,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct RaidParameters {
    pub level: RaidLevel,
    /// Consecutive bytes on one member: "stripe element", "strip". RAID 1 has none.
    pub chunk_bytes: u64,
    /// Members that are not there, by index from zero.
    pub missing_members: Vec<usize>,
    /// Members that are new and to be rebuilt, by index from zero.
    pub rebuilding_members: Vec<usize>,
    /// Rate of the rebuild while the host is busy; zero stops it then. md's default is 1000 KiB/s.
    pub rebuild_least_bytes_per_s: u64,
    /// Rate of the rebuild while the host is idle. md's default is 200,000 KiB/s.
    pub rebuild_most_bytes_per_s: u64,
    /// What an array does about a power cut; at the rates of a rebuild.
    pub resync: Resync,
    /// The host counts as idle when it has had nothing in the array for this long.
    pub rebuild_idle_ns: u64,
    /// What the host adds to every request; zero for an array that takes no time of its own.
    pub host_latency_ns: u64,
    /// How long sending a write to a member keeps the one thread that sends them; zero where none does. Levels 1 and 10.
    pub host_write_ns: u64,
}

impl RaidParameters {
    /// An array that is whole, with md's defaults (`man 4 md`, `sync_speed_min` and `sync_speed_max`; chunk
    /// of `mdadm` is 512 KiB, most controllers' is 64 KiB). The idle time is an assumption.
    pub fn new(level: RaidLevel) -> RaidParameters {
        RaidParameters {
            level,
            chunk_bytes: 64 << 10,
            missing_members: Vec::new(),
            rebuilding_members: Vec::new(),
            rebuild_least_bytes_per_s: 1_000 << 10,
            rebuild_most_bytes_per_s: 200_000 << 10,
            rebuild_idle_ns: 20 * MILLISECOND,
            resync: Resync::Never,
            host_latency_ns: 0,
            host_write_ns: 0,
        }
    }

    /// Size of an array of that many members, of which the smallest has that size.
    pub fn usable_bytes(&self, member_count: usize, smallest_member_bytes: u64) -> u64 {
        Layout::new(self.level, member_count, self.chunk_bytes, smallest_member_bytes).size_bytes
    }

    /// Whether an array of that many members can be built.
    pub fn validate(&self, member_count: usize) -> Result<(), Invalid> {
        let invalid = |key, problem| Err(Invalid { key, problem });
        let least = self.level.least_member_count();
        if !(least..=64).contains(&member_count) {
            return invalid("members", format!("are {member_count}, must be {least} to 64"));
        }
        let chunk = self.chunk_bytes;
        if !chunk.is_power_of_two() || !(4_096..=1 << 30).contains(&chunk) {
            return invalid(
                "chunk",
                format!("is {chunk} bytes, must be a power of two, 4096 to {}", 1 << 30),
            );
        }
        if self.rebuild_most_bytes_per_s < 1 << 10 || self.rebuild_most_bytes_per_s > 1 << 50 {
            let problem = format!(
                "is {} bytes/s, must be {} to {} bytes/s",
                self.rebuild_most_bytes_per_s,
                1 << 10,
                1_u64 << 50
            );
            return invalid("rebuild_most", problem);
        }
        if self.rebuild_least_bytes_per_s > self.rebuild_most_bytes_per_s {
            let problem = format!(
                "is {} bytes/s, must be at most `rebuild_most`, {} bytes/s",
                self.rebuild_least_bytes_per_s, self.rebuild_most_bytes_per_s
            );
            return invalid("rebuild_least", problem);
        }
        if self.level == RaidLevel::Raid0 && self.resync != Resync::Never {
            return invalid("resync", "has nothing to compare at level 0".to_owned());
        }
        if let Resync::Bitmap { region_bytes } = self.resync
            && !(region_bytes.is_power_of_two() && (4_096..=1 << 40).contains(&region_bytes))
        {
            let problem = format!("is {region_bytes} bytes, must be a power of two, 4096 to {}", 1_u64 << 40);
            return invalid("bitmap_chunk", problem);
        }
        within("host_latency", self.host_latency_ns, 0, SECOND, " ns")?;
        within("host_write", self.host_write_ns, 0, SECOND, " ns")?;
        if self.host_write_ns > 0 && !matches!(self.level, RaidLevel::Raid1 | RaidLevel::Raid10) {
            return invalid("host_write", "belongs to levels 1 and 10".to_owned());
        }
        self.validate_absent("missing_members", &self.missing_members, member_count)?;
        self.validate_absent("rebuilding_members", &self.rebuilding_members, member_count)
    }

    fn validate_absent(
        &self,
        key: &'static str,
        members: &[usize],
        member_count: usize,
    ) -> Result<(), Invalid> {
        let is_absent = |member: &usize| {
            self.missing_members.contains(member) || self.rebuilding_members.contains(member)
        };
        if let Some(member) = members.iter().find(|&&member| member >= member_count) {
            return Err(Invalid { key, problem: format!("name {member}, must be below {member_count}") });
        }
        let both = self.missing_members.iter().find(|member| self.rebuilding_members.contains(member));
        if let Some(member) = both {
            return Err(Invalid {
                key,
                problem: format!("name {member}, which is both missing and rebuilding"),
            });
        }
        let absent: Vec<usize> = (0..member_count).filter(is_absent).collect();
        if !members::survives(self.level, member_count, |member| !absent.contains(&member)) {
            let problem = format!("leave {absent:?} without valid data, which the array cannot do without");
            return Err(Invalid { key, problem });
        }
        Ok(())
    }
}
