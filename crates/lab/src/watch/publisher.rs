//! The side of the run: its state, filled in as it goes on.
//!
//! A run measures, so the state costs it next to nothing: it is made of samples that the record needs anyway,
//! and what takes computing is left out while nobody follows.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use spindle_base::dilation::Dilation;
use spindle_base::proc::family_cpu_s;
use spindle_load::{Second, Summary};
use spindle_model::Rates;

use super::state::{CpuShares, EventState, Phase, Standing, State, StorageState, TrialState, now_ms};
use crate::host::broadcast::Broadcast;
use crate::host::other_runs::RunHead;
use crate::observe::measurement::{self, Window};
use crate::observe::{Sample, server_threads};
use crate::record::{Bottleneck, Series, StorageSeries};
use crate::report::rounded;
use crate::server::telemetry::{Durability, Telemetry};
use crate::stack::layout::Layout;
use crate::volume::sample::MountSample;

/// Seconds of the trial's time that are kept for charts.
const KEPT: usize = 300;
/// A bottleneck of fewer seconds would change with each.
const SECONDS_LEAST: usize = 5;

/// Publishes the state of this process's run. The default publishes nothing.
#[derive(Debug, Clone, Default)]
pub struct Publisher(Option<Arc<Broadcast<State>>>);

/// What a trial knows of its load before the window.
#[derive(Debug, Clone, Default)]
pub struct LoadFacts {
    /// `None` if terminals pause, so that nobody knows before the end how long they waited.
    pub terminals: Option<u32>,
    pub durability: Durability,
    /// Of each mount of the layout, as the parameters of its device state them.
    pub rates: Vec<Rates>,
}

impl Publisher {
    /// `report` is the page that the run will write.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn open(head: &RunHead, report: &Path, standing: Standing) -> Result<Publisher> {
        let title = head.title.clone();
        Publisher::open_at(&head.socket(), State { title, standing, ..State::of_run(report)? })
    }

    pub(super) fn open_at(socket: &Path, state: State) -> Result<Publisher> {
        Ok(Publisher(Some(Arc::new(Broadcast::open(socket, state)?))))
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        if let Some(broadcast) = &self.0 {
            broadcast.change(|state| {
                change(state);
                state.changed_at_ms = now_ms();
            });
        }
    }

    fn change_trial(&self, change: impl FnOnce(&mut TrialState)) {
        self.change(|state| {
            if let Some(trial) = &mut state.trial {
                change(trial);
            }
        });
    }

    pub fn standing(&self, standing: Standing) {
        self.change(|state| state.standing = standing);
    }

    /// On so many of the machine's cores.
    pub fn begin_trial(&self, title: &str, dilation: Dilation, cpu_count: u32) {
        let trial = TrialState { title: title.to_owned(), dilation, cpu_count, ..TrialState::default() };
        self.change(|state| state.trial = Some(trial));
    }

    /// Adds the mounts of a layout. `owner` goes before the names of its files.
    pub fn storage(&self, owner: &str, layout: &Layout) {
        let storage = layout.mounts.iter().map(|mount| {
            let classes: Vec<&str> = mount.classes.iter().map(|class| class.key()).collect();
            StorageState {
                files: format!("{owner}{}", classes.join("+")),
                stack: mount.stack.clone(),
                series: StorageSeries::default(),
            }
        });
        self.change_trial(|trial| trial.storage.extend(storage));
    }

    pub fn enter(&self, phase: &str) {
        self.change_trial(|trial| trial.phase = Phase::begin(phase));
    }

    /// What the present phase was entered for begins now, and takes this long or less.
    pub fn plan_phase(&self, planned: Duration) {
        let planned_s = Some(planned.as_secs_f64());
        self.change_trial(|trial| trial.phase = Phase { planned_s, ..Phase::begin(&trial.phase.name) });
    }

    /// A change takes place in the window, planned for this time of it.
    pub fn event(&self, at: Duration, change: &str) {
        let event = EventState { at_s: at.as_secs_f64(), change: change.to_owned() };
        self.change_trial(|trial| trial.events.push(event));
    }

    /// As [`Publisher::plan_phase`], for a phase that ends when its work is done.
    pub fn bound_phase(&self, at_most: Duration) {
        self.plan_phase(at_most);
        self.change_trial(|trial| trial.phase.is_bound = true);
    }

    pub fn end_trial(&self) {
        self.change(|state| state.trial = None);
    }

    /// A second in which nothing but the clients is sampled.
    pub fn second_of_clients(&self, second: &Second) {
        self.change_trial(|trial| {
            measurement::push_of_clients(&mut trial.series, second);
            trim(&mut trial.series);
        });
    }

    /// All trials are done.
    pub fn end(&self) {
        self.change(|state| state.is_over = true);
    }
}

/// Publishes the seconds of one measured window.
#[derive(Debug)]
pub struct WindowFeed<'a> {
    pub publisher: &'a Publisher,
    pub telemetry: &'static dyn Telemetry,
    pub layout: &'a Layout,
    pub load: &'a LoadFacts,
    pub dilation: Dilation,
    /// Those on which server and client run.
    pub cpu_count: u32,
    /// The load process.
    pub client_id: u32,
    /// Zero without a server process of ours.
    pub server_id: u32,
    /// Its CPU time at the begin of the window and of the second.
    pub client_cpu_s: [f64; 2],
}

