//! Trials that the host disturbed. Such a trial is repeated once, and both rows are kept. The rule looks at
//! the host's evidence alone and never at the result: a result that looks wrong is no reason to measure again.

use itertools::Itertools as _;

use super::{CPU_OTHERS, Warning};
use crate::record::Trial;

/// Share of all cores that the hypervisor gave to others.
const STOLEN: f64 = 0.05;

/// What the host alone adds to a timed answer, in microseconds. Idle hosts add 20 to 300.
const TIMER_TAIL_US: f64 = 1000.0;

/// Times as long as in another trial of the cell that the same arithmetic takes the cores. Where it had two speeds, the
/// slower one took it 1.36 times as long; a window has a share of either (docs/results/core-work.md).
const SLOWER_CORES: f64 = 1.10;
/// Busy share of all cores from which their speed matters to a trial.
const CORES_MATTER: f64 = 0.50;

impl Warning {
    /// The warnings of the host's own evidence.
    pub(crate) fn of_host(stolen: f64, timer_tail_us: Option<f64>) -> impl Iterator<Item = Warning> {
        let stolen = (stolen >= STOLEN).then_some(Warning::Stolen { share: stolen });
        let late = timer_tail_us.filter(|tail_us| *tail_us >= TIMER_TAIL_US);
        stolen.into_iter().chain(late.map(|tail_us| Warning::HostLate { tail_us }))
    }

    /// Whether it says that the host disturbed the trial. An emulator that answers late can be late by the
    /// trial's own load, so that it would be late again.
    fn is_disturbance(&self) -> bool {
        match self {
            Warning::OtherPrograms { share, .. } => *share >= CPU_OTHERS,
            Warning::Stolen { .. } | Warning::HostLate { .. } | Warning::OtherRun { .. } => true,
            _ => false,
        }
    }
}

impl Trial {
    /// What disturbed it, as names of warnings; `None` for a trial that nothing disturbed.
    pub fn disturbance(&self) -> Option<String> {
        let names = self.warnings.iter().filter(|warning| warning.is_disturbance()).map(Warning::name);
        let names = names.unique().join(" and ");
        (!names.is_empty()).then_some(names)
    }

    /// What the same arithmetic took the cores, if the trial kept them busy; else their speed does not matter to it.
    fn core_work_us(&self) -> Option<f64> {
        let measurement = self.measurement.as_ref().filter(|it| it.cpu.busy >= CORES_MATTER)?;
        measurement.machine.as_ref()?.core_work_us
    }

    /// Whether its cores were much slower than those of another trial of its cell. Trials of a cell have the same load, so
    /// that the host is what differs.
    pub(crate) fn had_slower_cores_than(&self, other: &Trial) -> bool {
        let times = self.core_work_us().zip(other.core_work_us());
        times.is_some_and(|(own_us, others_us)| own_us >= others_us * SLOWER_CORES)
    }

    /// Whether it takes the place of an earlier trial of the same number: a repetition counts, unless the
    /// host disturbed it as well, or gave it slower cores.
    pub(crate) fn replaces(&self, earlier: &Trial) -> bool {
        match (earlier.disturbance(), self.disturbance()) {
            (_, Some(_)) => false,
            (Some(_), None) => true,
            (None, None) => {
                let times = self.core_work_us().zip(earlier.core_work_us());
                times.is_none_or(|(own_us, earlier_us)| own_us <= earlier_us)
            }
        }
    }
}
