//! The report: a pure function of records.
//!
//! `input` reads and checks the file, `view` turns records into what is said, and each format only lays that out. No
//! format computes: a number that is on the page is in the view, and so in `--format json`.

mod comma;
pub mod compare;
pub mod format;
mod html;
mod input;
mod markdown;
mod text;
mod view;

pub(crate) use html::ECHARTS;
pub use input::{ReadError, Records, parse, read};
pub(crate) use text::wrapped;
pub use view::{CellView, Quantiles, Ratio, StorageView, TrialTable, View};
pub(crate) use view::{lower_is_better, metric_name, samples};

/// How a report is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// One self-contained page that works offline.
    Html,
    /// Markdown, for an issue or a wiki.
    Md,
    /// One row per trial, failed ones included.
    Csv,
    /// Everything the page says, as data.
    Json,
    /// The table that `spindle run` prints.
    Text,
}

/// Lays out the report; `colour` matters to [`Format::Text`] only.
pub fn render(records: &Records, format: Format, colour: bool) -> anyhow::Result<String> {
    let view = View::new(records);
    Ok(match format {
        Format::Html => html::page(&view)?,
        Format::Md => markdown::page(&view),
        Format::Csv => comma::rows(&view.trials),
        Format::Json => spindle_base::text::json(&view)? + "\n",
        Format::Text => text::page(&view, colour),
    })
}