impl WindowFeed<'_> {
    /// Called before the window.
    pub fn begin(&mut self) {
        if self.publisher.0.is_some() {
            self.client_cpu_s = [self.client_cpu_now_s(); 2];
        }
    }

    /// Called at the end of each second of the window. `first` is the sample at the begin of the window.
    pub fn second(&mut self, first: &Sample, seconds: &[(Second, Sample)]) {
        let (Some(broadcast), Some((second, sample))) = (&self.publisher.0, seconds.last()) else { return };
        let earlier = seconds.iter().nth_back(1).map_or(first, |(_, earlier)| earlier);
        let client_cpu_s = self.client_cpu_now_s();
        let since_earlier = Spent::between(earlier, sample, client_cpu_s - self.client_cpu_s[1]);
        self.client_cpu_s[1] = client_cpu_s;
        // Outside of the change, which holds a lock.
        let bottleneck = broadcast.is_followed().then(|| self.bottleneck(first, seconds)).flatten();
        self.publisher.change_trial(|trial| {
            trial.cpu = Some(since_earlier.shares(trial.cpu_count));
            trial.bottleneck = bottleneck;
            measurement::push_second(&mut trial.series, self.telemetry, second, [earlier, sample]);
            trim(&mut trial.series);
            let pairs = mounts(earlier).zip(mounts(sample));
            for (storage, (earlier_mount, mount)) in trial.storage.iter_mut().zip(pairs) {
                let elapsed = sample.at - earlier.at;
                measurement::push_storage(&mut storage.series, [earlier_mount, mount], elapsed);
                trim_storage(&mut storage.series);
            }
        });
    }

    fn client_cpu_now_s(&self) -> f64 {
        self.dilation.dilated_s(family_cpu_s(self.client_id))
    }

    fn bottleneck(&self, first: &Sample, seconds: &[(Second, Sample)]) -> Option<Bottleneck> {
        let (terminals, (_, last)) = (self.load.terminals?, seconds.last()?);
        if seconds.len() < SECONDS_LEAST {
            return None;
        }
        let duration_s = (last.at - first.at).as_secs_f64();
        let window = Window {
            timer_tail_us: None,
            core_work_us: None,
            // The stopwatch of the commits is read at the end, and until then estimated.
            summary: Summary {
                duration_s,
                terminal_time_s: f64::from(terminals) * duration_s,
                client_cpu_s: self.client_cpu_s[1] - self.client_cpu_s[0],
                worker_threads: terminals,
                ..Summary::default()
            },
            seconds: Vec::new(),
            first: first.clone(),
            last: Sample { server_threads: server_threads(self.server_id, self.dilation), ..last.clone() },
            cache_turnovers: None,
            settling: None,
            recovery_s: None,
            layout: self.layout.clone(),
            replicas: Vec::new(),
            telemetry: self.telemetry,
            durability: self.load.durability.clone(),
            rates: self.load.rates.clone(),
            cpu_count: self.cpu_count,
            dilation: self.dilation,
            events: Vec::new(),
        };
        let looks = seconds.iter().map(|(_, sample)| &sample.counters).collect();
        measurement::bottleneck_so_far(&window, looks).ok()
    }
}

/// The mounts of the server, then those of its replicas.
fn mounts(sample: &Sample) -> impl Iterator<Item = &MountSample> {
    sample.mounts.iter().chain(sample.replicas.iter().flat_map(|replica| &replica.mounts))
}

/// CPU time between two samples.
struct Spent {
    busy: f64,
    elapsed_s: f64,
    server_s: f64,
    client_s: f64,
    emulator_s: f64,
}

impl Spent {
    fn between(earlier: &Sample, later: &Sample, client_s: f64) -> Spent {
        let server_s = |sample: &Sample| {
            let replicas = sample.replicas.iter().map(|replica| replica.server_cpu_s);
            sample.server_cpu_s + replicas.sum::<f64>()
        };
        let emulator_s = |sample: &Sample| {
            let replicas = sample.replicas.iter().map(|replica| replica.emulator_cpu_s);
            sample.emulator_cpu_s + replicas.sum::<f64>()
        };
        Spent {
            busy: later.cpu.busy_since(earlier.cpu),
            elapsed_s: (later.at - earlier.at).as_secs_f64(),
            server_s: server_s(later) - server_s(earlier),
            client_s,
            emulator_s: emulator_s(later) - emulator_s(earlier),
        }
    }

    fn shares(&self, cpu_count: u32) -> CpuShares {
        let cores_s = self.elapsed_s * f64::from(cpu_count);
        let share = |seconds: f64| if cores_s > 0.0 { rounded((seconds / cores_s).max(0.0)) } else { 0.0 };
        CpuShares {
            busy: rounded(self.busy),
            server: share(self.server_s),
            client: share(self.client_s),
            emulator: share(self.emulator_s),
        }
    }
}

fn trim(series: &mut Series) {
    let Series { transactions_per_s, p50_ms, p95_ms, p99_ms, cpu_busy, server, machine, charts: _ } = series;
    let own = [transactions_per_s, p50_ms, p95_ms, p99_ms, cpu_busy];
    own.into_iter().chain(server.values_mut()).chain(machine.values_mut()).for_each(trim_values);
}

fn trim_storage(series: &mut StorageSeries) {
    series.every_mut().into_iter().for_each(trim_values);
}

/// After a value was added: rounds it, which keeps the line short, and forgets one that is too old.
fn trim_values(values: &mut Vec<f64>) {
    if let Some(last) = values.last_mut() {
        *last = rounded(*last);
    }
    if values.len() > KEPT {
        values.remove(0);
    }
}
