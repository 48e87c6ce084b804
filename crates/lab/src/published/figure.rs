//! One published figure: its quantity, its conditions and its source.

use anyhow::{Result, anyhow, ensure};
use itertools::Itertools as _;
use serde::{Deserialize, Serialize};

use super::unit::Unit;
use crate::bench::{Access, Place, Question};
use crate::record::{spelling, words};
use spindle_base::Mistake;
use spindle_base::units::{format_size_bytes, parse_duration_ns, parse_size_bytes};

const SCHEMA: &str = "raw-figures/1";
const THREADS_HIGH: u64 = 1_024;
const WRITES_HIGH: u64 = 10_000;

const BUILT_IN: [(&str, &str); 4] = [
    ("raw-devices.toml", include_str!("../../../../published/raw-devices.toml")),
    ("raw-newer-flash.toml", include_str!("../../../../published/raw-newer-flash.toml")),
    ("raw-matsunobu-2010.toml", include_str!("../../../../published/raw-matsunobu-2010.toml")),
    (
        "raw-percona-2011-io-alignment.toml",
        include_str!("../../../../published/raw-percona-2011-io-alignment.toml"),
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    RandomRead,
    RandomWrite,
    /// Reads and writes; `read_percent` is the share of reads.
    RandomMixed,
    SequentialRead,
    SequentialWrite,
    /// A write behind the last one and a FLUSH, as a log is written.
    Fsync,
    /// A FLUSH alone, after `writes` random writes.
    Flush,
}

impl Operation {
    /// The access of a bench that measures this operation, if any.
    fn access(self) -> Option<Access> {
        match self {
            Operation::RandomRead => Some(Access::RandomRead),
            Operation::RandomWrite => Some(Access::RandomWrite),
            Operation::SequentialRead => Some(Access::SequentialRead),
            Operation::SequentialWrite => Some(Access::SequentialWrite),
            Operation::Fsync => Some(Access::Fsync),
            Operation::RandomMixed | Operation::Flush => None,
        }
    }

    /// Spelling in a file.
    pub fn name(self) -> String {
        spelling(&self)
    }

    pub fn is_sequential(self) -> bool {
        matches!(self, Operation::SequentialRead | Operation::SequentialWrite)
    }

    fn words(self) -> String {
        self.access().map_or_else(|| words(&self), Access::words)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    Off,
    Volatile,
    Protected,
    /// Acknowledges a FLUSH without executing it.
    Lying,
}

impl Cache {
    fn words(self) -> String {
        if self == Cache::Off { "cache off".to_owned() } else { format!("{} cache", spelling(&self)) }
    }
}

/// Preconditioning of the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The part given by `size`, or the whole drive, was overwritten until a steady state. The rest is empty.
    Used,
    /// As [`State::Used`], but the rest also holds data, at least in the view of the drive.
    Full,
    /// The part given by `size` was written in order immediately before, without a pause for garbage
    /// collection. The rest is empty.
    JustWritten,
}

/// Range of a stream. Without a zone, the stream begins at the start of the device, which is the outer edge
/// of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Zone {
    /// The last twentieth.
    Inner,
    /// The average over the whole device.
    Whole,
}

/// Differences of a ratio's denominator. All other conditions are those of the figure.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Over {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_unit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
}

/// One published figure, as in its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    pub profile: String,
    pub operation: Operation,
    pub io_unit: String,
    /// Requests in flight.
    pub threads: u64,
    /// Share of reads of a mixed operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_percent: Option<u64>,
    /// Writes before each FLUSH, for that operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// Size of the used part, from the start of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// The drive is fresh without a state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<Zone>,
    /// Duration of a burst of writes on an empty cache or buffer. Without it, the figure is the sustained
    /// rate of writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<String>,
    /// Start of the used partition; by default the start of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_offset: Option<String>,
    /// Operation of a concurrent client, one request of the same size after the other. Only `fsync` beside
    /// random reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Operation>,
    /// File system of the original measurement. In virtual time the raw device answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
    pub figure: f64,
    pub unit: Unit,
    pub source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether a parameter of the profile is this figure, or was set from it, alone or with others.
    #[serde(default)]
    pub fitted: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureFile {
    schema: String,
    #[serde(rename = "source")]
    _source: toml::Table,
    #[serde(default)]
    figure: Vec<Figure>,
}

