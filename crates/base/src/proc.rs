//! The reader of `/proc` (proc(5)) for what changes in a run: cores, processes and their threads, the
//! machine.
//!
//! A process may end at any moment; a missing one reads as empty or zero. `spindle-mount` reads the tables of
//! mounts, and the lab's `host/summary` describes the machine. The crate `procfs` would be a dependency for
//! these few fields.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::affinity;

/// Time of the cores that a thread may use together, in clock ticks since boot (`/proc/stat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTimes {
    /// Stolen time counts: those cores were not ours to use.
    pub busy: u64,
    pub total: u64,
    /// With that of niced processes and of guests.
    pub user: u64,
    /// With that of interrupts.
    pub system: u64,
    /// Idle, while a request to a disk was under way.
    pub waiting: u64,
    /// What the hypervisor gave to others.
    pub stolen: u64,
}

impl CpuTimes {
    /// Of the cores that this thread may use. `None` if the file differs from proc(5).
    pub fn read() -> Option<CpuTimes> {
        let cores = affinity::cores();
        // Of all if the kernel does not say which.
        CpuTimes::parse(&read("stat"), |core| cores.as_ref().map_or(true, |cores| cores.contains(&core)))
    }

    fn parse(text: &str, is_asked: impl Fn(usize) -> bool) -> Option<CpuTimes> {
        let mut sum = None;
        for line in text.lines() {
            let Some((core, ticks)) = line.strip_prefix("cpu").and_then(|rest| rest.split_once(' ')) else {
                continue;
            };
            // The line without a number is that of all cores.
            if core.parse().is_ok_and(&is_asked) {
                sum = Some(CpuTimes::of_line(ticks)?.and(sum.unwrap_or_default()));
            }
        }
        sum
    }

    /// User time includes guest time already.
    fn of_line(ticks: &str) -> Option<CpuTimes> {
        let ticks: Vec<u64> = ticks.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, idle, wait, interrupts, soft_interrupts, stolen] = ticks[..] else {
            return None;
        };
        let (user, system) = (user + nice, system + interrupts + soft_interrupts);
        let busy = user + system + stolen;
        Some(CpuTimes { busy, total: busy + idle + wait, user, system, waiting: wait, stolen })
    }

    fn and(self, other: CpuTimes) -> CpuTimes {
        CpuTimes {
            busy: self.busy + other.busy,
            total: self.total + other.total,
            user: self.user + other.user,
            system: self.system + other.system,
            waiting: self.waiting + other.waiting,
            stolen: self.stolen + other.stolen,
        }
    }

    /// Busy share of all cores, 0 to 1, between two readings.
    pub fn busy_since(self, earlier: CpuTimes) -> f64 {
        self.share_since(earlier, |times| times.busy)
    }

    /// The share of one kind of time in that of all cores, 0 to 1, between two readings.
    pub fn share_since(self, earlier: CpuTimes, kind: impl Fn(&CpuTimes) -> u64) -> f64 {
        let total = self.total.saturating_sub(earlier.total);
        let part = kind(&self).saturating_sub(kind(&earlier));
        if total == 0 { 0.0 } else { part as f64 / total as f64 }
    }
}

/// For how long processes of this machine waited for cores, disks and memory, in microseconds since boot
/// (`/proc/pressure`, Documentation/accounting/psi.rst): at least one of them (some), or all that were not
/// idle (full).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressure {
    pub cpu_some_us: u64,
    pub io_some_us: u64,
    pub io_full_us: u64,
    pub memory_some_us: u64,
    pub memory_full_us: u64,
}

impl Pressure {
    /// `None` on a kernel that does not count it.
    pub fn read() -> Option<Pressure> {
        let [cpu, io, memory] = ["cpu", "io", "memory"].map(|of| read(&format!("pressure/{of}")));
        Some(Pressure {
            cpu_some_us: stalled_us(&cpu, "some")?,
            io_some_us: stalled_us(&io, "some")?,
            io_full_us: stalled_us(&io, "full")?,
            memory_some_us: stalled_us(&memory, "some")?,
            memory_full_us: stalled_us(&memory, "full")?,
        })
    }

