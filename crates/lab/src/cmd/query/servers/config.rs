//! Shards in TOML.

use std::collections::BTreeMap;

use serde::Deserialize;
use spindle_base::Mistake;
use spindle_base::explain::read_toml;
use spindle_scatter::mapping::{Directory, KeyValue, Mapper, Mapping};

use super::ShardsFile;
use crate::server::endpoint;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    column: String,
    #[serde(default)]
    mapper: MapperKind,
    /// Columns of tables that are sharded by another.
    #[serde(default)]
    columns: BTreeMap<String, String>,
    #[serde(default)]
    reference: Vec<String>,
    #[serde(default)]
    shards: Vec<Shard>,
    #[serde(default)]
    directory: Vec<Entry>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum MapperKind {
    #[default]
    Hash,
    Directory,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shard {
    name: String,
    server: String,
}

/// Values, or a range of integers, of one shard.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    shard: String,
    #[serde(default)]
    values: Vec<Value>,
    first: Option<i64>,
    last: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Value {
    Integer(i64),
    Text(String),
}

pub(super) fn parse(text: &str) -> Result<ShardsFile, Mistake> {
    let config: Config = read_toml(text)?;
    if config.shards.is_empty() {
        return Err(Mistake::at("shards", "has no shard; write [[shards]] with a name and a server"));
    }
    let mut shards = Vec::new();
    for (index, shard) in config.shards.iter().enumerate() {
        let at = |key: &str, words: String| Mistake::at(format!("shards[{index}].{key}"), words);
        if config.shards[..index].iter().any(|other| other.name == shard.name) {
            return Err(at("name", format!("`{}` is the name of another shard", shard.name)));
        }
        let endpoint = endpoint::parse_to_query(&shard.server).map_err(|words| at("server", words))?;
        shards.push((shard.name.clone(), endpoint));
    }
    let mapper = match (config.mapper, config.directory.is_empty()) {
        (MapperKind::Hash, true) => Mapper::Hash,
        (MapperKind::Hash, false) => {
            return Err(Mistake::at("directory", "is used with mapper = \"directory\" only"));
        }
        (MapperKind::Directory, true) => {
            return Err(Mistake::at(
                "directory",
                "has no entry; write [[directory]] with a shard and its values",
            ));
        }
        (MapperKind::Directory, false) => Mapper::Directory(directory(&config)?),
    };
    let small = |(table, column): (String, String)| (table.to_ascii_lowercase(), column);
    let reference = config.reference.iter().map(|table| table.to_ascii_lowercase()).collect();
    let columns = config.columns.into_iter().map(small).collect();
    Ok(ShardsFile {
        shards,
        mapping: Mapping { column: config.column, columns, reference, mapper },
        notices: Vec::new(),
    })
}

fn directory(config: &Config) -> Result<Directory, Mistake> {
    let mut found = Directory::default();
    for (index, entry) in config.directory.iter().enumerate() {
        let at = |key: &str, words: String| Mistake::at(format!("directory[{index}].{key}"), words);
        let is_it = |shard: &Shard| shard.name == entry.shard;
        let Some(shard) = config.shards.iter().position(is_it) else {
            return Err(at("shard", format!("`{}` is no shard", entry.shard)));
        };
        for value in &entry.values {
            let value = match value {
                Value::Integer(number) => KeyValue::Integer((*number).into()),
                Value::Text(text) => KeyValue::Text(text.trim_end_matches(' ').to_owned().into()),
            };
            let shown = format!("{value:?}");
            if found.values.insert(value, shard).is_some_and(|other| other != shard) {
                return Err(at("values", format!("{shown} is on another shard as well")));
            }
        }
        match (entry.first, entry.last) {
            (None, None) if entry.values.is_empty() => return Err(at("values", "is missing".to_owned())),
            (None, None) => {}
            (Some(first), Some(last)) if first <= last => {
                let (first, last) = (i128::from(first), i128::from(last));
                if let Some((from, to, _)) =
                    found.ranges.iter().find(|(from, to, _)| first <= *to && *from <= last)
                {
                    return Err(at("first", format!("{first} to {last} overlaps {from} to {to}")));
                }
                found.ranges.push((first, last, shard));
            }
            (Some(first), Some(last)) => {
                return Err(at("last", format!("{last} is less than the first, {first}")));
            }
            (Some(_), None) => return Err(at("last", "is missing".to_owned())),
            (None, Some(_)) => return Err(at("first", "is missing".to_owned())),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARDS: &str = r#"
[[shards]]
name = "a"
server = "mysql://me@127.0.0.1:3307/flights"

[[shards]]
name = "b"
server = "socket:/run/b.sock"
"#;

    #[track_caller]
    fn check_mistake(text: &str, expect: &str) {
        assert_eq!(parse(text).unwrap_err().to_string(), expect);
    }

    #[test]
    fn shards_have_names_and_servers() {
        let file = parse(&format!("column = \"day_id\"\nreference = [\"Days\"]\n{SHARDS}")).unwrap();
        assert_eq!(file.shards.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(file.mapping.mapper, Mapper::Hash);
        assert!(file.mapping.reference.contains("days"));
    }

    #[test]
    fn a_directory_has_values_and_ranges() {
        let text = format!(
            "column = \"day_id\"\nmapper = \"directory\"\n{SHARDS}
[[directory]]
shard = \"a\"
values = [5, \"x\"]

[[directory]]
shard = \"b\"
first = 10
last = 19
"
        );
        let Mapper::Directory(directory) = parse(&text).unwrap().mapping.mapper else {
            panic!("no directory")
        };
        assert_eq!(directory.values.len(), 2);
        assert_eq!(directory.ranges, [(10, 19, 1)]);
        check_mistake(
            &text.replace("last = 19", "last = 9"),
            "directory[1].last: 9 is less than the first, 10",
        );
        check_mistake(&text.replace("shard = \"b\"", "shard = \"c\""), "directory[1].shard: `c` is no shard");
        let again = format!("{text}\n[[directory]]\nshard = \"a\"\nfirst = 0\nlast = 10\n");
        check_mistake(&again, "directory[2].first: 0 to 10 overlaps 10 to 19");
    }

    #[test]
    fn a_mistake_is_told_at_its_key() {
        check_mistake("column = \"a\"", "shards: has no shard; write [[shards]] with a name and a server");
        check_mistake(SHARDS, "column: is missing");
        check_mistake(
            &format!("column = \"a\"\n{SHARDS}").replace("name = \"b\"", "name = \"a\""),
            "shards[1].name: `a` is the name of another shard",
        );
        check_mistake(
            &format!("column = \"a\"\nmaper = \"hash\"\n{SHARDS}"),
            "maper: unknown key; did you mean `mapper`?",
        );
    }
}
