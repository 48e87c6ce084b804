//! What a scenario measures besides its storage, for the records. Two runs are compared by it.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use spindle_base::units::format_duration_ns;

use super::dilation::DilationRule;
use super::events::Event;
use super::procedure::span::{Ending, Span};
use super::{Scenario, ServerSpec, content_hash};
use crate::record::{ExperimentHead, spelling};
use crate::server::Source;

/// A longer text, such as a workload's statements, is recorded as its hash.
const TEXT_BYTES_MAX: usize = 200;

pub(super) fn head(scenario: &Scenario) -> ExperimentHead {
    let servers = scenario.matrix.server.iter();
    let workloads = scenario.matrix.workload.iter();
    ExperimentHead {
        servers: servers.map(|name| (name.clone(), server(&scenario.servers[name]))).collect(),
        workloads: workloads.map(|name| (name.clone(), value(&scenario.workloads[name]))).collect(),
        run: run(scenario),
    }
}

/// The replicas' storage is that of the cells.
fn server(spec: &ServerSpec) -> Value {
    let mut server = value(spec);
    if let Some(replication) = &spec.replication {
        server["replication"] = json!({"settings": replication.settings});
    }
    if let Source::Adapter(commands) = &spec.source {
        server["adapter"] = hash(commands);
    }
    server
}

fn run(scenario: &Scenario) -> Value {
    let run = &scenario.run;
    let mut head = json!({
        "start": spelling(&run.start),
        "warm_up": span(run.warm_up),
        "settle": span(run.settle),
        "measure": if run.once { "once".to_owned() } else { duration(run.measure) },
    });
    if let Some(enough) = run.enough {
        head["enough"] = enough.into();
    }
    if !run.at_least.is_zero() {
        head["at_least"] = duration(run.at_least).into();
    }
    if run.once {
        head["at_most"] = duration(run.measure).into();
    }
    if !run.dilation.is_none() {
        head["dilation"] = match run.dilation {
            DilationRule::AsNeeded { at_most } => format!("as needed, at most {at_most}").into(),
            rule => json!(rule),
        };
    }
    if let Some(cores) = run.cpu_affinity {
        head["cpu_affinity"] = cores.into();
    }
    if !scenario.events.is_empty() {
        head["events"] = scenario.events.iter().map(Event::sentence).collect();
    }
    head
}

fn duration(duration: Duration) -> String {
    format_duration_ns(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

fn span<R: Ending>(span: Span<R>) -> String {
    match span {
        Span::For(time) => duration(time),
        until => until.words(),
    }
}

fn value(plain: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(plain).expect("plain data always becomes JSON");
    shorten(&mut value);
    value
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > TEXT_BYTES_MAX => *value = hash(text),
        Value::Array(values) => values.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

fn hash(content: &impl Serialize) -> Value {
    format!("content {}", content_hash(content)).into()
}
