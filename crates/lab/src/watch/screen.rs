//! The view on a terminal. The terminal is as before when this returns, for whatever reason.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::follow::{Followed, News};
use super::line::Ending;
use super::state::{State, now_ms};
use super::view::{self, Paint, Shown};
use crate::host::interrupt::Interrupt;

/// Longest time before a key or a signal is noticed.
const POLL: Duration = Duration::from_millis(100);
/// Times go on while nothing is sent.
const REDRAW: Duration = Duration::from_secs(1);

/// Restores the terminal when dropped. A panic restores it earlier, by the hook of ratatui, so that its
/// message is readable.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Draws the states of a run until the user leaves or the run ends.
///
/// # Errors
/// The run sent no state, or the terminal failed.
pub fn show(followed: &Followed, interrupt: &Interrupt, paint: Paint) -> Result<Ending> {
    let _restored = Restored;
    let mut terminal = ratatui::try_init().context("preparing the terminal")?;
    let mut last: Option<Box<State>> = None;
    let mut drawn_at: Option<Instant> = None;
    while !interrupt.is_set() {
        let mut is_new = drawn_at.is_none_or(|at| at.elapsed() >= REDRAW);
        while let Some(news) = followed.news(Duration::ZERO)? {
            match news {
                News::State(state) => (last, is_new) = (Some(state), true),
                News::End => return Ok(Ending::Over(last)),
            }
        }
        if let Some(state) = last.as_ref().filter(|_| is_new) {
            let shown = Shown { state, now_ms: now_ms(), paint };
            terminal.draw(|frame| view::draw(frame, &shown)).context("drawing")?;
            drawn_at = Some(Instant::now());
        }
        if event::poll(POLL).context("waiting for a key")? {
            match event::read().context("reading a key")? {
                Event::Key(key) if leaves(&key) => return Ok(Ending::Left),
                // Drawn anew at once.
                Event::Resize(..) => drawn_at = None,
                _ => {}
            }
        }
    }
    Ok(Ending::Left)
}

/// `q`, Escape, or Ctrl-C, which is a key here and no signal.
fn leaves(key: &KeyEvent) -> bool {
    let is_left_by = match key.code {
        KeyCode::Char('c') => key.modifiers.contains(KeyModifiers::CONTROL),
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => true,
        _ => false,
    };
    is_left_by && key.kind == KeyEventKind::Press
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_escape_and_ctrl_c_leave() {
        let check = |code, modifiers, expect| {
            assert_eq!(leaves(&KeyEvent::new(code, modifiers)), expect, "{code:?} {modifiers:?}");
        };
        check(KeyCode::Char('q'), KeyModifiers::NONE, true);
        check(KeyCode::Esc, KeyModifiers::NONE, true);
        check(KeyCode::Char('c'), KeyModifiers::CONTROL, true);
        check(KeyCode::Char('c'), KeyModifiers::NONE, false);
        check(KeyCode::Enter, KeyModifiers::NONE, false);
    }
}
