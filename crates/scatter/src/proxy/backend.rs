//! The servers' side of one client: the session that answers its statements, and what a new session needs to take its place.
//!
//! A session whose connection is lost is opened again before the next statement, if all that it had can be given to the new one:
//! its database and its settings. One with a transaction, a lock, a variable or a temporary table ends the client's connection.

use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use mysql::{Column, Conn};
use mysql_common::collations::{Collation, CollationId};

use super::Settings;
use super::fault::{Fault, is_lost};
use super::sessions::Connection;
use super::statement::{Kind, Statement};
use crate::execute::{Answer, Scatter};
use crate::servers::session::use_database;
use crate::split::Options;
use crate::sql::print::quoted;
use crate::sql::statements::Quoting;

/// Settings that are kept for a new session; with more of them a session cannot be opened again.
const SETTINGS_MOST: usize = 200;
/// Character sets with letters whose second byte is a quotation mark or a backslash of ASCII. The proxy would see strings end
/// where the server does not.
const UNREADABLE: [&str; 5] = ["big5", "cp932", "gb18030", "gbk", "sjis"];
/// The character set and collation of a connection that nobody asked to be another.
const USUAL_COLLATION: u16 = 45;

/// What a client asks for when it connects.
#[derive(Debug, Clone, Default)]
pub(super) struct Wishes {
    pub(super) database: Option<String>,
    /// The number of a collation.
    pub(super) collation: u16,
}

/// What the session has, as its servers told.
#[derive(Debug, Clone)]
pub(super) struct Look {
    pub(super) quoting: Quoting,
    pub(super) has_autocommit: bool,
    pub(super) character_set: String,
}

#[derive(Debug)]
pub(super) struct Backend<'a> {
    settings: &'a Settings,
    wishes: Wishes,
    scatter: Option<Scatter>,
    pub(super) look: Look,
    pub(super) is_in_transaction: bool,
    /// The session has what no other can be given.
    is_private: bool,
    /// Statements that give another session the same settings.
    kept: Vec<String>,
    /// Describes statements that are prepared.
    describing: Option<Conn>,
}

