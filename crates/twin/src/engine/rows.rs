//! Rows that many transactions change: one holds a row until it has committed, others wait in line.

use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
}

#[derive(Debug, Clone, Default)]
struct Row {
    is_held: bool,
    waiting: VecDeque<usize>,
}

impl Rows {
    pub(super) fn new(count: u64) -> Rows {
        Rows { rows: vec![Row::default(); usize::try_from(count).expect("a number of rows in memory")] }
    }

    /// Whether the terminal has the row now; otherwise it waits in line.
    pub(super) fn take(&mut self, row: usize, terminal: usize) -> bool {
        let row = &mut self.rows[row];
        if row.is_held {
            row.waiting.push_back(terminal);
            return false;
        }
        row.is_held = true;
        true
    }

    /// The terminal that has the row next.
    pub(super) fn release(&mut self, row: usize) -> Option<usize> {
        let row = &mut self.rows[row];
        let next = row.waiting.pop_front();
        row.is_held = next.is_some();
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_goes_to_those_in_line() {
        let mut rows = Rows::new(2);
        assert_eq!([rows.take(0, 7), rows.take(0, 8), rows.take(1, 9)], [true, false, true]);
        assert_eq!([rows.release(0), rows.release(0)], [Some(8), None]);
        assert!(rows.take(0, 7));
    }
}
