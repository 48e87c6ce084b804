//! One client: its commands, each with its answer.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mysql_common::constants::{Command, StatusFlags};

use super::Shared;
use super::backend::Backend;
use super::fault::{Broken, Fault};
use super::handshake::{self, Claim, Greeting, Nonce};
use super::prepared::{Prepared, Reading, statement_id};
use super::sessions::Connection;
use super::statement::{Kind, Statement, as_text};
use super::wire::{Done, Form, Packets, Wire, error_packet};
use crate::execute::Answer;
use crate::sql::print::quoted;

/// Says why a statement that writes is not sent on.
const READS_ONLY: &str =
    "The query splitter is running without --writable, so it sends no statement on that is not known to read";
const SET_BY_QUERY: &str =
    "SET with a query asks one server only, and the query splitter has several that have parts of the answer";

#[derive(Debug)]
struct Client<'a> {
    shared: &'a Shared,
    connection: &'a Arc<Connection>,
    host: Option<IpAddr>,
    wire: Wire,
    backend: Backend<'a>,
    prepared: Prepared,
    user: String,
    nonce: Nonce,
}

/// What the loop of commands does next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Command,
    End,
}

/// Serves a client from its greeting to its end.
pub(super) fn serve(
    shared: &Shared,
    connection: &Arc<Connection>,
    mut packets: Packets,
    host: Option<IpAddr>,
) {
    let served = match meet(shared, connection, &mut packets, host) {
        Ok((claim, nonce, backend)) => {
            let wire = Wire {
                packets,
                capabilities: claim.capabilities,
                status: StatusFlags::SERVER_STATUS_AUTOCOMMIT,
            };
            let prepared = Prepared::default();
            let user = claim.user;
            let mut client = Client { shared, connection, host, wire, backend, prepared, user, nonce };
            let served = client.commands();
            packets = client.wire.packets;
            served
        }
        Err(broken) => Err(broken),
    };
    if let Err(Broken::Told(fault)) = served {
        // It may be gone.
        let _ = packets.put(&error_packet(&fault)).and_then(|()| packets.send());
    }
}

/// Learns who the client is, and opens its session.
fn meet<'a>(
    shared: &'a Shared,
    connection: &Connection,
    packets: &mut Packets,
    host: Option<IpAddr>,
) -> Result<(Claim, Nonce, Backend<'a>), Broken> {
    let greeting =
        Greeting { version: &shared.version, id: connection.id, tls: shared.settings.tls.as_ref() };
    let nonce = handshake::nonce()?;
    let claim = handshake::greet(packets, &greeting, &nonce)?;
    handshake::authenticate(packets, &shared.settings.users, &claim, &nonce, host)?;
    packets.trust()?;
    connection.set_user(&claim.user);
    let backend = Backend::open(&shared.settings, claim.wishes.clone()).map_err(|error| Fault::of(&error))?;
    Ok((claim, nonce, backend))
}

