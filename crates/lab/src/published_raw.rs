//! Published raw I/O figures beside measured ones: data in `published/raw-*.toml`, read here, compared as ratios.

use std::path::Path;

use serde::{Deserialize, Serialize};
use spindle_model::{Ageing, Device, Invalid, Parameters, StackSpec as Tree, WriteCache};

use crate::bench::{Access, Bench, Place, Question, Row};
use crate::profile_file::{StackSpec, built_in_stack};
use crate::raw;
use crate::units::{format_size_bytes, parse_size_bytes};
use crate::user_error::UserError;

const SCHEMA: &str = "raw-figures/1";
/// A figure is met when the measured one differs by no more than this share of it.
const TOLERANCE: f64 = 0.25;
const THREADS_HIGH: u64 = 1_024;

const BUILT_IN: [(&str, &str); 4] = [
    ("raw-devices.toml", include_str!("../../../published/raw-devices.toml")),
    ("raw-newer-flash.toml", include_str!("../../../published/raw-newer-flash.toml")),
    ("raw-matsunobu-2010.toml", include_str!("../../../published/raw-matsunobu-2010.toml")),
    (
        "raw-percona-2011-io-alignment.toml",
        include_str!("../../../published/raw-percona-2011-io-alignment.toml"),
    ),
];

/// What a published number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    #[serde(rename = "requests/s")]
    RequestsPerS,
    #[serde(rename = "MB/s")]
    MegabytesPerS,
    #[serde(rename = "MiB/s")]
    MebibytesPerS,
    #[serde(rename = "us mean")]
    MicrosecondsMean,
    #[serde(rename = "ms mean")]
    MillisecondsMean,
    #[serde(rename = "ms p50")]
    MillisecondsP50,
    #[serde(rename = "ms p99")]
    MillisecondsP99,
    #[serde(rename = "ms p99.9")]
    MillisecondsP999,
}

impl Unit {
    fn words(self) -> &'static str {
        match self {
            Unit::RequestsPerS => "requests/s",
            Unit::MegabytesPerS => "MB/s",
            Unit::MebibytesPerS => "MiB/s",
            Unit::MicrosecondsMean => "us mean",
            Unit::MillisecondsMean => "ms mean",
            Unit::MillisecondsP50 => "ms p50",
            Unit::MillisecondsP99 => "ms p99",
            Unit::MillisecondsP999 => "ms p99.9",
        }
    }

    /// The same quantity of a measured row, where it was measured.
    fn of(self, row: &Row) -> Option<f64> {
        match self {
            Unit::RequestsPerS => Some(row.per_second),
            Unit::MegabytesPerS => Some(row.bytes_per_s / 1e6),
            Unit::MebibytesPerS => Some(row.bytes_per_s / f64::from(1 << 20)),
            Unit::MicrosecondsMean => Some(row.latency_us_mean),
            Unit::MillisecondsMean => Some(row.latency_us_mean / 1e3),
            Unit::MillisecondsP50 => row.latency_us_p50.map(|us| us / 1e3),
            Unit::MillisecondsP99 => row.latency_us_p99.map(|us| us / 1e3),
            Unit::MillisecondsP999 => row.latency_us_p999.map(|us| us / 1e3),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    Off,
    Volatile,
    Protected,
    /// Acknowledges a FLUSH without doing it.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Overwritten before, not fresh.
    Used,
}

/// One published figure, as its file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    pub profile: String,
    pub operation: Access,
    pub io_unit: String,
    pub threads: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    pub figure: f64,
    pub unit: Unit,
    pub source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// A parameter of the profile was set from this figure.
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

/// A figure and what was measured for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub figure: Figure,
    /// In the figure's unit.
    pub measured: Option<f64>,
    /// Measured over published.
    pub ratio: Option<f64>,
    /// Why there is no measurement.
    pub missing: Option<String>,
}

/// Which figures to set beside the measured ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Against {
    figures: Vec<Figure>,
    /// Every figure that has a profile, not only those of the target's.
    pub all: bool,
}

impl Against {
    /// `all`, a profile's name (the built-in figures of that profile), or the path of a file of figures.
    pub fn find(name: &str) -> Result<Against, UserError> {
        if name.contains('/') || name.ends_with(".toml") {
            let text = std::fs::read_to_string(Path::new(name))
                .map_err(|error| UserError(format!("--against: {name} cannot be read: {error}")))?;
            let figures = parse(name, &text)
                .map_err(|UserError(problem)| UserError(format!("--against: {problem}")))?;
            return Ok(Against { figures, all: false });
        }
        let mut figures = built_in();
        if name == "all" {
            return Ok(Against { figures, all: true });
        }
        let mut known: Vec<String> = figures.iter().map(|figure| figure.profile.clone()).collect();
        figures.retain(|figure| figure.profile == name);
        if figures.is_empty() {
            known.sort_unstable();
            known.dedup();
            return Err(UserError(format!(
                "--against: there are no published figures of `{name}`; there are figures of {}; or write `all`, or give the path of a .toml file",
                known.join(", ")
            )));
        }
        Ok(Against { figures, all: false })
    }

