//! What each clock tells, against the real one outside.

use std::io::Write;

use libc::{c_int, c_long, timespec, timeval};

use crate::child::Probe;
use crate::library::{FACTOR, FASTER, Lines, SECOND_NS, dilated, now_ns, origins, probe};
use crate::waits::zeroed;

unsafe extern "C" {
    fn __gettimeofday(now: *mut timeval, zone: *mut libc::timezone) -> c_int;
    fn timespec_get(now: *mut timespec, base: c_int) -> c_int;
}

fn ns(time: timespec) -> i64 {
    time.tv_sec * SECOND_NS + time.tv_nsec
}

fn us(time: timeval) -> i64 {
    time.tv_sec * SECOND_NS + time.tv_usec * 1_000
}

fn clock_by_number(clock: libc::clockid_t) -> i64 {
    let mut now: timespec = zeroed();
    unsafe { libc::syscall(libc::SYS_clock_gettime, c_long::from(clock), &raw mut now) };
    ns(now)
}

fn of_day(call: unsafe extern "C" fn(*mut timeval, *mut libc::timezone) -> c_int) -> i64 {
    let mut now = zeroed();
    assert_eq!(unsafe { call(&raw mut now, std::ptr::null_mut()) }, 0);
    us(now)
}

/// With a zone, which older programs ask for.
fn of_day_and_zone() -> i64 {
    // `struct timezone` has two numbers; the crate libc does not declare them.
    let (mut now, mut zone): (timeval, [i32; 2]) = (zeroed(), [0; 2]);
    assert_eq!(unsafe { libc::gettimeofday(&raw mut now, (&raw mut zone).cast()) }, 0);
    us(now)
}

fn of_day_by_number() -> i64 {
    let mut now = zeroed();
    unsafe { libc::syscall(libc::SYS_gettimeofday, &raw mut now, 0) };
    us(now)
}

fn ftime() -> i64 {
    #[repr(C)]
    struct Time(i64, u16, i16, i16);
    let mut now: Time = zeroed();
    // Programs of today cannot be linked with it.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"ftime".as_ptr()) };
    let call: unsafe extern "C" fn(*mut Time) -> c_int = unsafe { std::mem::transmute(address) };
    unsafe { call(&raw mut now) };
    now.0 * SECOND_NS + i64::from(now.1) * 1_000_000
}

fn ticks() -> i64 {
    unsafe {
        libc::times(&raw mut *Box::new(zeroed::<libc::tms>()))
            * (SECOND_NS / libc::sysconf(libc::_SC_CLK_TCK))
    }
}

fn c11() -> i64 {
    let mut now = zeroed();
    assert_eq!(unsafe { timespec_get(&raw mut now, 1) }, 1);
    ns(now)
}

/// From which zero a clock counts.
#[derive(Clone, Copy)]
enum Zero {
    Realtime,
    Monotonic,
    /// The boot, without the trial's origin.
    Boot,
}

type Clock = (&'static str, Zero, i64, fn() -> i64);

const FINE: i64 = 1_000;
const COARSE: i64 = 10_000_000;

/// Name, zero, steps in nanoseconds, and the clock.
// SAFETY, for all: there is room for the time.
const CLOCKS: &[Clock] = &[
    ("realtime", Zero::Realtime, FINE, || now_ns(libc::CLOCK_REALTIME)),
    ("realtime coarse", Zero::Realtime, COARSE, || now_ns(libc::CLOCK_REALTIME_COARSE)),
    ("tai", Zero::Realtime, 60 * SECOND_NS, || now_ns(libc::CLOCK_TAI)),
    ("monotonic", Zero::Monotonic, FINE, || now_ns(libc::CLOCK_MONOTONIC)),
    ("monotonic coarse", Zero::Monotonic, COARSE, || now_ns(libc::CLOCK_MONOTONIC_COARSE)),
    // Not corrected, or with the machine's sleep: seconds apart from the monotonic clock.
    ("monotonic raw", Zero::Monotonic, 20 * SECOND_NS, || now_ns(libc::CLOCK_MONOTONIC_RAW)),
    ("boottime", Zero::Monotonic, 20 * SECOND_NS, || now_ns(libc::CLOCK_BOOTTIME)),
    ("syscall clock_gettime", Zero::Monotonic, FINE, || clock_by_number(libc::CLOCK_MONOTONIC)),
    ("gettimeofday", Zero::Realtime, FINE, || of_day(gettimeofday)),
    ("gettimeofday zone", Zero::Realtime, FINE, of_day_and_zone),
    ("__gettimeofday", Zero::Realtime, FINE, || of_day(__gettimeofday)),
    ("syscall gettimeofday", Zero::Realtime, FINE, of_day_by_number),
    ("time", Zero::Realtime, SECOND_NS, || unsafe { libc::time(std::ptr::null_mut()) } * SECOND_NS),
    ("ftime", Zero::Realtime, COARSE, ftime),
    ("timespec_get", Zero::Realtime, FINE, c11),
    ("times", Zero::Boot, COARSE, ticks),
    ("Rust's SystemTime", Zero::Realtime, FINE, || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.unwrap().as_nanos() as i64
    }),
];

