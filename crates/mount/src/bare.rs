//! Measures the tail latency that a host adds to timed answers from user space: two threads, without storage.

use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::ClockId;

use crate::clock::RealInstant;
use crate::realtime;

/// Tells the answering thread to end.
const END: u64 = 2;

/// The 99th percentile minus the mean of the response time between two threads. One asks repeatedly for
/// `lasting`, and the other answers each time after `delay`. Both run under SCHED_FIFO if the kernel allows
/// it. An emulator on the same host cannot do better: it answers in the same way, after more work. All is in
/// real time: under dilation, `delay` is the real time of the device's and the result is to be dilated.
///
/// # Errors
/// The kernel refuses an event or a timer.
pub fn bare_tail(delay: Duration, lasting: Duration) -> io::Result<Duration> {
    let mut latencies = bare_latencies(delay, lasting)?;
    latencies.sort_unstable();
    let mean = latencies.iter().sum::<Duration>() / latencies.len() as u32;
    Ok(latencies[latencies.len() * 99 / 100].saturating_sub(mean))
}

/// The response times; at least one.
fn bare_latencies(delay: Duration, lasting: Duration) -> io::Result<Vec<Duration>> {
    let (question, answer) = (eventfd(0, EventfdFlags::CLOEXEC)?, eventfd(0, EventfdFlags::CLOEXEC)?);
    thread::scope(|scope| {
        let answering = scope.spawn(|| answer_repeatedly(question.as_fd(), answer.as_fd(), delay));
        let asking = scope.spawn(|| {
            realtime::set_fifo(realtime::RECEIVING);
            let asked = ask_repeatedly(question.as_fd(), answer.as_fd(), lasting);
            send(question.as_fd(), END)?;
            asked
        });
        let latencies = asking.join().expect("it does not panic");
        answering.join().expect("it does not panic")?;
        latencies
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
        send(question, 1)?;
        receive(answer)?;
        latencies.push(asked.elapsed());
    }
    Ok(latencies)
}

/// Only [`END`] ends it: the asking thread waits for each answer, so counts never add up.
fn answer_repeatedly(question: BorrowedFd<'_>, answer: BorrowedFd<'_>, delay: Duration) -> io::Result<()> {
    realtime::set_fifo(realtime::ANSWERING);
    realtime::set_timer_slack();
    while receive(question)? < END {
        let due = RealInstant::now().after(delay).timespec();
        io::retry_on_intr(|| clock_nanosleep_absolute(ClockId::Monotonic, &due))?;
        send(answer, 1)?;
    }
    Ok(())
}

fn send(event: BorrowedFd<'_>, count: u64) -> io::Result<()> {
    io::retry_on_intr(|| io::write(event, &count.to_ne_bytes())).map(|_| ())
}

fn receive(event: BorrowedFd<'_>) -> io::Result<u64> {
    let mut count = [0; 8];
    io::retry_on_intr(|| io::read(event, &mut count))?;
    Ok(u64::from_ne_bytes(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_comes_before_its_time() {
        let delay = Duration::from_micros(300);
        let latencies = bare_latencies(delay, Duration::from_millis(20)).unwrap();
        assert!(latencies.len() > 1);
        assert!(latencies.iter().all(|latency| *latency >= delay), "{latencies:?}");
    }

    #[test]
    fn at_least_one_answer_is_measured() {
        let delay = Duration::from_millis(2);
        assert_eq!(bare_latencies(delay, Duration::ZERO).unwrap().len(), 1);
    }
}
