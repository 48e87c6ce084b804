//! The JSON Schema of a line of a records file, from the structures that write and read it:
//! `docs/records.schema.json`.
//!
//! It is open: a later version may add fields to the same format, and a reader leaves out those that it does
//! not know.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::json;

use super::{FORMAT, Line};

/// The schema as text, for a file.
pub(crate) fn text() -> String {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(described_for_readers));
    let mut schema = settings.into_generator().into_root_schema_for::<Line>();
    schema.insert("title".to_owned(), json!(format!("A line of records.jsonl, format {FORMAT}")));
    spindle_base::text::json(&schema).expect("a schema is JSON") + "\n"
}

/// A description of a structure is one of the code's documentation: its line breaks and links go.
fn described_for_readers(schema: &mut Schema) {
    let Some(description) = schema.get("description").and_then(|text| text.as_str()) else { return };
    let plain = description.replace('\n', " ").replace("[`", "`").replace("`]", "`").replace("super::", "");
    schema.insert("description".to_owned(), json!(plain));
}
