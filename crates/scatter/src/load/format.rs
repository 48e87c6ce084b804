//! What a file looks like: the options of LOAD DATA, in its own words.

use spindle_base::Mistake;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// FIELDS TERMINATED BY.
    pub field_end: Vec<u8>,
    /// FIELDS ENCLOSED BY. What OPTIONALLY adds to it matters for writing files only.
    pub enclosure: Option<u8>,
    /// FIELDS ESCAPED BY.
    pub escape: Option<u8>,
    /// LINES STARTING BY.
    pub line_start: Vec<u8>,
    /// LINES TERMINATED BY.
    pub line_end: Vec<u8>,
    /// IGNORE n LINES, of each file.
    pub ignored_lines: u64,
    pub character_set: String,
}

/// The options that a user gave, as text in which `\t`, `\n` and the like are escapes.
#[derive(Debug, Clone, Default)]
pub struct FormatTexts<'a> {
    pub fields_terminated_by: Option<&'a str>,
    pub fields_enclosed_by: Option<&'a str>,
    pub fields_escaped_by: Option<&'a str>,
    pub lines_starting_by: Option<&'a str>,
    pub lines_terminated_by: Option<&'a str>,
    pub ignore_lines: u64,
    pub character_set: Option<&'a str>,
}

/// Character sets in which a byte of ASCII may be the second half of another character, so that a terminator is not
/// where its bytes are.
const ASCII_INSIDE: [&str; 9] =
    ["big5", "cp932", "gb18030", "gbk", "sjis", "ucs2", "utf16", "utf16le", "utf32"];

impl Format {
    /// What LOAD DATA reads without options.
    pub fn tsv() -> Format {
        Format {
            field_end: b"\t".to_vec(),
            enclosure: None,
            escape: Some(b'\\'),
            line_start: Vec::new(),
            line_end: b"\n".to_vec(),
            ignored_lines: 0,
            character_set: "utf8mb4".to_owned(),
        }
    }

    /// As RFC 4180 has it: no escapes, and a quotation mark in a field is written twice.
    pub fn csv() -> Format {
        Format { field_end: b",".to_vec(), enclosure: Some(b'"'), escape: None, ..Format::tsv() }
    }

    /// This format with the options that a user gave.
    ///
    /// # Errors
    /// The options do not describe one way to read a file.
    pub fn with(mut self, texts: &FormatTexts<'_>) -> Result<Format, Mistake> {
        if let Some(text) = texts.fields_terminated_by {
            self.field_end = bytes("fields_terminated_by", text)?;
        }
        if let Some(text) = texts.fields_enclosed_by {
            self.enclosure = one_byte("fields_enclosed_by", text)?;
        }
        if let Some(text) = texts.fields_escaped_by {
            self.escape = one_byte("fields_escaped_by", text)?;
        }
        if let Some(text) = texts.lines_starting_by {
            self.line_start = bytes("lines_starting_by", text)?;
        }
        if let Some(text) = texts.lines_terminated_by {
            self.line_end = bytes("lines_terminated_by", text)?;
        }
        self.ignored_lines = texts.ignore_lines;
        if let Some(name) = texts.character_set {
            self.character_set = name.to_ascii_lowercase();
        }
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<(), Mistake> {
        let of = |option: &'static str, words: &str| Err(Mistake::of_flag(option, words));
        if self.field_end.is_empty() {
            return of("fields_terminated_by", "fields of a fixed width are not supported");
        }
        if self.line_end.is_empty() {
            return of("lines_terminated_by", "is empty");
        }
        if self.field_end == self.line_end {
            return of("lines_terminated_by", "is the end of a field as well");
        }
        let ends = [self.field_end[0], self.line_end[0]];
        if self.enclosure.is_some_and(|byte| ends.contains(&byte)) {
            return of("fields_enclosed_by", "begins the end of a field or of a line as well");
        }
        if self.escape.is_some_and(|byte| ends.contains(&byte)) {
            return of("fields_escaped_by", "begins the end of a field or of a line as well");
        }
        if !self.character_set.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return of("character_set", "is no name of a character set");
        }
        if ASCII_INSIDE.contains(&self.character_set.as_str()) {
            return of("character_set", "is not supported: convert the file to utf8mb4");
        }
        Ok(())
    }

    /// Whether a text of the file is the text that a query has.
    pub fn is_utf8(&self) -> bool {
        self.character_set.starts_with("utf8")
    }

