//! Where a statement ends: at a semicolon outside strings, quoted names and comments, as in the `mysql` client.

/// What quotation marks and backslashes mean, by the session's `sql_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quoting {
    /// Without NO_BACKSLASH_ESCAPES.
    pub(crate) has_escapes: bool,
    /// With ANSI_QUOTES: a text in double quotation marks is a name.
    pub(crate) has_ansi_quotes: bool,
}

impl Quoting {
    pub(crate) const USUAL: Quoting = Quoting { has_escapes: true, has_ansi_quotes: false };

    /// Whether a backslash in these quotation marks takes the next character as it is.
    fn escapes_in(self, quote: u8) -> bool {
        match quote {
            b'\'' => self.has_escapes,
            b'"' => self.has_escapes && !self.has_ansi_quotes,
            _ => false,
        }
    }
}

/// The statements of a text, without their semicolons; empty ones are left out.
pub fn statements(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes[at] == b';' {
            found.push(&text[start..at]);
            start = at + 1;
        }
        at = after(bytes, at, Quoting::USUAL);
    }
    found.push(&text[start..]);
    found.retain(|statement| !is_blank(statement));
    found.iter().map(|statement| statement.trim()).collect()
}

/// Whether there is nothing but space and comments.
fn is_blank(statement: &str) -> bool {
    without_comments(statement).is_empty()
}

/// From the first character that is neither space nor in a comment. A comment of the form `/*!` is executed.
fn without_comments(statement: &str) -> &str {
    let bytes = statement.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let next = after(bytes, at, Quoting::USUAL);
        let is_comment =
            next - at > 1 && !matches!(bytes[at], b'\'' | b'"' | b'`') && bytes.get(at + 2) != Some(&b'!');
        if !bytes[at].is_ascii_whitespace() && !is_comment {
            break;
        }
        at = next;
    }
    &statement[at..]
}

/// The first word of a statement in capital letters; empty without one.
pub(crate) fn first_word(statement: &str) -> String {
    let mut words = without_comments(statement).split(|letter: char| !letter.is_ascii_alphabetic());
    words.find(|word| !word.is_empty()).unwrap_or_default().to_ascii_uppercase()
}

/// A statement with rows of values, in parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rows<'a> {
    pub(crate) before: &'a str,
    /// Each with its parentheses.
    pub(crate) rows: Vec<&'a str>,
    pub(crate) after: &'a str,
}

/// The rows after VALUES; `None` if there are none.
pub(crate) fn rows(statement: &str) -> Option<Rows<'_>> {
    let bytes = statement.as_bytes();
    let mut at = start_of_rows(bytes)?;
    let before = &statement[..at];
    let mut rows = Vec::new();
    loop {
        let end = after_parentheses(bytes, at)?;
        rows.push(&statement[at..end]);
        let next = after_space(bytes, end);
        if bytes.get(next) != Some(&b',') {
            return Some(Rows { before, rows, after: &statement[end..] });
        }
        at = after_space(bytes, next + 1);
    }
}

/// The place of the parenthesis after VALUES or VALUE that is in no other one.
fn start_of_rows(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let length =
            bytes[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let word = &bytes[at..at + length];
        let next = after_space(bytes, at + length);
        let is_values = word.eq_ignore_ascii_case(b"VALUES") || word.eq_ignore_ascii_case(b"VALUE");
        if depth == 0 && is_values && bytes.get(next) == Some(&b'(') {
            return Some(next);
        }
        at = if length > 0 { at + length } else { after(bytes, at, Quoting::USUAL) };
    }
    None
}

/// The place after space and comments.
fn after_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        let next = after(bytes, at, Quoting::USUAL);
        let is_comment = next - at > 1 && !matches!(byte, b'\'' | b'"' | b'`');
        if !byte.is_ascii_whitespace() && !is_comment {
            break;
        }
        at = next;
    }
    at
}

