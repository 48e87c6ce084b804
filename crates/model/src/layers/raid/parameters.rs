//! Parameters of an array.

use super::Raid;
use super::layout::Layout;
use super::members;
use super::resync::Resync;
use crate::declare;
use crate::device::{Built, Device};
use crate::layers::{LayerParameters, Told};
use crate::parameter::{
    Declared, Field, Invalid, Kind, Parameter, Part, Step, Value, Values, at_most, choices, format_size_bytes,
};
use crate::time::{MILLISECOND, SECOND};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaidLevel {
    Raid0 = 0,
    Raid1 = 1,
    Raid5 = 5,
    Raid6 = 6,
    Raid10 = 10,
}

impl RaidLevel {
    const ALL: [RaidLevel; 5] =
        [RaidLevel::Raid0, RaidLevel::Raid1, RaidLevel::Raid5, RaidLevel::Raid6, RaidLevel::Raid10];

    pub(super) fn parity_count(self) -> u64 {
        match self {
            RaidLevel::Raid0 | RaidLevel::Raid1 | RaidLevel::Raid10 => 0,
            RaidLevel::Raid5 => 1,
            RaidLevel::Raid6 => 2,
        }
    }

    /// The smallest number of members in this model, the same as in md.
    pub fn least_member_count(self) -> usize {
        match self {
            RaidLevel::Raid0 | RaidLevel::Raid1 | RaidLevel::Raid10 => 2,
            RaidLevel::Raid5 => 3,
            RaidLevel::Raid6 => 4,
        }
    }
}

/// Written as numbers in files.
impl Parameter for RaidLevel {
    fn value(&self) -> Option<Value> {
        Some(Value::Number(*self as u64))
    }

    fn from_value(value: &Value) -> Option<RaidLevel> {
        RaidLevel::ALL.into_iter().find(|level| level.value().as_ref() == Some(value))
    }
}

declare! {
    /// The idle time has no source.
    #[derive(Debug, Clone, PartialEq)]
    pub struct RaidParameters {
        pub level: RaidLevel = Count "level", step Step::OneOf(&[0, 1, 5, 6, 10]), hint "0, 1, 5, 6 or 10";
        /// Consecutive bytes on one member, also called stripe element or strip. RAID 1 has none. The usual
        /// value is 64 KiB for a controller and 512 KiB for `mdadm`.
        pub chunk_bytes: u64 = Size "chunk" in 4_096..=1 << 30, step Step::PowerOfTwo, default 64 << 10;
        /// Absent members, by index from zero.
        pub missing_members: Vec<usize> = List "missing_members";
        /// New members to be rebuilt, by index from zero.
        pub rebuilding_members: Vec<usize> = List "rebuilding_members";
        /// Rate of the rebuild while the host is busy. Zero pauses it. The default is md's (`man 4 md`,
        /// `sync_speed_min`).
        pub rebuild_least_bytes_per_s: u64 = Rate "rebuild_least", default 1_000 << 10;
        /// Rate of the rebuild while the host is idle. The default is md's (`man 4 md`, `sync_speed_max`).
        pub rebuild_most_bytes_per_s: u64 = Rate "rebuild_most" in 1 << 10..=1 << 50, default 200_000 << 10;
        /// The host counts as idle after this long without a request in the array.
        pub rebuild_idle_ns: u64 = Duration "rebuild_idle", default 20 * MILLISECOND;
        /// Host time added to every request. Zero for an array without time of its own.
        pub host_latency_ns: u64 = Duration "host_latency" in 0..=SECOND, default 0;
        /// Time of the sending thread per write to a member. Zero if writes are sent without a thread. Levels
        /// 1 and 10.
        pub host_write_ns: u64 = Duration "host_write" in 0..=SECOND, default 0;
        /// What an array does about a power cut; at the rates of a rebuild.
        pub resync: Resync = Group "";
    }
}

/// A word, and the chunk of a bitmap for one of the words.
impl Part for Resync {
    fn all_fields(declared: Field) -> Vec<Field> {
        ResyncKeys::all_fields(declared)
    }

    fn read(declared: &Field, values: &mut Values) -> Result<Resync, Invalid> {
        let keys = ResyncKeys::read(declared, values)?;
        match (keys.kind, keys.bitmap_chunk_bytes) {
            (ResyncKind::Bitmap, chunk) => {
                Ok(Resync::Bitmap { region_bytes: chunk.unwrap_or(BITMAP_CHUNK_BYTES) })
            }
            (_, Some(_)) => Err(Invalid::new("bitmap_chunk", "belongs to resync = \"bitmap\"")),
            (ResyncKind::Whole, None) => Ok(Resync::Whole),
            (ResyncKind::Never, None) => Ok(Resync::Never),
        }
    }

    fn write(&self, declared: &Field, values: &mut Values) {
        let (kind, bitmap_chunk_bytes) = match *self {
            Resync::Never => (ResyncKind::Never, None),
            Resync::Whole => (ResyncKind::Whole, None),
            Resync::Bitmap { region_bytes } => (ResyncKind::Bitmap, Some(region_bytes)),
        };
        ResyncKeys { kind, bitmap_chunk_bytes }.write(declared, values);
    }
}

