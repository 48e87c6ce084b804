//! Changes at times of the measured window. Each kind is one file and one line of the list below.
//!
//! Belongs here: the keys of an event, and what a scenario must have for it. Must not know how a change is
//! carried out, which is the work of a server, a disk or the load process.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use spindle_base::text;
use spindle_base::{Mistake, near};

use super::Scenario;
use super::file::DurationText;
use crate::server::Settings;
use crate::stack::layout::Layout;

/// Makes the modules of the kinds, and the table of an event. A line has the key's sentence, the key, and the
/// type of its value in the module of the same name, which implements [`Kind`].
macro_rules! events {
    ($($doc:literal $key:ident: $value:ident;)+) => {
        $( mod $key; )+

        /// A change at a time of the measured window.
        #[derive(Debug, Clone, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(super) struct EventTable {
            /// Time since the beginning of the measured window.
            #[schemars(example = "20 s")]
            pub at: DurationText,
            $(
                #[doc = $doc]
                pub $key: Option<$key::$value>,
            )+
        }

        /// The keys of which an event has one.
        const KEYS: &[&str] = &[$( stringify!($key) ),+];

        impl EventTable {
            fn kinds(&self) -> Vec<(&'static str, &dyn Kind)> {
                let kinds = [$( self.$key.as_ref().map(|kind| (stringify!($key), kind as &dyn Kind)) ),+];
                kinds.into_iter().flatten().collect()
            }
        }
    };
}

events! {
    "Settings of the server that get new values while it runs: `set = { innodb_io_capacity = 2000 }`." set: Set;
    "Change of the load: `load = { times = 2 }`." load: Load;
    "Battery of a controller's cache: `battery = { stack = \"NAME\", state = \"fails\" }`, or `is replaced`."
        battery: Battery;
    "Member of an array: `member = { stack = \"NAME\", number = 1, state = \"fails\" }`, or `is replaced`, which \
     begins its rebuild."
        member: Member;
    "Link of a replicated device: `link = { stack = \"NAME\", state = \"breaks\" }`, or `is restored`." link: Link;
}

/// The value of an event's key.
trait Kind {
    /// # Errors
    /// The scenario has nothing that could change so. The place is that below the event's key.
    fn change(&self, scenario: &Scenario) -> Result<Change, Mistake>;
}

/// An event that the scenario can have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    pub at: Duration,
    pub change: Change,
    /// In the scenario file.
    #[serde(skip)]
    pub place: String,
}

/// What changes, by who carries it out.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The server.
    Settings(Settings),
    /// The emulated disk of this stack.
    Disk {
        stack: String,
        #[serde(serialize_with = "in_words")]
        change: spindle_model::Change,
    },
    /// The load process: so many times the workload's `rate`, or its `terminals` in the closed loop.
    Load { times: f64 },
}

fn in_words<S: Serializer>(change: &spindle_model::Change, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(change)
}

impl Change {
    /// Names of the server's settings that change.
    pub fn settings(&self) -> impl Iterator<Item = &String> {
        let settings = if let Change::Settings(settings) = self { Some(settings) } else { None };
        settings.into_iter().flat_map(Settings::keys)
    }

    /// For a mark on a chart, and the start of a sentence.
    pub fn words(&self) -> String {
        match self {
            Change::Settings(settings) => {
                let pairs: Vec<String> =
                    settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                text::one_line(&pairs.join(", "))
            }
            Change::Disk { stack, change } => format!("{stack}: {change}"),
            Change::Load { times } => format!("load × {times}"),
        }
    }
}

impl Event {
    /// Whether a cell with this storage has it.
    pub fn is_of(&self, layout: &Layout) -> bool {
        match &self.change {
            Change::Disk { stack, .. } => layout.mounts.iter().any(|mount| mount.stack == *stack),
            Change::Settings(_) | Change::Load { .. } => true,
        }
    }

