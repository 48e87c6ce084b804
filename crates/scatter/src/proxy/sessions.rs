//! The clients that are connected, by the numbers that KILL takes, and how to end what they run.

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::fault::Fault;
use crate::execute::Killer;

/// Longest wait of a statement for an order to end the one before it, which must not end this one.
const ORDER_PATIENCE: Duration = Duration::from_secs(5);

/// One client.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: u32,
    socket: TcpStream,
    state: Mutex<State>,
    /// An order to end a statement is through.
    is_ordered: Condvar,
}

#[derive(Debug, Default)]
struct State {
    user: String,
    /// Ends the statement that runs.
    running: Option<Killer>,
    /// The statement that runs is to end.
    is_killed: bool,
    /// A thread is at it.
    is_being_killed: bool,
    /// The connection is to end.
    is_ending: bool,
}

impl Connection {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_user(&self, user: &str) {
        self.state().user = user.to_owned();
    }

    /// # Errors
    /// The connection is to end.
    pub(super) fn begin(&self, killer: Killer) -> Result<Running<'_>, Fault> {
        let waited =
            self.is_ordered.wait_timeout_while(self.state(), ORDER_PATIENCE, |state| state.is_being_killed);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_ending {
            return Err(Fault::new(1927, b"70100", "Connection was killed"));
        }
        state.running = Some(killer);
        state.is_killed = false;
        Ok(Running(self))
    }

    pub(super) fn is_ending(&self) -> bool {
        self.state().is_ending
    }

    /// Whether the statement was to end: one that did is not tried again.
    pub(super) fn is_killed(&self) -> bool {
        let state = self.state();
        state.is_killed || state.is_ending
    }

    fn kill_query(self: &Arc<Self>) {
        self.state().is_killed = true;
        self.end_statement();
    }

    fn end(self: &Arc<Self>) {
        let mut state = self.state();
        state.is_ending = true;
        state.is_killed = true;
        drop(state);
        // The thread that waits for the client's next packet wakes up. An error says that it is closed already.
        let _ = self.socket.shutdown(Shutdown::Both);
        self.end_statement();
    }

    /// Once more for a statement that has not ended: between two of its parts there is nothing to kill at the server.
    fn end_statement(self: &Arc<Self>) {
        let mut state = self.state();
        let (true, false, Some(killer)) = (state.is_killed, state.is_being_killed, state.running.clone())
        else {
            return;
        };
        state.is_being_killed = true;
        drop(state);
        let connection = Arc::clone(self);
        let spawned = thread::Builder::new().name("kill".to_owned()).spawn(move || {
            killer.kill();
            connection.note_order();
        });
        if spawned.is_err() {
            self.note_order();
        }
    }

    fn note_order(&self) {
        self.state().is_being_killed = false;
        self.is_ordered.notify_all();
    }

    /// Whether the client left while its statement runs.
    fn is_left(&self) -> bool {
        if self.state().running.is_none() {
            return false;
        }
        let mut asked = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut asked, Some(&at_once)).is_ok()
            && asked[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
    }
}

/// A statement that can be killed while this lives.
#[derive(Debug)]
pub(super) struct Running<'a>(&'a Connection);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.state().running = None;
    }
}

#[derive(Debug, Default)]
pub(super) struct Connections {
    all: Mutex<BTreeMap<u32, Arc<Connection>>>,
    accepted: AtomicU64,
    pub(super) statements: AtomicU64,
}

impl Connections {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Connection>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count(&self) -> usize {
        self.all().len()
    }

    pub(super) fn add(&self, socket: &TcpStream) -> io::Result<Arc<Connection>> {
        let id = self.accepted.fetch_add(1, Ordering::Relaxed) as u32 + 1;
        let connection = Arc::new(Connection {
            id,
            socket: socket.try_clone()?,
            state: Mutex::default(),
            is_ordered: Condvar::new(),
        });
        self.all().insert(id, Arc::clone(&connection));
        Ok(connection)
    }

    pub(super) fn remove(&self, id: u32) {
        self.all().remove(&id);
    }

    /// Ends a connection, or only the statement that it runs.
    ///
    /// # Errors
    /// There is no such connection, or another user's.
    pub(super) fn kill(&self, id: u32, is_query: bool, user: &str) -> Result<(), Fault> {
        let Some(connection) = self.all().get(&id).cloned() else {
            return Err(Fault::new(1094, b"HY000", format!("Unknown thread id: {id}")));
        };
        if connection.state().user != user {
            return Err(Fault::new(1095, b"HY000", format!("You are not owner of thread {id}")));
        }
        match is_query {
            true => connection.kill_query(),
            false => connection.end(),
        }
        Ok(())
    }

    /// Ends the statements whose clients left, and again those that were killed and go on.
    pub(super) fn watch(&self) {
        let all: Vec<Arc<Connection>> = self.all().values().cloned().collect();
        for connection in all {
            match connection.is_left() {
                true => connection.end(),
                false => connection.end_statement(),
            }
        }
    }

    pub(super) fn end_all(&self) {
        let all: Vec<Arc<Connection>> = self.all().values().cloned().collect();
        all.iter().for_each(Connection::end);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_connection_is_killed_by_its_own_user_only() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let connections = Connections::default();
        let one = connections.add(&client).unwrap();
        one.set_user("a");
        let code = |id: u32, user: &str| connections.kill(id, false, user).map_err(|fault| fault.code);
        assert_eq!((code(one.id, "b"), code(one.id + 1, "a")), (Err(1095), Err(1094)));
        assert!(!one.is_ending());
        assert_eq!(code(one.id, "a"), Ok(()));
        assert!(one.is_ending());
        connections.remove(one.id);
        assert_eq!(connections.count(), 0);
    }
}
