//! Statements that a client prepared: their texts, what it sent for their parameters, and rows that it has not fetched yet. A
//! statement is executed as its text with its values.

mod parameters;

use std::collections::BTreeMap;

use bytes::Buf;
use mysql::Column;
use mysql_common::io::ParseBuf;

use self::parameters::{LongData, Type};
pub(in crate::proxy) use self::parameters::{Reading, statement_id};
use crate::execute::Answer;
use crate::proxy::fault::Fault;
use crate::proxy::statement::Place;

/// Most statements of one client, as in MySQL.
const STATEMENTS_MOST: usize = 16_382;
/// Most bytes of values in pieces, of all statements of a client.
const LONG_DATA_BYTES: usize = 64 << 20;

#[derive(Debug, Default)]
pub(in crate::proxy) struct Prepared {
    statements: BTreeMap<u32, Entry>,
    last: u32,
}

#[derive(Debug)]
struct Entry {
    text: String,
    places: Vec<Place>,
    types: Vec<Type>,
    long_data: LongData,
    /// A piece that has no place, which is told when the statement is executed: a piece has no answer.
    fault: Option<Fault>,
    cursor: Option<Cursor>,
}

/// The rows of a result that its client fetches some at a time.
#[derive(Debug)]
struct Cursor {
    columns: Vec<Column>,
    rows: std::vec::IntoIter<Vec<Option<Vec<u8>>>>,
}

/// Some rows of a result.
#[derive(Debug)]
pub(in crate::proxy) struct Fetched {
    pub(in crate::proxy) columns: Vec<Column>,
    pub(in crate::proxy) rows: Vec<Vec<Option<Vec<u8>>>>,
    pub(in crate::proxy) are_last: bool,
}

/// A statement with its values.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::proxy) struct Filled {
    pub(in crate::proxy) id: u32,
    pub(in crate::proxy) text: String,
    /// The client wants to fetch the rows.
    pub(in crate::proxy) wants_cursor: bool,
}

impl Prepared {
    /// # Errors
    /// There are too many.
    pub(in crate::proxy) fn add(&mut self, text: String, places: Vec<Place>) -> Result<u32, Fault> {
        if self.statements.len() >= STATEMENTS_MOST {
            return Err(Fault::new(1461, b"42000", "Can't create more prepared statements"));
        }
        self.last = self.last.wrapping_add(1).max(1);
        let entry =
            Entry { text, places, types: Vec::new(), long_data: LongData::new(), fault: None, cursor: None };
        self.statements.insert(self.last, entry);
        Ok(self.last)
    }

    pub(in crate::proxy) fn clear(&mut self) {
        self.statements.clear();
    }

    fn find(&mut self, id: u32, command: &str) -> Result<&mut Entry, Fault> {
        self.statements.get_mut(&id).ok_or_else(|| {
            Fault::new(
                1243,
                b"HY000",
                format!("Unknown prepared statement handler ({id}) given to {command}"),
            )
        })
    }

    /// The statement of COM_STMT_EXECUTE. What the client sent in pieces is used up, and a cursor is closed.
    pub(in crate::proxy) fn filled(&mut self, payload: &[u8], reading: Reading<'_>) -> Result<Filled, Fault> {
        let (id, rest) = parameters::statement_id(payload)?;
        let entry = self.find(id, "mysqld_stmt_execute")?;
        entry.cursor = None;
        let long_data = std::mem::take(&mut entry.long_data);
        if let Some(fault) = entry.fault.take() {
            return Err(fault);
        }
        // The kind of cursor, and a count.
        let (head, rest) = rest.split_at_checked(5).ok_or_else(Fault::malformed)?;
        let wants_cursor = head[0] != 0;
        let values = parameters::read(rest, entry.places.len(), &mut entry.types, &long_data)?;
        let text = parameters::fill(&entry.text, &entry.places, &values, reading)?;
        Ok(Filled { id, text, wants_cursor })
    }

    /// Keeps the rows of a statement for its client.
    pub(in crate::proxy) fn open(&mut self, id: u32, answer: Answer) {
        if let Some(entry) = self.statements.get_mut(&id) {
            entry.cursor = Some(Cursor { columns: answer.columns, rows: answer.rows.into_iter() });
        }
    }

    /// COM_STMT_SEND_LONG_DATA.
    pub(in crate::proxy) fn take_piece(&mut self, payload: &[u8]) {
        let held: usize =
            self.statements.values().flat_map(|entry| entry.long_data.values()).map(Vec::len).sum();
        let Ok((id, rest)) = parameters::statement_id(payload) else { return };
        let Some(entry) = self.statements.get_mut(&id) else { return };
        let mut rest = ParseBuf(rest);
        let index = rest.checked_eat_u16_le();
        match index.filter(|index| usize::from(*index) < entry.places.len()) {
            Some(_) if held + rest.0.len() > LONG_DATA_BYTES => {
                let words = "Got a packet bigger than 'max_allowed_packet' bytes";
                entry.fault = Some(Fault::new(1153, b"08S01", words));
            }
            Some(index) => entry.long_data.entry(index).or_default().extend_from_slice(rest.0),
            None => {
                let words = "Incorrect arguments to mysqld_stmt_send_long_data";
                entry.fault = Some(Fault::new(1210, b"HY000", words));
            }
        }
    }

