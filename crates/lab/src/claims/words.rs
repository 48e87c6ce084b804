//! Checks and what supports them, in words.

use itertools::Itertools as _;

use super::check::{Check, Form, Rank, Relation};
use super::own_data::{OwnData, Support};
use crate::record::{Mark, Selector, selector_words};
use crate::report::format::{number, percent};

impl Check {
    /// What the check compares, and what the study says of it.
    pub fn words(&self) -> String {
        let ground = &self.ground;
        let subject = [&ground.table, &ground.metric, &ground.column].into_iter().flatten().join(", ");
        let stated = ground.stated_text.as_ref().map_or(String::new(), |text| format!(" (\"{text}\")"));
        format!("{subject}: {}{stated}", self.form.words(self.claimed().as_deref()))
    }

    /// What a check with one quantity claims. A supported ratio has it from the study's rows.
    pub(super) fn claimed(&self) -> Option<String> {
        match &self.form {
            Form::Ratio(ratio) => {
                let stated = number(ratio.stated);
                Some(match (ratio.relation, ratio.stated_max) {
                    (Relation::AtLeast, _) => format!("at least {stated}"),
                    (Relation::AtMost, _) => format!("at most {stated}"),
                    (Relation::Range, Some(most)) => format!("{stated} to {}", number(most)),
                    _ if self.ground.holds == Some(true) => number(ratio.ratio),
                    _ => stated,
                })
            }
            Form::Difference { stated, .. } => Some(number(*stated)),
            Form::Threshold { op, stated, .. } => Some(format!("{} {}", op.sign(), number(*stated))),
            Form::Ordering { .. } | Form::Similar { .. } | Form::CountWithin { .. } => None,
        }
    }
}

impl Form {
    fn words(&self, claimed: Option<&str>) -> String {
        let claimed = claimed.unwrap_or_default();
        match self {
            Form::Ratio(ratio) => {
                let table = |table: &Option<String>| {
                    table.as_ref().map_or(String::new(), |table| format!("{table} "))
                };
                let (above, below) = (table(&ratio.table_numerator), table(&ratio.table_denominator));
                let [numerator, denominator] = [&ratio.numerator, &ratio.denominator].map(selector_words);
                format!("{above}({numerator}) over {below}({denominator}) is {claimed}")
            }
            Form::Difference { minuend, subtrahend, .. } => {
                format!("({}) less ({}) is {claimed}", selector_words(minuend), selector_words(subtrahend))
            }
            Form::Threshold { row, .. } => format!("({}) is {claimed}", selector_words(row)),
            Form::Ordering { key, order, place, .. } => {
                let ranks = order.iter().map(|rank: &Rank| rank.members().iter().join(" and "));
                format!("{key} from best to worst is {}{}", ranks.format(", "), under(place))
            }
            Form::Similar { key, members, within, place } => {
                format!("{key} {} are within {}{}", marks(members), percent(*within), under(place))
            }
            Form::CountWithin { over, over_values, a, b, within, stated } => format!(
                "({}) and ({}) are within {} for {stated} of {} values of {over}",
                selector_words(a),
                selector_words(b),
                percent(*within),
                over_values.len()
            ),
        }
    }
}

fn marks(marks: &[Mark]) -> String {
    crate::report::format::list(marks)
}

fn under(place: &Selector) -> String {
    if place.is_empty() { String::new() } else { format!(", where {}", selector_words(place)) }
}

impl OwnData {
    pub fn words(self) -> &'static str {
        match self {
            OwnData::Yes => "yes",
            OwnData::InPart => "in part",
            OwnData::No => "no",
            OwnData::None => "not printed",
        }
    }
}

impl Support {
    /// A sentence; `support` is `None` if the study prints no figures.
    pub fn words(support: Option<Support>) -> String {
        let Some(Support { holds, quantity }) = support else {
            return "The study prints no rows.".to_owned();
        };
        match (quantity.map(number), holds) {
            (Some(given), true) => format!("The study's rows give {given}, which supports it."),
            (Some(given), false) => format!("The study's rows give {given}, which does not support it."),
            (None, true) => "The study's rows support it.".to_owned(),
            (None, false) => "The study's rows do not support it.".to_owned(),
        }
    }
}
