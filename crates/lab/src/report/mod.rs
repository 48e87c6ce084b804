//! The report: a pure function of records.
//!
//! `input` reads and checks the file, `view` turns records into the content, and each format only lays it
//! out. Formats compute nothing: every number on the page is in the view, and therefore in `--format json`.

mod advice;
mod comma;
pub mod compare;
mod dilation;
mod diskstats;
mod disturbed;
mod events;
mod experiment;
pub mod format;
mod html;
mod markdown;
mod matrix;
mod precision;
mod text;
pub mod verdict;
mod view;

pub use crate::record::input::{Records, parse, read, records_path};
pub(crate) use disturbed::disturbance;
pub(crate) use html::{STYLE, filled, script_safe};
pub(crate) use markdown::escaped;
#[cfg(test)]
pub(crate) use precision::tests as precision_tests;
pub(crate) use precision::{Group, groups, notes as not_known};
pub(crate) use text::wrapped;
pub(crate) use verdict::{is_limited_by_cores, puts_off_writes};
pub(crate) use view::{
    CPU_BUSY_PERCENT, failure, figure_beside_event, figure_of, measured, metric, rounded, samples,
    warning_names,
};
pub use view::{
    CellView, CurveView, EventSide, Quantiles, Range, Ratio, StorageView, StudyTable, SweepView, TrialTable,
    View,
};

/// How a report is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// One self-contained page that works offline.
    Html,
    /// Markdown, for an issue or a wiki.
    Md,
    /// One row per figure of a trial, failed trials included.
    Csv,
    /// Everything the page says, as data.
    Json,
    /// The table that `spindle run` prints.
    Text,
    /// The kernel's counters of each device, second by second, in the columns of pt-diskstats.
    Diskstats,
    /// The records themselves as `spindle run` writes them today, also from a file of an earlier format.
    Records,
}

/// Renders records as a report. `colour` applies to [`Format::Text`] only.
pub fn render(records: &Records, format: Format, colour: bool) -> anyhow::Result<String> {
    View::new(records).lay_out(format, colour)
}

impl View {
    /// As [`render`], for several formats of one view.
    pub fn lay_out(&self, format: Format, colour: bool) -> anyhow::Result<String> {
        Ok(match format {
            Format::Html => html::page(self)?,
            Format::Md => markdown::page(self),
            Format::Csv => comma::rows(&self.trials)?,
            Format::Json => spindle_base::text::json(self)? + "\n",
            Format::Text => text::page(self, colour),
            Format::Diskstats => self.diskstats.page(),
            Format::Records => self.records.text(),
        })
    }
}