    /// COM_STMT_RESET: forgets the pieces and the rows.
    pub(in crate::proxy) fn reset(&mut self, payload: &[u8]) -> Result<(), Fault> {
        let (id, _) = parameters::statement_id(payload)?;
        let entry = self.find(id, "mysqld_stmt_reset")?;
        entry.long_data.clear();
        entry.fault = None;
        entry.cursor = None;
        Ok(())
    }

    /// COM_STMT_CLOSE.
    pub(in crate::proxy) fn close(&mut self, payload: &[u8]) {
        if let Ok((id, _)) = parameters::statement_id(payload) {
            self.statements.remove(&id);
        }
    }

    /// The next rows of COM_STMT_FETCH. The last ones close the cursor.
    ///
    /// # Errors
    /// There is no such statement, or it has no cursor.
    pub(in crate::proxy) fn fetch(&mut self, payload: &[u8]) -> Result<Fetched, Fault> {
        let (id, mut rest) = parameters::statement_id(payload)?;
        let count = rest.try_get_u32_le().map_err(|_| Fault::malformed())?;
        let entry = self.find(id, "mysqld_stmt_fetch")?;
        let Some(cursor) = &mut entry.cursor else {
            return Err(Fault::new(1421, b"HY000", format!("The statement ({id}) has no open cursor.")));
        };
        let rows = cursor.rows.by_ref().take(count as usize).collect();
        let are_last = cursor.rows.as_slice().is_empty();
        let columns = cursor.columns.clone();
        if are_last {
            entry.cursor = None;
        }
        Ok(Fetched { columns, rows, are_last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READING: Reading<'static> = Reading { has_escapes: true, character_set: "utf8mb4" };

    fn code<T>(result: Result<T, Fault>) -> Option<u16> {
        result.err().map(|fault| fault.code)
    }

    fn one() -> (Prepared, [u8; 4]) {
        let mut prepared = Prepared::default();
        let places = vec![Place { at: 7, is_in_limit: false }];
        let id = prepared.add("SELECT ?".to_owned(), places).unwrap();
        (prepared, id.to_le_bytes())
    }

    #[track_caller]
    fn check(prepared: &mut Prepared, payload: &[u8], expect: &str) {
        assert_eq!(prepared.filled(payload, READING).unwrap().text, expect);
    }

    /// With the types of a text.
    fn execute(id: [u8; 4]) -> Vec<u8> {
        [&id[..], &[0, 1, 0, 0, 0, 0, 1, 253, 0, 1, b'x']].concat()
    }

    #[test]
    fn a_value_in_pieces_is_used_once() {
        let (mut prepared, id) = one();
        for piece in ["ab", "c"] {
            prepared.take_piece(&[&id[..], &[0, 0], piece.as_bytes()].concat());
        }
        check(&mut prepared, &execute(id), "SELECT 'abc'");
        check(&mut prepared, &execute(id), "SELECT 'x'");
        prepared.take_piece(&[&id[..], &[9, 0], b"x"].concat());
        assert_eq!(code(prepared.filled(&execute(id), READING)), Some(1210));
        check(&mut prepared, &execute(id), "SELECT 'x'");
    }

    #[test]
    fn the_types_are_named_once() {
        let (mut prepared, id) = one();
        let again = [&id[..], &[0, 1, 0, 0, 0, 0, 0, 1, b'y']].concat();
        assert!(prepared.filled(&again, READING).is_err());
        prepared.filled(&execute(id), READING).unwrap();
        check(&mut prepared, &again, "SELECT 'y'");
    }

    #[test]
    fn a_statement_that_is_closed_is_unknown() {
        let (mut prepared, id) = one();
        prepared.close(&id);
        assert_eq!(code(prepared.reset(&id)), Some(1243));
        assert_eq!(code(prepared.filled(&execute(id), READING)), Some(1243));
    }

    #[test]
    fn rows_are_fetched_some_at_a_time() {
        let (mut prepared, id) = one();
        let fetch = [&id[..], &[2, 0, 0, 0]].concat();
        assert_eq!(code(prepared.fetch(&fetch)), Some(1421));
        let rows = vec![vec![Some(b"x".to_vec())]; 3];
        let fragments = Ok(0);
        prepared.open(
            u32::from_le_bytes(id),
            Answer { columns: Vec::new(), rows, fragments, done: crate::execute::Done::default() },
        );
        let mut fetched = || prepared.fetch(&fetch).map(|fetched| (fetched.rows.len(), fetched.are_last));
        assert_eq!((fetched(), fetched()), (Ok((2, false)), Ok((1, true))));
        assert_eq!(fetched().unwrap_err().code, 1421);
    }
}
