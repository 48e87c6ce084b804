//! Layouts of the answer: for a terminal, a wiki, a table program, a browser.

mod page;
#[cfg(test)]
mod tests;

use anyhow::Result;
use clap::ValueEnum;
use spindle_base::text::{self, columns, one_line};

use super::answer::Answer;
use super::endurance::Life;
use super::prices::Price;
use super::row::Row;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Columns for a terminal.
    Text,
    /// A table for an issue or a wiki.
    Md,
    Json,
    Csv,
    /// One self-contained page.
    Html,
}

const HEADS: [&str; 11] = [
    "rank",
    "storage",
    "predicted",
    "times today's",
    "p95 ms",
    "p99 ms",
    "waits for",
    "price",
    "years of life",
    "a power cut may lose",
    "against",
];

/// The columns of CSV, where a figure is a number or nothing.
const PLAIN_HEADS: [&str; 16] = [
    "rank",
    "storage",
    "predicted",
    "low",
    "high",
    "times_todays",
    "p95_ms",
    "p99_ms",
    "waits_for",
    "price",
    "currency",
    "price_date",
    "years_of_life",
    "capacity_bytes",
    "a_power_cut_may_lose",
    "against",
];

impl Answer {
    /// # Errors
    /// The page's template does not fit, which is a bug.
    pub fn lay_out(&self, format: Format) -> Result<String> {
        Ok(match format {
            Format::Text => self.text(),
            Format::Md => self.markdown(),
            Format::Json => text::json(self)? + "\n",
            Format::Csv => self.csv()?,
            Format::Html => page::page(self)?,
        })
    }

    /// What the answer rests on.
    fn basis(&self) -> String {
        let from = format!("Predicted from cell {} ({}).", self.cell, self.why_this_cell);
        let Some(itself) = &self.itself else {
            return format!(
                "{from} Its storage is not known, so the twin was not held against it: `--today` names it."
            );
        };
        format!(
            "{from} Of this cell itself the twin predicts {:.0} {}, and {:.0} were measured ({:+.0} %).",
            itself.predicted,
            self.metric,
            itself.measured,
            itself.error() * 100.0,
        )
    }

    /// Said first when it holds.
    fn warning(&self) -> Option<&'static str> {
        let is_off = self.itself.is_some_and(|itself| itself.is_off());
        is_off.then_some("The model does not fit this database well: take the ranks below with care.")
    }

    /// The sentences before the table, each with `end` behind it.
    fn head(&self, end: &str) -> String {
        let warning = self.warning().map(str::to_owned);
        let doubts = self.doubts.iter().map(|doubt| format!("Of the measurement: {doubt}"));
        let sentences = warning.into_iter().chain([self.sentence(), self.basis()]);
        sentences.chain(doubts).map(|sentence| one_line(&sentence) + end).collect()
    }

    fn text(&self) -> String {
        let rows = self.rows.iter().zip(1..).map(|(row, rank)| fields(row, rank));
        let table = columns(std::iter::once(HEADS.map(str::to_owned)).chain(rows));
        let left_out = self.left_out.iter().map(|reason| format!("left out: {}\n", one_line(reason)));
        format!("{}\n{table}{}", self.head("\n"), left_out.collect::<String>())
    }

    fn markdown(&self) -> String {
        let cell = |text: &str| one_line(text).replace('|', "\\|");
        let line = |fields: &[String; 11]| {
            format!("| {} |\n", fields.each_ref().map(|field| cell(field)).join(" | "))
        };
        let mut page = self.head("\n\n");
        page += &line(&HEADS.map(str::to_owned));
        page += "|--:|---|--:|--:|--:|--:|---|--:|--:|---|---|\n";
        page.extend(self.rows.iter().zip(1..).map(|(row, rank)| line(&fields(row, rank))));
        page
    }

    fn csv(&self) -> Result<String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(PLAIN_HEADS)?;
        for (row, rank) in self.rows.iter().zip(1..) {
            writer.write_record(plain_fields(row, rank))?;
        }
        Ok(String::from_utf8(writer.into_inner()?)?)
    }
}

/// In the order of [`HEADS`].
fn fields(row: &Row, rank: usize) -> [String; 11] {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let ms = |value: Option<f64>| or_dash(value.map(|ms| format!("{ms:.1}")));
    let years = row.life.as_ref().and_then(|life| life.years());
    [
        rank.to_string(),
        row.name.clone(),
        format!("{:.0} ({:.0} to {:.0})", row.predicted, row.low, row.high),
        format!("{:.2}", row.times_todays),
        ms(row.p95_ms),
        ms(row.p99_ms),
        row.bottleneck.to_owned(),
        row.price_words(),
        or_dash(years.map(|years| if years > 99.0 { "over 99".to_owned() } else { format!("{years:.1}") })),
        row.may_lose.to_owned(),
        row.against.join("; "),
    ]
}

/// In the order of [`PLAIN_HEADS`].
fn plain_fields(row: &Row, rank: usize) -> [String; 16] {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
    let of_price =
        |choose: fn(&Price) -> &String| row.price.as_ref().map(choose).cloned().unwrap_or_default();
    [
        rank.to_string(),
        row.name.clone(),
        number(Some(row.predicted)),
        number(Some(row.low)),
        number(Some(row.high)),
        number(Some(row.times_todays)),
        number(row.p95_ms),
        number(row.p99_ms),
        row.bottleneck.to_owned(),
        number(row.price.as_ref().map(|price| price.total)),
        of_price(|price| &price.currency),
        of_price(|price| &price.date),
        number(row.life.as_ref().and_then(Life::years)),
        row.capacity_bytes.to_string(),
        row.may_lose.to_owned(),
        row.against.join("; "),
    ]
}
