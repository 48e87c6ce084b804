//! What a client is told of a failure: a code and an SQL state of MySQL's, and words.

use std::fmt::{self, Display, Formatter};
use std::io;

use spindle_base::Mistake;

/// Connections that the server ended: it shuts down, somebody killed it, it was idle for too long.
const ENDED_BY_THE_SERVER: [u16; 3] = [1053, 1927, 4031];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) code: u16,
    pub(super) state: [u8; 5],
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(code: u16, state: &[u8; 5], message: impl Into<String>) -> Fault {
        Fault { code, state: *state, message: message.into() }
    }

    /// A server's own error unchanged; what several servers cannot answer as not supported (1235); a lost connection as MySQL
    /// tells of those to a foreign data source (1430).
    pub(super) fn of(error: &anyhow::Error) -> Fault {
        if let Some(fault) = error.downcast_ref::<Fault>() {
            return fault.clone();
        }
        if let Some(mistake) = error.downcast_ref::<Mistake>() {
            return Fault::new(1235, b"42000", mistake.to_string());
        }
        let causes: Vec<&mysql::Error> = error.chain().filter_map(|cause| cause.downcast_ref()).collect();
        for cause in &causes {
            if let mysql::Error::MySqlError(error) = cause {
                let state = error.state.as_bytes().try_into().unwrap_or(*b"HY000");
                return Fault { code: error.code, state, message: error.message.clone() };
            }
        }
        match causes.is_empty() {
            true => Fault::new(1105, b"HY000", format!("{error:#}")),
            false => Fault::new(1430, b"HY000", format!("{error:#}")),
        }
    }

    pub(super) fn unknown_command() -> Fault {
        Fault::new(1047, b"08S01", "Unknown command")
    }

    /// A packet that is no packet of the protocol.
    pub(super) fn malformed() -> Fault {
        Fault::new(1835, b"HY000", "Malformed communication packet.")
    }
}

impl Display for Fault {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "error {} ({}): {}", self.code, String::from_utf8_lossy(&self.state), self.message)
    }
}

impl std::error::Error for Fault {}

/// Whether the connection to a server is gone.
pub(super) fn is_lost(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|cause| cause.downcast_ref::<mysql::Error>()).any(|cause| match cause {
        mysql::Error::MySqlError(error) => ENDED_BY_THE_SERVER.contains(&error.code),
        other => other.is_connectivity_error(),
    })
}

/// Why a client's connection ends.
#[derive(Debug)]
pub(super) enum Broken {
    /// The client left, or its stream failed.
    Stream,
    /// The client is told why.
    Told(Fault),
}

impl Broken {
    pub(super) fn left() -> Broken {
        Broken::Stream
    }

    pub(super) fn bad_handshake() -> Broken {
        Broken::Told(Fault::new(1043, b"08S01", "Bad handshake"))
    }
}

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Broken {
        Broken::Stream
    }
}

impl From<Fault> for Broken {
    fn from(fault: Fault) -> Broken {
        Broken::Told(fault)
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    fn of_server(code: u16) -> anyhow::Error {
        let error = mysql::MySqlError { state: "42S02".to_owned(), message: "no table".to_owned(), code };
        Err::<(), _>(mysql::Error::MySqlError(error)).context("a fragment").unwrap_err()
    }

    #[test]
    fn an_error_of_a_server_is_told_unchanged() {
        assert_eq!(Fault::of(&of_server(1146)), Fault::new(1146, b"42S02", "no table"));
        assert_eq!(Fault::of(&anyhow::anyhow!("why")), Fault::new(1105, b"HY000", "why"));
        assert_eq!(Fault::of(&Mistake::new("why").into()), Fault::new(1235, b"42000", "why"));
    }

    #[test]
    fn a_connection_that_the_server_ended_is_lost() {
        let broken = anyhow::Error::new(mysql::Error::IoError(io::ErrorKind::BrokenPipe.into()));
        assert!(is_lost(&broken) && is_lost(&of_server(1927)) && !is_lost(&of_server(1146)));
        assert_eq!(Fault::of(&broken).code, 1430);
    }
}
