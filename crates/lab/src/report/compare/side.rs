//! The sides of a comparison, as the user names them: a records file, the directory of a run, and a cell by
//! its name or label.

use std::path::Path;

use spindle_base::{Mistake, near};

use crate::record::Cell;
use crate::report::{self, Records};

/// One side of a comparison: a file, or one cell of it.
#[derive(Debug, Clone)]
pub struct Side {
    /// As the user named it.
    pub file: String,
    pub records: Records,
    /// Index of the named cell.
    cell: Option<usize>,
}

/// Reads both sides: `FILE`, `FILE:CELL`, and for the candidate also `CELL` of the baseline's file.
///
/// # Errors
/// A file that cannot be read, or a cell that is not in it.
pub fn sides(baseline: &str, candidate: Option<&str>) -> Result<(Side, Option<Side>), Mistake> {
    let left = read(baseline)?;
    let right = match candidate {
        Some(cell) if !names_a_file(cell) => Some(Side::new(&left.file, left.records.clone(), Some(cell))?),
        Some(candidate) => Some(read(candidate)?),
        None => None,
    };
    Ok((left, right))
}

/// Whether an argument is a file, with or without a cell, rather than a bare cell.
fn names_a_file(argument: &str) -> bool {
    let looks_like_one = |path: &str| Path::new(path).exists() || path.ends_with(".jsonl");
    looks_like_one(argument) || argument.rsplit_once(':').is_some_and(|(file, _)| looks_like_one(file))
}

fn read(argument: &str) -> Result<Side, Mistake> {
    // An existing file of the whole name takes precedence, so a colon in a file name needs no escape.
    let (file, cell) = match argument.rsplit_once(':') {
        Some((file, cell)) if !Path::new(argument).exists() => (file, Some(cell)),
        _ => (argument, None),
    };
    Side::new(file, report::read(Path::new(file))?, cell)
}

impl Side {
    /// # Errors
    /// The records have no such cell.
    pub fn new(file: &str, records: Records, cell: Option<&str>) -> Result<Side, Mistake> {
        let cells = &records.header.cells;
        let found = cell.map(|name| {
            find(cells, name).map_err(|words| Mistake::new(format!("{file}: has no cell `{name}`{words}")))
        });
        Ok(Side { file: file.to_owned(), cell: found.transpose()?, records })
    }

    /// The named cell.
    pub(super) fn cell(&self) -> Option<&Cell> {
        self.cell.map(|index| &self.records.header.cells[index])
    }

    /// The named cell, or all.
    pub(super) fn chosen(&self) -> Vec<&Cell> {
        self.cell().map_or_else(|| self.records.header.cells.iter().collect(), |cell| vec![cell])
    }

    /// As the user may type it.
    pub(super) fn shown(&self) -> String {
        self.cell().map_or_else(|| self.file.clone(), |cell| format!("{}:{}", self.file, cell.name))
    }
}

/// Index of the cell with that name, or of the only one with that label. The error continues a sentence.
fn find(cells: &[Cell], name: &str) -> Result<usize, String> {
    if let Some(index) = cells.iter().position(|cell| cell.name == name) {
        return Ok(index);
    }
    let is_it = |cell: &Cell| cell.label.to_lowercase() == name.to_lowercase();
    let labelled: Vec<usize> = (0..cells.len()).filter(|index| is_it(&cells[*index])).collect();
    if let [index] = labelled[..] {
        return Ok(index);
    }
    let mut known: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
    if labelled.len() > 1 {
        let same: Vec<&str> = labelled.iter().map(|index| known[*index]).collect();
        return Err(format!("; the label is that of {}", near::list(&same)));
    }
    let choices = format!("; its cells are {}", near::list(&known));
    known.extend(cells.iter().map(|cell| cell.label.as_str()));
    match near::did_you_mean(name, &known) {
        meant if !meant.is_empty() => Err(meant),
        _ => Err(choices),
    }
}
