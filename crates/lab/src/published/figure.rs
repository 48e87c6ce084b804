//! One published figure: its quantity, its conditions and its source.

use serde::{Deserialize, Serialize};

use super::unit::Unit;
use crate::bench::{Access, Place, Question};
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
    pub fn name(self) -> &'static str {
        match self {
            Operation::RandomRead => "random-read",
            Operation::RandomWrite => "random-write",
            Operation::RandomMixed => "random-mixed",
            Operation::SequentialRead => "sequential-read",
            Operation::SequentialWrite => "sequential-write",
            Operation::Fsync => "fsync",
            Operation::Flush => "flush",
        }
    }

    pub fn is_sequential(self) -> bool {
        matches!(self, Operation::SequentialRead | Operation::SequentialWrite)
    }

    fn words(self) -> &'static str {
        match (self, self.access()) {
            (_, Some(access)) => access.words(),
            (Operation::Flush, None) => "flush",
            (_, None) => "random mixed",
        }
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
    fn words(self) -> &'static str {
        match self {
            Cache::Off => "cache off",
            Cache::Volatile => "volatile cache",
            Cache::Protected => "protected cache",
            Cache::Lying => "lying cache",
        }
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
    pub(super) fn words(&self) -> String {
        let mut text =
            format!("{} {}, {}", self.operation.words(), format_size_bytes(self.block_bytes()), self.threads);
        let mut add = |words: String| {
            text.push_str(", ");
            text.push_str(&words);
        };
        self.read_percent.into_iter().for_each(|percent| add(format!("{percent} % reads")));
        self.writes.into_iter().for_each(|writes| add(format!("after {writes} writes")));
        self.cache.into_iter().for_each(|cache| add(cache.words().to_owned()));
        self.size.iter().for_each(|size| add(format!("on {size}")));
        match self.state {
            Some(State::Used) => add("used".to_owned()),
            Some(State::Full) => add("full".to_owned()),
            Some(State::JustWritten) => add("just written".to_owned()),
            None => {}
        }
        match self.zone {
            Some(Zone::Inner) => add("inner zone".to_owned()),
            Some(Zone::Whole) => add("whole surface".to_owned()),
            None => {}
        }
        self.burst.iter().for_each(|burst| add(format!("first {burst}")));
        self.partition_offset.iter().for_each(|offset| add(format!("from {offset}")));
        self.beside.into_iter().for_each(|beside| add(format!("beside {}", beside.words())));
        if let (Some(over), Some(other)) = (&self.over, self.denominator()) {
            let differences = [
                over.profile.clone(),
                over.io_unit.clone(),
                over.threads.map(|_| format!("{} under way", other.threads)),
                over.cache.map(|cache| cache.words().to_owned()),
            ];
            add(format!("over {}", differences.into_iter().flatten().collect::<Vec<_>>().join(" ")));
        }
        text
    }

    fn check(&self) -> Result<(), String> {
        check_io_unit(&self.io_unit)?;
        check_threads(self.threads)?;
        if !(self.figure.is_finite() && self.figure > 0.0) {
            return Err(format!("figure: is {}, must be above zero", self.figure));
        }
        if self.source.trim().is_empty() || self.source.contains("[UNVERIFIED]") {
            return Err("source: must name a text that has the figure".to_owned());
        }
        self.check_operation()?;
        for (key, size) in [("size", &self.size), ("partition_offset", &self.partition_offset)] {
            let bytes = size.as_deref().map(parse_size_bytes).transpose();
            let bytes = bytes.map_err(|problem| format!("{key}: {problem}"))?;
            if let Some(bytes) = bytes.filter(|&bytes| bytes == 0 || !bytes.is_multiple_of(512)) {
                return Err(format!("{key}: is {bytes} bytes, must be a multiple of 512 above zero"));
            }
        }
        let burst_ns = self.burst.as_deref().map(parse_duration_ns).transpose();
        if burst_ns.map_err(|problem| format!("burst: {problem}"))? == Some(0) {
            return Err("burst: is 0, must be above zero".to_owned());
        }
        self.check_ratio()
    }

    /// Checks the keys that belong to some operations only.
    fn check_operation(&self) -> Result<(), String> {
        let is = |operations: &[Operation]| operations.contains(&self.operation);
        match self.read_percent {
            Some(_) if !is(&[Operation::RandomMixed]) => {
                return Err("read_percent: belongs to operation \"random-mixed\"".to_owned());
            }
            Some(1..=99) => {}
            Some(percent) => return Err(format!("read_percent: is {percent}, must be 1 to 99")),
            None if is(&[Operation::RandomMixed]) => {
                return Err("read_percent: is missing, and the operation is \"random-mixed\"".to_owned());
            }
            None => {}
        }
        match self.writes {
            Some(_) if !is(&[Operation::Flush]) => {
                return Err("writes: belongs to operation \"flush\"".to_owned());
            }
            Some(1..=WRITES_HIGH) => {}
            Some(writes) => return Err(format!("writes: is {writes}, must be 1 to {WRITES_HIGH}")),
            None if is(&[Operation::Flush]) => {
                return Err("writes: is missing, and the operation is \"flush\"".to_owned());
            }
            None => {}
        }
        if is(&[Operation::Fsync, Operation::Flush]) && self.threads != 1 {
            return Err(format!("threads: is {}, must be 1 for a FLUSH", self.threads));
        }
        if is(&[Operation::Flush]) && !matches!(self.unit, Unit::Latency { .. }) {
            return Err(format!("unit: is \"{}\", must be a latency for operation \"flush\"", self.unit));
        }
        if self.zone.is_some() && !self.operation.is_sequential() {
            return Err("zone: belongs to a sequential operation".to_owned());
        }
        if self.state == Some(State::JustWritten) {
            if !is(&[Operation::RandomRead, Operation::SequentialRead]) {
                return Err("state: \"just-written\" belongs to a read".to_owned());
            }
            if self.size.is_none() {
                return Err("size: is missing, and the state is \"just-written\"".to_owned());
            }
        }
        if self.burst.is_some() && !is(&[Operation::RandomWrite, Operation::SequentialWrite]) {
            return Err("burst: belongs to operation \"random-write\" or \"sequential-write\"".to_owned());
        }
        match self.beside {
            Some(_) if !is(&[Operation::RandomRead]) => {
                Err("beside: belongs to operation \"random-read\"".to_owned())
            }
            Some(beside) if beside != Operation::Fsync => {
                Err(format!("beside: is \"{}\", must be \"fsync\"", beside.name()))
            }
            _ => Ok(()),
        }
    }

    fn check_ratio(&self) -> Result<(), String> {
        match (&self.over, self.unit == Unit::Ratio) {
            (None, true) => Err("over: is missing, and the unit is \"ratio\"".to_owned()),
            (Some(_), false) => Err(format!("unit: is \"{}\", must be \"ratio\" with `over`", self.unit)),
            (Some(over), true) if *over == Over::default() => {
                Err("over: is empty, must name what differs".to_owned())
            }
            (Some(over), true) => {
                let in_over = |problem| format!("over.{problem}");
                over.io_unit.as_deref().map_or(Ok(()), check_io_unit).map_err(in_over)?;
                over.threads.map_or(Ok(()), check_threads).map_err(in_over)
            }
            (None, false) => Ok(()),
        }
    }
}

fn check_io_unit(text: &str) -> Result<(), String> {
    let block_bytes = parse_size_bytes(text).map_err(|problem| format!("io_unit: {problem}"))?;
    if !block_bytes.is_power_of_two() || !(512..=1 << 24).contains(&block_bytes) {
        return Err(format!(
            "io_unit: is {block_bytes} bytes, must be a power of two from 512 bytes to 16 MiB"
        ));
    }
    Ok(())
}

fn check_threads(threads: u64) -> Result<(), String> {
    if !(1..=THREADS_HIGH).contains(&threads) {
        return Err(format!("threads: is {threads}, must be 1 to {THREADS_HIGH}"));
    }
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
        check_refused("size = \"1 B\"\n", "size: is 1 bytes, must be a multiple of 512 above zero");
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
