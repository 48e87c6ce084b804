//! The block trace of an emulated disk: the requests that arrived between two commands, each with its
//! operation, offset, size and time.
//!
//! A request is encoded when it arrives, into memory that was reserved before, so that it costs neither a
//! system call nor an allocation. Memory that is full ends the trace, which tells until when it holds. The
//! file is written afterwards, by the thread that executes the command.
//!
//! The time of a request is when the host sent it: its arrival less the measured floor, and never before the
//! request that arrived before it.
//!
//! # Format
//! Seven fields of eight bytes, then the requests. Numbers of the header are little-endian.
//!
//! | field | content |
//! |---|---|
//! | 0 | `SPINDLET` |
//! | 1 | version of the format: 1 |
//! | 2 | 1 if the trace is complete, otherwise 0 |
//! | 3 | its duration in nanoseconds of model time |
//! | 4 | number of requests |
//! | 5 | size of the disk in bytes |
//! | 6 | size of the encoded requests in bytes |
//!
//! A flush is one number, every other request is three. Numbers are in unsigned LEB128 (DWARF 5, section
//! 7.6): seven bits a byte, the lowest first, and the top bit set in every byte but the last.
//!
//! 1. Time since the request before it (the first: since the begin) in units of 100 ns, times 16; plus 8 for
//!    FUA; plus the operation: 0 read, 1 write, 2 flush, 3 discard, 4 write zeroes.
//! 2. First sector of 512 bytes, less the sector after the end of the request before it, flushes left out
//!    (the first: less 0). Zigzag: 0, -1, 1, -2 are 0, 1, 2, 3.
//! 3. Number of sectors.
//!
//! A random request to a disk of 1 TB thus has eight or nine bytes, and a sequential one four or five.

mod encoding;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use spindle_model::{Instant, Request, SECTOR_BYTES, Traced};

use encoding::{Position, REQUEST_BYTES_MOST};

/// Most bytes of encoded requests: some eight million random requests.
pub const LIMIT_BYTES: u64 = 64 << 20;

const MAGIC: [u8; 8] = *b"SPINDLET";
const VERSION: u64 = 1;
const FIELD_BYTES: usize = 8;
const HEADER_BYTES: usize = 7 * FIELD_BYTES;

/// A block trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// In the order of their times, which are whole units of 100 ns. Offsets and sizes are whole sectors.
    pub requests: Vec<Traced>,
    /// Model time from the begin to the end. Of an incomplete trace: to the first request that is missing.
    pub duration_ns: u64,
    pub disk_size_bytes: u64,
    /// False if its memory was full before its end.
    pub is_complete: bool,
}

/// What a trace tells without its requests.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
pub struct TraceHead {
    pub request_count: u64,
    /// [`Trace::duration_ns`].
    pub duration_ns: u64,
    pub disk_size_bytes: u64,
    /// [`Trace::is_complete`].
    pub is_complete: bool,
}

/// Reads a trace.
///
/// # Errors
/// The file cannot be read, is no block trace, is of another version, or is damaged.
pub fn read(path: &Path) -> Result<Trace> {
    let reading = || format!("reading the block trace {}", path.display());
    let file = File::open(path).with_context(reading)?;
    let mut bytes = Vec::new();
    // A larger file is refused for its size.
    let most = HEADER_BYTES as u64 + LIMIT_BYTES + 1;
    file.take(most).read_to_end(&mut bytes).with_context(reading)?;
    decode(&bytes).with_context(reading)
}

/// Writes a trace to a new file. Its requests are in the order of their times.
///
/// # Errors
/// The file exists or cannot be written; nothing is left of it. The requests are more than [`LIMIT_BYTES`].
pub fn write(path: &Path, trace: &Trace) -> Result<TraceHead> {
    let mut bytes = Vec::new();
    let mut position = Position::default();
    trace.requests.iter().for_each(|request| position.encode(request, &mut bytes));
    let head = TraceHead {
        request_count: trace.requests.len() as u64,
        duration_ns: trace.duration_ns,
        disk_size_bytes: trace.disk_size_bytes,
        is_complete: trace.is_complete,
    };
    write_new(path, &head, &bytes)?;
    Ok(head)
}

fn write_new(path: &Path, head: &TraceHead, requests: &[u8]) -> Result<()> {
    let keeping = || format!("the host could not keep the block trace {}", path.display());
    let size = requests.len() as u64;
    ensure!(size <= LIMIT_BYTES, "a block trace has at most {LIMIT_BYTES} bytes of requests, not {size}");
    // Neither an existing file nor a link is written through.
    let mut file = File::create_new(path).with_context(keeping)?;
    let header = head.encode(size);
    let written =
        file.write_all(&header).and_then(|()| file.write_all(requests)).and_then(|()| file.sync_data());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written.with_context(keeping)
}

fn decode(bytes: &[u8]) -> Result<Trace> {
    let (head, mut rest) = TraceHead::decode(bytes)?;
    let TraceHead { request_count, duration_ns, disk_size_bytes, is_complete } = head;
    let sectors = disk_size_bytes.div_ceil(SECTOR_BYTES);
    let mut position = Position::default();
    let mut requests = Vec::with_capacity(request_count as usize);
    for index in 0..request_count {
        let request = position.decode(&mut rest, sectors);
        let request = request.with_context(|| format!("request {} of {request_count}", index + 1))?;
        ensure!(request.at.0 <= duration_ns, "request {} is later than its end", index + 1);
        requests.push(request);
    }
    ensure!(rest.is_empty(), "{} bytes follow its last request", rest.len());
    Ok(Trace { requests, duration_ns, disk_size_bytes, is_complete })
}

