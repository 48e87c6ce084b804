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
    fn a_comment_is_before_the_first_word() {
        let check = |text: &str, expect: &str| assert_eq!(first_word(text), expect, "{text}");
        check("/* show */ select 1", "SELECT");
        check("-- begin\n (SELECT 1)", "SELECT");
        check("/*!40000 SET a = 1 */", "SET");
        check(" ; ", "");
    }
}
