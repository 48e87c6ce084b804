//! A server of MySQL's protocol before the servers: each client has a thread and a session of its own, whose statements are
//! answered in fragments.
//!
//! `wire/` is the protocol's form, `handshake.rs`, `users.rs` and `tls.rs` are who may connect, `statement/` what a text is,
//! `prepared/` statements with parameters, `backend.rs` the session at the servers, `sessions.rs` the table of clients,
//! `commands.rs` one client. It knows no laboratory.
//!
//! Protocol: "Client/Server Protocol" of the MySQL Internals Manual, and MariaDB's "Clients & Utilities: protocol".

mod backend;
mod commands;
mod fault;
mod handshake;
mod prepared;
mod sessions;
mod statement;
mod tls;
mod users;
mod wire;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use mysql::prelude::Queryable;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::ServerConfig;

use crate::shards::Cluster;
use crate::split::Options;
use sessions::{Connection, Connections};
pub use tls::tls;
pub use users::{Plugin, User, Users};
use wire::Packets;

/// How often the proxy looks for clients that left, for statements that were killed, and for its own end.
const TICK: Duration = Duration::from_millis(50);
/// A client that says nothing in its handshake leaves after this time.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);
/// A client that takes nothing of its result leaves after this time (`net_write_timeout` of servers).
const WRITE_PATIENCE: Duration = Duration::from_secs(60);
/// Longest wait for clients at the proxy's end.
const END_PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct Settings {
    pub cluster: Cluster,
    pub options: Options,
    pub users: Users,
    pub tls: Option<Arc<ServerConfig>>,
    /// Sends statements that write.
    pub is_writable: bool,
    pub clients_most: usize,
}

/// What all clients share.
#[derive(Debug)]
struct Shared {
    settings: Settings,
    /// As the server tells it in its own greeting.
    version: String,
    connections: Connections,
    began: Instant,
}

impl Shared {
    fn statistics(&self) -> String {
        format!(
            "Uptime: {}  Threads: {}  Questions: {}",
            self.began.elapsed().as_secs(),
            self.connections.count(),
            self.connections.statements.load(Ordering::Relaxed)
        )
    }
}

/// Listens, and serves nobody yet.
#[derive(Debug)]
pub struct Proxy {
    listener: TcpListener,
    shared: Arc<Shared>,
}

impl Proxy {
    /// # Errors
    /// A server does not answer, or the address is taken.
    pub fn bind(address: SocketAddr, settings: Settings) -> Result<Proxy> {
        let mut version = None;
        for server in &settings.cluster.servers {
            let found: Option<String> = server.connect()?.query_first("SELECT VERSION()")?;
            version = version.or(found);
        }
        let Some(version) = version else { bail!("the server does not tell its version") };
        let listening = || format!("listening on {address}");
        let listener = TcpListener::bind(address).with_context(listening)?;
        listener.set_nonblocking(true).with_context(listening)?;
        let shared = Shared {
            settings,
            version: greeted(&version),
            connections: Connections::default(),
            began: Instant::now(),
        };
        Ok(Proxy { listener, shared: Arc::new(shared) })
    }

    /// # Errors
    /// The system does not tell it.
    pub fn address(&self) -> Result<SocketAddr> {
        self.listener.local_addr().context("asking for the address of the listener")
    }

    /// Serves until `is_over`. Then it ends what runs at the servers, and returns when no client is left.
    ///
    /// # Errors
    /// The listener failed, or a client does not end.
    pub fn run(self, is_over: impl Fn() -> bool) -> Result<()> {
        let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
        while !is_over() {
            let waited = poll(&mut [PollFd::new(&self.listener, PollFlags::IN)], Some(&tick));
            if !matches!(waited, Ok(_) | Err(rustix::io::Errno::INTR)) {
                waited.context("waiting for clients")?;
            }
            self.accept();
            self.shared.connections.watch();
        }
        drop(self.listener);
        let began = Instant::now();
        while self.shared.connections.count() > 0 {
            if began.elapsed() > END_PATIENCE {
                bail!("{} clients do not end", self.shared.connections.count());
            }
            self.shared.connections.end_all();
            thread::sleep(TICK);
        }
        Ok(())
    }

    /// Takes all clients that wait.
    fn accept(&self) {
        loop {
            match self.listener.accept() {
                Ok((stream, address)) => take(&self.shared, stream, address),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The client left before it was accepted, or there are too many open files: those who are served go on.
                Err(error) => {
                    eprintln!("a client was not accepted: {error}");
                    return;
                }
            }
        }
    }
}

/// Servers of MariaDB 10 put this before their version, because old clients and replicas take 10 for a later MySQL.
fn greeted(version: &str) -> String {
    match version.starts_with("10.") && version.contains("MariaDB") {
        true => format!("5.5.5-{version}"),
        false => version.to_owned(),
    }
}

/// Gives a client its thread.
fn take(shared: &Arc<Shared>, stream: TcpStream, address: SocketAddr) {
    let prepared = stream
        .set_nodelay(true)
        .and_then(|()| stream.set_read_timeout(Some(HANDSHAKE_PATIENCE)))
        .and_then(|()| stream.set_write_timeout(Some(WRITE_PATIENCE)));
    // An error says that it left.
    if prepared.is_err() {
        return;
    }
    if shared.connections.count() >= shared.settings.clients_most {
        let mut packets = Packets::new(stream);
        let refusal = wire::early_error_packet(1040, "Too many connections");
        let _ = packets.put(&refusal).and_then(|()| packets.send());
        return;
    }
    let Ok(connection) = shared.connections.add(&stream) else { return };
    let seat = Seat { shared: Arc::clone(shared), connection };
    let serve =
        move || commands::serve(&seat.shared, &seat.connection, Packets::new(stream), Some(address.ip()));
    // Without a thread the client is dropped, with its seat.
    if let Err(error) = thread::Builder::new().name("client".to_owned()).spawn(serve) {
        eprintln!("a client got no thread: {error}");
    }
}

/// A place in the table of clients, which is free when its thread ends, however that ends.
#[derive(Debug)]
struct Seat {
    shared: Arc<Shared>,
    connection: Arc<Connection>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.connections.remove(self.connection.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_told_as_the_server_tells_it() {
        let check = |version: &str, expect: &str| assert_eq!(greeted(version), expect);
        check("10.11.14-MariaDB-0+deb12u2", "5.5.5-10.11.14-MariaDB-0+deb12u2");
        check("11.8.3-MariaDB", "11.8.3-MariaDB");
        check("9.7.4", "9.7.4");
    }
}