impl TraceHead {
    fn encode(&self, request_bytes: u64) -> Vec<u8> {
        let TraceHead { request_count, duration_ns, disk_size_bytes, is_complete } = *self;
        let is_complete = u64::from(is_complete);
        let fields = [VERSION, is_complete, duration_ns, request_count, disk_size_bytes, request_bytes];
        MAGIC.into_iter().chain(fields.into_iter().flat_map(u64::to_le_bytes)).collect()
    }

    /// The head, and the bytes of the requests.
    fn decode(bytes: &[u8]) -> Result<(TraceHead, &[u8])> {
        ensure!(bytes.starts_with(&MAGIC), "it is not a block trace of Spindle");
        ensure!(bytes.len() >= HEADER_BYTES, "it ends in its header");
        let (header, requests) = bytes.split_at(HEADER_BYTES);
        let field = |index: usize| {
            let bytes = &header[index * FIELD_BYTES..(index + 1) * FIELD_BYTES];
            u64::from_le_bytes(bytes.try_into().expect("a field has eight bytes"))
        };
        let (version, request_bytes) = (field(1), field(6));
        ensure!(version == VERSION, "it has version {version}, and only version {VERSION} can be read");
        ensure!(
            requests.len() as u64 == request_bytes && request_bytes <= LIMIT_BYTES,
            "its requests have {} bytes instead of {request_bytes} (at most {LIMIT_BYTES})",
            requests.len()
        );
        let head = TraceHead {
            is_complete: field(2) == 1,
            duration_ns: field(3),
            request_count: field(4),
            disk_size_bytes: field(5),
        };
        // A request has a byte at least, so the count cannot ask for more memory than the file explains.
        let TraceHead { request_count, disk_size_bytes, .. } = head;
        let is_enough = request_count <= request_bytes;
        ensure!(is_enough, "{request_count} requests do not fit in {request_bytes} bytes");
        ensure!(disk_size_bytes <= i64::MAX as u64, "no disk has {disk_size_bytes} bytes");
        Ok((head, requests))
    }
}

/// A trace that is being kept.
#[derive(Debug)]
pub(crate) struct Recorder {
    disk_size_bytes: u64,
    limit_bytes: usize,
    bytes: Vec<u8>,
    request_count: u64,
    position: Position,
    began_at: Instant,
    /// Of the latest request, since the begin.
    latest_at: Instant,
    /// Present once it has ended.
    duration_ns: Option<u64>,
    is_complete: bool,
}

impl Recorder {
    /// Reserves the memory. The system gives it page by page, when it is first written.
    ///
    /// # Errors
    /// More than [`LIMIT_BYTES`], or more than there is.
    pub(crate) fn new(disk_size_bytes: u64, limit_bytes: u64) -> Result<Recorder> {
        ensure!(limit_bytes <= LIMIT_BYTES, "the memory of a block trace can be at most {LIMIT_BYTES} bytes");
        let limit_bytes = limit_bytes as usize;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(limit_bytes).context("reserving memory for a block trace")?;
        Ok(Recorder {
            disk_size_bytes,
            limit_bytes,
            bytes,
            request_count: 0,
            position: Position::default(),
            began_at: Instant::ZERO,
            latest_at: Instant::ZERO,
            duration_ns: None,
            is_complete: false,
        })
    }

    /// Before the first request.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.began_at = now;
    }

    /// Adds a request that the host sent at that time, unless the trace has ended.
    pub(crate) fn add(&mut self, sent: Instant, request: &Request) {
        if self.duration_ns.is_some() {
            return;
        }
        let at = Instant(sent - self.began_at).max(self.latest_at);
        if self.bytes.len() + REQUEST_BYTES_MOST > self.limit_bytes {
            self.duration_ns = Some(at.0);
            return;
        }
        let &Request { operation, offset_bytes, size_bytes, force_unit_access, .. } = request;
        let traced = Traced { at, operation, offset_bytes, size_bytes, force_unit_access };
        self.position.encode(&traced, &mut self.bytes);
        self.latest_at = at;
        self.request_count += 1;
    }

    /// Keeps no request from now on.
    pub(crate) fn end(&mut self, now: Instant) {
        if self.duration_ns.is_none() {
            self.duration_ns = Some((now - self.began_at).max(self.latest_at.0));
            self.is_complete = true;
        }
    }

    /// Writes it to a new file.
    ///
    /// # Errors
    /// The file exists or cannot be written; nothing is left of it.
    pub(crate) fn write(&self, path: &Path) -> Result<TraceHead> {
        let head = TraceHead {
            request_count: self.request_count,
            duration_ns: self.duration_ns.unwrap_or(self.latest_at.0),
            disk_size_bytes: self.disk_size_bytes,
            is_complete: self.is_complete,
        };
        write_new(path, &head, &self.bytes)?;
        Ok(head)
    }
}

#[cfg(test)]
mod tests;