impl Figure {
    pub(super) fn block_bytes(&self) -> u64 {
        parse_size_bytes(&self.io_unit).expect("checked when the file was read")
    }

    /// The question of a bench for this figure; `None` if the figure needs a device in a special state or a
    /// special load.
    pub(super) fn question(&self) -> Option<Question> {
        let conditions = [
            self.cache.is_some(),
            self.size.is_some(),
            self.state.is_some(),
            self.zone.is_some(),
            self.burst.is_some(),
            self.partition_offset.is_some(),
            self.beside.is_some(),
            self.over.is_some(),
        ];
        let access = self.operation.access().filter(|_| conditions == [false; 8])?;
        Some(Question { place: Place::Raw, access, block_bytes: self.block_bytes(), iodepth: self.threads })
    }

    /// The denominator of a ratio.
    pub(super) fn denominator(&self) -> Option<Figure> {
        let over = self.over.as_ref()?;
        let mut other = Figure { over: None, ..self.clone() };
        other.profile = over.profile.clone().unwrap_or(other.profile);
        other.io_unit = over.io_unit.clone().unwrap_or(other.io_unit);
        other.threads = over.threads.unwrap_or(other.threads);
        other.cache = over.cache.or(other.cache);
        Some(other)
    }

    /// The conditions in a few words.
    pub fn words(&self) -> String {
        let zone = self.zone.map(|zone| match zone {
            Zone::Inner => "inner zone",
            Zone::Whole => "whole surface",
        });
        let conditions = [
            Some(self.operation.words() + " " + &format_size_bytes(self.block_bytes())),
            Some(self.threads.to_string()),
            self.read_percent.map(|percent| format!("{percent} % reads")),
            self.writes.map(|writes| format!("after {writes} writes")),
            self.cache.map(Cache::words),
            self.size.as_ref().map(|size| format!("on {size}")),
            self.state.map(|state| words(&state)),
            zone.map(str::to_owned),
            self.burst.as_ref().map(|burst| format!("first {burst}")),
            self.partition_offset.as_ref().map(|offset| format!("from {offset}")),
            self.beside.map(|beside| format!("beside {}", beside.words())),
            self.over.as_ref().map(Over::words),
        ];
        conditions.into_iter().flatten().join(", ")
    }

    fn check(&self) -> Result<()> {
        check_io_unit(&self.io_unit)?;
        check_range("threads", self.threads, THREADS_HIGH)?;
        let is_positive = self.figure.is_finite() && self.figure > 0.0;
        ensure!(is_positive, "figure: is {}, must be above zero", self.figure);
        let is_sourced = !self.source.trim().is_empty() && !self.source.contains("[UNVERIFIED]");
        ensure!(is_sourced, "source: must name a text that has the figure");
        self.check_operation()?;
        for (key, size) in [("size", &self.size), ("partition_offset", &self.partition_offset)] {
            let Some(size) = size else { continue };
            let bytes = parse_size_bytes(size).map_err(|problem| anyhow!("{key}: {problem}"))?;
            let is_whole = bytes > 0 && bytes.is_multiple_of(512);
            ensure!(is_whole, "{key}: is {bytes} B, must be a multiple of 512 B above zero");
        }
        if let Some(burst) = &self.burst {
            let burst_ns = parse_duration_ns(burst).map_err(|problem| anyhow!("burst: {problem}"))?;
            ensure!(burst_ns > 0, "burst: is 0, must be above zero");
        }
        self.check_ratio()
    }

