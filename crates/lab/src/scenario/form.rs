//! The form of a scenario as a JSON schema, from the declarations of its structures and of the workloads.

pub mod reference;

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use spindle_load::WorkloadSpec;

use super::file::ScenarioFile;

/// The schema of a scenario with these tables. Tables whose keys depend on their kind have a schema each.
pub(super) fn schema(scenario: &toml::Table) -> Value {
    let mut schema = whole();
    let tables = scenario.get("workloads").and_then(toml::Value::as_table);
    for (name, table) in tables.into_iter().flatten() {
        let kind = table.get("kind").and_then(toml::Value::as_str);
        schema["properties"]["workloads"]["properties"][name] = workload(kind.unwrap_or_default());
    }
    schema
}

/// The schema of any scenario. References are inlined, so that each property is read where it stands.
fn whole() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.into_generator().into_root_schema_for::<ScenarioFile>().into()
}

/// The schema of a workload's table. Of an unknown kind only the kind is known.
fn workload(kind: &str) -> Value {
    let kinds = json!({ "type": "string", "enum": WorkloadSpec::kinds_that(|_| true) });
    let Some(schema) = WorkloadSpec::schema_of(kind) else {
        return json!({ "type": "object", "properties": { "kind": kinds }, "required": ["kind"] });
    };
    let mut schema = Value::from(schema);
    schema["properties"]["kind"] = kinds;
    schema
}
