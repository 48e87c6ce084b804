//! Checks the published rows that a scenario's cells name, before any work.

use itertools::Itertools as _;
use spindle_base::{Mistake, near};

use super::reproduction::check_figure;
use super::studies;
use super::study::{Reading, Row, Study, Table, VALUE};
use crate::record::{Mark, PublishedTag, Selector, selector_words};

/// The study, the table, the row and the column of a tag.
///
/// # Errors
/// One of them does not exist: a sentence at its key, with the nearest name.
pub fn check_row(tag: &PublishedTag) -> Result<(), Mistake> {
    let slugs = studies().iter().map(Study::slug).collect_vec();
    let study = studies().iter().find(|study| study.slug() == tag.study);
    let study = study.ok_or_else(|| unknown("study", "there is no published study", &tag.study, &slugs))?;
    check_figure(&tag.figure)?;
    let Some(table) = study.table(&tag.table) else { return check_quantity(study, tag) };
    let row = table.row(&tag.row).ok_or_else(|| unknown_row(table, &tag.row))?;
    let column = tag.column.as_deref().unwrap_or(VALUE);
    if row.number(column).is_some() {
        return Ok(());
    }
    let columns = table.extra_columns.iter().map(|column| column.key.as_str());
    let columns = columns.filter(|key| row.number(key).is_some()).chain([VALUE]).collect_vec();
    let words = format!("table `{}` has no numbers in column", tag.table);
    Err(unknown("column", &words, column, &columns))
}

/// A row of a quantity that checks without a table compare.
fn check_quantity(study: &Study, tag: &PublishedTag) -> Result<(), Mistake> {
    let reading = Reading::of(study.slug());
    let checks = study.checks().map(|(_, check)| check).chain(reading.checks.iter().map(|own| &own.check));
    let without_table = checks.filter(|check| check.ground.table.is_none()).collect_vec();
    let rows = without_table.iter().filter(|check| check.source() == Some(&tag.table));
    let rows = rows.flat_map(|check| check.rows()).collect_vec();
    if rows.contains(&tag.row) {
        return Ok(());
    }
    if rows.is_empty() {
        let tables = study.tables.iter().map(|table| table.id.as_str());
        let known =
            tables.chain(without_table.iter().filter_map(|check| check.source())).unique().collect_vec();
        return Err(unknown("table", &format!("study `{}` has no table", study.slug()), &tag.table, &known));
    }
    let known = rows.iter().map(selector_words).unique().collect_vec();
    let known = known.iter().map(String::as_str).collect_vec();
    Err(unknown("row", &format!("`{}` has no row", tag.table), &selector_words(&tag.row), &known))
}

fn unknown(key: &str, words: &str, name: &str, known: &[&str]) -> Mistake {
    Mistake::at(key, format!("{words} `{name}`{}", near::hint(name, known)))
}

/// Names the dimension that is missing, unknown or has a value that no row has.
fn unknown_row(table: &Table, selector: &Selector) -> Mistake {
    let dimensions = table.dimensions.iter().map(String::as_str).collect_vec();
    if let Some(key) = selector.keys().find(|key| !dimensions.contains(&key.as_str())) {
        let words = format!("table `{}` has no dimension", table.id);
        return unknown(&format!("row.{key}"), &words, key, &dimensions);
    }
    if let Some(key) = dimensions.iter().find(|key| !selector.contains_key(**key)) {
        let marks = marks(table, key).join("`, `");
        return Mistake::at(format!("row.{key}"), format!("is missing; table `{}` has `{marks}`", table.id));
    }
    for (key, mark) in selector {
        let known = marks(table, key);
        if !table.rows.iter().any(|row| row.get(key) == Some(mark)) {
            let known = known.iter().map(String::as_str).collect_vec();
            let words = format!("table `{}` has no row with {key}", table.id);
            return unknown(&format!("row.{key}"), &words, &mark.to_string(), &known);
        }
    }
    let words = format!("table `{}` has no row with {} together", table.id, selector_words(selector));
    Mistake::at("row", words)
}

/// The values of a dimension, each once.
fn marks(table: &Table, key: &str) -> Vec<String> {
    table.rows.iter().filter_map(|row: &Row| row.get(key)).map(Mark::to_string).unique().collect()
}

/// Every tag must be of one cell, and every row of one tag. `cells` has the names of the cells of each tag.
///
/// # Errors
/// A sentence at the tag's key.
pub fn check_cells(tags: &[PublishedTag], cells: &[Vec<String>]) -> Result<(), Mistake> {
    for (index, (tag, cells)) in tags.iter().zip(cells).enumerate() {
        let place = format!("published[{index}]");
        match cells.as_slice() {
            [] => {
                return Err(Mistake::at(
                    place,
                    "no cell of the matrix has this `stack`, `server` and `workload`",
                ));
            }
            [_] => {}
            _ if tag.best_over.is_some() => {}
            several => {
                let names = several.iter().map(String::as_str).collect_vec();
                let words = format!(
                    "a row is of one cell, and {} fit; name its `stack`, `server` or `workload`, or the axis `best_over`",
                    near::list(&names)
                );
                return Err(Mistake::at(place, words));
            }
        }
        let is_same = |other: &PublishedTag| {
            (&other.study, &other.table, &other.row, &other.column)
                == (&tag.study, &tag.table, &tag.row, &tag.column)
        };
        if let Some(first) = tags[..index].iter().position(is_same) {
            return Err(Mistake::at(place, format!("published[{first}] names the same row")));
        }
    }
    Ok(())
}
