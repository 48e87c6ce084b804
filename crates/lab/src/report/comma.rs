//! Comma-separated values (RFC 4180), one row per figure of a trial. docs/records.md has the columns.

use serde_json::Value;
use spindle_base::text::one_line;

use super::TrialTable;

pub(super) fn rows(table: &TrialTable) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(table.columns.iter().map(|name| safe(name)))?;
    for row in &table.rows {
        writer.write_record(row.iter().map(|value| safe(&field(value))))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        // Formats whole numbers without `.0`.
        Value::Number(number) if !number.is_u64() => {
            number.as_f64().map(|number| number.to_string()).unwrap_or_default()
        }
        other => other.to_string(),
    }
}

/// Puts an apostrophe before a field that a spreadsheet would evaluate as a formula (OWASP, "CSV Injection").
pub(super) fn safe(field: &str) -> String {
    let field = one_line(field);
    let is_formula = field.trim_start().starts_with(['=', '+', '-', '@']) && field.parse::<f64>().is_err();
    if is_formula { format!("'{field}") } else { field }
}
