//! A statement's bytes as text. Strings of bytes that are no UTF-8, as drivers write values of bytes and clients of other
//! character sets write all, become hexadecimal literals.

use std::borrow::Cow;

use crate::proxy::fault::Fault;
use crate::sql::statements::{Quoting, after};

/// # Errors
/// There are such bytes outside of strings.
pub(in crate::proxy) fn as_text<'a>(
    bytes: &'a [u8],
    quoting: Quoting,
    character_set: &str,
) -> Result<Cow<'a, str>, Fault> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(Cow::Borrowed(text));
    }
    let mut text = Vec::with_capacity(2 * bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = end_of_string(bytes, at, quoting);
        let part = &bytes[at..end];
        if is_string(part[0], quoting) && std::str::from_utf8(part).is_err() {
            if !has_introducer(&text) {
                let set = if character_set.starts_with("utf8") { "binary" } else { character_set };
                text.extend_from_slice(format!(" _{set}").as_bytes());
            }
            text.extend_from_slice(b" x'");
            let content = content(part, quoting);
            text.extend(content.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()));
            text.push(b'\'');
        } else {
            text.extend_from_slice(part);
        }
        at = end;
    }
    String::from_utf8(text).map(Cow::Owned).map_err(|_| invalid())
}

fn invalid() -> Fault {
    let words = "Invalid utf8mb4 character string: a statement is in UTF-8 outside of its strings";
    Fault::new(1300, b"HY000", words)
}

fn is_string(quote: u8, quoting: Quoting) -> bool {
    quote == b'\'' || quote == b'"' && !quoting.has_ansi_quotes
}

/// The place after the string, name, comment or byte that begins here. A doubled quotation mark ends no string.
fn end_of_string(bytes: &[u8], at: usize, quoting: Quoting) -> usize {
    let mut end = after(bytes, at, quoting);
    while is_string(bytes[at], quoting) && bytes.get(end) == Some(&bytes[at]) {
        end = after(bytes, end, quoting);
    }
    end
}

/// Whether the text so far ends with the name of a character set: `_binary`.
fn has_introducer(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = text.iter().rev().take_while(|byte| is_of_word(byte)).count();
    text[text.len() - length..].starts_with(b"_")
}

/// What a string means.
fn content(string: &[u8], quoting: Quoting) -> Vec<u8> {
    let quote = string[0];
    let inner = string[1..].strip_suffix(&[quote]).unwrap_or(&string[1..]);
    let mut found = Vec::with_capacity(inner.len());
    let mut rest = inner.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' if quoting.has_escapes => match rest.next() {
                Some(b'0') => found.push(0),
                Some(b'b') => found.push(8),
                Some(b'n') => found.push(b'\n'),
                Some(b'r') => found.push(b'\r'),
                Some(b't') => found.push(b'\t'),
                Some(b'Z') => found.push(26),
                // These stay as they are, for LIKE.
                Some(wild @ (b'%' | b'_')) => found.extend_from_slice(&[b'\\', *wild]),
                Some(other) => found.push(*other),
                None => {}
            },
            byte if *byte == quote => {
                found.push(quote);
                rest.next();
            }
            byte => found.push(*byte),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], character_set: &str, expect: &str) {
        assert_eq!(as_text(bytes, Quoting::USUAL, character_set).unwrap(), expect);
    }

    #[test]
    fn bytes_in_strings_become_hexadecimal() {
        check("SELECT 'é', _binary'a'".as_bytes(), "utf8mb4", "SELECT 'é', _binary'a'");
        check(b"SELECT _binary'\xFF\\0\\'\"\\\\', 'a'", "utf8mb4", "SELECT _binary x'ff0027225c', 'a'");
        check(b"SELECT _BINARY '\xFF''\\%'", "utf8mb4", "SELECT _BINARY  x'ff275c25'");
        check(b"SELECT '\xFF'", "utf8mb4", "SELECT  _binary x'ff'");
        check(b"SELECT \"\xE9'\" -- '", "latin1", "SELECT  _latin1 x'e927' -- '");
    }

    #[test]
    fn other_bytes_are_refused() {
        for bytes in [&b"SELECT `\xFF`"[..], b"SELECT \xFF, _binary'\xFF'"] {
            assert_eq!(as_text(bytes, Quoting::USUAL, "utf8mb4").unwrap_err().code, 1300);
        }
        assert_eq!(as_text(b"SELECT \xE9", Quoting::USUAL, "latin1").unwrap_err().code, 1300);
    }
}
