//! The parser of workload files, whose format `docs/custom-workloads.md` describes.

use super::expression::{Expression, Numbers, amount};

/// A mistake in a file: the line, counted from one, and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mistake {
    pub(super) line: usize,
    pub(super) message: String,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Program {
    pub(super) load: Vec<LoadStep>,
    pub(super) transactions: Vec<Transaction>,
    pub(super) checks: Vec<Condition>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum LoadStep {
    Statement(Statement),
    Rows { line: usize, table: String, count: u64, columns: Vec<Expression> },
}

/// SQL with `?` for values.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Statement {
    pub(super) line: usize,
    pub(super) text: String,
    /// For each `?` the index of the transaction's variable.
    pub(super) slots: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Transaction {
    line: usize,
    pub(super) name: String,
    pub(super) weight: u32,
    pub(super) variables: Vec<(String, Expression)>,
    pub(super) statements: Vec<Statement>,
}

impl Transaction {
    /// True if the statement may change data.
    pub(super) fn writes(&self) -> bool {
        let only_reads = |statement: &Statement| {
            let text = statement.text.to_ascii_uppercase();
            text.starts_with("SELECT") && !text.contains("FOR UPDATE")
        };
        !self.statements.iter().all(only_reads)
    }
}

/// A query whose first column must be non-zero.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Condition {
    line: usize,
    pub(super) name: String,
    pub(super) query: Statement,
}

/// The index of a transaction has eight bits.
const TRANSACTIONS_MAX: usize = 200;
const WEIGHT_MAX: i64 = 1_000_000;
const ROWS_MAX: i64 = 10_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Parameters only.
    Head,
    Load,
    Transaction,
    Check,
}

struct Reader<'a> {
    /// The scenario's values. Each must be a parameter of the file.
    given: &'a Numbers,
    parameters: Numbers,
    section: Section,
    program: Program,
    /// An unfinished statement: its first line, and its text.
    open: Option<(usize, String)>,
}

impl Program {
    /// # Errors
    /// The first mistake in the file.
    pub(super) fn parse(text: &str, given: &Numbers) -> Result<Program, Mistake> {
        let mut reader = Reader {
            given,
            parameters: Numbers::new(),
            section: Section::Head,
            program: Program::default(),
            open: None,
        };
        let mut last = 1;
        for (index, line) in text.lines().enumerate() {
            last = index + 1;
            let line = line.trim();
            if line.is_empty() || line.starts_with("--") {
                continue;
            }
            let read = match line.strip_prefix('\\') {
                Some(command) => reader.command(last, command),
                None => reader.sql(last, line),
            };
            read.map_err(|message| Mistake { line: last, message })?;
        }
        reader.end().map_err(|(line, message)| Mistake { line: line.unwrap_or(last), message })?;
        Ok(reader.program)
    }
}

