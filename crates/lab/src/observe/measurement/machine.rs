//! What the machine did in a window: its cores, and the processes that waited for cores, disks and memory.

use super::{Window, ratio};
use crate::observe::Sample;
use crate::record::MachineActivity;

/// Over the whole window.
pub(super) fn activity(window: &Window) -> MachineActivity {
    let (first, last) = (&window.first, &window.last);
    let all = || window.seconds.iter().map(|(_, sample)| sample).chain([first, last]);
    let available = all().map(|sample| sample.machine.memory.available_bytes);
    MachineActivity {
        memory_available_bytes: available.min().unwrap_or_default(),
        timer_tail_us: window.timer_tail_us,
        core_work_us: window.core_work_us,
        ..between([first, last])
    }
}

/// Those that change from second to second, by their names in [`MachineActivity`].
pub(super) fn second(samples: [&Sample; 2]) -> impl Iterator<Item = (&'static str, f64)> {
    let activity = between(samples);
    let always = [
        ("cpu_user", activity.cpu_user),
        ("cpu_system", activity.cpu_system),
        ("cpu_iowait", activity.cpu_iowait),
        ("cpu_steal", activity.cpu_steal),
        ("memory_available_bytes", samples[1].machine.memory.available_bytes as f64),
    ];
    let pressure = [
        ("pressure_cpu_some", activity.pressure_cpu_some),
        ("pressure_io_some", activity.pressure_io_some),
        ("pressure_memory_some", activity.pressure_memory_some),
    ];
    always.into_iter().chain(pressure.into_iter().filter_map(|(name, share)| Some((name, share?))))
}

fn between([earlier, later]: [&Sample; 2]) -> MachineActivity {
    let cpu = |kind: fn(&spindle_base::proc::CpuTimes) -> u64| later.cpu.share_since(earlier.cpu, kind);
    let elapsed_us = (later.at - earlier.at).as_secs_f64() * 1e6;
    let pressures = later.machine.pressure.zip(earlier.machine.pressure);
    let waited = |kind: fn(&spindle_base::proc::Pressure) -> u64| {
        pressures.map(|(later, earlier)| {
            // A look takes a moment, so that a full second can seem longer than it was.
            ratio(kind(&later).saturating_sub(kind(&earlier)) as f64, elapsed_us).min(1.0)
        })
    };
    MachineActivity {
        cpu_user: cpu(|times| times.user),
        cpu_system: cpu(|times| times.system),
        cpu_iowait: cpu(|times| times.waiting),
        cpu_steal: cpu(|times| times.stolen),
        pressure_cpu_some: waited(|pressure| pressure.cpu_some_us),
        pressure_io_some: waited(|pressure| pressure.io_some_us),
        pressure_io_full: waited(|pressure| pressure.io_full_us),
        pressure_memory_some: waited(|pressure| pressure.memory_some_us),
        pressure_memory_full: waited(|pressure| pressure.memory_full_us),
        ..MachineActivity::default()
    }
}