    /// What a bench of `profile` must ask for the figures; the raw device stands for every file system.
    pub fn questions(&self, profile: &str) -> Vec<Question> {
        let mine = self.figures.iter().filter(|figure| !self.all || figure.profile == profile);
        mine.filter(|figure| figure.is_plain()).map(Figure::question).collect()
    }

    /// In virtual time each figure has a device of its own, so any of them can be asked.
    pub fn compare_virtual(&self, target: &StackSpec, seed: u64) -> Vec<Comparison> {
        let compare = |figure: &Figure| match self.device(figure, target, seed) {
            Ok(device) => compared(figure, raw::answer(device, seed, &figure.question()).as_ref()),
            Err(missing) => without(figure, missing),
        };
        self.in_order(&target.head().name).into_iter().map(compare).collect()
    }

    /// With rows that were measured already; only figures that need nothing special.
    pub fn compare_measured(&self, profile: &str, bench: &Bench) -> Vec<Comparison> {
        let figures =
            self.in_order(profile).into_iter().filter(|figure| !self.all || figure.profile == profile);
        let compare = |figure: &Figure| {
            let question = figure.question();
            let row = bench
                .find(&question)
                .or_else(|| bench.find(&Question { place: Place::FileSystem, ..question }));
            match figure.is_plain() {
                true => compared(figure, row),
                false => {
                    without(figure, "needs another write cache, size or age; ask with --virtual".to_owned())
                }
            }
        };
        figures.map(compare).collect()
    }

    /// Those of the target first.
    fn in_order(&self, profile: &str) -> Vec<&Figure> {
        let (mut first, rest): (Vec<&Figure>, Vec<&Figure>) =
            self.figures.iter().partition(|figure| figure.profile == profile);
        first.extend(rest);
        first
    }

    /// The device to hold against a figure: the target, or with `all` one of the figure's own profile.
    fn device(&self, figure: &Figure, target: &StackSpec, seed: u64) -> Result<Box<dyn Device>, String> {
        let is_known = built_in_stack(&figure.profile).is_some();
        if figure.state == Some(State::Used) && is_known {
            return used_device(figure, seed);
        }
        let is_target = !self.all || figure.profile == target.head().name;
        let own;
        let stack = if is_target && figure.size.is_none() {
            target
        } else {
            if !is_known {
                return Err(NO_PROFILE.to_owned());
            }
            own = StackSpec::of_name(&figure.profile, figure.size.as_deref(), "none")
                .map_err(|UserError(problem)| problem)?;
            &own
        };
        with_cache(stack, figure.cache, seed).map_err(|invalid| invalid.to_string())
    }
}

const NO_PROFILE: &str = "there is no such profile";

/// Small, because what a used drive does follows from the ratio of its raw to its usable capacity.
const USED_SIZE: &str = "8 GB";

/// Overwritten three times at random before the first request.
fn used_device(figure: &Figure, seed: u64) -> Result<Box<dyn Device>, String> {
    if figure.size.is_some() {
        return Err("a device of which a part was used cannot be asked for yet".to_owned());
    }
    let stack =
        StackSpec::of_name(&figure.profile, Some(USED_SIZE), "none").map_err(|UserError(problem)| problem)?;
    let mut device = with_cache(&stack, figure.cache, seed).map_err(|invalid| invalid.to_string())?;
    device.age(&Ageing { fill_percent: 100, overwrite_percent: 300, seed });
    Ok(device)
}

fn with_cache(stack: &StackSpec, cache: Option<Cache>, seed: u64) -> Result<Box<dyn Device>, Invalid> {
    let Some(cache) = cache else { return Ok(stack.build(seed)) };
    let mut tree = stack.tree().clone();
    let write_cache = match cache {
        Cache::Off => WriteCache::Off,
        Cache::Volatile => WriteCache::Volatile,
        // What nothing can take away need not be flushed, which in time is the same as not flushing.
        Cache::Protected | Cache::Lying => WriteCache::Protected,
    };
    match &mut tree {
        Tree::Device(Parameters::Disk(disk)) => disk.write_cache = write_cache,
        Tree::Device(Parameters::Flash(flash)) => flash.write_cache = write_cache,
        _ => {
            let problem = "of a layer or a device without one cannot be changed".to_owned();
            return Err(Invalid { key: "write_cache", problem });
        }
    }
    tree.build(stack.size_bytes(), seed)
}

