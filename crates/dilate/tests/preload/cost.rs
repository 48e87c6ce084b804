//! What a call costs. `cargo test -p spindle-dilate --test preload cost -- --nocapture` prints it.

use std::hint::black_box;
use std::ptr::null_mut;
use std::time::Instant;

use libc::{CLOCK_MONOTONIC, CLOCK_REALTIME};

use crate::child::Probe;
use crate::library::{Lines, dilated, now_ns, probe};

/// Short turns, so that one of them is not interrupted on a busy machine.
const CALLS: u32 = 2_000;
const TURNS: usize = 300;

type Call = (&'static str, fn());

// SAFETY, for all: there is room for the time, and null where it is allowed.
const CALLS_OF: &[Call] = &[
    ("clock_gettime monotonic", || _ = black_box(now_ns(CLOCK_MONOTONIC))),
    ("clock_gettime realtime", || _ = black_box(now_ns(CLOCK_REALTIME))),
    ("time", || _ = black_box(unsafe { libc::time(null_mut()) })),
    ("poll of nothing", || _ = black_box(unsafe { libc::poll(null_mut(), 0, 0) })),
    ("syscall futex wake", || {
        let word = 0_u32;
        _ = black_box(unsafe { libc::syscall(libc::SYS_futex, &raw const word, 129, 1) });
    }),
];

/// In the child: nanoseconds a call, the least of some turns, in its own clock's seconds.
fn tell() {
    for (name, call) in CALLS_OF {
        let turn = || {
            let start = Instant::now();
            (0..CALLS).for_each(|_| call());
            start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
        };
        let least = (0..TURNS).map(|_| turn()).fold(f64::MAX, f64::min);
        println!("\ncost {name}: {least}");
    }
}

pub(crate) const CHECKS: &[Probe] = &[("cost", tell)];

/// Real nanoseconds a call; without a factor, without the library.
fn costs(factor: Option<f64>) -> Vec<f64> {
    let mut command = probe("cost");
    if let Some(factor) = factor {
        dilated(&mut command, factor);
    }
    let mut child = command.spawn().unwrap();
    let mut lines = Lines::of(&mut child);
    let told = |(name, _): &Call| {
        let cost: f64 = lines.next(&format!("cost {name}: ")).unwrap().parse().unwrap();
        cost * factor.unwrap_or(1.0)
    };
    let costs = CALLS_OF.iter().map(told).collect();
    assert!(child.wait().unwrap().success());
    costs
}

#[test]
fn a_call_costs_nanoseconds() {
    let [without, passed, dilated] = [None, Some(1.0), Some(4.0)].map(costs);
    println!("{:24} {:>8} {:>8} {:>8}", "ns", "without", "k = 1", "k = 4");
    for (((name, _), without), (passed, dilated)) in
        CALLS_OF.iter().zip(without).zip(passed.iter().zip(dilated))
    {
        println!("{name:24} {without:8.1} {passed:8.1} {dilated:8.1}");
        // A lock, a system call or a lookup of a name would cost more than this, and a busy machine does not.
        let most = 2.0 * without + 100.0;
        assert!(*passed < most && dilated < most, "{name}");
    }
}
