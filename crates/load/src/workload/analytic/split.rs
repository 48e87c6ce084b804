//! Queries in fragments over several connections and servers (`spindle-scatter`).

use anyhow::{Context, Result};
use mysql::consts::ColumnType;
use spindle_scatter::execute::Scatter;
use spindle_scatter::mapping::{KeyValue, Mapping};
use spindle_scatter::servers::Server;
use spindle_scatter::shards::Cluster;
use spindle_scatter::split::Options;

use crate::protocol::Endpoint;
use crate::sql::mysql::options;
use crate::sql::{Row, Value, describe};

/// Over what each query is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Over {
    /// To each server.
    pub(crate) connections: u32,
    /// Servers.
    pub(crate) shards: u32,
}

impl Over {
    pub(crate) fn of(split: Option<u32>, shards: Option<u32>) -> Over {
        Over { connections: split.unwrap_or(1), shards: shards.unwrap_or(1) }
    }

    /// The server answers by itself.
    pub(super) fn is_whole(self) -> bool {
        self == Over::of(None, None)
    }

    /// For the text of a data set: one server's stays as it always was.
    pub(crate) fn shards_in_words(self) -> String {
        if self.shards > 1 { format!(", {} shards", self.shards) } else { String::new() }
    }
}

/// One server's part of the sharded rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shard {
    /// From zero.
    pub(crate) index: u32,
    pub(crate) count: u32,
}

impl Shard {
    /// Whether the rows with this key are here.
    pub(crate) fn has(self, mapping: &Mapping, key: i128) -> bool {
        mapping.mapper.shard_of(&KeyValue::Integer(key), self.count as usize) == Some(self.index as usize)
    }
}

#[derive(Debug)]
pub(super) struct Split(Scatter);

impl Split {
    pub(super) fn connect(endpoints: &[Endpoint], over: Over, mapping: Mapping) -> Result<Split> {
        let server = |endpoint: &Endpoint| {
            Ok(Server { name: describe(endpoint), options: options(endpoint, true)?.into() })
        };
        let servers = endpoints.iter().map(server).collect::<Result<Vec<_>>>()?;
        let mapping = (over.shards > 1).then_some(mapping);
        let options = Options { connections: over.connections as usize, ..Options::default() };
        Ok(Split(Scatter::connect(Cluster { servers, mapping }, options)?))
    }

    /// Its values as the other sessions give them: floating point numbers as such, and the others as text.
    pub(super) fn rows(&mut self, query: &str) -> Result<Vec<Row>> {
        let answer = self.0.run(query)?;
        let is_real =
            |kind: ColumnType| matches!(kind, ColumnType::MYSQL_TYPE_DOUBLE | ColumnType::MYSQL_TYPE_FLOAT);
        let kinds: Vec<bool> = answer.columns.iter().map(|column| is_real(column.column_type())).collect();
        let value = |(value, is_real): (Option<Vec<u8>>, &bool)| match (value, is_real) {
            (None, _) => Ok(Value::Null),
            (Some(text), false) => Ok(Value::Text(text)),
            (Some(text), true) => {
                let text = String::from_utf8_lossy(&text).into_owned();
                let number = text.parse().with_context(|| format!("{text} is no number"))?;
                Ok(Value::Real(number))
            }
        };
        let row = |row: Vec<Option<Vec<u8>>>| row.into_iter().zip(&kinds).map(value).collect();
        answer.rows.into_iter().map(row).collect()
    }
}