/// The place after the parenthesis that closes the one here.
fn after_parentheses(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    while at < bytes.len() {
        let next = after(bytes, at, Quoting::USUAL);
        match bytes[at] {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(next),
            b')' => depth = depth.checked_sub(1)?,
            _ if depth == 0 => return None,
            _ => {}
        }
        at = next;
    }
    None
}

/// The place after the string, name, comment or byte that begins here.
pub(crate) fn after(bytes: &[u8], at: usize, quoting: Quoting) -> usize {
    let rest = &bytes[at..];
    let line = || at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    match rest {
        [quote @ (b'\'' | b'"' | b'`'), ..] => {
            after_quoted(bytes, at + 1, *quote, quoting.escapes_in(*quote))
        }
        [b'#', ..] => line(),
        // Two dashes are a comment before space only.
        [b'-', b'-'] => line(),
        [b'-', b'-', next, ..] if next.is_ascii_whitespace() || next.is_ascii_control() => line(),
        [b'/', b'*', inner @ ..] => {
            let end = inner.windows(2).position(|pair| pair == b"*/");
            end.map_or(bytes.len(), |end| at + 2 + end + 2)
        }
        _ => at + 1,
    }
}

/// A doubled quote is a quote that ends one part and begins the next.
fn after_quoted(bytes: &[u8], mut at: usize, quote: u8, has_escapes: bool) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if has_escapes => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[&str]) {
        assert_eq!(statements(text), expect);
    }

    #[test]
    fn a_semicolon_in_a_string_ends_nothing() {
        check("SELECT ';'; SELECT \"a;b\"", &["SELECT ';'", "SELECT \"a;b\""]);
        check(r"SELECT 'it\';s'; SELECT 'it'';s'", &[r"SELECT 'it\';s'", "SELECT 'it'';s'"]);
        check("SELECT `a;b`; SELECT 1", &["SELECT `a;b`", "SELECT 1"]);
        check(r"SELECT `a\`; SELECT 1", &[r"SELECT `a\`", "SELECT 1"]);
    }

    #[test]
    fn a_semicolon_in_a_comment_ends_nothing() {
        check("SELECT 1 -- a;b\n; SELECT 2", &["SELECT 1 -- a;b", "SELECT 2"]);
        check("SELECT 1 # a;b\n; SELECT 2", &["SELECT 1 # a;b", "SELECT 2"]);
        check("SELECT /* a;b */ 1; SELECT 2", &["SELECT /* a;b */ 1", "SELECT 2"]);
        check("SELECT 5--1; SELECT 2", &["SELECT 5--1", "SELECT 2"]);
    }

    #[test]
    fn statements_without_content_are_left_out() {
        check(" ; -- nothing\n ; /* nor here */ ;", &[]);
        check("/*! SELECT 1 */; ''", &["/*! SELECT 1 */", "''"]);
        check("SELECT 'open", &["SELECT 'open"]);
    }

    #[test]
    fn rows_are_what_follows_values() {
        let check = |text: &str, expect: Option<(&str, &[&str], &str)>| {
            let found = rows(text);
            let found = found.as_ref().map(|found| (found.before, found.rows.as_slice(), found.after));
            assert_eq!(found, expect, "{text}");
        };
        check(
            "INSERT INTO t (`values`, b) VALUES (1, ')'), /* x */ (2, f(3))",
            Some(("INSERT INTO t (`values`, b) VALUES ", &["(1, ')')", "(2, f(3))"], "")),
        );
        check(
            "REPLACE t value(1) ON DUPLICATE KEY UPDATE a = VALUES(a)",
            Some(("REPLACE t value", &["(1)"], " ON DUPLICATE KEY UPDATE a = VALUES(a)")),
        );
        check("INSERT INTO t SELECT 1", None);
        check("INSERT INTO t VALUES (1", None);
    }

    #[test]
    fn a_comment_is_before_the_first_word() {
        let check = |text: &str, expect: &str| assert_eq!(first_word(text), expect, "{text}");
        check("/* show */ select 1", "SELECT");
        check("-- begin\n (SELECT 1)", "SELECT");
        check("/*!40000 SET a = 1 */", "SET");
        check(" ; ", "");
    }
}
