//! Keeps the passwords of URLs that a scenario or a server names out of the records.

use serde_json::Value;
use spindle_base::passwords::{masked, masked_scenario, masked_value};

use super::{Header, Trial};

pub(crate) fn mask_header(header: &mut Header) {
    let scenario = &mut header.scenario;
    scenario.text = masked_scenario(&scenario.text);
    let experiment = scenario.experiment.iter_mut();
    experiment.flat_map(|experiment| experiment.parts_mut()).for_each(mask_json);
    for text in [&mut scenario.title, &mut scenario.question, &mut header.report_command] {
        *text = masked(text);
    }
}

fn mask_json(value: &mut Value) {
    match value {
        Value::String(text) => *text = masked_value(text),
        Value::Array(values) => values.iter_mut().for_each(mask_json),
        Value::Object(fields) => fields.values_mut().for_each(mask_json),
        _ => {}
    }
}

/// Masks messages of a server or a client.
pub(crate) fn mask_trial(trial: &mut Trial) {
    trial.error = trial.error.as_deref().map(masked);
    for check in trial.measurement.iter_mut().flat_map(|measurement| &mut measurement.verification) {
        check.detail = masked(&check.detail);
    }
    for value in trial.provenance.settings.values_mut() {
        *value = masked(value);
    }
}
