//! Parameters of a replicated device.

use super::{LOG_BYTES, Replicated};
use crate::declare;
use crate::device::{Built, Device};
use crate::layers::{Below, LayerParameters, RATE_LIMIT, Told, take};
use crate::parameter::{Invalid, Kind, Row, choices, format_duration_ns, format_size_bytes, within};
use crate::request::SECTOR_BYTES;
use crate::time::{MICROSECOND, SECOND};

choices! {
    /// The condition for the completion of a write: see the module's documentation.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Protocol {
        A = "A",
        B = "B",
        C = "C",
    }
}

/// An outage of the link, in model time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    pub starts_at_ns: u64,
    pub duration_ns: u64,
}

impl Row for Outage {
    const KINDS: &'static [Kind] = &[Kind::Duration, Kind::Duration];

    fn cells(&self) -> Vec<u64> {
        vec![self.starts_at_ns, self.duration_ns]
    }

    fn from_cells(cells: &[u64]) -> Option<Outage> {
        let [starts_at_ns, duration_ns] = *cells else { return None };
        Some(Outage { starts_at_ns, duration_ns })
    }
}

/// Other traffic limits the rate to this, in model time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Congestion {
    pub starts_at_ns: u64,
    pub duration_ns: u64,
    pub bytes_per_s: u64,
}

impl Row for Congestion {
    const KINDS: &'static [Kind] = &[Kind::Duration, Kind::Duration, Kind::Rate];

    fn cells(&self) -> Vec<u64> {
        vec![self.starts_at_ns, self.duration_ns, self.bytes_per_s]
    }

    fn from_cells(cells: &[u64]) -> Option<Congestion> {
        let [starts_at_ns, duration_ns, bytes_per_s] = *cells else { return None };
        Some(Congestion { starts_at_ns, duration_ns, bytes_per_s })
    }
}

choices! {
    /// The machine on which the host continues after this one lost its power.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Survivor {
        /// This one, after power-on. The fates are those of the local device.
        Local = "local",
        /// The peer. Data that had not reached it is lost, even if the local device has it.
        Peer = "peer",
    }
}

declare! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ReplicatedParameters {
        /// Condition for the completion of a write: in the send buffer (A), received by the peer (B), or on
        /// the peer's device (C).
        pub protocol: Protocol = Choice "protocol";
        /// Payload rate of the link.
        pub bytes_per_s: u64 = Rate "link_rate" in 1_000..=RATE_LIMIT,
            hint "about \"110 MB/s\" for 1 Gb/s Ethernet";
        pub round_trip_ns: u64 = Duration "round_trip" in 0..=100 * SECOND,
            hint "100 to 200 us for 1 Gb/s Ethernet";
        /// Largest extra time of a message, uniformly distributed. Messages keep their order.
        pub jitter_ns: u64 = Duration "jitter" in 0..=100 * SECOND,
            default 20 * MICROSECOND, assumed "no text found";
        /// Size of the send buffer. Data stays in it until the peer has acknowledged its receipt.
        pub send_buffer_bytes: u64 = Size "send_buffer" in SECTOR_BYTES..=1 << 40,
            default 2 << 20, assumed "DRBD tunes it by itself";
        /// Outages of the link, as start and duration.
        pub outages: Vec<Outage> = List "outages";
        /// Congestions by other traffic, as start, duration and remaining rate.
        pub congestions: Vec<Congestion> = List "congestions";
        /// An outage longer than this ends the connection.
        pub timeout_ns: u64 = Duration "timeout" in 1..=1_000_000 * SECOND, default 6 * SECOND;
        /// Rate of the resync after a reconnect.
        pub resync_bytes_per_s: u64 = Rate "resync_rate" in 1_000..=RATE_LIMIT,
            default 30_000_000, assumed "about a third of 1 Gb/s";
        /// Extents that may be written without a note in the activity log first (`al-extents`): 127 in DRBD 8.3, 1237
        /// from 8.4 on. 0: no activity log.
        pub active_extents: u64 = Count "active_extents" in 0..=65_534, default 0;
        /// Size of an extent of the activity log. Where data are scaled down, it is scaled with them.
        pub extent_bytes: u64 = Size "extent_size" in 4_096..=1 << 40, default 4 << 20;
        /// The machine on which the host continues after a power cut.
        pub survivor: Survivor = Choice "survivor", default Survivor::Local;
    }
}

impl ReplicatedParameters {
    /// Of the activity log on the local device.
    fn log_bytes(&self) -> u64 {
        if self.active_extents > 0 { LOG_BYTES } else { 0 }
    }
}

impl LayerParameters for ReplicatedParameters {
    fn below() -> &'static [Below] {
        &[Below::ON, Below { key: "peer", size_key: None, hint: None }]
    }

    fn relations(&self) -> Result<(), Invalid> {
        for outage in &self.outages {
            within("outages", outage.duration_ns, 1, 1_000_000 * SECOND, Kind::Duration)?;
        }
        for congestion in &self.congestions {
            within("congestions", congestion.duration_ns, 1, 1_000_000 * SECOND, Kind::Duration)?;
            within("congestions", congestion.bytes_per_s, 1_000, RATE_LIMIT, Kind::Rate)?;
        }
        Ok(())
    }

    fn check_sizes(&self, below_bytes: &[u64]) -> Result<(), Invalid> {
        if self.active_extents == 0 || below_bytes[0] > self.log_bytes() {
            return Ok(());
        }
        let [local, log] = [below_bytes[0], self.log_bytes()].map(format_size_bytes);
        let problem = format!("of the local device is {local}, must be above the {log} of the activity log");
        Err(Invalid::new("size", problem))
    }

    fn size_bytes(&self, below_bytes: &[u64]) -> u64 {
        below_bytes[0].saturating_sub(self.log_bytes()).min(below_bytes[1])
    }

    fn size_below_bytes(&self, size_bytes: u64, _below_count: usize) -> u64 {
        size_bytes + self.log_bytes()
    }

    fn uses(&self, key: &str) -> bool {
        key != "extent_size" || self.active_extents > 0
    }

    fn summary(&self, below: &[Told<'_>]) -> String {
        format!(
            "Replicated by protocol {:?} over {}/s with a round trip of {}: {}",
            self.protocol,
            format_size_bytes(self.bytes_per_s),
            format_duration_ns(self.round_trip_ns),
            below[0].summary
        )
    }

    fn build(&self, below: Vec<Box<dyn Device>>, _size_bytes: u64, seed: u64) -> Built {
        let [local, peer] = take(below);
        Ok(Box::new(Replicated::new(self.clone(), seed, local, peer)?))
    }
}