    /// Checks the keys that belong to some operations only.
    fn check_operation(&self) -> Result<()> {
        use Operation::{
            Flush, Fsync, RandomMixed, RandomRead, RandomWrite, SequentialRead, SequentialWrite,
        };
        let is = |operations: &[Operation]| operations.contains(&self.operation);
        for (key, number, owner, high) in [
            ("read_percent", self.read_percent, RandomMixed, 99),
            ("writes", self.writes, Flush, WRITES_HIGH),
        ] {
            let name = owner.name();
            if let Some(number) = number {
                ensure!(is(&[owner]), "{key}: belongs to operation \"{name}\"");
                check_range(key, number, high)?;
            }
            ensure!(number.is_some() || !is(&[owner]), "{key}: is missing, and the operation is \"{name}\"");
        }
        let threads = self.threads;
        ensure!(threads == 1 || !is(&[Fsync, Flush]), "threads: is {threads}, must be 1 for a FLUSH");
        let (unit, is_latency) = (self.unit, matches!(self.unit, Unit::Latency { .. }));
        ensure!(
            is_latency || !is(&[Flush]),
            "unit: is \"{unit}\", must be a latency for operation \"flush\""
        );
        let is_stream = self.operation.is_sequential();
        ensure!(self.zone.is_none() || is_stream, "zone: belongs to a sequential operation");
        if self.state == Some(State::JustWritten) {
            ensure!(is(&[RandomRead, SequentialRead]), "state: \"just-written\" belongs to a read");
            ensure!(self.size.is_some(), "size: is missing, and the state is \"just-written\"");
        }
        ensure!(
            self.burst.is_none() || is(&[RandomWrite, SequentialWrite]),
            "burst: belongs to operation \"random-write\" or \"sequential-write\""
        );
        if let Some(beside) = self.beside {
            ensure!(is(&[RandomRead]), "beside: belongs to operation \"random-read\"");
            ensure!(beside == Fsync, "beside: is \"{}\", must be \"fsync\"", beside.name());
        }
        Ok(())
    }

    fn check_ratio(&self) -> Result<()> {
        let is_ratio = self.unit == Unit::Ratio;
        let Some(over) = &self.over else {
            ensure!(!is_ratio, "over: is missing, and the unit is \"ratio\"");
            return Ok(());
        };
        ensure!(is_ratio, "unit: is \"{}\", must be \"ratio\" with `over`", self.unit);
        ensure!(*over != Over::default(), "over: is empty, must name what differs");
        over.io_unit.as_deref().map_or(Ok(()), check_io_unit).map_err(|problem| anyhow!("over.{problem}"))?;
        over.threads.map_or(Ok(()), |threads| check_range("over.threads", threads, THREADS_HIGH))
    }
}

impl Over {
    fn words(&self) -> String {
        let differences = [
            self.profile.clone(),
            self.io_unit.clone(),
            self.threads.map(|threads| format!("{threads} under way")),
            self.cache.map(Cache::words),
        ];
        format!("over {}", differences.into_iter().flatten().join(" "))
    }
}

fn check_io_unit(text: &str) -> Result<()> {
    let bytes = parse_size_bytes(text).map_err(|problem| anyhow!("io_unit: {problem}"))?;
    let is_unit = bytes.is_power_of_two() && (512..=1 << 24).contains(&bytes);
    ensure!(is_unit, "io_unit: is {bytes} bytes, must be a power of two from 512 bytes to 16 MiB");
    Ok(())
}

fn check_range(key: &str, number: u64, high: u64) -> Result<()> {
    ensure!((1..=high).contains(&number), "{key}: is {number}, must be 1 to {high}");
    Ok(())
}

/// The figures inside the binary.
pub fn built_in() -> Vec<Figure> {
    BUILT_IN
        .iter()
        .flat_map(|(name, text)| parse(name, text).expect("the built-in figures are tested"))
        .collect()
}

