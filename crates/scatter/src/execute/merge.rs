//! The temporary table of fragments' rows. A server makes it, so that types and collations are its own.

use anyhow::{Context, Result};
use mysql::Conn;
use mysql::consts::ColumnType;
use mysql::prelude::Queryable;

use crate::servers::BINARY;

/// Longest statement. Servers take at least a mebibyte (`max_allowed_packet`).
const STATEMENT_BYTES: usize = 512 << 10;

#[derive(Debug)]
pub(super) struct Table {
    head: String,
    /// The statement so far; empty without rows.
    pending: Vec<u8>,
}

/// The rows of a fragment, and which of their columns are bytes without a character set.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) are_bytes: Vec<bool>,
    pub(super) rows: Vec<Vec<Option<Vec<u8>>>>,
}

impl Rows {
    pub(super) fn of(columns: &[mysql::Column], rows: Vec<Vec<Option<Vec<u8>>>>) -> Rows {
        let is_bytes = |column: &mysql::Column| {
            column.character_set() == BINARY
                && matches!(
                    column.column_type(),
                    ColumnType::MYSQL_TYPE_STRING
                        | ColumnType::MYSQL_TYPE_VAR_STRING
                        | ColumnType::MYSQL_TYPE_VARCHAR
                        | ColumnType::MYSQL_TYPE_TINY_BLOB
                        | ColumnType::MYSQL_TYPE_MEDIUM_BLOB
                        | ColumnType::MYSQL_TYPE_LONG_BLOB
                        | ColumnType::MYSQL_TYPE_BLOB
                        | ColumnType::MYSQL_TYPE_BIT
                        | ColumnType::MYSQL_TYPE_GEOMETRY
                )
        };
        Rows { are_bytes: columns.iter().map(is_bytes).collect(), rows }
    }
}

impl Table {
    /// An empty table with the columns of this query, which has no rows.
    pub(super) fn create(connection: &mut Conn, name: &str, query: &str) -> Result<Table> {
        connection
            .query_drop(format!("CREATE TEMPORARY TABLE {name} AS {query}"))
            .context("making the table of the fragments' rows")?;
        Ok(Table { head: format!("INSERT INTO {name} VALUES "), pending: Vec::new() })
    }

    pub(super) fn take(&mut self, connection: &mut Conn, rows: Rows) -> Result<()> {
        for row in &rows.rows {
            match self.pending.is_empty() {
                true => self.pending.extend_from_slice(self.head.as_bytes()),
                false => self.pending.push(b','),
            }
            write_row(&mut self.pending, row, &rows.are_bytes);
            if self.pending.len() > STATEMENT_BYTES {
                self.flush(connection)?;
            }
        }
        Ok(())
    }

    pub(super) fn finish(mut self, connection: &mut Conn) -> Result<()> {
        self.flush(connection)
    }

    fn flush(&mut self, connection: &mut Conn) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let statement = String::from_utf8(std::mem::take(&mut self.pending))
            .context("a fragment returned text that is not UTF-8")?;
        connection.query_drop(statement).context("keeping the fragments' rows")
    }
}

fn write_row(text: &mut Vec<u8>, row: &[Option<Vec<u8>>], are_bytes: &[bool]) {
    text.push(b'(');
    for (index, value) in row.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        match value {
            None => text.extend_from_slice(b"NULL"),
            Some(value) if are_bytes[index] => {
                text.extend_from_slice(b"x'");
                text.extend(value.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()));
                text.push(b'\'');
            }
            Some(value) => {
                text.push(b'\'');
                for byte in value {
                    if matches!(byte, b'\'' | b'\\') {
                        text.push(b'\\');
                    }
                    text.push(*byte);
                }
                text.push(b'\'');
            }
        }
    }
    text.push(b')');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_so_that_the_server_reads_the_same() {
        let mut text = Vec::new();
        let row = [None, Some(b"it's a \\".to_vec()), Some(vec![0, 255]), Some(Vec::new())];
        write_row(&mut text, &row, &[false, false, true, false]);
        assert_eq!(String::from_utf8_lossy(&text), r"(NULL,'it\'s a \\',x'00ff','')");
    }
}
