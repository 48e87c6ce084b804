//! Raw figures of a disk: the questions, how they are answered (by fio on a real target, by the model in
//! virtual time), and how the answers are shown and stored.
//!
//! The questions are those of the published raw I/O studies (Matsunobu, "SSD Deployment Strategies for
//! MySQL", 2010): random and sequential reads and writes by block size and iodepth, the rate of fsync, a file
//! system against the raw device, and the write rate that remains after hours of writing.

pub mod chart;
pub mod clone;
pub mod deterioration;
pub mod fio;
pub mod plan;
pub mod raw;
pub mod real;
pub mod reference;
pub mod sheet;
pub mod table;
pub mod target;
pub mod validate;

use std::fmt;

use serde::{Deserialize, Serialize};
use spindle_base::dilation::Dilation;

use crate::record::words;
pub use deterioration::Deterioration;

/// The access pattern of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    RandomRead,
    RandomWrite,
    SequentialRead,
    SequentialWrite,
    /// A loop of one write behind the previous one, then one fsync (on a raw device a FLUSH), as a log is
    /// written.
    Fsync,
}

impl Access {
    pub fn is_write(self) -> bool {
        matches!(self, Access::RandomWrite | Access::SequentialWrite | Access::Fsync)
    }

    pub fn words(self) -> String {
        if self == Access::Fsync { "write and fsync".to_owned() } else { words(&self) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The block device.
    Raw,
    /// One file in a file system on the block device.
    FileSystem,
}

impl Place {
    pub fn words(self) -> String {
        words(&self)
    }
}

/// One measurement to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Question {
    pub place: Place,
    pub access: Access,
    #[serde(alias = "unit_bytes")]
    pub block_bytes: u64,
    /// Requests in flight. A random question has one job per request; a sequential stream is a single job
    /// with all requests in flight.
    #[serde(alias = "threads")]
    pub iodepth: u64,
}

impl fmt::Display for Question {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let block = spindle_base::units::format_size_bytes(self.block_bytes);
        let (access, place) = (self.access.words(), self.place.words());
        write!(formatter, "{access}, {block}, iodepth {}, {place}", self.iodepth)
    }
}

/// The answer to one question.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Row {
    #[serde(flatten)]
    pub question: Question,
    /// Requests a second; a write and its fsync count as one.
    pub per_second: f64,
    pub bytes_per_s: f64,
    /// From submission to completion. The latency of a write includes its fsync, if it has one.
    pub latency_us_mean: f64,
    /// Absent when only the parts of a request were measured.
    pub latency_us_p50: Option<f64>,
    pub latency_us_p99: Option<f64>,
    pub latency_us_p999: Option<f64>,
    pub requests: u64,
    /// Length of the measurement, in the time of the disk.
    pub seconds: f64,
}

impl Row {
    /// A row that was measured on the real clock, in dilated time.
    fn dilated(self, dilation: Dilation) -> Row {
        let k = dilation.factor();
        let latency = |real_us: f64| real_us / k;
        Row {
            per_second: self.per_second * k,
            bytes_per_s: self.bytes_per_s * k,
            latency_us_mean: latency(self.latency_us_mean),
            latency_us_p50: self.latency_us_p50.map(latency),
            latency_us_p99: self.latency_us_p99.map(latency),
            latency_us_p999: self.latency_us_p999.map(latency),
            seconds: dilation.dilated_s(self.seconds),
            ..self
        }
    }
}

/// A completed bench.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bench {
    pub target: String,
    /// One sentence on the measured target.
    pub summary: String,
    pub arm: Arm,
    pub seed: u64,
    pub size_bytes: u64,
    pub rows: Vec<Row>,
    pub deterioration: Option<Deterioration>,
    /// Notes for the reader, one sentence each.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    Virtual,
    Fio,
}

impl Arm {
    pub fn words(self) -> &'static str {
        match self {
            Arm::Virtual => "virtual time",
            Arm::Fio => "fio",
        }
    }
}

impl Bench {
    pub fn find(&self, question: &Question) -> Option<&Row> {
        self.rows.iter().find(|row| row.question == *question)
    }
}
