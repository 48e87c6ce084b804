//! Comma-separated values (RFC 4180), one row per trial.

use serde_json::Value;
use spindle_base::text::one_line;

use super::TrialTable;

pub(super) fn rows(table: &TrialTable) -> String {
    let rows = table.rows.iter().map(|row| line(row.iter().map(field)));
    std::iter::once(line(table.columns.iter().cloned())).chain(rows).collect()
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
fn not_a_formula(field: &str) -> String {
    let is_formula = field.trim_start().starts_with(['=', '+', '-', '@']) && field.parse::<f64>().is_err();
    if is_formula { format!("'{field}") } else { field.to_owned() }
}

fn line(fields: impl Iterator<Item = String>) -> String {
    fields.map(|field| quoted(&field)).collect::<Vec<_>>().join(",") + "\n"
}

fn quoted(field: &str) -> String {
    let field = &not_a_formula(&one_line(field));
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