impl Reader<'_> {
    fn command(&mut self, line: usize, command: &str) -> Result<(), String> {
        if let Some((begun, _)) = &self.open {
            return Err(format!("the statement of line {begun} has no `;` at the end of a line"));
        }
        let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let rest = rest.trim();
        match word {
            "parameter" => self.parameter(rest),
            "load" if rest.is_empty() => {
                self.section = Section::Load;
                Ok(())
            }
            "rows" => self.rows(line, rest),
            "transaction" => self.transaction(line, rest),
            "set" => self.set(rest),
            "check" if !rest.is_empty() => {
                self.section = Section::Check;
                let condition = Condition { line, name: rest.to_owned(), query: Statement::default() };
                self.program.checks.push(condition);
                Ok(())
            }
            _ => {
                let known = "\\parameter NAME NUMBER, \\load, \\rows TABLE COUNT = VALUES, \\transaction NAME WEIGHT, \
                             \\set NAME VALUE and \\check NAME";
                Err(format!("`\\{command}` is not known; there are {known}"))
            }
        }
    }

    fn parameter(&mut self, rest: &str) -> Result<(), String> {
        let (name, value) = named(rest, "\\parameter NAME NUMBER")?;
        let value = amount(value, &self.parameters)?;
        let value = self.given.get(name).copied().unwrap_or(value);
        match self.parameters.insert(name.to_owned(), value) {
            None => Ok(()),
            Some(_) => Err(format!("the parameter `{name}` is there twice")),
        }
    }

    /// Parses `TABLE COUNT = VALUES`.
    fn rows(&mut self, line: usize, rest: &str) -> Result<(), String> {
        if self.section != Section::Load {
            return Err("rows are made after \\load".to_owned());
        }
        let form = "\\rows TABLE COUNT = VALUES";
        let (head, values) = rest.split_once('=').ok_or_else(|| format!("write {form}"))?;
        let (table, count) = named(head.trim(), form)?;
        let count = amount(count, &self.parameters)?;
        if !(0..=ROWS_MAX).contains(&count) {
            return Err(format!("{count} rows; there can be 0 to {ROWS_MAX}"));
        }
        let columns = split_arguments(values).into_iter();
        let columns: Vec<Expression> =
            columns.map(|column| Expression::parse(column, &self.parameters)).collect::<Result<_, _>>()?;
        self.program.load.push(LoadStep::Rows {
            line,
            table: table.to_owned(),
            count: count as u64,
            columns,
        });
        Ok(())
    }

    fn transaction(&mut self, line: usize, rest: &str) -> Result<(), String> {
        let (name, weight) = named(rest, "\\transaction NAME WEIGHT")?;
        let weight = amount(weight, &self.parameters)?;
        if !(1..=WEIGHT_MAX).contains(&weight) {
            return Err(format!("the weight {weight} is out of range; it can be 1 to {WEIGHT_MAX}"));
        }
        if self.program.transactions.iter().any(|transaction| transaction.name == name) {
            return Err(format!("the transaction `{name}` is there twice"));
        }
        if self.program.transactions.len() == TRANSACTIONS_MAX {
            return Err(format!("there can be {TRANSACTIONS_MAX} transactions"));
        }
        self.section = Section::Transaction;
        self.program.transactions.push(Transaction {
            line,
            name: name.to_owned(),
            weight: weight as u32,
            variables: Vec::new(),
            statements: Vec::new(),
        });
        Ok(())
    }

    fn set(&mut self, rest: &str) -> Result<(), String> {
        let (name, value) = named(rest, "\\set NAME VALUE")?;
        let expression = Expression::parse(value, &self.parameters)?;
        if self.parameters.contains_key(name) {
            return Err(format!("`{name}` is a parameter"));
        }
        match self.program.transactions.last_mut() {
            Some(transaction) if self.section == Section::Transaction => {
                if transaction.variables.iter().any(|(known, _)| known == name) {
                    return Err(format!("`{name}` is set twice"));
                }
                transaction.variables.push((name.to_owned(), expression));
                Ok(())
            }
            _ => Err("values are set in a \\transaction".to_owned()),
        }
    }

    fn sql(&mut self, line: usize, part: &str) -> Result<(), String> {
        let (_, text) = self.open.get_or_insert_with(|| (line, String::new()));
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(part);
        if !text.ends_with(';') {
            return Ok(());
        }
        text.pop();
        let (line, text) = self.open.take().unwrap_or_default();
        match self.section {
            Section::Head => Err("a statement belongs after \\load, \\transaction or \\check".to_owned()),
            Section::Load => {
                let statement = statement(line, &text, &self.parameters, &[])?;
                self.program.load.push(LoadStep::Statement(statement));
                Ok(())
            }
            Section::Transaction => {
                let first = text.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
                if ["BEGIN", "START", "COMMIT", "ROLLBACK"].contains(&first.as_str()) {
                    return Err(format!(
                        "{first} is sent by itself when a transaction has several statements"
                    ));
                }
                let transaction = self.program.transactions.last_mut().ok_or("there is no transaction")?;
                let statement = statement(line, &text, &self.parameters, &transaction.variables)?;
                transaction.statements.push(statement);
                Ok(())
            }
            Section::Check => {
                let condition = self.program.checks.last_mut().ok_or("there is no check")?;
                if !condition.query.text.is_empty() {
                    return Err(format!("the check `{}` has a query already", condition.name));
                }
                condition.query = statement(line, &text, &self.parameters, &[])?;
                Ok(())
            }
        }
    }

    /// Checks the whole file. A mistake without a line of its own is reported for the last line.
    fn end(&self) -> Result<(), (Option<usize>, String)> {
        if let Some((line, _)) = &self.open {
            return Err((Some(*line), "the statement has no `;` at the end of a line".to_owned()));
        }
        if let Some(name) = self.given.keys().find(|name| !self.parameters.contains_key(*name)) {
            return Err((None, format!("`{name}` is given, and is no \\parameter of the file")));
        }
        let empty = |transaction: &&Transaction| transaction.statements.is_empty();
        if let Some(transaction) = self.program.transactions.iter().find(empty) {
            let message = format!("the transaction `{}` has no statement", transaction.name);
            return Err((Some(transaction.line), message));
        }
        if let Some(condition) = self.program.checks.iter().find(|check| check.query.text.is_empty()) {
            return Err((Some(condition.line), format!("the check `{}` has no query", condition.name)));
        }
        if self.program.transactions.is_empty() {
            return Err((None, "the file has no \\transaction".to_owned()));
        }
        if self.program.checks.is_empty() {
            return Err((None, "the file has no \\check: a trial ends with at least one".to_owned()));
        }
        Ok(())
    }
}