impl Figure {
    pub fn question(&self) -> Question {
        let unit_bytes = parse_size_bytes(&self.io_unit).expect("checked when the file was read");
        Question { place: Place::Raw, access: self.operation, unit_bytes, threads: self.threads }
    }

    /// Any device of that profile will do.
    fn is_plain(&self) -> bool {
        self.cache.is_none() && self.size.is_none() && self.state.is_none()
    }

    /// What was measured, in a few words.
    fn words(&self) -> String {
        let unit = format_size_bytes(self.question().unit_bytes);
        let mut text = format!("{} {unit}, {}", self.operation.words(), self.threads);
        if let Some(cache) = self.cache {
            text.push_str(&format!(", {}", cache.words()));
        }
        if let Some(size) = &self.size {
            text.push_str(&format!(", on {size}"));
        }
        if self.state == Some(State::Used) {
            text.push_str(", used");
        }
        text
    }
}

fn compared(figure: &Figure, row: Option<&Row>) -> Comparison {
    match row.and_then(|row| figure.unit.of(row)) {
        Some(measured) => Comparison {
            figure: figure.clone(),
            measured: Some(measured),
            ratio: Some(measured / figure.figure),
            missing: None,
        },
        None => without(figure, "was not measured".to_owned()),
    }
}

fn without(figure: &Figure, missing: String) -> Comparison {
    Comparison { figure: figure.clone(), measured: None, ratio: None, missing: Some(missing) }
}

/// The figures inside the binary.
pub fn built_in() -> Vec<Figure> {
    BUILT_IN
        .iter()
        .flat_map(|(name, text)| parse(name, text).expect("the built-in figures are tested"))
        .collect()
}

/// `file` is what errors call it.
pub fn parse(file: &str, text: &str) -> Result<Vec<Figure>, UserError> {
    let read: FigureFile = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = text[..start.min(text.len())].matches('\n').count() + 1;
        UserError(format!("{file}, line {line}: {}", error.message().replace('\n', " ")))
    })?;
    if read.schema != SCHEMA {
        return Err(UserError(format!("{file}: schema is `{}`, must be `{SCHEMA}`", read.schema)));
    }
    for (index, figure) in read.figure.iter().enumerate() {
        check(figure).map_err(|problem| UserError(format!("{file}, figure {}: {problem}", index + 1)))?;
    }
    Ok(read.figure)
}

fn check(figure: &Figure) -> Result<(), String> {
    let unit_bytes = parse_size_bytes(&figure.io_unit).map_err(|problem| format!("io_unit: {problem}"))?;
    if !unit_bytes.is_power_of_two() || !(512..=1 << 24).contains(&unit_bytes) {
        return Err(format!(
            "io_unit: is {unit_bytes} bytes, must be a power of two from 512 bytes to 16 MiB"
        ));
    }
    if !(1..=THREADS_HIGH).contains(&figure.threads) {
        return Err(format!("threads: is {}, must be 1 to {THREADS_HIGH}", figure.threads));
    }
    if !(figure.figure.is_finite() && figure.figure > 0.0) {
        return Err(format!("figure: is {}, must be above zero", figure.figure));
    }
    if figure.source.trim().is_empty() || figure.source.contains("[UNVERIFIED]") {
        return Err("source: must name a text that has the figure".to_owned());
    }
    if let Some(size) = &figure.size {
        parse_size_bytes(size).map_err(|problem| format!("size: {problem}"))?;
    }
    Ok(())
}

