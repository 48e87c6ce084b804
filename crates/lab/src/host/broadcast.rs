//! A value that other processes of this machine can follow: one JSON line for its present state, and one for
//! each later state, over a unix socket.
//!
//! The owner of the value waits for nobody. While nobody listens, a change is an assignment: nothing is
//! serialized and nothing is written, to a disk least of all, because a disk may be under test. A follower
//! has its own thread, which is given up when it does not read.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

/// More followers are turned away.
const FOLLOWERS_MOST: usize = 8;
/// Shortest time between two lines. Changes in between are one.
const PAUSE: Duration = Duration::from_millis(200);
/// Patience with a follower that does not read.
const WRITE_PATIENCE: Duration = Duration::from_secs(1);
/// Longest time in which followers get the last state.
const LAST_PATIENCE: Duration = Duration::from_millis(500);

/// Dropping it ends every follower, after the last state.
#[derive(Debug)]
pub struct Broadcast<T> {
    shared: Arc<Shared<T>>,
    socket: PathBuf,
}

#[derive(Debug)]
struct Shared<T> {
    held: Mutex<Held<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Held<T> {
    value: T,
    version: u64,
    followers: usize,
    is_over: bool,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Held<T>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, longest: Duration, holds: impl Fn(&Held<T>) -> bool) -> MutexGuard<'_, Held<T>> {
        let waited = self.changed.wait_timeout_while(self.lock(), longest, |held| holds(held));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl<T: Clone + Serialize + Send + 'static> Broadcast<T> {
    /// Begins to listen at the path, where nothing may exist. Every user may follow.
    ///
    /// # Errors
    /// The socket cannot be made: the directory is not ours to write, or the path is too long for a socket.
    pub fn open(socket: &Path, value: T) -> Result<Broadcast<T>> {
        let making = || format!("making the socket {}", socket.display());
        let listener = UnixListener::bind(socket).with_context(making)?;
        fs::set_permissions(socket, fs::Permissions::from_mode(0o666)).with_context(making)?;
        let held = Held { value, version: 0, followers: 0, is_over: false };
        let shared = Arc::new(Shared { held: Mutex::new(held), changed: Condvar::new() });
        let ours = Arc::clone(&shared);
        let listening = thread::Builder::new().name("broadcast".to_owned());
        listening.spawn(move || listen(&listener, &ours)).with_context(making)?;
        Ok(Broadcast { shared, socket: socket.to_owned() })
    }

    pub fn change(&self, change: impl FnOnce(&mut T)) {
        let mut held = self.shared.lock();
        change(&mut held.value);
        held.version += 1;
        if held.followers > 0 {
            self.shared.changed.notify_all();
        }
    }

    /// Whether figures that cost something to compute have a reader.
    pub fn is_followed(&self) -> bool {
        self.shared.lock().followers > 0
    }
}

impl<T> Drop for Broadcast<T> {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        drop(self.shared.wait_while(LAST_PATIENCE, |held| held.followers > 0));
        // Wakes the thread that listens.
        drop(UnixStream::connect(&self.socket));
        let _ = fs::remove_file(&self.socket);
    }
}

fn listen<T: Clone + Serialize + Send + 'static>(listener: &UnixListener, shared: &Arc<Shared<T>>) {
    for stream in listener.incoming() {
        let mut held = shared.lock();
        if held.is_over {
            return;
        }
        let Ok(stream) = stream else {
            drop(held);
            // No descriptor is left, perhaps for a while.
            thread::sleep(WRITE_PATIENCE);
            continue;
        };
        if held.followers == FOLLOWERS_MOST {
            continue;
        }
        held.followers += 1;
        drop(held);
        let follower = Follower(Arc::clone(shared));
        // On an error the follower is dropped, and with it its connection.
        let _ = thread::Builder::new().name("follower".to_owned()).spawn(move || follower.serve(stream));
    }
}

/// One connection, which counts until it is dropped.
struct Follower<T>(Arc<Shared<T>>);