/// Splits a name from the text after it.
fn named<'a>(text: &'a str, form: &str) -> Result<(&'a str, &'a str), String> {
    let (name, rest) = text.split_once(char::is_whitespace).ok_or_else(|| format!("write {form}"))?;
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    if !name.chars().all(fits) {
        return Err(format!("`{name}` is no name; write {form}"));
    }
    Ok((name, rest.trim()))
}

/// Splits at commas outside parentheses.
fn split_arguments(text: &str) -> Vec<&str> {
    let mut depth = 0;
    text.split(|letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    })
    .collect()
}

/// Substitutes parameters and variables. Parameters become digits, because statements such as CREATE TABLE
/// take no values; variables become values.
fn statement(
    line: usize,
    text: &str,
    parameters: &Numbers,
    variables: &[(String, Expression)],
) -> Result<Statement, String> {
    let mut statement = Statement { line, ..Statement::default() };
    let mut rest = text;
    let mut in_quotes = false;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        let name_length = after
            .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .unwrap_or(after.len());
        match letter {
            '\'' => in_quotes = !in_quotes,
            '?' => return Err("`?` cannot be used; write `:name` for a value".to_owned()),
            // A cast of PostgreSQL (`::`).
            ':' if !in_quotes && after.starts_with(':') => {
                statement.text.push_str("::");
                rest = &after[1..];
                continue;
            }
            ':' if !in_quotes && name_length > 0 => {
                let name = &after[..name_length];
                if let Some(value) = parameters.get(name) {
                    statement.text.push_str(&value.to_string());
                } else if let Some(slot) = variables.iter().position(|(known, _)| known == name) {
                    statement.text.push('?');
                    statement.slots.push(slot);
                } else {
                    return Err(format!("`:{name}` is neither a \\parameter nor \\set before"));
                }
                rest = &after[name_length..];
                continue;
            }
            _ => {}
        }
        statement.text.push(letter);
        rest = after;
    }
    Ok(statement)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r"
\parameter scale 2
\load
CREATE TABLE t (a INTEGER,
  b VARCHAR(9));