impl Client<'_> {
    fn commands(&mut self) -> Result<(), Broken> {
        self.tell_status();
        self.wire.ok(Done::default())?;
        loop {
            self.wire.packets.begin();
            let Some(payload) = self.wire.packets.read()? else { return Ok(()) };
            let Some((command, payload)) = payload.split_first() else {
                return Err(Broken::Told(Fault::malformed()));
            };
            if self.command(*command, payload)? == Next::End {
                return Ok(());
            }
            if self.backend.is_over() || self.connection.is_ending() {
                return Ok(());
            }
        }
    }

    fn command(&mut self, command: u8, payload: &[u8]) -> Result<Next, Broken> {
        const QUIT: u8 = Command::COM_QUIT as u8;
        const INIT_DB: u8 = Command::COM_INIT_DB as u8;
        const QUERY: u8 = Command::COM_QUERY as u8;
        const STATISTICS: u8 = Command::COM_STATISTICS as u8;
        const KILL: u8 = Command::COM_PROCESS_KILL as u8;
        const PING: u8 = Command::COM_PING as u8;
        const CHANGE_USER: u8 = Command::COM_CHANGE_USER as u8;
        const PREPARE: u8 = Command::COM_STMT_PREPARE as u8;
        const EXECUTE: u8 = Command::COM_STMT_EXECUTE as u8;
        const LONG_DATA: u8 = Command::COM_STMT_SEND_LONG_DATA as u8;
        const CLOSE: u8 = Command::COM_STMT_CLOSE as u8;
        const RESET: u8 = Command::COM_STMT_RESET as u8;
        const SET_OPTION: u8 = Command::COM_SET_OPTION as u8;
        const FETCH: u8 = Command::COM_STMT_FETCH as u8;
        const RESET_CONNECTION: u8 = Command::COM_RESET_CONNECTION as u8;
        // A cursor is told of in the answers that are about it.
        self.tell_status();
        match command {
            QUIT => return Ok(Next::End),
            INIT_DB => {
                let name = String::from_utf8_lossy(payload);
                self.query(format!("USE {}", quoted(&name)).as_bytes(), Form::Text)?;
            }
            QUERY => self.query(payload, Form::Text)?,
            STATISTICS => self.wire.line(&self.shared.statistics())?,
            KILL => self.kill_by_packet(payload)?,
            PING => self.wire.ok(Done::default())?,
            CHANGE_USER => self.change_user(payload)?,
            PREPARE => self.prepare(payload)?,
            EXECUTE => self.execute(payload)?,
            LONG_DATA => self.prepared.take_piece(payload),
            CLOSE => self.prepared.close(payload),
            RESET => {
                let reset = self.prepared.reset(payload);
                self.answer_done(reset)?;
            }
            SET_OPTION => self.set_option(payload)?,
            FETCH => self.fetch(payload)?,
            RESET_CONNECTION => self.reset()?,
            _ => self.wire.fault(&Fault::unknown_command())?,
        }
        Ok(Next::Command)
    }

    fn answer_done(&mut self, result: Result<(), Fault>) -> io::Result<()> {
        match result {
            Ok(()) => self.wire.ok(Done::default()),
            Err(fault) => self.wire.fault(&fault),
        }
    }

    /// Of the session, in the next answer.
    fn tell_status(&mut self) {
        let mut status = StatusFlags::empty();
        status.set(StatusFlags::SERVER_STATUS_AUTOCOMMIT, self.backend.look.has_autocommit);
        status.set(StatusFlags::SERVER_STATUS_IN_TRANS, self.backend.is_in_transaction);
        status.set(StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES, !self.backend.look.quoting.has_escapes);
        status.set(StatusFlags::SERVER_STATUS_ANSI_QUOTES, self.backend.look.quoting.has_ansi_quotes);
        self.wire.status = status;
    }

    /// Answers a statement.
    fn query(&mut self, statement: &[u8], form: Form) -> io::Result<()> {
        match self.answer(statement) {
            Ok(None) => self.wire.ok(Done::default()),
            Ok(Some(answer)) if answer.columns.is_empty() => self.wire.ok(done(&answer)),
            Ok(Some(answer)) => self.wire.rows(&answer.columns, &answer.rows, form),
            Err(fault) => self.wire.fault(&fault),
        }
    }

    /// `None` for a statement that no server needs to see.
    fn answer(&mut self, statement: &[u8]) -> Result<Option<Answer>, Fault> {
        self.shared.connections.statements.fetch_add(1, Ordering::Relaxed);
        let answered = self.try_to_answer(statement);
        self.tell_status();
        answered
    }

    fn try_to_answer(&mut self, statement: &[u8]) -> Result<Option<Answer>, Fault> {
        let look = &self.backend.look;
        let text = as_text(statement, look.quoting, &look.character_set)?;
        let statement = Statement::read(&text, look.quoting)?;
        self.check(&statement)?;
        match statement.kind {
            Kind::Kill { id, is_query } => {
                self.shared.connections.kill(id, is_query, &self.user)?;
                return Ok(None);
            }
            // It ends nothing.
            Kind::End { stays: false }
                if !self.backend.is_in_transaction && self.backend.look.has_autocommit =>
            {
                return Ok(None);
            }
            _ => {}
        }
        self.backend.run(self.connection, &statement).map(Some).map_err(|error| Fault::of(&error))
    }

    fn check(&self, statement: &Statement<'_>) -> Result<(), Fault> {
        let settings = &self.shared.settings;
        let is_write = matches!(statement.kind, Kind::Write(_));
        match settings.cluster.servers.len() {
            2.. if statement.is_set_by_query => Err(Fault::new(1235, b"42000", SET_BY_QUERY)),
            _ if is_write && !settings.is_writable => Err(Fault::new(1290, b"HY000", READS_ONLY)),
            _ => Ok(()),
        }
    }

    fn prepare(&mut self, payload: &[u8]) -> io::Result<()> {
        let prepared = self.describe(payload);
        match prepared {
            Ok((id, parameters, columns)) => self.wire.prepared(id, parameters, &columns),
            Err(fault) => self.wire.fault(&fault),
        }
    }

    /// The number of a new statement, that of its parameters, and its columns.
    fn describe(&mut self, payload: &[u8]) -> Result<(u32, u16, Vec<mysql::Column>), Fault> {
        let look = &self.backend.look;
        let text = as_text(payload, look.quoting, &look.character_set)?;
        let statement = Statement::read(&text, look.quoting)?;
        self.check(&statement)?;
        let (count, columns) = match statement.kind {
            Kind::Kill { .. } => (0, Vec::new()),
            _ => self.backend.describe(&statement).map_err(|error| Fault::of(&error))?,
        };
        if count != statement.places.len() {
            let words = format!(
                "the server finds {count} parameters in the statement, and the query splitter {}",
                statement.places.len()
            );
            return Err(Fault::new(1210, b"HY000", words));
        }
        let parameters = u16::try_from(count)
            .map_err(|_| Fault::new(1390, b"HY000", "Prepared statement contains too many placeholders"))?;
        let id = self.prepared.add(statement.text.to_owned(), statement.places)?;
        Ok((id, parameters, columns))
    }

    fn execute(&mut self, payload: &[u8]) -> io::Result<()> {
        let look = &self.backend.look;
        let reading = Reading { has_escapes: look.quoting.has_escapes, character_set: &look.character_set };
        let filled = match self.prepared.filled(payload, reading) {
            Ok(filled) => filled,
            Err(fault) => return self.wire.fault(&fault),
        };
        if !filled.wants_cursor {
            return self.query(filled.text.as_bytes(), Form::Binary);
        }
        match self.answer(filled.text.as_bytes()) {
            Ok(None) => self.wire.ok(Done::default()),
            Ok(Some(answer)) if answer.columns.is_empty() => self.wire.ok(done(&answer)),
            Ok(Some(answer)) => {
                self.wire.cursor(&answer.columns)?;
                self.prepared.open(filled.id, answer);
                Ok(())
            }
            Err(fault) => self.wire.fault(&fault),
        }
    }

    fn fetch(&mut self, payload: &[u8]) -> io::Result<()> {
        match self.prepared.fetch(payload) {
            Ok(fetched) => self.wire.fetched(&fetched),
            Err(fault) => self.wire.fault(&fault),
        }
    }

    fn kill_by_packet(&mut self, payload: &[u8]) -> io::Result<()> {
        let killed =
            statement_id(payload).and_then(|(id, _)| self.shared.connections.kill(id, false, &self.user));
        self.answer_done(killed)
    }

    /// Of the two options, the one that the proxy does not have may be turned off.
    fn set_option(&mut self, payload: &[u8]) -> io::Result<()> {
        match payload {
            [1, 0] => self.wire.end(),
            _ => {
                let words = "several statements in one command are not answered";
                self.wire.fault(&Fault::new(1235, b"42000", words))
            }
        }
    }

    fn reset(&mut self) -> Result<(), Broken> {
        self.prepared.clear();
        self.backend.reset().map_err(|error| Fault::of(&error))?;
        self.tell_status();
        Ok(self.wire.ok(Done::default())?)
    }

    fn change_user(&mut self, payload: &[u8]) -> Result<(), Broken> {
        let claim = handshake::change_user(payload, self.wire.capabilities)?;
        let users = &self.shared.settings.users;
        handshake::authenticate(&mut self.wire.packets, users, &claim, &self.nonce, self.host)?;
        self.prepared.clear();
        self.connection.set_user(&claim.user);
        self.user = claim.user;
        self.backend =
            Backend::open(&self.shared.settings, claim.wishes).map_err(|error| Fault::of(&error))?;
        self.tell_status();
        Ok(self.wire.ok(Done::default())?)
    }
}

/// What an answer without columns tells.
fn done(answer: &Answer) -> Done {
    let crate::execute::Done { affected_rows, last_insert_id } = answer.done;
    Done { affected_rows, last_insert_id }
}
