//! Each wait takes k times as long as without the library.

use std::mem::MaybeUninit;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::child::{Probe, WAITS};
use crate::library::{FACTOR, FASTER, dilated, measure, probe};

/// What every probe waits, in its own time. A busy machine's delays are shorter than k times that.
pub(crate) const MILLISECONDS: i64 = 60;
const OWN: Duration = Duration::from_millis(MILLISECONDS as u64);
const AT_ONCE: usize = 8;

pub(crate) fn all() -> Vec<Probe> {
    WAITS.concat()
}

/// Memory for an object of C that its own function fills.
pub(crate) fn zeroed<T>() -> T {
    // SAFETY: used for C's plain structs only, for which zeroes are a value.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

pub(crate) fn begin() {
    println!("\nbegin");
}

pub(crate) fn end() {
    println!("\nend");
}

pub(crate) fn span() -> libc::timespec {
    libc::timespec { tv_sec: 0, tv_nsec: MILLISECONDS * 1_000_000 }
}

/// The moment when the wait is over, on a clock as the probe sees it.
pub(crate) fn moment(clock: libc::clockid_t) -> libc::timespec {
    let ns = crate::library::now_ns(clock) + MILLISECONDS * 1_000_000;
    libc::timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
}

/// Waits between "begin" and "end", and wants this result.
pub(crate) fn wait(expect: i64, wait: impl FnOnce() -> i64) {
    begin();
    let result = wait();
    end();
    assert_eq!(result, expect, "{}", std::io::Error::last_os_error());
}

/// Functions that know whole seconds only.
fn own(name: &str) -> Duration {
    if name.starts_with("one second") { Duration::from_secs(1) } else { OWN }
}

/// `None` if the wait takes so many times its own, within what a busy machine delays the begin or the end. Without
/// a factor the library is not there.
fn wrong(name: &str, factor: Option<f64>) -> Option<String> {
    let own = own(name);
    let expected = own.mul_f64(factor.unwrap_or(1.0));
    // A wait that is cut short has to be clearly shorter than its own time, whatever the delay.
    let most = if expected < own { own.mul_f64(0.9) } else { expected.mul_f64(1.7) };
    let mut told = String::new();
    for _ in 0..4 {
        let mut command = probe(name);
        if let Some(factor) = factor {
            dilated(&mut command, factor);
        }
        match measure(command) {
            Ok(real) if real > expected.mul_f64(0.9) && real < most => return None,
            Ok(real) => told = format!("{name}: {real:?}"),
            Err(error) => told = format!("{name}: {error}"),
        }
    }
    Some(told)
}

fn all_wrong(probes: &[Probe], factor: Option<f64>) -> Vec<String> {
    let next = Mutex::new(probes.iter());
    let found = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((name, _)) = { next.lock().unwrap().next() } {
                    let wrong = wrong(name, factor);
                    found.lock().unwrap().extend(wrong);
                }
            });
        }
    });
    found.into_inner().unwrap()
}

#[test]
fn every_wait_takes_k_times_as_long() {
    assert_eq!(all_wrong(&all(), Some(FACTOR)), Vec::<String>::new());
}

#[test]
fn every_wait_is_shorter_where_time_passes_faster() {
    assert_eq!(all_wrong(&all(), Some(FASTER)), Vec::<String>::new());
}

/// So that the test above would see a function that the library leaves alone.
#[test]
fn without_the_library_every_wait_takes_its_own_time() {
    assert_eq!(all_wrong(&all(), None), Vec::<String>::new());
}

#[test]
fn no_probe_has_the_name_of_another() {
    let mut names: Vec<_> = all().iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}