    /// The clauses of a LOAD DATA statement between the table and the columns. Lines to ignore are not among them.
    pub fn clauses(&self) -> String {
        let mut text = format!("CHARACTER SET {}", self.character_set);
        text += &format!(" FIELDS TERMINATED BY {}", literal(&self.field_end));
        if let Some(byte) = self.enclosure {
            text += &format!(" ENCLOSED BY {}", literal(&[byte]));
        }
        text += &format!(" ESCAPED BY {} LINES", literal(self.escape.as_slice()));
        if !self.line_start.is_empty() {
            text += &format!(" STARTING BY {}", literal(&self.line_start));
        }
        text + &format!(" TERMINATED BY {}", literal(&self.line_end))
    }
}

/// Reads the escapes of a text as SQL has them.
fn bytes(option: &'static str, text: &str) -> Result<Vec<u8>, Mistake> {
    if !text.is_ascii() {
        return Err(Mistake::of_flag(option, "has a character outside of ASCII"));
    }
    let mut found = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        found.push(match byte {
            // A backslash alone is itself.
            b'\\' => rest.next().map_or(b'\\', unescaped),
            other => other,
        });
    }
    Ok(found)
}

fn one_byte(option: &'static str, text: &str) -> Result<Option<u8>, Mistake> {
    match bytes(option, text)?.as_slice() {
        [] => Ok(None),
        [byte] => Ok(Some(*byte)),
        more => Err(Mistake::of_flag(option, format!("{} characters are not supported, one is", more.len()))),
    }
}

/// What a character stands for behind an escape, in a file as in SQL. `N` alone in a field is NULL.
pub(super) fn unescaped(byte: u8) -> u8 {
    match byte {
        b'0' => 0,
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'r' => b'\r',
        b'Z' => 26,
        other => other,
    }
}

/// For a session without NO_BACKSLASH_ESCAPES.
fn literal(bytes: &[u8]) -> String {
    let mut text = "'".to_owned();
    for byte in bytes {
        match byte {
            0 => text += "\\0",
            8 => text += "\\b",
            b'\t' => text += "\\t",
            b'\n' => text += "\\n",
            b'\r' => text += "\\r",
            26 => text += "\\Z",
            b'\\' => text += "\\\\",
            b'\'' => text += "\\'",
            other => text.push(char::from(*other)),
        }
    }
    text + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_presets_are_loaddatas_default_and_rfc_4180() {
        let check = |format: Format, expect: &str| assert_eq!(format.clauses(), expect);
        check(
            Format::tsv(),
            r"CHARACTER SET utf8mb4 FIELDS TERMINATED BY '\t' ESCAPED BY '\\' LINES TERMINATED BY '\n'",
        );
        check(
            Format::csv(),
            r#"CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' ENCLOSED BY '"' ESCAPED BY '' LINES TERMINATED BY '\n'"#,
        );
    }

    #[test]
    fn options_have_the_escapes_of_sql() {
        let texts = FormatTexts {
            fields_terminated_by: Some("||"),
            fields_enclosed_by: Some("'"),
            fields_escaped_by: Some("\\"),
            lines_starting_by: Some("x\\t"),
            lines_terminated_by: Some("\\r\\n"),
            ignore_lines: 1,
            character_set: Some("latin1"),
        };
        let format = Format::csv().with(&texts).unwrap();
        assert_eq!(
            format.clauses(),
            r"CHARACTER SET latin1 FIELDS TERMINATED BY '||' ENCLOSED BY '\'' ESCAPED BY '\\' LINES STARTING BY 'x\t' TERMINATED BY '\r\n'"
        );
        assert_eq!(format.ignored_lines, 1);
    }

    #[test]
    fn options_that_describe_no_file_are_refused() {
        let check = |texts: FormatTexts<'_>, expect: &str| {
            assert_eq!(Format::csv().with(&texts).unwrap_err().to_string(), expect);
        };
        let none = FormatTexts::default;
        check(
            FormatTexts { fields_enclosed_by: Some("''"), ..none() },
            "--fields-enclosed-by: 2 characters are not supported, one is",
        );
        check(
            FormatTexts { fields_terminated_by: Some(""), ..none() },
            "--fields-terminated-by: fields of a fixed width are not supported",
        );
        check(
            FormatTexts { fields_terminated_by: Some("\\n"), ..none() },
            "--lines-terminated-by: is the end of a field as well",
        );
        check(
            FormatTexts { fields_escaped_by: Some(","), ..none() },
            "--fields-escaped-by: begins the end of a field or of a line as well",
        );
        check(
            FormatTexts { fields_terminated_by: Some("¦"), ..none() },
            "--fields-terminated-by: has a character outside of ASCII",
        );
        check(
            FormatTexts { character_set: Some("SJIS"), ..none() },
            "--character-set: is not supported: convert the file to utf8mb4",
        );
    }
}
