//! The few figures by which storage is chosen, of a stack in virtual time: one read, many reads, one fsync,
//! and the loss in a power cut.

use std::borrow::Cow;

use serde::Serialize;
use spindle_base::units::format_size_bytes;
use spindle_model::{Device as _, Driver as _, Parameters, VirtualTime};

use super::raw::{Requests, measure};
use super::{Access, Place, Question};
use crate::report::format::number;
use crate::stack::StackSpec;

/// Cloud volumes and NVMe drives reach their rates at this iodepth.
pub const IODEPTH: u64 = 128;
pub const BLOCK_BYTES: u64 = 4 << 10;
const SEED: u64 = 1;
/// The mean of a disk's reads is then within about two per cent.
const REQUESTS_ALONE: u64 = 1_000;
const REQUESTS_TOGETHER: u64 = 6_000;
/// Each is a write and a FLUSH, so that the last request is a FLUSH.
const COMMITS: u64 = 500;
/// Size of a layered stack of flash drives.
const USED_BYTES: u64 = 1 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sheet {
    /// Mean latency of one random read of 4 KiB at a time.
    pub read_latency_us: f64,
    /// Random reads of 4 KiB with [`IODEPTH`] in flight; `None` if they take no time.
    pub reads_per_second: Option<f64>,
    /// Mean latency of a write of 4 KiB and the FLUSH behind it.
    pub fsync_latency_us: f64,
    #[serde(flatten)]
    pub loss: Loss,
}

/// What a power cut may take of the writes that were acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// Upper bound of the writes that no FLUSH covers.
    pub volatile_bytes: u64,
    /// Whether writes are lost that a FLUSH covers.
    pub flush_lies: bool,
}

impl Loss {
    pub fn words(self) -> String {
        match self {
            Loss { flush_lies: true, .. } => "also flushed writes".to_owned(),
            Loss { volatile_bytes: 0, .. } => "nothing".to_owned(),
            _ => format!("up to {} unflushed", size(self.volatile_bytes)),
        }
    }
}

/// The sheet of an emulated stack; `None` for a real disk or a pool, which have no model.
pub fn of(stack: &StackSpec) -> Option<Sheet> {
    if stack.real().is_some() || stack.pool().is_some() || stack.size_bytes() < BLOCK_BYTES {
        return None;
    }
    let stack = handy(stack);
    // Each from power-on: no cache holds what the question before has read.
    let ask = |access, iodepth, count| {
        let question = Question { place: Place::Raw, access, block_bytes: BLOCK_BYTES, iodepth };
        let requests = Requests { span_bytes: stack.size_bytes(), count };
        let mut driver = VirtualTime::new(stack.build(SEED));
        let row = measure(&mut driver, SEED, &question, requests).0;
        let now = driver.now();
        (row, driver.device_mut().power_cut(now).writes)
    };
    let (alone, _) = ask(Access::RandomRead, 1, REQUESTS_ALONE);
    let (together, _) = ask(Access::RandomRead, IODEPTH, REQUESTS_TOGETHER);
    let (commits, after_flush) = ask(Access::Fsync, 1, 2 * COMMITS);
    Some(Sheet {
        read_latency_us: alone.latency_us_mean,
        reads_per_second: (together.latency_us_mean > 0.0).then_some(together.per_second),
        fsync_latency_us: commits.latency_us_mean,
        loss: Loss {
            volatile_bytes: stack.tree().volatile_bytes(),
            flush_lies: after_flush.iter().any(|write| write.acknowledged),
        },
    })
}

/// The stack, or a small one with the same figures: a used flash drive is filled when it is built, and that
/// takes as long as the drive is large.
fn handy(stack: &StackSpec) -> Cow<'_, StackSpec> {
    let is_other = |parameters: &Parameters| !matches!(parameters, Parameters::Flash(_));
    let is_small = stack.size_bytes() <= USED_BYTES;
    let has_layers = !stack.tree().branches().is_empty();
    match stack.with_size(USED_BYTES) {
        Ok(small) if has_layers && !is_small && !stack.tree().any_device(&is_other) => Cow::Owned(small),
        _ => Cow::Borrowed(stack),
    }
}

/// Bytes with at most three digits: `64 MB`, `256 KiB`, `3.84 TB`.
pub fn size(bytes: u64) -> String {
    let exact = format_size_bytes(bytes);
    if exact.find(' ').is_some_and(|digits| digits <= 3) {
        return exact;
    }
    let exponent = (bytes.max(1).ilog10() / 3).min(4);
    let unit = ["B", "KB", "MB", "GB", "TB"][exponent as usize];
    format!("{} {unit}", number(bytes as f64 / 1000_f64.powi(exponent as i32)))
}
