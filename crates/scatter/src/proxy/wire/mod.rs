//! What the proxy answers: OK, errors, and results as text or binary rows. It knows packets and no statements.

mod binary;
mod packets;

use std::io;

use bytes::BufMut;
use mysql::Column;
use mysql_common::constants::{CapabilityFlags, ColumnFlags, ColumnType, StatusFlags};
use mysql_common::io::BufMutExt;

pub(in crate::proxy) use self::packets::Packets;
use crate::proxy::fault::Fault;
use crate::proxy::prepared::Fetched;
use crate::servers::BINARY;

/// Marks a NULL in a text row.
const NULL: u8 = 0xFB;
const END: u8 = 0xFE;
const ERROR: u8 = 0xFF;

/// What a statement without a result did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::proxy) struct Done {
    pub(in crate::proxy) affected_rows: u64,
    pub(in crate::proxy) last_insert_id: u64,
}

/// Rows in the form in which the client asked for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum Form {
    Text,
    Binary,
}

/// Packets to a client that has said what it understands.
#[derive(Debug)]
pub(in crate::proxy) struct Wire {
    pub(in crate::proxy) packets: Packets,
    pub(in crate::proxy) capabilities: CapabilityFlags,
    /// Of the session: told in each answer.
    pub(in crate::proxy) status: StatusFlags,
}

impl Wire {
    fn has_no_end_packets(&self) -> bool {
        self.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF)
    }

    pub(in crate::proxy) fn ok(&mut self, done: Done) -> io::Result<()> {
        self.put_done(0, done)?;
        self.packets.send()
    }

    fn put_done(&mut self, head: u8, done: Done) -> io::Result<()> {
        let mut payload = vec![head];
        payload.put_lenenc_int(done.affected_rows);
        payload.put_lenenc_int(done.last_insert_id);
        payload.put_u16_le(self.status.bits());
        payload.put_u16_le(0);
        self.packets.put(&payload)
    }

    pub(in crate::proxy) fn fault(&mut self, fault: &Fault) -> io::Result<()> {
        self.packets.put(&error_packet(fault))?;
        self.packets.send()
    }

    /// The end of the rows, or of an answer that has nothing else.
    pub(in crate::proxy) fn end(&mut self) -> io::Result<()> {
        match self.has_no_end_packets() {
            true => self.put_done(END, Done::default())?,
            false => self.put_old_end()?,
        }
        self.packets.send()
    }

    fn put_old_end(&mut self) -> io::Result<()> {
        let mut payload = vec![END];
        payload.put_u16_le(0);
        payload.put_u16_le(self.status.bits());
        self.packets.put(&payload)
    }

    fn put_definitions<'a>(&mut self, columns: impl IntoIterator<Item = &'a Column>) -> io::Result<()> {
        columns.into_iter().try_for_each(|column| self.packets.put(&definition(column)))
    }

    /// Columns that rows follow.
    fn put_columns<'a>(&mut self, columns: impl IntoIterator<Item = &'a Column>) -> io::Result<()> {
        self.put_definitions(columns)?;
        match self.has_no_end_packets() {
            true => Ok(()),
            false => self.put_old_end(),
        }
    }

    /// A result, of which each row has as many values as there are columns.
    pub(in crate::proxy) fn rows(
        &mut self,
        columns: &[Column],
        rows: &[Vec<Option<Vec<u8>>>],
        form: Form,
    ) -> io::Result<()> {
        self.put_count(columns)?;
        self.put_columns(columns)?;
        self.rows_alone(columns, rows, form)
    }

    fn put_count(&mut self, columns: &[Column]) -> io::Result<()> {
        let mut count = Vec::new();
        count.put_lenenc_int(columns.len() as u64);
        self.packets.put(&count)
    }

    /// A result whose rows the client will fetch.
    pub(in crate::proxy) fn cursor(&mut self, columns: &[Column]) -> io::Result<()> {
        self.put_count(columns)?;
        self.put_definitions(columns)?;
        self.status.insert(StatusFlags::SERVER_STATUS_CURSOR_EXISTS);
        self.end()
    }

    /// Rows that the client fetched.
    pub(in crate::proxy) fn fetched(&mut self, fetched: &Fetched) -> io::Result<()> {
        self.status.insert(StatusFlags::SERVER_STATUS_CURSOR_EXISTS);
        self.status.set(StatusFlags::SERVER_STATUS_LAST_ROW_SENT, fetched.are_last);
        self.rows_alone(&fetched.columns, &fetched.rows, Form::Binary)
    }

    fn rows_alone(
        &mut self,
        columns: &[Column],
        rows: &[Vec<Option<Vec<u8>>>],
        form: Form,
    ) -> io::Result<()> {
        for row in rows {
            let payload = match form {
                Form::Text => Ok(text_row(row)),
                Form::Binary => binary::row(columns, row),
            };
            match payload {
                Ok(payload) => self.packets.put(&payload)?,
                Err(fault) => return self.fault(&fault),
            }
        }
        self.end()
    }

    /// The answer to a statement that is prepared.
    pub(in crate::proxy) fn prepared(
        &mut self,
        id: u32,
        parameters: u16,
        columns: &[Column],
    ) -> io::Result<()> {
        let mut payload = vec![0];
        payload.put_u32_le(id);
        payload.put_u16_le(columns.len() as u16);
        payload.put_u16_le(parameters);
        payload.put_u8(0);
        payload.put_u16_le(0);
        self.packets.put(&payload)?;
        if parameters > 0 {
            let parameter = Column::new(ColumnType::MYSQL_TYPE_VAR_STRING)
                .with_name(b"?")
                .with_character_set(BINARY)
                .with_flags(ColumnFlags::BINARY_FLAG);
            self.put_columns(std::iter::repeat_n(&parameter, parameters.into()))?;
        }
        if !columns.is_empty() {
            self.put_columns(columns)?;
        }
        self.packets.send()
    }

    /// A line of text that is no result.
    pub(in crate::proxy) fn line(&mut self, text: &str) -> io::Result<()> {
        self.packets.put(text.as_bytes())?;
        self.packets.send()
    }
}

