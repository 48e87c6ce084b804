//! What the planner must know of tables and results.

use std::fmt::Debug;

use crate::sql::print::quoted;

/// A table of a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TableFacts {
    pub columns: Vec<Column>,
    /// The server's estimate.
    pub rows: u64,
    /// In their order; empty without partitions.
    pub partitions: Vec<String>,
    /// Columns of each index, the primary one first.
    pub indexes: Vec<Vec<String>>,
    /// Those of unique ones.
    pub unique: Vec<Vec<String>>,
    pub is_base_table: bool,
    /// The column by whose ranges, lists or hash its rows are in partitions.
    pub partitioned_by: Option<String>,
    /// The column by which its rows are on several servers; `None` if each has them all.
    pub key: Option<String>,
}

impl TableFacts {
    /// The column of this name; letters of either case are the same.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
    /// Its type and collation in the server's words.
    pub declared: String,
    pub nullable: bool,
}

/// What can be said of a column's values without asking the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    Integer,
    Date,
    /// Text whose values are equal only if their bytes are, but for spaces at the end.
    BinaryText,
    /// Text of which a collation may hold different values for equal.
    Text,
    #[default]
    Other,
}

impl Kind {
    /// Whether the values have ranges that can be divided.
    pub fn has_ranges(self) -> bool {
        matches!(self, Kind::Integer | Kind::Date)
    }
}

/// A name of a table as a query has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableName {
    /// Without one, the connection's own.
    pub schema: Option<String>,
    pub name: String,
}

impl TableName {
    /// As a statement has it.
    pub fn quoted(&self) -> String {
        let schema = self.schema.as_ref().map(|schema| format!("{}.", quoted(schema)));
        schema.unwrap_or_default() + &quoted(&self.name)
    }
}

/// A column of a query's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultColumn {
    pub name: String,
    /// Digits after the point of a floating point number that is shown with a fixed number of them.
    pub digits: Option<u8>,
}

impl ResultColumn {
    /// An expression that is shown as the column is.
    pub fn shown(&self, expression: &str) -> String {
        match self.digits {
            Some(digits) => format!("ROUND({expression}, {digits})"),
            None => expression.to_owned(),
        }
    }
}

/// Where the planner asks.
pub trait Facts: Debug {
    /// `None` for a table that the server does not have or does not show.
    fn table(&self, name: &TableName) -> Option<TableFacts>;

    /// About how many combinations of values these columns have, each with the number of values that it has at most;
    /// `None` if nobody knows.
    fn groups(&self, _table: &TableName, _columns: &[(&str, u64)]) -> Option<u64> {
        None
    }

    /// The columns of a query's result.
    ///
    /// # Errors
    /// The server's words: the query is wrong.
    fn result(&self, query: &str) -> Result<Vec<ResultColumn>, String>;
}
