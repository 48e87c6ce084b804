//! A CSV file as a table: the types of its columns, and its rows in the format of a load.

use std::path::Path;

use anyhow::{Context, Result, bail};
use csv::StringRecord;
use spindle_load::sql::Session;

/// What data sets write in place of a missing value.
const MISSING: [&str; 3] = ["", "NA", "\\N"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Integer,
    Number,
    Text,
}

#[derive(Debug, PartialEq, Eq)]
struct Column {
    name: String,
    kind: Kind,
    /// Bytes of the longest value.
    width: usize,
}

#[derive(Debug)]
pub(super) struct Table {
    columns: Vec<Column>,
    rows: Vec<StringRecord>,
}

impl Table {
    pub(super) fn read(path: &Path) -> Result<Table> {
        Table::parse(csv::Reader::from_path(path)?)
    }

    fn parse(mut reader: csv::Reader<impl std::io::Read>) -> Result<Table> {
        let names: Vec<String> = reader.headers()?.iter().map(column_name).collect();
        let rows = reader.records().collect::<csv::Result<Vec<StringRecord>>>()?;
        let column = |(index, name): (usize, String)| {
            let values = rows.iter().map(|row| &row[index]).filter(|value| !MISSING.contains(value));
            let of_value = |value: &str| (kind(value), value.len());
            let (kind, width) = values
                .map(of_value)
                .fold((None, 1), |(kind, width), (other, length)| (kind.max(Some(other)), width.max(length)));
            Column { name, kind: kind.unwrap_or(Kind::Text), width }
        };
        let columns = names.into_iter().enumerate().map(column).collect();
        let table = Table { columns, rows };
        table.check()?;
        Ok(table)
    }

    /// # Errors
    /// A value would be changed by the load.
    fn check(&self) -> Result<()> {
        let is_plain = |value: &str| {
            MISSING.contains(&value)
                || value.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'\\')
        };
        match self.rows.iter().flatten().find(|value| !is_plain(value)) {
            Some(value) => bail!("`{}` is no plain text", value.escape_debug()),
            None => Ok(()),
        }
    }

    pub(super) fn row_count(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Creates the table, which must not exist yet, and fills it.
    pub(super) fn load(self, session: &mut dyn Session, table: &str) -> Result<()> {
        let columns: Vec<String> = self.columns.iter().map(Column::declaration).collect();
        let create = format!("CREATE TABLE {table} ({})", columns.join(", "));
        session.execute_each([session.dialect().create_table(&create)])?;
        let rows = self.rows;
        let write = move |output: &mut dyn std::io::Write| {
            rows.iter().try_for_each(|row| {
                let values: Vec<&str> =
                    row.iter().map(|value| if MISSING.contains(&value) { "\\N" } else { value }).collect();
                writeln!(output, "{}", values.join("\t"))
            })
        };
        session.load(table, Box::new(write)).with_context(|| format!("loading the table {table}"))
    }
}

impl Column {
    fn declaration(&self) -> String {
        let Column { name, kind, width } = self;
        match kind {
            Kind::Integer => format!("{name} BIGINT"),
            Kind::Number => format!("{name} DOUBLE PRECISION"),
            Kind::Text => format!("{name} VARCHAR({width})"),
        }
    }
}

/// A name that needs no quotes.
fn column_name(header: &str) -> String {
    let letter = |one: char| if one.is_ascii_alphanumeric() { one.to_ascii_lowercase() } else { '_' };
    let name: String = header.trim().chars().map(letter).collect();
    let name = name.trim_matches('_').to_owned();
    if name.starts_with(|first: char| first.is_ascii_digit()) { format!("column_{name}") } else { name }
}

/// A number with leading zeros is a name.
fn kind(value: &str) -> Kind {
    if value.parse::<i64>().is_ok_and(|number| number.to_string() == value) {
        return Kind::Integer;
    }
    let has_zeros = value.len() > 1 && value.starts_with('0') && !value.starts_with("0.");
    let looks_like_one = value.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    if looks_like_one && !has_zeros && value.parse::<f64>().is_ok() { Kind::Number } else { Kind::Text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Table> {
        Table::parse(csv::Reader::from_reader(text.as_bytes()))
    }

    #[test]
    fn columns_have_the_types_of_their_values() {
        let text =
            "Id,zip code,Cost Total $,2nd,when,none\n1,00501,12,3,2013-01-01,NA\n-20,10001,0.5,NA,x y,\n";
        let table = parse(text).unwrap();
        let declared: Vec<String> = table.columns.iter().map(Column::declaration).collect();
        let expect = [
            "id BIGINT",
            "zip_code VARCHAR(5)",
            "cost_total DOUBLE PRECISION",
            "column_2nd BIGINT",
            "when VARCHAR(10)",
            "none VARCHAR(1)",
        ];
        assert_eq!(declared, expect);
        assert_eq!(table.row_count(), 2);
    }

    #[test]
    fn a_value_that_the_load_would_change_is_refused() {
        let error = parse("a\nx\\ty\n").unwrap_err().to_string();
        assert_eq!(error, "`x\\\\ty` is no plain text");
        assert!(parse("a\n\"x\ny\"\n").is_err());
    }

    #[test]
    fn a_file_becomes_a_table() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("database");
        let endpoint = spindle_load::Endpoint::Sqlite { path, pragmas: Default::default() };
        let mut session = spindle_load::sql::connect(&endpoint).unwrap();
        parse("a,b\n1,one\n2,NA\n").unwrap().load(&mut *session, "t").unwrap();
        assert_eq!(session.number("SELECT SUM(a) FROM t WHERE b IS NULL OR b = 'one'").unwrap(), 3);
        let error = parse("a\n1\n").unwrap().load(&mut *session, "t").unwrap_err();
        assert!(format!("{error:#}").contains("already exists"), "{error:#}");
    }
}
