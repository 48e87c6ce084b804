//! A new scenario as text: what `spindle new` writes. The facts come from the declarations of servers and
//! workloads; the layout of the file is `scenario.toml.template`.

use std::time::Duration;

use clap::ValueEnum;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde::Serialize;
use serde_json::json;
use spindle_base::text;
use spindle_load::Written;

use crate::server::{Advice, Advised, Kind, Source, Trust};

const TEMPLATE: &str = include_str!("scenario.toml.template");
/// Columns of a comment.
const WIDTH: usize = 110;
/// The server's cache as a part of the data.
const CACHE_PART: u64 = 8;
const CACHE_BYTES_LEAST: u64 = 16 << 20;

/// Everything that a new scenario depends on.
#[derive(Debug, Clone)]
pub struct Draft {
    pub stacks: Vec<DraftStack>,
    /// Name of its table.
    pub server: String,
    pub kind: &'static Kind,
    pub version: Option<String>,
    pub workload: Written,
    pub precision: Precision,
    pub memory_bytes: u64,
}

/// A table `[stacks.NAME]` with one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DraftStack {
    pub name: String,
    /// `profile` or `path`.
    pub key: &'static str,
    pub value: String,
    pub about: String,
}

/// Number and length of the trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Precision {
    /// An answer within minutes; shows differences of tens of percent.
    Quick,
    /// Windows of half a minute.
    Normal,
    /// Ten windows of two minutes, for small differences.
    Careful,
}

impl Precision {
    pub fn trials(self) -> u32 {
        match self {
            Precision::Quick => 3,
            Precision::Normal => 5,
            Precision::Careful => 10,
        }
    }

    /// Warm-up, settling and measured window, in seconds.
    fn phases_s(self) -> [u64; 3] {
        match self {
            Precision::Quick => [5, 4, 10],
            Precision::Normal => [10, 8, 30],
            Precision::Careful => [20, 20, 120],
        }
    }

    /// Time limit of a warm-up that ends when the cache is warm.
    fn warm_up_at_most_s(self) -> u64 {
        match self {
            Precision::Quick => 30,
            Precision::Normal => 60,
            Precision::Careful => 300,
        }
    }

    /// Time limit of fixed work.
    fn at_most_s(self) -> u64 {
        match self {
            Precision::Quick => 900,
            Precision::Normal => 1_800,
            Precision::Careful => 7_200,
        }
    }
}

#[derive(Debug, Serialize)]
struct Setting {
    name: &'static str,
    value: toml::Value,
    why: &'static str,
}

impl Draft {
    /// The file.
    pub fn text(&self) -> String {
        let kind = self.workload.spec.kind();
        let [warm_up, settle, measure] = self.precision.phases_s().map(seconds);
        let is_once = self.workload.spec.facts().is_done_once;
        let content = json!({
            "title": self.title(),
            "question": self.question(),
            "stacks": self.stacks,
            "server": {
                "name": self.server,
                "kind": self.kind.name,
                "version": self.version,
                "settings": self.settings(),
            },
            "workload": {
                "kind": kind,
                "about": format!("The load: {}", self.workload.about),
                "keys": self.workload.keys,
            },
            "matrix": { "stack": self.names(), "server": [self.server], "workload": [kind] },
            "run": {
                "trials": self.precision.trials(),
                "warm_up": warm_up,
                "warm_up_at_most": self.sizes_the_cache().then(|| seconds(self.precision.warm_up_at_most_s())),
                "settle": settle,
                "measure": measure,
                "at_most": is_once.then(|| seconds(self.precision.at_most_s())),
            },
        });
        filled(&content).expect("a test fills in the template")
    }

    fn names(&self) -> Vec<&str> {
        self.stacks.iter().map(|stack| stack.name.as_str()).collect()
    }

    fn title(&self) -> String {
        let (kind, server, names) = (self.workload.spec.kind(), &self.server, self.names());
        match names.as_slice() {
            [name] => format!("{kind} on {server} and {name}"),
            names => format!("{kind} on {server}: {}?", names.join(" or ")),
        }
    }

    fn question(&self) -> String {
        let (kind, names) = (self.workload.spec.kind(), self.names());
        match names.split_first() {
            Some((first, others)) if !others.is_empty() => format!(
                "How many times as fast as on {first} is {kind} with {} on {}?",
                self.server,
                others.join(" and on ")
            ),
            _ => format!("How fast is {kind} with {} on {}?", self.server, names.join(", ")),
        }
    }

    /// The advised settings of the server.
    fn settings(&self) -> Vec<Setting> {
        let server = (self.kind.make)(&Source::Installed, Trust::MayRun);
        let known = server.map_or_else(Vec::new, |server| server.memory_settings());
        let setting = |advice: &Advice| {
            let value = match advice.value {
                Advised::Value(value) => value.to_owned(),
                Advised::ShareOfData => {
                    known.iter().find(|known| known.name == advice.name)?.written(self.cache_bytes())
                }
            };
            let number = value.parse::<i64>().map(toml::Value::from);
            let value = number.unwrap_or_else(|_| value.into());
            Some(Setting { name: advice.name, value, why: advice.why })
        };
        self.kind.advice.iter().filter_map(setting).collect()
    }

    /// Whether its settings give the server a cache of a size that follows from the data.
    fn sizes_the_cache(&self) -> bool {
        let is_share = |advice: &Advice| matches!(advice.value, Advised::ShareOfData);
        self.kind.advice.iter().any(is_share)
    }

    /// In whole MiB of two digits.
    fn cache_bytes(&self) -> u64 {
        let data_bytes = self.workload.spec.data().map_or(0, |data| data.bytes);
        let bytes = (data_bytes / CACHE_PART).max(CACHE_BYTES_LEAST).min(self.memory_bytes / 2);
        let mebibytes = (bytes >> 20).max(1);
        let step = 10_u64.pow(mebibytes.ilog10().saturating_sub(1));
        (mebibytes / step * step) << 20
    }
}

fn filled(content: &serde_json::Value) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    environment.set_syntax(syntax.build()?);
    environment.add_filter("toml", |value: Value| {
        toml::Value::try_from(&value).map_or_else(|_| String::new(), |value| value.to_string())
    });
    environment.add_filter("comment", |text: String| comment(&text));
    environment.add_filter("key", |name: String| key(&name));
    environment.render_str(TEMPLATE, Value::from(Serde(content)))
}

fn seconds(seconds: u64) -> String {
    text::duration(Duration::from_secs(seconds))
}

/// A key of TOML, quoted where it must be.
fn key(name: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if name.chars().all(is_bare) { name.to_owned() } else { toml::Value::from(name).to_string() }
}

/// Lines of comment with the words of the text.
fn comment(text: &str) -> String {
    let mut lines = vec!["#".to_owned()];
    for word in text.split_whitespace() {
        if lines.last().is_some_and(|line| line.chars().count() + 1 + word.chars().count() > WIDTH) {
            lines.push("#".to_owned());
        }
        let line = lines.last_mut().expect("there is a first line");
        line.push(' ');
        line.push_str(word);
    }
    let text = lines.join("\n");
    if text.ends_with(['.', '?', '!', ':']) { text } else { text + "." }
}