impl<'a> Backend<'a> {
    pub(super) fn open(settings: &'a Settings, wishes: Wishes) -> Result<Backend<'a>> {
        let look =
            Look { quoting: Quoting::USUAL, has_autocommit: true, character_set: "utf8mb4".to_owned() };
        let mut backend = Backend {
            settings,
            wishes,
            scatter: None,
            look,
            is_in_transaction: false,
            is_private: false,
            kept: Vec::new(),
            describing: None,
        };
        backend.reopen()?;
        Ok(backend)
    }

    /// A session with the database and the settings of the one before.
    fn reopen(&mut self) -> Result<()> {
        self.close();
        // Every client has its own, and most are idle.
        let options = Options { keeps_connections: false, ..self.settings.options };
        let mut scatter = Scatter::connect(self.settings.cluster.clone(), options)?;
        set_names(self.wishes.collation, |statement| scatter.run(statement).map(drop))?;
        if let Some(database) = &self.wishes.database {
            scatter.run(&format!("USE {}", quoted(database)))?;
        }
        for statement in &self.kept {
            scatter.run(statement)?;
        }
        self.look = look(&mut scatter)?;
        self.scatter = Some(scatter);
        Ok(())
    }

    fn close(&mut self) {
        self.scatter = None;
        self.describing = None;
    }

    /// As after COM_RESET_CONNECTION: the database stays, all else is as it was at first.
    pub(super) fn reset(&mut self) -> Result<()> {
        self.kept.clear();
        self.is_private = false;
        self.is_in_transaction = false;
        self.reopen()
    }

    /// Whether the session is gone with something that a new one cannot be given.
    pub(super) fn is_over(&self) -> bool {
        self.scatter.is_none() && (self.is_private || self.is_in_transaction)
    }

    pub(super) fn run(&mut self, connection: &Connection, statement: &Statement<'_>) -> Result<Answer> {
        let was_open = self.scatter.is_some();
        let answer = match self.try_to_run(connection, statement.text) {
            Err(error) if is_lost(&error) => {
                self.close();
                // What writes may have been done.
                let is_harmless = !matches!(statement.kind, Kind::Write(_) | Kind::End { .. });
                if !was_open || !is_harmless || self.is_over() || connection.is_killed() {
                    return Err(error);
                }
                self.try_to_run(connection, statement.text)
            }
            other => other,
        };
        let noted = answer.and_then(|answer| self.note(statement).map(|()| answer));
        if noted.as_ref().is_err_and(is_lost) {
            self.close();
        }
        noted
    }

    fn try_to_run(&mut self, connection: &Connection, text: &str) -> Result<Answer> {
        if self.scatter.is_none() {
            self.reopen()?;
        }
        let scatter = self.scatter.as_mut().context("a session is open")?;
        let _running = connection.begin(scatter.killer())?;
        scatter.run(text)
    }

    /// Keeps in mind what a statement did to its session.
    fn note(&mut self, statement: &Statement<'_>) -> Result<()> {
        self.is_private |= statement.is_private;
        match &statement.kind {
            Kind::Begin => self.is_in_transaction = true,
            Kind::End { stays } => self.is_in_transaction &= stays,
            Kind::Use(database) => {
                self.wishes.database = Some(database.clone());
                self.describing = None;
            }
            Kind::Set => self.note_setting(statement.text)?,
            Kind::Write(word) if is_own_transaction(word) => self.is_in_transaction = false,
            Kind::Read | Kind::Write(_) => self.is_in_transaction |= !self.look.has_autocommit,
            Kind::Kill { .. } | Kind::Savepoint => {}
        }
        Ok(())
    }

    fn note_setting(&mut self, text: &str) -> Result<()> {
        self.describing = None;
        let Some(scatter) = &mut self.scatter else { return Ok(()) };
        let look = look(scatter)?;
        if UNREADABLE.contains(&look.character_set.as_str()) {
            scatter.run(&format!("SET character_set_client = {}", self.look.character_set))?;
            let words = format!(
                "Variable 'character_set_client' can't be set to the value of '{}'",
                look.character_set
            );
            return Err(Fault::new(1231, b"42000", words).into());
        }
        // To turn autocommit on ends a transaction.
        self.is_in_transaction &= !look.has_autocommit || self.look.has_autocommit;
        self.look = look;
        self.kept.retain(|other| other != text);
        self.kept.push(text.to_owned());
        self.is_private |= self.kept.len() > SETTINGS_MOST;
        Ok(())
    }

    /// The number of parameters and the columns of a statement.
    ///
    /// # Errors
    /// The server's words about the statement.
    pub(super) fn describe(&mut self, statement: &Statement<'_>) -> Result<(usize, Vec<Column>)> {
        match self.try_to_describe(statement.text) {
            Err(error) if is_lost(&error) => {
                self.describing = None;
                self.try_to_describe(statement.text)
            }
            // It may read what only its own session has, such as a temporary table.
            Err(_) if self.is_private => Ok((statement.places.len(), Vec::new())),
            other => other,
        }
    }

    fn try_to_describe(&mut self, text: &str) -> Result<(usize, Vec<Column>)> {
        let connection = match &mut self.describing {
            Some(connection) => connection,
            None => {
                let mut connection = self.settings.cluster.servers[0].connect()?;
                set_names(self.wishes.collation, |statement| Ok(connection.query_drop(statement)?))?;
                if let Some(database) = &self.wishes.database {
                    use_database(&mut connection, database)?;
                }
                for statement in &self.kept {
                    connection.query_drop(statement)?;
                }
                self.describing.insert(connection)
            }
        };
        let described = connection.prep(text)?;
        let found = (usize::from(described.num_params()), described.columns().to_vec());
        connection.close(described)?;
        Ok(found)
    }
}

/// Whether a statement commits what was before it, and itself.
fn is_own_transaction(word: &str) -> bool {
    matches!(
        word,
        "ALTER"
            | "ANALYZE"
            | "CREATE"
            | "DROP"
            | "FLUSH"
            | "GRANT"
            | "LOCK"
            | "OPTIMIZE"
            | "RENAME"
            | "REVOKE"
            | "TRUNCATE"
    )
}

/// The client's collation, or its character set if the server does not know the collation.
fn set_names(number: u16, mut run: impl FnMut(&str) -> Result<()>) -> Result<()> {
    let id = CollationId::from(number);
    if number == USUAL_COLLATION || id == CollationId::UNKNOWN_COLLATION_ID {
        return Ok(());
    }
    let collation = Collation::resolve(id);
    let (set, name) = (collation.charset(), collation.collation());
    if UNREADABLE.contains(&set) {
        return Ok(());
    }
    match run(&format!("SET NAMES {set} COLLATE {name}")) {
        Err(error) if !is_lost(&error) => run(&format!("SET NAMES {set}")),
        other => other,
    }
}

fn look(scatter: &mut Scatter) -> Result<Look> {
    let answer = scatter.run(
        "SELECT FIND_IN_SET('NO_BACKSLASH_ESCAPES', @@SESSION.sql_mode) > 0, \
         FIND_IN_SET('ANSI_QUOTES', @@SESSION.sql_mode) > 0, @@SESSION.autocommit, \
         @@SESSION.character_set_client",
    )?;
    let values: Vec<String> = answer
        .rows
        .into_iter()
        .flatten()
        .map(|value| String::from_utf8(value.unwrap_or_default()))
        .collect::<Result<_, _>>()?;
    let [plain, ansi, autocommit, character_set] = values.as_slice() else {
        anyhow::bail!("the server does not tell the settings of its session");
    };
    let is_set = |value: &String| match value.as_str() {
        "0" => Ok(false),
        "1" => Ok(true),
        other => Err(anyhow::anyhow!("{other:?} is no value of a setting")),
    };
    Ok(Look {
        quoting: Quoting { has_escapes: !is_set(plain)?, has_ansi_quotes: is_set(ansi)? },
        has_autocommit: is_set(autocommit)?,
        character_set: character_set.clone(),
    })
}
