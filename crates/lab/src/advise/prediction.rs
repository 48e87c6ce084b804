//! Runs the twin of a measured database on a storage.

use spindle_base::Mistake;
use spindle_twin::{Arrivals, Drives, Facts, Kind, Mount, Outcome, Window, simulate};

use crate::stack::StackSpec;

/// A storage under the database: one stack for all of its files, or one for each mount of the measured layout.
#[derive(Debug, Clone)]
pub struct Storage {
    pub name: String,
    pub label: String,
    pub stacks: Vec<StackSpec>,
    /// The tables of a scenario's `[stacks]` that make it; empty for the measured storage.
    pub tables: toml::Table,
}

/// Time that brings the terminals into motion.
pub(super) const SETTLE_NS: u64 = 2_000_000_000;
/// Transactions from which on a mean is known well enough, and the longest time to wait for them.
const ENOUGH: u64 = 20_000;

impl Storage {
    /// # Errors
    /// A part of it has no model.
    pub fn check(&self) -> Result<(), Mistake> {
        self.stacks.iter().try_for_each(has_model)
    }

    /// Whether a buffered read of a file and a write to it exclude each other on this mount. They do on XFS; other
    /// file systems read by `filemap_read` alone (mm/filemap.c), without the file's lock.
    pub(super) fn locks_files(&self, mount: usize) -> bool {
        self.stacks[mount].head().file_system == "xfs"
    }

    fn drives(&self, seed: u64) -> Drives {
        let mount = |stack: &StackSpec| Mount {
            device: stack.build(seed),
            flush_stops_the_queue: true,
            has_volatile_cache: stack.tree().has_volatile_cache(),
            rotates: stack.tree().rotates(),
        };
        Drives { mounts: self.stacks.iter().map(mount).collect() }
    }
}

/// # Errors
/// It is a real disk or a ZFS pool, of which there is no model.
pub(super) fn has_model(stack: &StackSpec) -> Result<(), Mistake> {
    if stack.real().is_some() || stack.pool().is_some() {
        let name = &stack.head().name;
        return Err(Mistake::new(format!(
            "`{name}` is a real disk or a ZFS pool, of which there is no model"
        )));
    }
    Ok(())
}

/// The database of `facts` on a storage, for that many seconds of model time at most.
pub fn predict(facts: &Facts, storage: &Storage, seconds: f64, seed: u64) -> Outcome {
    let on_one = storage.stacks.len() == 1;
    let mut facts = if on_one { on_one_mount(facts) } else { facts.clone() };
    facts.hot_file = facts.hot_file.filter(|_| storage.locks_files(facts.reading.mount));
    let window = Window { settle_ns: SETTLE_NS, measure_ns: (seconds * 1e9) as u64, enough: ENOUGH, seed };
    simulate(&facts, storage.drives(seed), window)
}

/// The facts for cores that are so many times as slow.
pub(super) fn with_slower_cores(facts: &Facts, times: f64) -> Facts {
    let kinds = facts.kinds.iter().map(|kind| Kind { cpu_ns: kind.cpu_ns * times, ..kind.clone() });
    Facts { kinds: kinds.collect(), ..facts.clone() }
}

/// What a storage can do, and how it does at the needed rate.
#[derive(Debug)]
pub struct Prediction {
    /// With all terminals at work.
    pub capacity: Outcome,
    /// Transactions arrive at the needed rate. `None` without a need, and where it is beyond the capacity.
    pub at_need: Option<Outcome>,
}

/// Connections for arrivals that come in bursts, in terminals.
const CONNECTIONS: u64 = 4;
/// Terminals that keep a storage busy, where the arrivals are not a closed loop's.
const BUSY_TERMINALS: u64 = 32;

/// The database on a storage: at full load, and at `needed` transactions a second.
pub fn predict_both(
    facts: &Facts,
    storage: &Storage,
    needed: Option<f64>,
    seconds: f64,
    seed: u64,
) -> Prediction {
    let terminals = match facts.arrivals {
        Arrivals::Closed { terminals } => terminals,
        Arrivals::Open { .. } => BUSY_TERMINALS,
    };
    let with = |arrivals| Facts { arrivals, ..facts.clone() };
    let capacity = predict(&with(Arrivals::Closed { terminals }), storage, seconds, seed);
    let at_need = needed.filter(|needed| *needed < capacity.per_second()).map(|per_second| {
        let arrivals = Arrivals::Open { per_second, connections: CONNECTIONS * terminals };
        predict(&with(arrivals), storage, seconds, seed)
    });
    Prediction { capacity, at_need }
}

/// All files on the first mount.
fn on_one_mount(facts: &Facts) -> Facts {
    use spindle_twin::{Flushing, Innodb, Part, Reading, Writeback};
    let mut facts = facts.clone();
    facts.reading = Reading { mount: 0, ..facts.reading };
    facts.commit.stages.iter_mut().for_each(|stage| stage.mount = 0);
    facts.flushing = match facts.flushing {
        Flushing::Innodb(innodb) => {
            let first = |part: Part| Part { mount: 0, ..part };
            let (log, doublewrite) = (first(innodb.log), first(innodb.doublewrite));
            Flushing::Innodb(Innodb { mount: 0, log, doublewrite, ..innodb })
        }
        Flushing::Writeback(writeback) => Flushing::Writeback(Writeback { mount: 0, ..writeback }),
    };
    facts
}