\rows t 10 * :scale = sequence(1), string(9)
\transaction change 3
\set key uniform(1, 10 * :scale)
SELECT b FROM t WHERE a = :key AND b <> ':key' AND :key::INTEGER < :scale;
UPDATE t SET b = 'x' WHERE a = :key;
\check all are there
SELECT COUNT(*) = :scale FROM t;
";

    fn parse(text: &str) -> Result<Program, Mistake> {
        Program::parse(text, &Numbers::new())
    }

    #[track_caller]
    fn check(from: &str, to: &str, line: usize, expect: &str) {
        assert!(GOOD.contains(from), "{from:?} is not in the good file");
        let mistake = parse(&GOOD.replacen(from, to, 1)).unwrap_err();
        assert_eq!((mistake.line, mistake.message.as_str()), (line, expect));
    }

    #[test]
    fn a_good_file_is_read_as_it_is_written() {
        let program = parse(GOOD).unwrap();
        let [LoadStep::Statement(create), LoadStep::Rows { count, columns, .. }] = &program.load[..] else {
            panic!("{:?}", program.load);
        };
        assert_eq!((create.line, create.text.lines().count()), (4, 2));
        assert_eq!((*count, columns.len()), (20, 2));
        let change = &program.transactions[0];
        assert_eq!((change.name.as_str(), change.weight, change.writes()), ("change", 3, true));
        assert_eq!(
            change.statements[0].text,
            "SELECT b FROM t WHERE a = ? AND b <> ':key' AND ?::INTEGER < 2"
        );
        assert_eq!(change.statements[0].slots, [0, 0]);
        assert_eq!(program.checks[0].query.text, "SELECT COUNT(*) = 2 FROM t");
    }

    #[test]
    fn the_scenario_has_the_last_word_on_parameters() {
        let given = Numbers::from([("scale".to_owned(), 7)]);
        let program = Program::parse(GOOD, &given).unwrap();
        assert_eq!(program.checks[0].query.text, "SELECT COUNT(*) = 7 FROM t");
        let unknown = Numbers::from([("size".to_owned(), 7)]);
        let mistake = Program::parse(GOOD, &unknown).unwrap_err();
        assert_eq!(mistake.message, "`size` is given, and is no \\parameter of the file");
    }

    #[test]
    fn a_mistake_names_its_line() {
        check("a = :key;", "a = :kye;", 10, "`:kye` is neither a \\parameter nor \\set before");
        check("\\set key", "\\sett key", 8, &unknown("\\sett key uniform(1, 10 * :scale)"));
        check("10 * :scale =", "10 * :scale", 6, "write \\rows TABLE COUNT = VALUES");
        check("change 3", "change 0", 7, "the weight 0 is out of range; it can be 1 to 1000000");
        check("VARCHAR(9));", "VARCHAR(9))", 6, "the statement of line 4 has no `;` at the end of a line");
        check("FROM t;\n", "FROM t\n", 12, "the statement has no `;` at the end of a line");
        check(
            "UPDATE t",
            "COMMIT WORK AND",
            10,
            "COMMIT is sent by itself when a transaction has several statements",
        );
    }

    fn unknown(command: &str) -> String {
        let known = "\\parameter NAME NUMBER, \\load, \\rows TABLE COUNT = VALUES, \\transaction NAME WEIGHT, \\set NAME VALUE \
                     and \\check NAME";
        format!("`{command}` is not known; there are {known}")
    }

    #[test]
    fn a_file_without_transactions_or_checks_is_refused() {
        let without = |mark: &str| GOOD.split(mark).next().unwrap().to_owned();
        assert!(parse(&without("\\check")).unwrap_err().message.contains("no \\check"));
        assert!(parse(&without("\\transaction")).unwrap_err().message.contains("no \\transaction"));
        let empty = GOOD.replace("SELECT COUNT(*) = :scale FROM t;", "");
        assert_eq!(parse(&empty).unwrap_err().message, "the check `all are there` has no query");
    }
}
