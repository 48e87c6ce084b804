//! The result of a query as text.

use anyhow::Result;
use mysql::consts::{ColumnFlags, ColumnType};
use serde_json::{Map, Number, Value};
use spindle_scatter::execute::Answer;

use super::ask::Format;

pub(super) fn answer(answer: &Answer, format: Format) -> Result<String> {
    let names: Vec<String> = answer.columns.iter().map(|column| column.name_str().into_owned()).collect();
    // A statement without a result, such as SET.
    if names.is_empty() {
        return Ok(String::new());
    }
    Ok(match format {
        Format::Table => table(&names, answer),
        Format::Tsv => separated(&names, answer, b'\t')?,
        Format::Csv => separated(&names, answer, b',')?,
        Format::Json => json(&names, answer)?,
    })
}

fn text(value: Option<&Vec<u8>>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// As the `mysql` client draws it: numbers to the right.
fn table(names: &[String], answer: &Answer) -> String {
    let cells: Vec<Vec<String>> = answer
        .rows
        .iter()
        .map(|row| {
            row.iter().map(|value| spindle_base::text::one_line(&text(value.as_ref())).to_string()).collect()
        })
        .collect();
    let width = |index: usize| {
        let cells = cells.iter().map(|row| &row[index]).chain([&names[index]]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    let are_numbers: Vec<bool> =
        answer.columns.iter().map(|column| column.flags().contains(ColumnFlags::NUM_FLAG)).collect();
    let rule: String =
        widths.iter().map(|width| format!("+{}", "-".repeat(width + 2))).collect::<String>() + "+\n";
    let line = |cells: &[String], is_head: bool| {
        let cell = |(index, cell): (usize, &String)| {
            let width = widths[index];
            match are_numbers[index] && !is_head {
                true => format!("| {cell:>width$} "),
                false => format!("| {cell:<width$} "),
            }
        };
        cells.iter().enumerate().map(cell).collect::<String>() + "|\n"
    };
    let rows: String = cells.iter().map(|row| line(row, false)).collect();
    format!("{rule}{}{rule}{rows}{}", line(names, true), if cells.is_empty() { "" } else { &rule })
}

/// NULL is `\N`, as LOAD DATA reads it.
fn separated(names: &[String], answer: &Answer, delimiter: u8) -> Result<String> {
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
    writer.write_record(names)?;
    for row in &answer.rows {
        writer.write_record(row.iter().map(|value| value.as_deref().unwrap_or(b"\\N")))?;
    }
    Ok(String::from_utf8_lossy(&writer.into_inner()?).into_owned())
}

fn json(names: &[String], answer: &Answer) -> Result<String> {
    let object = |row: &Vec<Option<Vec<u8>>>| {
        let values = row.iter().enumerate().map(|(index, value)| {
            let kind = answer.columns[index].column_type();
            (names[index].clone(), json_value(value.as_ref(), kind))
        });
        Value::Object(values.collect::<Map<_, _>>())
    };
    let rows: Vec<Value> = answer.rows.iter().map(object).collect();
    Ok(serde_json::to_string(&rows)? + "\n")
}

/// A DECIMAL stays text: a number of JSON may lose its digits.
fn json_value(value: Option<&Vec<u8>>, kind: ColumnType) -> Value {
    let Some(value) = value else { return Value::Null };
    let text = String::from_utf8_lossy(value).into_owned();
    let number = match kind {
        ColumnType::MYSQL_TYPE_TINY
        | ColumnType::MYSQL_TYPE_SHORT
        | ColumnType::MYSQL_TYPE_INT24
        | ColumnType::MYSQL_TYPE_LONG
        | ColumnType::MYSQL_TYPE_LONGLONG
        | ColumnType::MYSQL_TYPE_YEAR => {
            text.parse::<i64>().map(Number::from).ok().or_else(|| text.parse::<u64>().map(Number::from).ok())
        }
        ColumnType::MYSQL_TYPE_FLOAT | ColumnType::MYSQL_TYPE_DOUBLE => {
            text.parse().ok().and_then(Number::from_f64)
        }
        _ => None,
    };
    number.map_or(Value::String(text), Value::Number)
}