/// A column as results and prepared statements tell it. (`Column` of `mysql_common` 0.37 writes the length before the character
/// set.)
fn definition(column: &Column) -> Vec<u8> {
    let mut payload = Vec::new();
    let names = [
        b"def",
        column.schema_ref(),
        column.table_ref(),
        column.org_table_ref(),
        column.name_ref(),
        column.org_name_ref(),
    ];
    names.into_iter().for_each(|name| payload.put_lenenc_str(name));
    // The length of what follows.
    payload.put_u8(12);
    payload.put_u16_le(column.character_set());
    payload.put_u32_le(column.column_length());
    payload.put_u8(column.column_type() as u8);
    payload.put_u16_le(column.flags().bits());
    payload.put_u8(column.decimals());
    payload.put_u16_le(0);
    payload
}

/// For a client that has not said yet what it understands: without a state.
pub(in crate::proxy) fn early_error_packet(code: u16, message: &str) -> Vec<u8> {
    let mut payload = vec![ERROR];
    payload.put_u16_le(code);
    payload.put_slice(message.as_bytes());
    payload
}

pub(in crate::proxy) fn error_packet(fault: &Fault) -> Vec<u8> {
    let mut payload = vec![ERROR];
    payload.put_u16_le(fault.code);
    payload.put_u8(b'#');
    payload.put_slice(&fault.state);
    payload.put_slice(fault.message.as_bytes());
    payload
}

fn text_row(row: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut payload = Vec::with_capacity(row.iter().flatten().map(|value| value.len() + 4).sum());
    for value in row {
        match value {
            None => payload.push(NULL),
            Some(value) => payload.put_lenenc_str(value),
        }
    }
    payload
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    use mysql_common::io::ParseBuf;

    use super::*;

    /// The payloads that `write` sends to a client with these capabilities.
    fn payloads(capabilities: CapabilityFlags, write: impl FnOnce(&mut Wire)) -> Vec<Vec<u8>> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let packets = Packets::new(listener.accept().unwrap().0);
        let mut wire = Wire { packets, capabilities, status: StatusFlags::SERVER_STATUS_AUTOCOMMIT };
        write(&mut wire);
        drop(wire);
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).unwrap();
        let mut rest = bytes.as_slice();
        let mut found = Vec::new();
        while let [a, b, c, number, others @ ..] = rest {
            assert_eq!(usize::from(*number), found.len());
            let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
            found.push(others[..length].to_vec());
            rest = &others[length..];
        }
        found
    }

    fn column() -> Column {
        Column::new(ColumnType::MYSQL_TYPE_LONG).with_name(b"a")
    }

    #[test]
    fn a_result_ends_as_the_client_understands() {
        let rows = [vec![Some(b"1".to_vec())], vec![None]];
        let write = |wire: &mut Wire| wire.rows(&[column()], &rows, Form::Text).unwrap();
        let old = payloads(CapabilityFlags::empty(), write);
        assert_eq!(old.len(), 6);
        assert_eq!([&old[0], &old[2], &old[3]], [&vec![1], &vec![END, 0, 0, 2, 0], &vec![1, b'1']]);
        assert_eq!([&old[4], &old[5]], [&vec![NULL], &vec![END, 0, 0, 2, 0]]);
        let new = payloads(CapabilityFlags::CLIENT_DEPRECATE_EOF, write);
        assert_eq!(new.len(), 5);
        assert_eq!(new[4], [END, 0, 0, 2, 0, 0, 0]);
    }

    #[test]
    fn a_column_is_read_as_it_was_written() {
        let column = Column::new(ColumnType::MYSQL_TYPE_VAR_STRING)
            .with_schema(b"s")
            .with_table(b"t")
            .with_org_table(b"o")
            .with_name(b"a")
            .with_org_name(b"b")
            .with_character_set(45)
            .with_column_length(160)
            .with_decimals(31)
            .with_flags(ColumnFlags::NOT_NULL_FLAG);
        assert_eq!(ParseBuf(&definition(&column)).parse::<Column>(()).unwrap(), column);
    }

    #[test]
    fn an_empty_result_has_columns() {
        let write = |wire: &mut Wire| wire.rows(&[column()], &[], Form::Binary).unwrap();
        assert_eq!(payloads(CapabilityFlags::empty(), write).len(), 4);
    }

    #[test]
    fn done_and_failed_are_told_in_one_packet() {
        let done = Done { affected_rows: 300, last_insert_id: 7 };
        let told = payloads(CapabilityFlags::empty(), |wire| wire.ok(done).unwrap());
        assert_eq!(told, [[0, 0xFC, 44, 1, 7, 2, 0, 0, 0]]);
        let fault = Fault::new(1047, b"08S01", "no");
        let told = payloads(CapabilityFlags::empty(), |wire| wire.fault(&fault).unwrap());
        assert_eq!(told, [b"\xFF\x17\x04#08S01no"]);
    }

    #[test]
    fn a_prepared_statement_has_parameters_and_columns() {
        let told = payloads(CapabilityFlags::empty(), |wire| wire.prepared(5, 2, &[column()]).unwrap());
        assert_eq!(told[0], [0, 5, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0]);
        assert_eq!(told.len(), 1 + 2 + 1 + 1 + 1);
    }
}
