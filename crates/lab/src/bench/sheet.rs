//! The few figures by which storage is chosen, of a stack in virtual time: one read, many reads, one fsync,
//! and the loss in a power cut.

use serde::Serialize;
use spindle_model::{Device as _, Driver as _, VirtualTime};

use super::raw::{Requests, measure};
use super::{Access, Place, Question};
use crate::advise::power_cut::{self, Loss};
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

/// The sheet of an emulated stack; `None` for a real disk or a pool, which have no model.
pub fn of(stack: &StackSpec) -> Option<Sheet> {
    if stack.real().is_some() || stack.pool().is_some() || stack.size_bytes() < BLOCK_BYTES {
        return None;
    }
    let stack = power_cut::handy(stack);
    // Each from power-on: no cache holds what the question before has read.
    let ask = |access, iodepth, count| {
        let question = Question { place: Place::Raw, access, block_bytes: BLOCK_BYTES, iodepth };
        let requests = Requests { span_bytes: stack.size_bytes(), count };
        let mut driver = VirtualTime::new(stack.build(SEED));
        let row = measure(&mut driver, SEED, &question, requests).0;
        let now = driver.now();
        (row, driver.device_mut().power_cut(now))
    };
    let (alone, _) = ask(Access::RandomRead, 1, REQUESTS_ALONE);
    let (together, _) = ask(Access::RandomRead, IODEPTH, REQUESTS_TOGETHER);
    let (commits, after_flush) = ask(Access::Fsync, 1, 2 * COMMITS);
    Some(Sheet {
        read_latency_us: alone.latency_us_mean,
        reads_per_second: (together.latency_us_mean > 0.0).then_some(together.per_second),
        fsync_latency_us: commits.latency_us_mean,
        loss: Loss::after_flush(&stack, &after_flush),
    })
}
