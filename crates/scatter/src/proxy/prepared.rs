//! Statements that a client prepared: their texts and what it sent for their parameters. A statement is executed as its text with
//! its values.

use std::collections::BTreeMap;

use mysql_common::io::ParseBuf;

use super::fault::Fault;
use super::parameters::{self, LongData, Reading, Type};
use super::statement::Place;

/// Most statements of one client, as in MySQL.
const STATEMENTS_MOST: usize = 16_382;
/// Most bytes of values in pieces, of all statements of a client.
const LONG_DATA_BYTES: usize = 64 << 20;

#[derive(Debug, Default)]
pub(super) struct Prepared {
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
}

impl Prepared {
    /// # Errors
    /// There are too many.
    pub(super) fn add(&mut self, text: String, places: Vec<Place>) -> Result<u32, Fault> {
        if self.statements.len() >= STATEMENTS_MOST {
            return Err(Fault::new(1461, b"42000", "Can't create more prepared statements"));
        }
        self.last = self.last.wrapping_add(1).max(1);
        let entry = Entry { text, places, types: Vec::new(), long_data: LongData::new(), fault: None };
        self.statements.insert(self.last, entry);
        Ok(self.last)
    }

    pub(super) fn clear(&mut self) {
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

    /// The text of COM_STMT_EXECUTE with its values. What the client sent in pieces is used up.
    pub(super) fn filled(&mut self, payload: &[u8], reading: Reading<'_>) -> Result<String, Fault> {
        let (id, rest) = parameters::statement_id(payload)?;
        let entry = self.find(id, "mysqld_stmt_execute")?;
        let long_data = std::mem::take(&mut entry.long_data);
        if let Some(fault) = entry.fault.take() {
            return Err(fault);
        }
        // The kind of cursor and a count: all rows are sent at once.
        let rest = rest.get(5..).ok_or_else(Fault::malformed)?;
        let values = parameters::read(rest, entry.places.len(), &mut entry.types, &long_data)?;
        parameters::fill(&entry.text, &entry.places, &values, reading)
    }

    /// COM_STMT_SEND_LONG_DATA.
    pub(super) fn take_piece(&mut self, payload: &[u8]) {
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

    /// COM_STMT_RESET: forgets the pieces.
    pub(super) fn reset(&mut self, payload: &[u8]) -> Result<(), Fault> {
        let (id, _) = parameters::statement_id(payload)?;
        let entry = self.find(id, "mysqld_stmt_reset")?;
        entry.long_data.clear();
        entry.fault = None;
        Ok(())
    }

    /// COM_STMT_CLOSE.
    pub(super) fn close(&mut self, payload: &[u8]) {
        if let Ok((id, _)) = parameters::statement_id(payload) {
            self.statements.remove(&id);
        }
    }

    /// # Errors
    /// There is no such statement, or no cursor: none is ever opened.
    pub(super) fn fetch(&mut self, payload: &[u8]) -> Result<(), Fault> {
        let (id, _) = parameters::statement_id(payload)?;
        self.find(id, "mysqld_stmt_fetch")?;
        Err(Fault::new(1421, b"HY000", format!("The statement ({id}) has no open cursor.")))
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
        assert_eq!(prepared.filled(&execute(id), READING).unwrap(), "SELECT 'abc'");
        assert_eq!(prepared.filled(&execute(id), READING).unwrap(), "SELECT 'x'");
        prepared.take_piece(&[&id[..], &[9, 0], b"x"].concat());
        assert_eq!(code(prepared.filled(&execute(id), READING)), Some(1210));
        assert_eq!(prepared.filled(&execute(id), READING).unwrap(), "SELECT 'x'");
    }

    #[test]
    fn the_types_are_named_once() {
        let (mut prepared, id) = one();
        let again = [&id[..], &[0, 1, 0, 0, 0, 0, 0, 1, b'y']].concat();
        assert!(prepared.filled(&again, READING).is_err());
        prepared.filled(&execute(id), READING).unwrap();
        assert_eq!(prepared.filled(&again, READING).unwrap(), "SELECT 'y'");
    }

    #[test]
    fn a_statement_that_is_closed_is_unknown() {
        let (mut prepared, id) = one();
        assert_eq!(code(prepared.fetch(&id)), Some(1421));
        prepared.close(&id);
        assert_eq!(code(prepared.reset(&id)), Some(1243));
        assert_eq!(code(prepared.filled(&execute(id), READING)), Some(1243));
    }
}