/// Parses a file of figures. `file` names it in errors.
pub fn parse(file: &str, text: &str) -> Result<Vec<Figure>, Mistake> {
    let read: FigureFile = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = text[..start.min(text.len())].matches('\n').count() + 1;
        Mistake::new(format!("{file}, line {line}: {}", error.message().replace('\n', " ")))
    })?;
    if read.schema != SCHEMA {
        return Err(Mistake::new(format!("{file}: schema is `{}`, must be `{SCHEMA}`", read.schema)));
    }
    for (index, figure) in read.figure.iter().enumerate() {
        figure.check().map_err(|problem| Mistake::new(format!("{file}, figure {}: {problem}", index + 1)))?;
    }
    Ok(read.figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "schema = \"raw-figures/1\"\n[source]\ntitle = \"t\"\n";

    fn figure(lines: &str) -> String {
        format!(
            "{HEAD}[[figure]]\nprofile = \"null\"\noperation = \"random-read\"\nio_unit = \"4 KiB\"\nthreads = 1\nfigure = 1\n\
             unit = \"us mean\"\nsource = \"a sheet\"\n{lines}"
        )
    }

    fn complaint(text: &str) -> String {
        parse("mine.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn built_in_figures_are_sound() {
        assert!(built_in().len() > 100);
        for (name, text) in BUILT_IN {
            parse(name, text).unwrap();
        }
    }

    #[test]
    fn no_figure_is_there_twice() {
        let all = built_in();
        for (index, figure) in all.iter().enumerate() {
            let plain = |figure: &Figure| Figure { note: None, fitted: false, ..figure.clone() };
            let twin = all[..index].iter().find(|other| plain(other) == plain(figure));
            assert_eq!(twin, None);
        }
    }

    #[test]
    fn bad_figures_name_the_key_and_the_bound() {
        assert_eq!(
            complaint("schema = \"x\"\n[source]\n"),
            "mine.toml: schema is `x`, must be `raw-figures/1`"
        );
        let change = |from: &str, to: &str| complaint(&figure("").replace(from, to));
        assert_eq!(
            change("threads = 1", "threads = 0"),
            "mine.toml, figure 1: threads: is 0, must be 1 to 1024"
        );
        assert_eq!(
            change("figure = 1", "figure = -1"),
            "mine.toml, figure 1: figure: is -1, must be above zero"
        );
        assert_eq!(
            change("a sheet", "memory [UNVERIFIED]"),
            "mine.toml, figure 1: source: must name a text that has the figure"
        );
        assert!(
            change("\"4 KiB\"", "\"4 parsecs\"").starts_with("mine.toml, figure 1: io_unit: `4 parsecs`")
        );
        assert!(complaint(&figure("speed = 3\n")).contains("line 12: unknown field `speed`"));
        assert!(change("us mean", "us p101").contains("unit: `us p101` must be"));
    }

    fn check_refused(lines: &str, sentence: &str) {
        assert_eq!(complaint(&figure(lines)), format!("mine.toml, figure 1: {sentence}"));
    }

    #[test]
    fn keys_of_other_operations_are_refused() {
        check_refused("read_percent = 50\n", "read_percent: belongs to operation \"random-mixed\"");
        check_refused("writes = 8\n", "writes: belongs to operation \"flush\"");
        check_refused("zone = \"inner\"\n", "zone: belongs to a sequential operation");
        check_refused("state = \"just-written\"\n", "size: is missing, and the state is \"just-written\"");
        check_refused(
            "burst = \"1 s\"\n",
            "burst: belongs to operation \"random-write\" or \"sequential-write\"",
        );
        check_refused("over = { threads = 4 }\n", "unit: is \"us mean\", must be \"ratio\" with `over`");
        check_refused("beside = \"flush\"\n", "beside: is \"flush\", must be \"fsync\"");
        check_refused("size = \"1 B\"\n", "size: is 1 B, must be a multiple of 512 B above zero");
        let flush = figure("").replace("random-read", "flush");
        assert!(complaint(&flush).ends_with("writes: is missing, and the operation is \"flush\""));
        let ratio = figure("over = { threads = 0 }\n").replace("us mean", "ratio");
        assert!(complaint(&ratio).ends_with("over.threads: is 0, must be 1 to 1024"));
    }

    #[test]
    fn a_denominator_differs_in_what_over_names_only() {
        let text = figure("over = { io_unit = \"16 KiB\" }\n").replace("us mean", "ratio");
        let read = parse("x", &text).unwrap().remove(0);
        let other = read.denominator().unwrap();
        assert_eq!((other.block_bytes(), other.threads, &other.over), (16_384, 1, &None));
        assert_eq!(read.words(), "random read 4 KiB, 1, over 16 KiB");
    }
}
