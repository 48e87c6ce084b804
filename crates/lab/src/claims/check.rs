//! A check: one comparison of figures that a claim makes.

use serde::{Deserialize, Serialize};

use super::rows::Place;
use super::study::{Better, VALUE};
use crate::record::{Mark, Selector};

/// A comparison of figures, and what is known about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "toml::Table")]
pub struct Check {
    #[serde(flatten)]
    pub ground: Ground,
    #[serde(flatten)]
    pub form: Form,
}

/// Where the figures are, and what the study says about them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ground {
    /// The study prints the figures, so that its own data can support the claim or not.
    #[serde(default)]
    pub verifiable: bool,
    /// Whether they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<bool>,
    /// The table of the figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// What a check without a table is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Unless given, the table's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
    /// The column of the figures, unless `value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// The study's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The quantity that the study's rows give. A ratio has it in `ratio`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computed: Option<f64>,
}

/// The kind of comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Form {
    /// One figure over another.
    Ratio(Ratio),
    /// One figure less another, in the table's unit.
    Difference { minuend: Selector, subtrahend: Selector, stated: f64, within_abs: f64 },
    /// Best to worst over a dimension.
    Ordering {
        key: String,
        order: Vec<Rank>,
        #[serde(default, rename = "where")]
        place: Selector,
        /// Members of one rank differ by at most this share.
        tie_within: Option<f64>,
    },
    /// Members of a dimension differ by at most a share.
    Similar {
        key: String,
        members: Vec<Mark>,
        within: f64,
        #[serde(default, rename = "where")]
        place: Selector,
    },
    /// Two figures are near each other for at least `stated` of the values of a dimension.
    CountWithin { over: String, over_values: Vec<Mark>, a: Selector, b: Selector, within: f64, stated: usize },
    /// One figure against a bound.
    Threshold { row: Selector, op: Bound, stated: f64 },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    pub numerator: Selector,
    pub denominator: Selector,
    /// Unless given, the check's table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table_numerator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table_denominator: Option<String>,
    /// What the study states.
    pub stated: f64,
    /// The upper end of a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated_max: Option<f64>,
    pub relation: Relation,
    /// Relative tolerance of the printed number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// The same in percentage points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_pp: Option<f64>,
    /// What the study's rows give, or its text where it has no rows.
    pub ratio: f64,
    /// The side of 1 on which `ratio` is.
    pub direction: Direction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    About,
    AtLeast,
    AtMost,
    /// From `stated` to `stated_max`.
    Range,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    NumeratorHigher,
    NumeratorLower,
    /// Within 3 %.
    Equal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bound {
    #[serde(rename = ">=")]
    AtLeast,
    #[serde(rename = "<=")]
    AtMost,
    #[serde(rename = ">")]
    Above,
    #[serde(rename = "<")]
    Below,
}

/// A place of an ordering: a member, or members that share it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Rank {
    One(Mark),
    Tie(Vec<Mark>),
}

impl TryFrom<toml::Table> for Check {
    type Error = toml::de::Error;

    /// Serde refuses unknown keys only in a structure without flattened parts, so the parts are read one by
    /// one.
    fn try_from(table: toml::Table) -> Result<Check, Self::Error> {
        let is_of_ground = |(key, _): &(String, toml::Value)| GROUND.contains(&key.as_str());
        let (ground, form): (Vec<_>, Vec<_>) = table.into_iter().partition(is_of_ground);
        let ground = toml::Table::from_iter(ground).try_into()?;
        Ok(Check { ground, form: toml::Table::from_iter(form).try_into()? })
    }
}

/// The keys of [`Ground`]. A key that is missing here is refused as unknown.
const GROUND: [&str; 9] =
    ["verifiable", "holds", "table", "metric", "better", "column", "stated_text", "note", "computed"];

impl Check {
    /// The table of the figures, or the quantity by which a check without a table calls them.
    pub fn source(&self) -> Option<&str> {
        self.ground.table.as_deref().or(self.ground.metric.as_deref())
    }

    /// The rows that it compares.
    pub fn rows(&self) -> Vec<Selector> {
        let members = |key: &str, place: &Selector, marks: &mut dyn Iterator<Item = &Mark>| {
            let row = |mark: &Mark| {
                let mut row = place.clone();
                row.insert(key.to_owned(), mark.clone());
                row
            };
            marks.map(row).collect::<Vec<_>>()
        };
        match &self.form {
            Form::Ratio(ratio) => vec![ratio.numerator.clone(), ratio.denominator.clone()],
            Form::Difference { minuend, subtrahend, .. } => vec![minuend.clone(), subtrahend.clone()],
            Form::Threshold { row, .. } => vec![row.clone()],
            Form::Ordering { key, order, place, .. } => {
                members(key, place, &mut order.iter().flat_map(Rank::members))
            }
            Form::Similar { key, members: marks, place, .. } => members(key, place, &mut marks.iter()),
            Form::CountWithin { over, over_values, a, b, .. } => {
                [members(over, a, &mut over_values.iter()), members(over, b, &mut over_values.iter())]
                    .concat()
            }
        }
    }

    /// The rows that it compares, with their table or quantity and their column.
    pub(super) fn places(&self) -> Vec<Place> {
        let source = self.source().unwrap_or_default();
        let of_ratio = match &self.form {
            Form::Ratio(ratio) => [ratio.table_numerator.as_deref(), ratio.table_denominator.as_deref()],
            _ => [None; 2],
        };
        let table = |index: usize| of_ratio.get(index).copied().flatten().unwrap_or(source).to_owned();
        let place = |(index, row)| Place { table: table(index), row, column: self.column().to_owned() };
        self.rows().into_iter().enumerate().map(place).collect()
    }

    pub fn column(&self) -> &str {
        self.ground.column.as_deref().unwrap_or(VALUE)
    }
}

impl Rank {
    pub fn members(&self) -> &[Mark] {
        match self {
            Rank::One(mark) => std::slice::from_ref(mark),
            Rank::Tie(marks) => marks,
        }
    }
}

impl Bound {
    pub fn sign(self) -> &'static str {
        match self {
            Bound::AtLeast => ">=",
            Bound::AtMost => "<=",
            Bound::Above => ">",
            Bound::Below => "<",
        }
    }

    pub(super) fn allows(self, value: f64, bound: f64) -> bool {
        match self {
            Bound::AtLeast => value >= bound,
            Bound::AtMost => value <= bound,
            Bound::Above => value > bound,
            Bound::Below => value < bound,
        }
    }
}
