//! A buffer pool as after hours of work.

use anyhow::{Context, Result};
use itertools::Itertools as _;
use mysql::Conn;
use mysql::prelude::Queryable;
use spindle_load::Endpoint;
use spindle_load::sql::mysql::connect;

/// Reads all rows and indexes of InnoDB's tables in the endpoint's database. A buffer pool smaller than they are
/// stays as it is.
pub(super) fn fill(endpoint: &Endpoint) -> Result<()> {
    let mut connection = connect(endpoint)?;
    let fits: Option<bool> = connection
        .query_first(
            "SELECT COALESCE(SUM(data_length + index_length), 0) <= @@innodb_buffer_pool_size \
             FROM information_schema.tables WHERE table_schema = DATABASE() AND engine = 'InnoDB'",
        )
        .context("asking the server for the sizes of its tables")?;
    if fits != Some(true) {
        return Ok(());
    }
    for (table, index) in indexes(&mut connection)? {
        let statement = format!("SELECT COUNT(*) FROM `{table}` {index}");
        connection.query_drop(&statement).with_context(|| format!("reading a table: {statement}"))?;
    }
    Ok(())
}

/// Tables, and for each of their indexes the words that make the server read it whole. Rows are in the primary
/// one, or in one that has no name.
fn indexes(connection: &mut Conn) -> Result<Vec<(String, String)>> {
    let pairs: Vec<(String, Option<String>)> = connection
        .query(
            "SELECT DISTINCT t.table_name, s.index_name FROM information_schema.tables t \
             LEFT JOIN information_schema.statistics s \
             ON s.table_schema = t.table_schema AND s.table_name = t.table_name AND s.index_name <> 'PRIMARY' AND s.index_type = 'BTREE' \
             WHERE t.table_schema = DATABASE() AND t.engine = 'InnoDB'",
        )
        .context("asking the server for its indexes")?;
    let rows = pairs.iter().map(|(table, _)| (table.clone(), "USE INDEX ()".to_owned())).unique();
    let secondary = pairs
        .iter()
        .filter_map(|(table, index)| Some((table.clone(), format!("FORCE INDEX (`{}`)", index.as_ref()?))));
    Ok(rows.chain(secondary).collect())
}
