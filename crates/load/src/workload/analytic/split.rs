//! Queries in fragments over several connections to one server (`spindle-scatter`).

use anyhow::{Context, Result};
use mysql::consts::ColumnType;
use spindle_scatter::execute::Scatter;
use spindle_scatter::servers::Server;
use spindle_scatter::shards::Cluster;
use spindle_scatter::split::Options;

use crate::protocol::Endpoint;
use crate::sql::mysql::options;
use crate::sql::{Row, Value, describe};

#[derive(Debug)]
pub(super) struct Split(Scatter);

impl Split {
    pub(super) fn connect(endpoint: &Endpoint, connections: u32) -> Result<Split> {
        let server = Server { name: describe(endpoint), options: options(endpoint, true)?.into() };
        let options = Options { connections: connections as usize, ..Options::default() };
        Ok(Split(Scatter::connect(Cluster::of(server), options)?))
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