/// mdadm's default for an internal bitmap.
const BITMAP_CHUNK_BYTES: u64 = 64 << 20;

choices! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum ResyncKind {
        Never = "never",
        Whole = "whole",
        Bitmap = "bitmap",
    }
}

declare! {
    struct ResyncKeys {
        /// Action after a power cut: none, compare everything, or compare the regions of a write-intent
        /// bitmap.
        pub kind: ResyncKind = Choice "resync", default ResyncKind::Never;
        /// Bytes of each member that one bit of the bitmap stands for. The default is 64 MiB, as mdadm
        /// chooses.
        pub bitmap_chunk_bytes: Option<u64> = Size "bitmap_chunk" in 4_096..=1 << 40, step Step::PowerOfTwo;
    }
}

impl RaidParameters {
    /// An array without missing members, with the defaults of a stack table for all other parameters.
    pub fn new(level: RaidLevel) -> RaidParameters {
        let given = level.value().map(|value| ("level".to_owned(), value));
        RaidParameters::from_values(given.into_iter().collect()).expect("everything else has a default")
    }

    /// Size of an array, from its number of members and the size of the smallest.
    pub fn usable_bytes(&self, member_count: usize, smallest_member_bytes: u64) -> u64 {
        Layout::new(self.level, member_count, self.chunk_bytes, smallest_member_bytes).size_bytes
    }

    /// Whether an array of this number of members can be built.
    pub fn validate(&self, member_count: usize) -> Result<(), Invalid> {
        LayerParameters::validate(self)?;
        self.check_count(member_count)
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
            return Err(Invalid::new(key, format!("name {member}, must be below {member_count}")));
        }
        let both = self.missing_members.iter().find(|member| self.rebuilding_members.contains(member));
        if let Some(member) = both {
            return Err(Invalid::new(key, format!("name {member}, which is both missing and rebuilding")));
        }
        let absent: Vec<usize> = (0..member_count).filter(is_absent).collect();
        if !members::survives(self.level, member_count, |member| !absent.contains(&member)) {
            let problem = format!("leave {absent:?} without valid data, which the array cannot do without");
            return Err(Invalid::new(key, problem));
        }
        Ok(())
    }
}

impl LayerParameters for RaidParameters {
    fn is_array() -> bool {
        true
    }

    fn relations(&self) -> Result<(), Invalid> {
        let least = self.rebuild_least_bytes_per_s;
        at_most("rebuild_least", least, "rebuild_most", self.rebuild_most_bytes_per_s, Kind::Rate)?;
        if self.level == RaidLevel::Raid0 && self.resync != Resync::Never {
            return Err(Invalid::new("resync", "has nothing to compare at level 0"));
        }
        if self.host_write_ns > 0 && !matches!(self.level, RaidLevel::Raid1 | RaidLevel::Raid10) {
            return Err(Invalid::new("host_write", "belongs to levels 1 and 10"));
        }
        Ok(())
    }

    fn check_count(&self, below_count: usize) -> Result<(), Invalid> {
        let least = self.level.least_member_count();
        if !(least..=64).contains(&below_count) {
            return Err(Invalid::new("on", format!("has {below_count} members, must have {least} to 64")));
        }
        self.validate_absent("missing_members", &self.missing_members, below_count)?;
        self.validate_absent("rebuilding_members", &self.rebuilding_members, below_count)
    }

    fn size_bytes(&self, below_bytes: &[u64]) -> u64 {
        self.usable_bytes(below_bytes.len(), below_bytes.iter().copied().min().unwrap_or(0))
    }

    fn size_below_bytes(&self, size_bytes: u64, below_count: usize) -> u64 {
        let data_members = match self.level {
            RaidLevel::Raid1 => 1,
            RaidLevel::Raid10 => below_count as u64 / 2,
            RaidLevel::Raid0 | RaidLevel::Raid5 | RaidLevel::Raid6 => {
                below_count as u64 - self.level.parity_count()
            }
        };
        size_bytes.div_ceil(data_members).next_multiple_of(self.chunk_bytes)
    }

    fn slack_bytes(&self, below_count: usize) -> u64 {
        2 * below_count as u64 * self.chunk_bytes
    }

    fn summary(&self, below: &[Told<'_>]) -> String {
        let (level, chunk) = (self.level as u64, format_size_bytes(self.chunk_bytes));
        let absent = [("missing", &self.missing_members), ("being rebuilt", &self.rebuilding_members)];
        let absent = absent.into_iter().filter(|(_, members)| !members.is_empty());
        let absent: Vec<String> =
            absent.map(|(state, members)| format!("{} {state}", members.len())).collect();
        let state =
            if absent.is_empty() { String::new() } else { format!(", degraded ({})", absent.join(", ")) };
        format!("RAID {level} of {}{state}, chunk {chunk}, of: {}", below.len(), below[0].summary)
    }

    fn build(&self, below: Vec<Box<dyn Device>>, _size_bytes: u64, _seed: u64) -> Built {
        Ok(Box::new(Raid::new(self.clone(), below)?))
    }
}