/// One line per figure that could be set beside a measurement or could not, and the count at the end.
pub fn table(comparisons: &[Comparison]) -> String {
    let (with_profile, waiting): (Vec<&Comparison>, Vec<&Comparison>) =
        comparisons.iter().partition(|comparison| comparison.missing.as_deref() != Some(NO_PROFILE));
    let mut text = format!(
        "\n{:<22} {:<50} {:>11} {:>11} {:<10} {:>6}  {}\n",
        "profile", "published figure", "published", "measured", "", "ratio", "source"
    );
    for comparison in &with_profile {
        let figure = &comparison.figure;
        let outcome = match (comparison.measured, comparison.ratio) {
            (Some(measured), Some(ratio)) => (short(measured), format!("{ratio:.2}")),
            _ => ("-".to_owned(), "-".to_owned()),
        };
        text.push_str(&format!(
            "{:<22} {:<50} {:>11} {:>11} {:<10} {:>6}  {}{}{}\n",
            figure.profile,
            figure.words(),
            short(figure.figure),
            outcome.0,
            figure.unit.words(),
            outcome.1,
            figure.source,
            if figure.fitted { " (the profile was set from it)" } else { "" },
            comparison.missing.as_ref().map_or(String::new(), |missing| format!(": {missing}")),
        ));
    }
    if !waiting.is_empty() {
        let mut names: Vec<&str> =
            waiting.iter().map(|comparison| comparison.figure.profile.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        text.push_str(&format!("{} more figures wait for a profile: {}\n", waiting.len(), names.join(", ")));
    }
    let unasked = with_profile.iter().filter(|comparison| comparison.ratio.is_none()).count();
    if unasked > 0 {
        text.push_str(&format!("{unasked} figures could not be asked for and do not count\n"));
    }
    let fitted =
        with_profile.iter().filter(|comparison| comparison.ratio.is_some() && comparison.figure.fitted);
    let fitted = fitted.count();
    if fitted > 0 {
        text.push_str(&format!(
            "{fitted} figures set a parameter of their profile, so that meeting them proves little\n"
        ));
    }
    text.push_str(&format!("{}\n", count(comparisons)));
    text
}

/// `N of M within 25 %`, where M are those that were measured.
pub fn count(comparisons: &[Comparison]) -> String {
    let ratios: Vec<f64> = comparisons.iter().filter_map(|comparison| comparison.ratio).collect();
    let near = ratios.iter().filter(|ratio| (*ratio - 1.0).abs() <= TOLERANCE).count();
    format!("{near} of {} within {:.0} %", ratios.len(), TOLERANCE * 100.0)
}

fn short(value: f64) -> String {
    let decimals = if value < 100.0 { 2 } else { 0 };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "schema = \"raw-figures/1\"\n[source]\ntitle = \"t\"\n";

    fn figure(line: &str) -> String {
        format!(
            "{HEAD}[[figure]]\nprofile = \"null\"\noperation = \"random-read\"\nio_unit = \"4 KiB\"\nthreads = 1\nfigure = 1\n\
             unit = \"us mean\"\nsource = \"a sheet\"\n{line}"
        )
    }

    fn complaint(text: &str) -> String {
        parse("mine.toml", text).unwrap_err().0
    }

    #[test]
    fn built_in_figures_are_sound() {
        assert!(built_in().len() > 50);
        for (name, text) in BUILT_IN {
            parse(name, text).unwrap();
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
    }

    #[test]
    fn a_figure_is_met_within_a_quarter() {
        let read = parse("x", &figure("")).unwrap();
        let comparison = |ratio| Comparison {
            figure: read[0].clone(),
            measured: Some(ratio),
            ratio: Some(ratio),
            missing: None,
        };
        let missing = without(&read[0], NO_PROFILE.to_owned());
        let comparisons = [comparison(0.75), comparison(1.25), comparison(0.7), comparison(1.3), missing];
        assert_eq!(count(&comparisons), "2 of 4 within 25 %");
        let table = table(&comparisons);
        assert!(table.contains("1 more figures wait for a profile: null"), "{table}");
    }

    #[test]
    fn a_figure_with_its_own_cache_has_its_own_device() {
        let stack = StackSpec::of_name("hdd-7200", None, "none").unwrap();
        let against = Against::find("hdd-7200").unwrap();
        let comparisons = against.compare_virtual(&stack, 1);
        let rate = |cache| {
            let is_it = |comparison: &&Comparison| comparison.figure.cache == Some(cache);
            comparisons.iter().find(is_it).unwrap().measured.unwrap()
        };
        // A disk without a cache commits once a turn at most; one that lies does not wait for the platter.
        assert!(rate(Cache::Off) <= 120.5 && rate(Cache::Lying) > 1000.0, "{comparisons:?}");
    }

    #[test]
    fn against_all_lists_every_figure_that_has_a_profile() {
        let stack = StackSpec::of_name("null", Some("1 GiB"), "none").unwrap();
        let against = Against::find("all").unwrap();
        let known = |figure: &&Figure| built_in_stack(&figure.profile).is_some();
        let listed: Vec<&str> =
            against.in_order("iodrive-160").iter().map(|figure| figure.profile.as_str()).collect();
        assert_eq!(listed.len(), built_in().len());
        assert_eq!(listed[0], "iodrive-160");
        for figure in built_in().iter().filter(known).filter(|figure| figure.state.is_none()) {
            assert!(against.device(figure, &stack, 1).is_ok(), "{figure:?}");
        }
    }

    #[test]
    fn unknown_figures_are_refused() {
        let sentence = Against::find("x25m").unwrap_err().0;
        assert!(sentence.starts_with(
            "--against: there are no published figures of `x25m`; there are figures of 660p-1024,"
        ));
    }
}
