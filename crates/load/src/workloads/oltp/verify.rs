//! The checks of the tables after a trial.

use anyhow::Result;

use super::{Script, Spec, table};
use crate::protocol::Endpoint;
use crate::sql::connect;
use crate::workload::Check;
use crate::workload::Violations;

/// True if the row count fits the script: `insert` may add rows, `delete` may remove some, the others keep
/// the number.
fn is_expected(script: Script, loaded: i64, found: i64) -> bool {
    match script {
        Script::Insert => found >= loaded,
        Script::Delete => found <= loaded,
        _ => found == loaded,
    }
}

pub(super) fn verify(endpoint: &Endpoint, spec: &Spec) -> Result<Vec<Check>> {
    let mut session = connect(endpoint)?;
    let mut counts = Violations::default();
    let mut texts = Violations::default();
    let mut keys = Violations::default();
    for number in 1..=spec.tables {
        let name = table::name(number);
        let mut count = |condition: &str| session.count(&name, condition);
        let rows = count("id >= 0")?;
        counts.note(is_expected(spec.script, spec.rows.into(), rows), || {
            format!("{name} has {rows} rows, {} were loaded", spec.rows)
        });
        let odd = rows - count("LENGTH(c) = 119 AND LENGTH(pad) = 59")?;
        texts.note(odd == 0, || format!("{odd} rows of {name} have texts of another length"));
        // Counts rows by the secondary index; every `k` is at least one.
        let by_index = count("k >= 0")?;
        keys.note(by_index == rows, || format!("{name} has {rows} rows by its key and {by_index} by k"));
    }
    let place = format!("{} tables", spec.tables);
    Ok(vec![
        counts.check("rows are as many as the script leaves", &place),
        texts.check("texts are whole", &place),
        keys.check("key and secondary index agree", &place),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_insert_may_add_rows_and_only_a_delete_take_them() {
        assert!(is_expected(Script::Insert, 10, 11) && !is_expected(Script::Insert, 10, 9));
        assert!(is_expected(Script::Delete, 10, 9) && !is_expected(Script::Delete, 10, 11));
        assert!(is_expected(Script::ReadWrite, 10, 10) && !is_expected(Script::ReadWrite, 10, 9));
    }
}