    /// `at 20 s: innodb_io_capacity = 2000`.
    pub fn sentence(&self) -> String {
        format!("at {}: {}", text::duration(self.at), self.change.words())
    }
}

/// The events of a scenario that is complete but for them, in the order of their times.
pub(super) fn read(tables: &[EventTable], scenario: &Scenario) -> Result<Vec<Event>, Mistake> {
    if tables.is_empty() {
        return Ok(Vec::new());
    }
    check_window(scenario)?;
    let mut events = Vec::new();
    for (index, table) in tables.iter().enumerate() {
        let place = format!("events[{index}]");
        events.push(event(table, scenario, &place).map_err(|mistake| mistake.under(&place))?);
    }
    events.sort_by_key(|event| event.at);
    check_disks(&events, scenario)?;
    Ok(events)
}

/// The window must have its full length, with figures of its parts.
fn check_window(scenario: &Scenario) -> Result<(), Mistake> {
    let run = &scenario.run;
    if run.once {
        let message = "have no time in fixed work, whose length nobody knows; leave them out, or give `measure` a duration";
        return Err(Mistake::at("events", message));
    }
    if run.enough.is_some() {
        let message = "can end the window before an event; leave it out";
        return Err(Mistake::at("run.enough", message));
    }
    if let Some(name) = scenario.workload_that(|workload| workload.facts().has_tool) {
        let message = format!(
            "need figures of the window's parts, and workload `{name}` of kind `{}` has those of the whole; leave \
             them out",
            scenario.workloads[name].kind()
        );
        return Err(Mistake::at("events", message));
    }
    Ok(())
}

fn event(table: &EventTable, scenario: &Scenario, place: &str) -> Result<Event, Mistake> {
    let (at, measure) = (table.at.0, scenario.run.measure);
    if at.is_zero() || at >= measure {
        let (at, measure) = (text::duration(at), text::duration(measure));
        let message = format!("{at} is not inside the measured window, which has {measure}");
        return Err(Mistake::at("at", message));
    }
    let kinds = table.kinds();
    let [(key, kind)] = kinds.as_slice() else {
        let message = format!("must change one thing at a time: one of {}", near::list(KEYS));
        return Err(Mistake::new(message));
    };
    let change = kind.change(scenario).map_err(|mistake| mistake.under(key))?;
    Ok(Event { at, change, place: place.to_owned() })
}

/// The change of a stack's part. The stack must be that of a mount of the cells, and emulated.
fn of_disk(scenario: &Scenario, stack: &str, change: spindle_model::Change) -> Result<Change, Mistake> {
    let mounts = scenario.layouts.iter().flat_map(|layout| &layout.mounts);
    let mut known: Vec<&str> = mounts.map(|mount| mount.stack.as_str()).collect();
    known.dedup();
    if !known.contains(&stack) {
        let message = format!("no cell has its files on `{stack}`{}", near::hint(stack, &known));
        return Err(Mistake::at("stack", message));
    }
    if scenario.stacks[stack].real().is_some() {
        return Err(Mistake::at("stack", format!("`{stack}` is a real disk, which an event cannot change")));
    }
    Ok(Change::Disk { stack: stack.to_owned(), change })
}

/// Lets the models of the disks change in the order of the events, without a load.
fn check_disks(events: &[Event], scenario: &Scenario) -> Result<(), Mistake> {
    let mut disks = std::collections::BTreeMap::new();
    for event in events {
        let Change::Disk { stack, change } = &event.change else { continue };
        let disk = disks.entry(stack).or_insert_with(|| scenario.stacks[stack].build(scenario.run.seed));
        let now = spindle_model::Instant(u64::try_from(event.at.as_nanos()).unwrap_or(u64::MAX));
        let message = match disk.change(now, *change) {
            Ok(true) => continue,
            Ok(false) => format!("`{stack}` has no part for it: {}", change.part()),
            Err(refused) => format!("`{stack}`: {refused}"),
        };
        return Err(Mistake::at(event.place.clone(), message));
    }
    Ok(())
}
