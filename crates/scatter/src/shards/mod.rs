//! Tables over several servers: which rows each server has.
//!
//! A sharded table has each row on one server, by the value of one column. A reference table has all its rows on each.

pub mod mapper;

use std::collections::{BTreeMap, BTreeSet};

pub use mapper::{Directory, KeyValue, Mapper};

use crate::servers::Server;

/// One server with all rows, or several with a part of them each.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// At least one.
    pub servers: Vec<Server>,
    /// `None` for one server.
    pub mapping: Option<Mapping>,
}

impl Cluster {
    pub fn of(server: Server) -> Cluster {
        Cluster { servers: vec![server], mapping: None }
    }
}

/// Which tables are sharded, by which column, and where each value is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mapping {
    /// Tables that have this column are sharded by it.
    pub column: String,
    /// Sharded tables whose column has another name, in small letters.
    pub columns: BTreeMap<String, String>,
    /// Reference tables that have the column as well, in small letters.
    pub reference: BTreeSet<String>,
    pub mapper: Mapper,
}

impl Mapping {
    /// The column by which a table is sharded; `None` for a reference table. `has_column` says whether the table has a
    /// column of this name.
    pub fn column_of(&self, table: &str, has_column: impl Fn(&str) -> bool) -> Option<&str> {
        let table = table.to_ascii_lowercase();
        if self.reference.contains(&table) {
            return None;
        }
        let column = self.columns.get(&table).unwrap_or(&self.column);
        has_column(column).then_some(column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_sharded_if_it_has_the_column() {
        let mapping = Mapping {
            column: "day_id".to_owned(),
            columns: BTreeMap::from([("orders".to_owned(), "customer_id".to_owned())]),
            reference: BTreeSet::from(["days".to_owned()]),
            mapper: Mapper::Hash,
        };
        let check = |table: &str, columns: &[&str], expect: Option<&str>| {
            assert_eq!(mapping.column_of(table, |name| columns.contains(&name)), expect, "{table}");
        };
        check("facts", &["id", "day_id"], Some("day_id"));
        check("carriers", &["code"], None);
        check("Orders", &["day_id", "customer_id"], Some("customer_id"));
        check("Days", &["day_id"], None);
    }
}
