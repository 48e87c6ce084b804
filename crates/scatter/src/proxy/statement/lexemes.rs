//! A statement as words, strings and signs: as much of MySQL's lexical rules as one needs to say of what kind it is, where it
//! ends, and where its parameters are.

use std::ops::Range;

use crate::sql::statements::{Quoting, after};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum Kind {
    /// A keyword, a name without quotation marks, or a number.
    Word,
    /// A string or a quoted name.
    Quoted,
    /// `@name`.
    UserVariable,
    /// `@@name`, with its scope.
    SystemVariable,
    /// `?`.
    Parameter,
    Semicolon,
    Sign,
    /// In an executable comment, what ends it for a server that executes it and not for one that skips it.
    Doubtful,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::proxy) struct Lexeme<'a> {
    pub(in crate::proxy) kind: Kind,
    pub(in crate::proxy) text: &'a str,
    pub(in crate::proxy) place: Range<usize>,
    /// The number of the comment that it is in, one of those that some servers execute: `/*!`.
    pub(in crate::proxy) comment: Option<u32>,
}

impl Lexeme<'_> {
    pub(in crate::proxy) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    pub(in crate::proxy) fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is_word(word))
    }
}

/// The lexemes of a text without its spaces and comments. What is in an executable comment counts.
#[derive(Debug, Clone)]
pub(in crate::proxy) struct Lexemes<'a> {
    text: &'a str,
    at: usize,
    quoting: Quoting,
    is_in_comment: bool,
    comments: u32,
}

impl<'a> Lexemes<'a> {
    pub(in crate::proxy) fn of(text: &'a str, quoting: Quoting) -> Lexemes<'a> {
        Lexemes { text, at: 0, quoting, is_in_comment: false, comments: 0 }
    }

    /// Steps over an opening or closing mark of an executable comment.
    fn step_over_mark(&mut self) -> bool {
        let rest = &self.text.as_bytes()[self.at..];
        let opened = [&b"/*!"[..], b"/*M!"].into_iter().find(|mark| rest.starts_with(mark));
        if let (Some(mark), false) = (opened, self.is_in_comment) {
            let digits = rest[mark.len()..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            self.at += mark.len() + digits;
            self.is_in_comment = true;
            self.comments += 1;
            return true;
        }
        if self.is_in_comment && rest.starts_with(b"*/") {
            self.at += 2;
            self.is_in_comment = false;
            return true;
        }
        false
    }

    fn end_of_word(&self, from: usize) -> usize {
        let bytes = &self.text.as_bytes()[from..];
        from + bytes.iter().take_while(|byte| is_of_word(**byte)).count()
    }

    /// The end of a variable's name, which may be quoted and may have dots.
    fn end_of_variable(&self, mut at: usize) -> usize {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(at) {
            at = match byte {
                b'\'' | b'"' | b'`' => after(bytes, at, self.quoting),
                b'.' => at + 1,
                byte if is_of_word(*byte) => self.end_of_word(at),
                _ => break,
            };
        }
        at
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii()
}

impl<'a> Iterator for Lexemes<'a> {
    type Item = Lexeme<'a>;

    fn next(&mut self) -> Option<Lexeme<'a>> {
        let bytes = self.text.as_bytes();
        loop {
            if self.step_over_mark() {
                continue;
            }
            let first = *bytes.get(self.at)?;
            let start = self.at;
            let (kind, end) = match first {
                b'\'' | b'"' | b'`' => (Kind::Quoted, after(bytes, start, self.quoting)),
                b'@' if bytes.get(start + 1) == Some(&b'@') => {
                    (Kind::SystemVariable, self.end_of_variable(start + 2))
                }
                b'@' => (Kind::UserVariable, self.end_of_variable(start + 1)),
                b'?' => (Kind::Parameter, start + 1),
                b';' => (Kind::Semicolon, start + 1),
                byte if is_of_word(byte) => (Kind::Word, self.end_of_word(start)),
                _ => (Kind::Sign, after(bytes, start, self.quoting)),
            };
            self.at = end;
            let text = &self.text[start..end];
            let is_doubtful = self.is_in_comment && (text.contains("*/") || text.starts_with("/*"));
            let is_space = kind == Kind::Sign
                && (text.len() > 1 || first.is_ascii_whitespace() || first.is_ascii_control());
            if is_space && !is_doubtful {
                continue;
            }
            let kind = if is_doubtful { Kind::Doubtful } else { kind };
            let comment = self.is_in_comment.then_some(self.comments);
            return Some(Lexeme { kind, text, place: start..end, comment });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[&str]) {
        let found: Vec<&str> = Lexemes::of(text, Quoting::USUAL).map(|lexeme| lexeme.text).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn comments_and_spaces_are_left_out() {
        check("SELECT a.b -- c\n, 'it\\'s' # d", &["SELECT", "a", ".", "b", ",", "'it\\'s'"]);
        check("/* mysql-connector */SELECT 1;", &["SELECT", "1", ";"]);
        check("SELECT 5--1, é", &["SELECT", "5", "-", "-", "1", ",", "é"]);
    }

    #[test]
    fn a_comment_that_a_server_executes_counts() {
        check("/*!40101 SET NAMES utf8 */", &["SET", "NAMES", "utf8"]);
        check("SELECT /*M! 1 */ * 2", &["SELECT", "1", "*", "2"]);
    }

    #[test]
    fn variables_have_scopes_and_quotes() {
        check("SET @@GLOBAL.x=@`a b`", &["SET", "@@GLOBAL.x", "=", "@`a b`"]);
    }

    #[test]
    fn a_mode_changes_where_a_string_ends() {
        let plain = Quoting { has_escapes: false, ..Quoting::USUAL };
        let found: Vec<&str> = Lexemes::of(r"'\'; x", plain).map(|lexeme| lexeme.text).collect();
        assert_eq!(found, [r"'\'", ";", "x"]);
    }
}
