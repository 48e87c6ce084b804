//! Keeps the passwords of URLs that a scenario or a server names out of the records.

use spindle_base::passwords::{masked, masked_scenario};

use super::{Header, Trial};

pub(crate) fn mask_header(header: &mut Header) {
    let scenario = &mut header.scenario;
    scenario.text = masked_scenario(&scenario.text);
    for text in [&mut scenario.title, &mut scenario.question, &mut header.report_command] {
        *text = masked(text);
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
