//! Translates serde's errors about a user's file into a sentence at a key. For an unknown name, the sentence
//! suggests the nearest known one.

use serde::de::DeserializeOwned;

use crate::Mistake;
use crate::near;

/// The mistake for a message of serde. Serde puts the key and the known names between backquotes; the rest of
/// its sentence is for programmers. `path` is the dotted path of the error, empty or `.` for the whole file.
pub fn explain(path: &str, message: &str) -> Mistake {
    let path = if path == "." { "" } else { path };
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let parent = |name: &str| {
        let path = path.strip_suffix(name).unwrap_or(path);
        path.strip_suffix('.').unwrap_or(path).to_owned()
    };
    match (message, quoted.split_first()) {
        (_, Some((key, known))) if message.starts_with("unknown field") => {
            Mistake::at(*key, format!("unknown key{}", near::hint(key, known))).under(&parent(key))
        }
        (_, Some((key, _))) if message.starts_with("missing field") => {
            Mistake::at(*key, "is missing").under(path)
        }
        (_, Some((word, known))) if message.starts_with("unknown variant") => {
            Mistake::at(path, format!("`{word}` is not known{}", near::hint(word, known)))
        }
        _ => Mistake::at(path, one_line(message)),
    }
}

/// # Errors
/// The text is not TOML, with the line; or it does not fit the type, with the key.
pub fn read_toml<T: DeserializeOwned>(text: &str) -> Result<T, Mistake> {
    let read = serde_path_to_error::deserialize(parse_toml(text)?);
    read.map_err(|error| explain(&error.path().to_string(), error.inner().message()))
}

/// # Errors
/// The text is not TOML, with the line.
pub fn parse_toml(text: &str) -> Result<toml::Deserializer<'_>, Mistake> {
    toml::Deserializer::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
        let written = text.lines().nth(line - 1).unwrap_or_default();
        let is_double = || (error.message() == "duplicate key").then(|| twice(written));
        let words = without_commas(written).or_else(|| unquoted(written)).or_else(is_double);
        let words = words.unwrap_or_else(|| format!("not valid TOML: {}", one_line(error.message())));
        Mistake::at(format!("line {line}"), words)
    })
}

fn twice(line: &str) -> String {
    let key = line.split('=').next().unwrap_or(line).trim();
    format!("`{key}` is there already; each name is used once")
}

fn is_valid(line: &str) -> bool {
    line.parse::<toml::Table>().is_ok()
}

/// The right form of a line with a list whose items have no comma between them.
fn without_commas(line: &str) -> Option<String> {
    let (key, value) = line.split_once('=')?;
    let (items, _) = value.trim().strip_prefix('[')?.rsplit_once(']')?;
    let right = format!("{} = [{}]", key.trim(), list_items(items).join(", "));
    (!is_valid(line) && is_valid(&right)).then(|| format!("a comma is missing; write `{right}`"))
}

/// The items of a list, separated by commas, spaces, or the end of a quoted text.
fn list_items(list: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let separates = |letter: char| letter == ',' || letter.is_whitespace();
    let mut rest = list.trim_start_matches(separates);
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' | '\'' => rest[1..].find(first).map(|at| at + 2),
            _ => rest.find(|letter: char| separates(letter) || "\"'".contains(letter)),
        };
        let (item, others) = rest.split_at(end.unwrap_or(rest.len()));
        items.push(item);
        rest = others.trim_start_matches(separates);
    }
    items
}

/// The right form of a line whose text, or list of texts, has no quotes.
fn unquoted(line: &str) -> Option<String> {
    let (key, value) = line.split('#').next()?.split_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    let quoted = |text: &str| toml::Value::from(text.trim().trim_matches(['"', '\''])).to_string();
    let right = match value.strip_prefix('[').map(|rest| rest.trim_end_matches(']')) {
        Some(items) => format!("[{}]", items.split(',').map(quoted).collect::<Vec<_>>().join(", ")),
        None => quoted(value),
    };
    let right = format!("{key} = {right}");
    let is_mended = !value.is_empty() && !value.contains('=') && !is_valid(line) && is_valid(&right);
    is_mended.then(|| format!("texts need quotes; write `{right}`"))
}

fn one_line(message: &str) -> String {
    message.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, message: &str, expect: &str) {
        assert_eq!(explain(path, message).to_string(), expect);
    }

    #[test]
    fn a_text_without_quotes_is_told_with_its_line_and_the_right_form() {
        let check = |text: &str, expect: &str| {
            assert_eq!(parse_toml(text).err().map(|mistake| mistake.to_string()).as_deref(), Some(expect));
        };
        check("a = 1\nkind = tpcc # why", "line 2: texts need quotes; write `kind = \"tpcc\"`");
        check("size = 20 GB", "line 1: texts need quotes; write `size = \"20 GB\"`");
        check("stack = [hdd, 'ssd']", "line 1: texts need quotes; write `stack = [\"hdd\", \"ssd\"]`");
        check("[a]\n[a]", "line 2: `[a]` is there already; each name is used once");
        check("trials = [1 2, 3] # few", "line 1: a comma is missing; write `trials = [1, 2, 3]`");
        for stacks in ["\"hdd\" \"ssd\"", "\"hdd\"\"ssd\"", "\"hdd\", \"md 0\" \"ssd\""] {
            let right = stacks.replace("\" \"", "\"\"").replace("\"\"", "\", \"");
            let expect = format!("line 1: a comma is missing; write `stack = [{right}]`");
            check(&format!("stack = [{stacks}]"), &expect);
        }
        check("size = \"20 GB", "line 1: texts need quotes; write `size = \"20 GB\"`");
    }

    #[test]
    fn an_unknown_key_is_named_with_the_nearest() {
        check(
            "run",
            "unknown field `trails`, expected `trials` or `seed`",
            "run.trails: unknown key; did you mean `trials`?",
        );
        check(
            "",
            "unknown field `speed`, expected `a` or `b`",
            "speed: unknown key; known here: `a` and `b`",
        );
        // Some formats have the key in the path already.
        check(
            "run.trails",
            "unknown field `trails`, expected `seed`",
            "run.trails: unknown key; known here: `seed`",
        );
    }

    #[test]
    fn a_missing_key_is_named() {
        check("run", "missing field `seed`", "run.seed: is missing");
    }

    #[test]
    fn anything_else_is_one_line_at_its_key() {
        check("run.seed", "invalid type\nexpected a number\n", "run.seed: invalid type, expected a number");
    }
}
