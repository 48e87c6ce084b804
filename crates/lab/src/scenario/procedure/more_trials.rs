//! `[[more_trials]]`: cells that differ by less than the others need more trials, and only they take the time for them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use spindle_base::{Mistake, near};

use crate::record::Cell;
use crate::scenario::file::TRIALS_MAX;

/// Cells with more trials than the others.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct MoreTrials {
    /// Cells by their names, as `spindle plan` prints them.
    #[schemars(example = ["hdd", "ssd"])]
    pub cells: Vec<String>,
    /// Trials of each of these cells, more than `[run]` has.
    #[schemars(range(min = 2, max = TRIALS_MAX), example = 12)]
    pub trials: u32,
}

/// The trials of each cell that a table names.
///
/// # Errors
/// There is no such cell, a table names it again, or the others have as many trials.
pub(in crate::scenario) fn read(
    tables: &[MoreTrials],
    trials: Option<u32>,
    cells: &[Cell],
) -> Result<BTreeMap<String, u32>, Mistake> {
    let known: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
    let mut of_cells = BTreeMap::new();
    for (index, table) in tables.iter().enumerate() {
        let mistake =
            |key: &str, message: String| Err(Mistake::at(format!("more_trials[{index}].{key}"), message));
        match trials {
            None => return mistake("trials", "has a meaning with `trials` in `[run]` only".to_owned()),
            Some(trials) if trials >= table.trials => {
                return mistake("trials", format!("must be more than the {trials} of `[run]`"));
            }
            Some(_) => {}
        }
        for name in &table.cells {
            if !known.contains(&name.as_str()) {
                return mistake("cells", format!("the matrix has no `{name}`{}", near::hint(name, &known)));
            }
            if of_cells.insert(name.clone(), table.trials).is_some() {
                return mistake("cells", format!("`{name}` is named twice"));
            }
        }
    }
    Ok(of_cells)
}
