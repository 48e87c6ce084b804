//! What a host adds to any answer that is given in user space at a certain time: two threads, and no storage between them.

use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::ClockId;

use crate::clock::Clock;
use crate::realtime;

/// Ends the thread that answers.
const END: u64 = 2;

/// How much later than on average the latest of a hundred answers comes, when one thread asks another over and over, which answers
/// `delay` later; both under SCHED_FIFO where the kernel allows it. An emulator on the same host cannot do better: it answers as this does,
/// after more work.
///
/// # Errors
/// The kernel refuses an event or a timer.
pub fn bare_tail(delay: Duration, lasting: Duration) -> io::Result<Duration> {
    let (question, answer) = (eventfd(0, EventfdFlags::CLOEXEC)?, eventfd(0, EventfdFlags::CLOEXEC)?);
    thread::scope(|scope| {
        let answering = scope.spawn(|| answer_repeatedly(question.as_fd(), answer.as_fd(), delay));
        let asking = scope.spawn(|| {
            realtime::set_fifo(realtime::RECEIVING);
            let asked = ask_repeatedly(question.as_fd(), answer.as_fd(), lasting);
            rustix::io::write(&question, &END.to_ne_bytes())?;
            asked
        });
        let latencies = asking.join().expect("it does not panic");
        answering.join().expect("it does not panic")?;
        let mut latencies = latencies?;
        latencies.sort_unstable();
        let mean = latencies.iter().sum::<Duration>() / latencies.len() as u32;
        Ok(latencies[latencies.len() * 99 / 100].saturating_sub(mean))
    })
}

fn ask_repeatedly(
    question: BorrowedFd<'_>,
    answer: BorrowedFd<'_>,
    lasting: Duration,
) -> io::Result<Vec<Duration>> {
    let begun = Instant::now();
    let mut latencies = Vec::new();
    while begun.elapsed() < lasting || latencies.is_empty() {
        let asked = Instant::now();
        rustix::io::write(question, &1_u64.to_ne_bytes())?;
        rustix::io::read(answer, &mut [0; 8])?;
        latencies.push(asked.elapsed());
    }
    Ok(latencies)
}

fn answer_repeatedly(question: BorrowedFd<'_>, answer: BorrowedFd<'_>, delay: Duration) -> io::Result<()> {
    realtime::set_fifo(realtime::ANSWERING);
    realtime::set_timer_slack();
    let clock = Clock::start();
    loop {
        let mut asked = [0; 8];
        rustix::io::read(question, &mut asked)?;
        if u64::from_ne_bytes(asked) >= END {
            return Ok(());
        }
        let due = clock.timespec(clock.now() + delay.as_nanos() as u64);
        clock_nanosleep_absolute(ClockId::Monotonic, &due)?;
        rustix::io::write(answer, &1_u64.to_ne_bytes())?;
    }
}
