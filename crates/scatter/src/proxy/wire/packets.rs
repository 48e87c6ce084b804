//! Packets on a stream: a length of three bytes, a sequence number, the payload. Longer payloads take several packets, of which
//! the last is shorter than the longest.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use mysql_common::constants::MAX_PAYLOAD_LEN;
use mysql_common::proto::codec::packet_to_chunks;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::proxy::fault::{Broken, Fault};

/// Longest payload of a client that nobody knows yet.
const STRANGER_BYTES: usize = 64 << 10;
/// Longest statement.
const CLIENT_BYTES: usize = 64 << 20;
/// Packets wait for company up to this size.
const BATCH_BYTES: usize = 64 << 10;

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Secure(Box<StreamOwned<ServerConnection, TcpStream>>),
    /// Between the two.
    Nothing,
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.read(buffer),
            Stream::Secure(stream) => stream.read(buffer),
            Stream::Nothing => Ok(0),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.write(bytes),
            Stream::Secure(stream) => stream.write(bytes),
            Stream::Nothing => Err(ErrorKind::NotConnected.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(stream) => stream.flush(),
            Stream::Secure(stream) => stream.flush(),
            Stream::Nothing => Ok(()),
        }
    }
}

#[derive(Debug)]
pub(in crate::proxy) struct Packets {
    stream: Stream,
    /// Of the next packet, in either direction.
    sequence: u8,
    pending: BytesMut,
    longest: usize,
}

impl Packets {
    pub(in crate::proxy) fn new(stream: TcpStream) -> Packets {
        Packets {
            stream: Stream::Plain(stream),
            sequence: 0,
            pending: BytesMut::new(),
            longest: STRANGER_BYTES,
        }
    }

    /// The client is known from now on: it may send long statements and be silent.
    pub(in crate::proxy) fn trust(&mut self) -> io::Result<()> {
        self.longest = CLIENT_BYTES;
        self.set_read_timeout(None)
    }

    pub(in crate::proxy) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match &self.stream {
            Stream::Plain(stream) => stream.set_read_timeout(timeout),
            Stream::Secure(stream) => stream.sock.set_read_timeout(timeout),
            Stream::Nothing => Ok(()),
        }
    }

    /// Encrypts all that follows. No byte of the client's was read ahead.
    pub(in crate::proxy) fn secure(&mut self, config: Arc<ServerConfig>) -> Result<(), Broken> {
        let Stream::Plain(stream) = std::mem::replace(&mut self.stream, Stream::Nothing) else {
            return Err(Broken::bad_handshake());
        };
        let connection = ServerConnection::new(config).map_err(io::Error::other)?;
        self.stream = Stream::Secure(Box::new(StreamOwned::new(connection, stream)));
        Ok(())
    }

    /// A command begins.
    pub(in crate::proxy) fn begin(&mut self) {
        self.sequence = 0;
    }

    /// The next payload; `None` if the client left between two.
    pub(in crate::proxy) fn read(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        let mut payload = Vec::new();
        loop {
            let mut head = [0; 4];
            if payload.is_empty() && self.stream.read(&mut head[..1])? == 0 {
                return Ok(None);
            }
            let have = usize::from(payload.is_empty());
            self.stream.read_exact(&mut head[have..])?;
            let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
            if head[3] != self.sequence {
                return Err(Fault::new(1156, b"08S01", "Got packets out of order").into());
            }
            self.sequence = self.sequence.wrapping_add(1);
            if payload.len() + length > self.longest {
                let words = "Got a packet bigger than 'max_allowed_packet' bytes";
                return Err(Fault::new(1153, b"08S01", words).into());
            }
            let read = Read::by_ref(&mut self.stream).take(length as u64).read_to_end(&mut payload)?;
            if read < length {
                return Err(Broken::left());
            }
            if length < MAX_PAYLOAD_LEN {
                return Ok(Some(payload));
            }
        }
    }

    /// Puts a payload behind those that wait to be sent.
    pub(in crate::proxy) fn put(&mut self, mut payload: &[u8]) -> io::Result<()> {
        self.sequence = packet_to_chunks(self.sequence, &mut payload, &mut self.pending);
        match self.pending.len() > BATCH_BYTES {
            true => self.send(),
            false => Ok(()),
        }
    }

    pub(in crate::proxy) fn send(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.pending)?;
        // One long row must not occupy its space for ever.
        match self.pending.capacity() > 16 * BATCH_BYTES {
            true => self.pending = BytesMut::new(),
            false => self.pending.clear(),
        }
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (Packets, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Packets::new(listener.accept().unwrap().0), client)
    }

    /// What a client reads of a payload.
    fn sent(payload: &[u8]) -> Vec<u8> {
        let (mut packets, mut client) = pair();
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            client.read_to_end(&mut bytes).unwrap();
            bytes
        });
        packets.put(payload).unwrap();
        packets.send().unwrap();
        drop(packets);
        reader.join().unwrap()
    }

    fn received(bytes: Vec<u8>) -> Result<Option<Vec<u8>>, Broken> {
        let (mut packets, mut client) = pair();
        packets.trust().unwrap();
        let writer = std::thread::spawn(move || client.write_all(&bytes));
        let read = packets.read();
        drop(packets);
        // The reader may refuse what is not written yet.
        let _ = writer.join().unwrap();
        read
    }

    #[test]
    fn a_payload_has_a_length_and_a_number() {
        assert_eq!(sent(b"ab"), b"\x02\0\0\0ab");
        assert_eq!(sent(b""), b"\0\0\0\0");
        assert_eq!(received(b"\x02\0\0\0ab".to_vec()).unwrap(), Some(b"ab".to_vec()));
        assert_eq!(received(Vec::new()).unwrap(), None);
    }

    #[test]
    fn a_long_payload_takes_several_packets() {
        for length in [MAX_PAYLOAD_LEN - 1, MAX_PAYLOAD_LEN, MAX_PAYLOAD_LEN + 1, 2 * MAX_PAYLOAD_LEN] {
            let payload = vec![7; length];
            let bytes = sent(&payload);
            assert_eq!(bytes.len(), length + 4 * (1 + length / MAX_PAYLOAD_LEN));
            assert_eq!(received(bytes).unwrap().map(|read| read == payload), Some(true));
        }
    }

    #[test]
    fn a_packet_out_of_order_or_too_long_ends_the_connection() {
        let code = |bytes: &[u8]| match received(bytes.to_vec()) {
            Err(Broken::Told(fault)) => fault.code,
            other => panic!("{other:?}"),
        };
        assert_eq!(code(b"\x01\0\0\x01a"), 1156);
        let mut long = Vec::new();
        for sequence in 0..5 {
            long.extend_from_slice(&[255, 255, 255, sequence]);
            long.resize(long.len() + MAX_PAYLOAD_LEN, 0);
        }
        assert_eq!(code(&long), 1153);
        assert!(matches!(received(b"\x05\0\0\0ab".to_vec()), Err(Broken::Stream)));
    }
}