    /// In a time that passes more slowly.
    #[must_use]
    pub fn divided_by(self, factor: f64) -> Pressure {
        let divided = |us: u64| (us as f64 / factor) as u64;
        Pressure {
            cpu_some_us: divided(self.cpu_some_us),
            io_some_us: divided(self.io_some_us),
            io_full_us: divided(self.io_full_us),
            memory_some_us: divided(self.memory_some_us),
            memory_full_us: divided(self.memory_full_us),
        }
    }
}

/// The total of a line of a file in `/proc/pressure`.
fn stalled_us(text: &str, kind: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(kind)?.strip_prefix(' '))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("total=")?.parse().ok())
}

/// User and system CPU seconds of a process with all its threads; zero if it is gone.
pub fn process_cpu_s(process: u32) -> f64 {
    seconds(Status::of(process).unwrap_or_default().own_ticks)
}

/// As [`process_cpu_s`], plus its children, including those that have ended.
pub fn family_cpu_s(process: u32) -> f64 {
    let Status { own_ticks, ended_children_ticks, .. } = Status::of(process).unwrap_or_default();
    let living = children(process).into_iter().filter_map(Status::of);
    let living: u64 = living.map(|child| child.own_ticks).sum();
    seconds(own_ticks + ended_children_ticks + living)
}

/// CPU time of one thread.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ThreadCpu {
    pub id: u32,
    /// Its own name, or that of its program.
    pub name: String,
    /// User and system.
    pub cpu_s: f64,
}

/// The threads of a process and of its living children.
pub fn family_threads(process: u32) -> Vec<ThreadCpu> {
    family(process)
        .filter_map(|(process, id)| {
            let stat = read(&format!("{process}/task/{id}/stat"));
            let name = stat.split_once('(')?.1.rsplit_once(')')?.0.to_owned();
            Some(ThreadCpu { id, name, cpu_s: seconds(Status::parse(&stat)?.own_ticks) })
        })
        .collect()
}

/// A thread that waits in a call to the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The kernel's function, as `/proc/PID/task/TID/wchan` names it.
    pub function: String,
    /// Whether the call reads a file at a place, or waits for such reads.
    pub is_read: bool,
}

/// The waiting threads of a process and of its living children (`/proc/PID/task/TID/syscall`, proc(5)), as far as
/// they are wanted. `None` where the kernel does not tell: it does to root and to those who may trace the process.
pub fn family_waits(process: u32, is_wanted: &mut dyn FnMut(u32) -> bool) -> Option<Vec<Wait>> {
    const READS: [i64; 4] =
        [libc::SYS_pread64, libc::SYS_preadv, libc::SYS_preadv2, libc::SYS_io_uring_enter];
    if read(&format!("{process}/syscall")).is_empty() {
        return None;
    }
    let wanted = family(process).filter(|(process, _)| is_wanted(*process));
    let waits = wanted.filter_map(|(process, id)| {
        let call = read(&format!("{process}/task/{id}/syscall"));
        // A thread at work has no number there.
        let number: i64 = call.split_whitespace().next()?.parse().ok()?;
        let function = read(&format!("{process}/task/{id}/wchan"));
        Some(Wait { function, is_read: READS.contains(&number) })
    });
    Some(waits.collect())
}

/// The arguments of a process, separated by spaces; many servers write what it does in their place. See
/// [`started_at_ticks`] for what a reader may wait for.
pub fn command_line(process: u32) -> String {
    read(&format!("{process}/cmdline")).replace('\0', " ").trim_end().to_owned()
}