impl<T: Clone + Serialize> Follower<T> {
    fn serve(&self, mut stream: UnixStream) {
        if stream.set_write_timeout(Some(WRITE_PATIENCE)).is_err() {
            return;
        }
        let mut sent = None;
        loop {
            let held = self.0.wait_while(Duration::MAX, |held| sent == Some(held.version) && !held.is_over);
            if sent == Some(held.version) {
                return;
            }
            // Serialized without the lock.
            let (value, version) = (held.value.clone(), held.version);
            drop(held);
            let Ok(mut line) = serde_json::to_vec(&value) else { return };
            line.push(b'\n');
            if stream.write_all(&line).is_err() {
                return;
            }
            sent = Some(version);
            drop(self.0.wait_while(PAUSE, |held| !held.is_over));
        }
    }
}

impl<T> Drop for Follower<T> {
    fn drop(&mut self) {
        self.0.lock().followers -= 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use serde::Serializer;

    use super::*;

    static SERIALIZED: AtomicUsize = AtomicUsize::new(0);

    /// Counts how often it is serialized.
    #[derive(Clone)]
    struct Counted(String);

    impl Serialize for Counted {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            SERIALIZED.fetch_add(1, Ordering::Relaxed);
            self.0.serialize(serializer)
        }
    }

    fn open<T: Clone + Serialize + Send + 'static>(value: T) -> (tempfile::TempDir, PathBuf, Broadcast<T>) {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let broadcast = Broadcast::open(&socket, value).unwrap();
        (directory, socket, broadcast)
    }

    fn lines(socket: &Path) -> impl Iterator<Item = String> + use<> {
        BufReader::new(UnixStream::connect(socket).unwrap()).lines().map(Result::unwrap)
    }

    fn wait_for(holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < Duration::from_secs(60), "waited too long");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_follower_gets_the_present_state_later_ones_and_the_last() {
        let (_directory, socket, broadcast) = open(1);
        let mut lines = lines(&socket);
        assert_eq!(lines.next().as_deref(), Some("1"));
        broadcast.change(|value| *value = 2);
        assert_eq!(lines.next().as_deref(), Some("2"));
        broadcast.change(|value| *value = 3);
        broadcast.change(|value| *value = 4);
        drop(broadcast);
        assert_eq!(lines.last().as_deref(), Some("4"));
        assert!(!socket.exists());
    }

    #[test]
    fn nothing_is_serialized_while_nobody_follows() {
        let (_directory, socket, broadcast) = open(Counted(String::new()));
        for number in 0..1000 {
            broadcast.change(|value| value.0 = number.to_string());
        }
        assert!(!broadcast.is_followed());
        assert_eq!(SERIALIZED.load(Ordering::Relaxed), 0);
        let mut lines = lines(&socket);
        assert_eq!(lines.next().as_deref(), Some("\"999\""));
        assert!(broadcast.is_followed() && SERIALIZED.load(Ordering::Relaxed) == 1);
    }

    #[test]
    fn a_follower_that_does_not_read_is_given_up() {
        // Fills the socket's buffer at once.
        let (_directory, socket, broadcast) = open("x".repeat(8 << 20));
        let stream = UnixStream::connect(&socket).unwrap();
        wait_for(|| broadcast.is_followed());
        wait_for(|| !broadcast.is_followed());
        drop(stream);
    }

    #[test]
    fn one_follower_too_many_is_turned_away() {
        let (_directory, socket, broadcast) = open(7);
        let mut all: Vec<_> = (0..FOLLOWERS_MOST).map(|_| lines(&socket)).collect();
        assert!(all.iter_mut().all(|lines| lines.next().as_deref() == Some("7")));
        assert_eq!(lines(&socket).next(), None);
        drop(all);
        // Noticed with the next line.
        wait_for(|| {
            broadcast.change(|_| ());
            !broadcast.is_followed()
        });
        assert_eq!(lines(&socket).next().as_deref(), Some("7"));
    }

    #[test]
    fn every_user_may_follow_and_nothing_is_replaced() {
        let (_directory, socket, broadcast) = open(1);
        assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o666);
        assert!(Broadcast::open(&socket, 2).is_err());
        drop(broadcast);
    }
}
