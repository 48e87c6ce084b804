//! Shared buffers as after hours of work.

use anyhow::{Context, Result};
use spindle_load::Endpoint;
use spindle_load::sql::connect;

/// Reads all tables and indexes of the endpoint's database. Shared buffers smaller than they are stay as they are,
/// as do those of a build without the extension that reads into them.
pub(super) fn fill(endpoint: &Endpoint) -> Result<()> {
    let mut session = connect(endpoint)?;
    let fits = session.prepare(
        "SELECT 1::bigint FROM pg_available_extensions WHERE name = 'pg_prewarm' AND pg_database_size(current_database()) \
         <= (SELECT setting::bigint * current_setting('block_size')::bigint FROM pg_settings WHERE name = 'shared_buffers')",
    )?;
    let found: Vec<(i64,)> =
        session.rows(fits, &[]).context("asking the server for the size of its database")?;
    if found.is_empty() {
        return Ok(());
    }
    session
        .execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
        .context("making the server able to fill its buffers")?;
    session
        .read("SELECT SUM(pg_prewarm(oid)) FROM pg_class WHERE relkind IN ('r', 'i', 't', 'm') AND NOT relisshared")
        .context("reading all tables")
        .map(drop)
}