/// The threads of a process and of its living children, each after its process.
fn family(process: u32) -> impl Iterator<Item = (u32, u32)> {
    let processes = std::iter::once(process).chain(children(process));
    processes.flat_map(|process| threads(process).map(move |id| (process, id)))
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Status {
    /// The process has ended, but has not been waited for.
    has_ended: bool,
    /// User and system CPU.
    own_ticks: u64,
    /// Of the children that the process has waited for.
    ended_children_ticks: u64,
    /// Since boot.
    started_at_ticks: u64,
}

impl Status {
    fn of(process: u32) -> Option<Status> {
        Status::parse(&read(&format!("{process}/stat")))
    }

    /// The name in the second field may contain spaces and parentheses, so counting starts after its last
    /// `)`.
    fn parse(stat: &str) -> Option<Status> {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        // Numbered from 3, as in proc(5).
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Status {
            has_ended: matches!(*fields.first()?, "Z" | "X"),
            own_ticks: field(14)? + field(15)?,
            ended_children_ticks: field(16)? + field(17)?,
            started_at_ticks: field(22)?,
        })
    }
}

/// The living children of a process with a single thread.
pub fn children(process: u32) -> Vec<u32> {
    children_in(&path(&format!("{process}/task/{process}")))
}

/// Handle to the children that one thread has started (proc_pid_children(5); none without
/// CONFIG_PROC_CHILDREN).
#[derive(Debug, Clone)]
pub struct Thread(PathBuf);

impl Thread {
    pub fn current() -> Thread {
        Thread(path("").join(fs::read_link(path("thread-self")).unwrap_or_default()))
    }

    /// The living children; any thread may call this.
    pub fn children(&self) -> Vec<u32> {
        children_in(&self.0)
    }
}

fn children_in(thread: &Path) -> Vec<u32> {
    let list = fs::read_to_string(thread.join("children")).unwrap_or_default();
    list.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// All processes, including the kernel's own threads.
pub fn processes() -> impl Iterator<Item = u32> {
    numbers_in("")
}

/// The threads of a process.
pub fn threads(process: u32) -> impl Iterator<Item = u32> {
    numbers_in(&format!("{process}/task"))
}

fn numbers_in(directory: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(path(directory)).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether a process with this number exists, including one that has ended but has not been waited for.
pub fn is_there(process: u32) -> bool {
    path(&process.to_string()).exists()
}

/// The name of a process. The kernel's workers change theirs with their work.
pub fn name(process: u32) -> Option<String> {
    let name = fs::read_to_string(path(&format!("{process}/comm"))).ok()?;
    Some(name.trim_end().to_owned())
}

/// Start time of a process, in clock ticks since boot (proc(5), stat, field 22). It tells our process from a
/// later one with the same number. `None` if it has ended, waited for or not.
///
/// The kernel answers this without the process's memory. A process blocked on its own disk may hold the lock
/// of its memory, and a reader of its arguments then blocks too.
pub fn started_at_ticks(process: u32) -> Option<u64> {
    Status::of(process).filter(|status| !status.has_ended).map(|status| status.started_at_ticks)
}

/// Seconds since a process was started. `None` if it has ended, waited for or not.
pub fn age_s(process: u32) -> Option<f64> {
    // The kernel counts a process's start from boot, with the time that the machine slept.
    let now = clock_gettime(ClockId::Boottime);
    let now_s = now.tv_sec as f64 + now.tv_nsec as f64 / 1e9;
    Some(now_s - seconds(started_at_ticks(process)?))
}

/// User and system CPU time of the calling thread.
pub fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Whether a process of this name is alive and has this path among its arguments. The arguments of processes
/// with other names are not read: see [`started_at_ticks`].
pub fn is_started_with(process: u32, process_name: &str, argument: &Path) -> bool {
    if name(process).as_deref() != Some(process_name) {
        return false;
    }
    let line = fs::read(path(&format!("{process}/cmdline"))).unwrap_or_default();
    line.split(|&byte| byte == 0).any(|word| word == argument.as_os_str().as_encoded_bytes())
}

/// A thread's `status` as text; [`field`] finds a line in it.
pub fn thread_status(process: u32, thread: u32) -> String {
    read(&format!("{process}/task/{thread}/status"))
}

/// Name of the first core in cpuinfo; `None` if it has none. With its family and model number, because a
/// hypervisor may give the processors of several generations one name ("AMD EPYC").
pub fn cpu_model() -> Option<String> {
    cpu_model_of(&read("cpuinfo"))
}

fn cpu_model_of(cpuinfo: &str) -> Option<String> {
    let name = field(cpuinfo, "model name", ':')?;
    match (field(cpuinfo, "cpu family", ':'), field(cpuinfo, "model", ':')) {
        (Some(family), Some(model)) => Some(format!("{name} (family {family}, model {model})")),
        _ => Some(name),
    }
}

/// The machine's memory (`/proc/meminfo`). What the kernel does not tell is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    pub total_bytes: u64,
    /// What new programs could have without swapping.
    pub available_bytes: u64,
    /// Page cache that is yet to be written.
    pub dirty_bytes: u64,
    /// Page cache that is under way to its storage.
    pub writeback_bytes: u64,
}

impl Memory {
    pub fn read() -> Memory {
        Memory::parse(&read("meminfo"))
    }

    fn parse(text: &str) -> Memory {
        let bytes = |key: &str| {
            let kib = field(text, key, ':').and_then(|text| text.split_whitespace().next()?.parse().ok());
            kib.map_or(0, |kib: u64| kib << 10)
        };
        Memory {
            total_bytes: bytes("MemTotal"),
            available_bytes: bytes("MemAvailable"),
            dirty_bytes: bytes("Dirty"),
            writeback_bytes: bytes("Writeback"),
        }
    }
}

/// The kernel's release, as `uname -r` prints it.
pub fn kernel() -> String {
    read("sys/kernel/osrelease").trim().to_owned()
}

/// The value of the first line with this key before the separator, without quotation marks.
pub fn field(text: &str, key: &str, separator: char) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
    })
}

