//! The rows that a check compares, from any source of figures.

use itertools::Itertools as _;

use super::check::{Check, Rank};
use super::estimate::Figure;
use super::study::{Better, Study};
use crate::record::{Mark, Selector, selector_words};

/// A column of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    pub table: String,
    pub row: Selector,
    pub column: String,
}

/// A source of figures. The error says in a few words why it has none for the place.
pub type Lookup<'a> = &'a dyn Fn(&Place) -> Result<Figure, String>;

/// The figures of one check.
pub(super) struct Rows<'a> {
    check: &'a Check,
    /// The table, or the quantity of a check without one.
    source: &'a str,
    better: Option<Better>,
    lookup: Lookup<'a>,
}

impl Study {
    /// The figure that the study prints.
    ///
    /// # Errors
    /// The study has no such row, or no number in that column.
    pub fn figure(&self, place: &Place) -> Result<Figure, String> {
        let row = self.table(&place.table).and_then(|table| table.row(&place.row));
        let number = row.and_then(|row| row.number(&place.column)).map(Figure::Printed);
        number.ok_or_else(|| format!("{} is not in the study", place.words()))
    }
}

impl Place {
    /// `tpcc-peak (scenario = hdd)`, with the column unless it is the value.
    pub fn words(&self) -> String {
        let column = if self.column == super::study::VALUE { "" } else { &format!(", {}", self.column) };
        format!("{} ({}{column})", self.table, selector_words(&self.row))
    }
}

impl<'a> Rows<'a> {
    /// # Errors
    /// The check names neither a table nor a quantity.
    pub(super) fn new(study: &'a Study, check: &'a Check, lookup: Lookup<'a>) -> Result<Rows<'a>, String> {
        let source = check.source().ok_or("the study names no figure")?;
        let better = check.ground.better.or_else(|| study.table(source).map(|table| table.better));
        Ok(Rows { check, source, better, lookup })
    }

    /// The figure of a row of the check's table, or of another one.
    pub(super) fn figure(&self, row: &Selector, table: Option<&str>) -> Result<Figure, String> {
        let table = table.unwrap_or(self.source).to_owned();
        (self.lookup)(&Place { table, row: row.clone(), column: self.check.column().to_owned() })
    }

    /// The figures of members of a dimension, and the reasons of the members that have none.
    pub(super) fn of_members<'b>(
        &self,
        key: &str,
        members: impl IntoIterator<Item = &'b Mark>,
        place: &Selector,
    ) -> (Vec<(&'b Mark, Figure)>, Vec<String>) {
        let figure = |mark: &'b Mark| {
            let mut row = place.clone();
            row.insert(key.to_owned(), mark.clone());
            self.figure(&row, None).map(|figure| (mark, figure))
        };
        members.into_iter().map(figure).partition_result()
    }

    pub(super) fn is_higher_better(&self) -> bool {
        self.better != Some(Better::Lower)
    }
}

/// The figures of the members of a dimension.
pub(super) struct Pairs<'a> {
    pub(super) rows: &'a Rows<'a>,
    pub(super) figures: Vec<(&'a Mark, Figure)>,
    /// Reasons of the members without a figure.
    pub(super) missing: Vec<String>,
}

impl<'a> Pairs<'a> {
    /// # Errors
    /// No member has a figure: the first reason.
    pub(super) fn new(
        rows: &'a Rows<'a>,
        key: &str,
        members: impl IntoIterator<Item = &'a Mark>,
        place: &Selector,
    ) -> Result<Pairs<'a>, String> {
        let (figures, missing) = rows.of_members(key, members, place);
        match missing.first() {
            Some(reason) if figures.is_empty() => Err(reason.clone()),
            _ => Ok(Pairs { rows, figures, missing }),
        }
    }

    pub(super) fn figure(&self, mark: &Mark) -> Option<&Figure> {
        self.figures.iter().find(|(other, _)| *other == mark).map(|(_, figure)| figure)
    }
}

/// Every pair of members of two ranks: the better one first.
pub(super) fn in_order<'a>(order: &'a [Rank]) -> impl Iterator<Item = (&'a Mark, &'a Mark)> {
    let pairs =
        |(better, worse): (&'a Rank, &'a Rank)| better.members().iter().cartesian_product(worse.members());
    order.iter().tuple_combinations().flat_map(pairs)
}

/// Every pair of members that share a rank.
pub(super) fn ties(order: &[Rank]) -> impl Iterator<Item = (&Mark, &Mark)> {
    order.iter().flat_map(|rank| rank.members().iter().tuple_combinations())
}