unsafe extern "C" {
    fn gettimeofday(now: *mut timeval, zone: *mut libc::timezone) -> c_int;
}

/// In the child: tells the clock of this name each time that it is asked.
pub(crate) fn tell(name: &str) {
    let clock = CLOCKS.iter().find(|clock| clock.0 == name).expect("a probe of this name").3;
    for _ in std::io::stdin().lines() {
        println!("\ntold {}", clock());
    }
}

/// What a clock would tell, from the same clock of this process.
fn expected((_, zero, _, clock): &Clock, factor: f64) -> i64 {
    let origin = match zero {
        Zero::Realtime => origins().1,
        Zero::Monotonic => origins().0,
        Zero::Boot => 0,
    };
    let real = clock();
    origin + ((real - origin) as f64 / factor) as i64
}

#[test]
fn every_clock_tells_dilated_time_from_the_common_origin() {
    let mut wrong = Vec::new();
    for (clock, factor) in CLOCKS.iter().flat_map(|clock| [(clock, FACTOR), (clock, FASTER)]) {
        let mut child = dilated(&mut probe(clock.0), factor).spawn().unwrap();
        let (mut input, mut lines) = (child.stdin.take().unwrap(), Lines::of(&mut child));
        // The first question is answered when the child has started.
        let told: Vec<_> = (0..2)
            .map(|_| {
                writeln!(input).unwrap();
                let told: Option<i64> = lines.next("told ").map(|told| told.parse().unwrap());
                (told, expected(clock, factor))
            })
            .collect();
        drop(input);
        child.wait().unwrap();
        let (Some(told), expected) = told[1] else { panic!("{}: nothing told", clock.0) };
        // The second reading is outside, a little later, on a machine that may be busy.
        let late = expected - told;
        let told_as = |real: i64| (real as f64 / factor.min(1.0)) as i64;
        let coarse = told_as(clock.2);
        if !(-coarse - SECOND_NS / 1_000..coarse + told_as(SECOND_NS / 10)).contains(&late) {
            wrong.push(format!("{} at {factor}: told {told}, expected {expected}", clock.0));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Clocks of processors count what the processor did.
fn processor() {
    let spin = || {
        let start = now_ns(libc::CLOCK_THREAD_CPUTIME_ID);
        let wall = now_ns(libc::CLOCK_MONOTONIC);
        while now_ns(libc::CLOCK_THREAD_CPUTIME_ID) - start < 2_000_000 {}
        now_ns(libc::CLOCK_MONOTONIC) - wall
    };
    // 2 ms of the processor are 0.5 ms of the dilated clock, unless others have the processor meanwhile.
    let least = (0..100).map(|_| spin()).min().unwrap();
    assert!((450_000..1_500_000).contains(&least), "{least}");
}

fn never_back() {
    let told: Vec<_> = (0..100_000).map(|_| now_ns(libc::CLOCK_MONOTONIC)).collect();
    assert!(told.is_sorted());
}

pub(crate) const CHECKS: &[Probe] = &[("processor", processor), ("never back", never_back)];