fn path(name: &str) -> PathBuf {
    Path::new("/proc").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, id};

    use super::*;

    #[test]
    fn guest_time_is_not_counted_twice_and_waiting_for_disks_is_idle() {
        let text =
            "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 60 4 50 500 30 4 6 0 90 9\ncpu1 40 6 0 300 0 0 0 0 0 0\nintr 1\n";
        let times = CpuTimes::parse(text, |_| true).unwrap();
        let expect = CpuTimes { busy: 170, total: 1000, user: 110, system: 60, waiting: 30, stolen: 0 };
        assert_eq!(times, expect);
        let later = CpuTimes { busy: 270, total: 1200, stolen: 50, ..times };
        assert_eq!(later.busy_since(times), 0.5);
        assert_eq!(later.share_since(times, |times| times.stolen), 0.25);
        assert_eq!(times.busy_since(times), 0.0);
        let first = CpuTimes::parse(text, |core| core == 0).unwrap();
        assert_eq!((first.busy, first.total), (124, 654));
        assert_eq!(CpuTimes::parse(text, |_| false), None);
    }

    #[test]
    fn the_pressure_of_a_resource_is_its_total() {
        let text = "some avg10=0.00 avg60=1.20 avg300=0.30 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=56\n";
        assert_eq!((stalled_us(text, "some"), stalled_us(text, "full")), (Some(1234), Some(56)));
        assert_eq!(stalled_us("", "some"), None);
    }

    #[test]
    fn processors_of_one_name_and_two_generations_differ() {
        let text = "processor: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping: 1\n";
        assert_eq!(cpu_model_of(text).unwrap(), "AMD EPYC (family 25, model 17)");
        assert_ne!(cpu_model_of(&text.replace(": 25", ": 26")), cpu_model_of(text));
        assert_eq!(cpu_model_of("model name: Cyrix 486DX2\n").unwrap(), "Cyrix 486DX2");
        assert_eq!(cpu_model_of("BogoMIPS: 48.00\n"), None);
    }

    #[test]
    fn what_is_not_yet_written_is_where_the_kernel_puts_it() {
        let text = "MemAvailable:   40 kB\nDirty: 3 kB\nWriteback: 2 kB\nWritebackTmp: 9 kB\n";
        let expect = Memory {
            total_bytes: 0,
            available_bytes: 40 << 10,
            dirty_bytes: 3 << 10,
            writeback_bytes: 2 << 10,
        };
        assert_eq!(Memory::parse(text), expect);
    }

    #[test]
    fn a_process_may_be_named_like_a_field() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 7 4 20 0 9 0 100 0 0";
        let expect =
            Status { has_ended: false, own_ticks: 300, ended_children_ticks: 11, started_at_ticks: 100 };
        assert_eq!(Status::parse(stat), Some(expect));
    }

    #[test]
    fn this_process_has_used_some_cpu() {
        let mut value = 1_u64;
        while process_cpu_s(id()) == 0.0 {
            value = std::hint::black_box(value.wrapping_mul(31));
        }
        assert_eq!(process_cpu_s(0), 0.0);
    }

    #[test]
    fn a_busy_thread_is_told_from_an_idle_one() {
        let busy = std::thread::Builder::new().name("busy one".to_owned()).spawn(|| {
            let mut value = 1_u64;
            let mut own_s = || {
                value = std::hint::black_box(value.wrapping_mul(31));
                let threads = family_threads(id());
                threads.iter().find(|thread| thread.name == "busy one").map_or(0.0, |thread| thread.cpu_s)
            };
            while own_s() < 0.05 {}
        });
        busy.unwrap().join().unwrap();
        // The kernel wakes who joins a thread before it takes it off the list.
        let is_gone = |_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            family_threads(id()).iter().all(|thread| thread.name != "busy one")
        };
        assert!((0..10_000).any(is_gone));
        assert_eq!(family_threads(0), []);
    }

    #[test]
    fn a_child_is_found_by_its_parent_and_by_its_arguments() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        assert!(Thread::current().children().contains(&child.id()));
        assert!(processes().any(|process| process == child.id()) && is_there(child.id()));
        // The child is there before it has become the program.
        while !is_started_with(child.id(), "sleep", Path::new("600")) {
            assert!(child.try_wait().unwrap().is_none());
        }
        assert_eq!(name(child.id()).as_deref(), Some("sleep"));
        assert!(!is_started_with(child.id(), "sleep", Path::new("60")));
        assert!(!is_started_with(child.id(), "other", Path::new("600")));
        let started = started_at_ticks(child.id());
        assert!(started.is_some() && started >= started_at_ticks(id()));
        assert!(age_s(child.id()).is_some_and(|age_s| age_s >= 0.0) && age_s(child.id()) <= age_s(id()));
        child.kill().unwrap();
        while started_at_ticks(child.id()).is_some() {
            std::thread::yield_now();
        }
        assert!(is_there(child.id()), "it was not waited for");
        child.wait().unwrap();
        assert!(!is_there(child.id()) && name(child.id()).is_none());
    }

    #[test]
    fn this_machine_and_this_process_are_read() {
        assert!(Memory::read().total_bytes > 1 << 20 && !kernel().is_empty() && CpuTimes::read().is_some());
        assert!(threads(id()).any(|thread| thread == id()));
        assert_eq!(field(&thread_status(id(), id()), "Pid", ':'), Some(id().to_string()));
        assert_eq!(field(&thread_status(0, 0), "Pid", ':'), None);
    }

    #[test]
    fn a_thread_waits_in_the_function_that_the_kernel_tells() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let path = format!("{}/wchan", child.id());
        // Until then it is still being started.
        let function = (0..1_000).map(|_| read(&path)).find(|function| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            function.contains("sleep")
        });
        let waits_of = |is_wanted: bool| family_waits(child.id(), &mut |_| is_wanted);
        let (waiting, unwanted) = (waits_of(true), waits_of(false));
        child.kill().unwrap();
        child.wait().unwrap();
        let expect = function.map(|function| vec![Wait { function, is_read: false }]);
        assert!(expect.is_some() && waiting == expect, "{waiting:?}");
        assert_eq!((unwanted, family_waits(0, &mut |_| true)), (Some(vec![]), None));
    }
}
