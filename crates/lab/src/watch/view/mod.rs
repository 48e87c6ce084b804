//! The full-screen view: a pure function of a state, the time and the size of the terminal.
//!
//! Every part is a few lines with a rank. On a small terminal the parts with the highest rank are left out,
//! and the charts get the rest. Colours only repeat what the text says.

mod charts;
mod parts;
#[cfg(test)]
mod tests;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::state::State;

/// What is shown.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    pub state: &'a State,
    /// Milliseconds of the Unix epoch.
    pub now_ms: u64,
    pub paint: Paint,
}

/// Colours, or none of them (`NO_COLOR`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    Coloured,
    Plain,
}

impl Paint {
    fn style(self, colour: Color) -> Style {
        match self {
            Paint::Coloured => Style::new().fg(colour),
            Paint::Plain => Style::new(),
        }
    }

    fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }
}

/// Lines that are shown together or not at all.
#[derive(Debug)]
struct Part {
    lines: Vec<Line<'static>>,
    /// The highest is left out first; zero never is.
    rank: u8,
}

/// The least height of charts.
const CHARTS_LEAST: usize = 4;

pub fn draw(frame: &mut Frame<'_>, shown: &Shown<'_>) {
    let area = frame.area();
    let width = usize::from(area.width);
    let mut above = parts::above(shown, width);
    let mut below = parts::below(shown, width);
    let charts_least = if shown.state.trial.is_some() { CHARTS_LEAST } else { 0 };
    leave_out([&mut above, &mut below], usize::from(area.height).saturating_sub(charts_least));
    let height = |parts: &[Part]| parts.iter().map(|part| part.lines.len()).sum::<usize>() as u16;
    let rows = [Constraint::Length(height(&above)), Constraint::Fill(1), Constraint::Length(height(&below))];
    let [top, middle, bottom] = Layout::vertical(rows).areas(area);
    text(frame, above, top);
    if let Some(trial) = &shown.state.trial {
        charts::draw(frame, middle, trial, shown.paint);
    }
    text(frame, below, bottom);
}

/// Leaves parts out until the rest fits into `height` lines.
fn leave_out(sides: [&mut Vec<Part>; 2], height: usize) {
    let [above, below] = sides;
    loop {
        let all = || above.iter().chain(below.iter());
        let worst = all().map(|part| part.rank).max().unwrap_or_default();
        if worst == 0 || all().map(|part| part.lines.len()).sum::<usize>() <= height {
            return;
        }
        above.retain(|part| part.rank != worst);
        below.retain(|part| part.rank != worst);
    }
}

fn text(frame: &mut Frame<'_>, parts: Vec<Part>, area: Rect) {
    let lines: Vec<Line<'_>> = parts.into_iter().flat_map(|part| part.lines).collect();
    frame.render_widget(Paragraph::new(lines), area);
}
