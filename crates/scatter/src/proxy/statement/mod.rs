//! What kind of statement a text is, by its words alone: whether it reads, and what of the session it changes.
//!
//! This keeps mistakes from the servers. It is no wall: a stored function may write, so the servers' own user should have no
//! right that the proxy's users must not have.

mod bytes;
mod lexemes;

pub(in crate::proxy) use self::bytes::as_text;
use self::lexemes::{Lexeme, Lexemes};
use crate::proxy::fault::Fault;
use crate::sql::statements::Quoting;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::proxy) enum Kind {
    Read,
    Set,
    Use(String),
    Kill {
        id: u32,
        is_query: bool,
    },
    Begin,
    /// COMMIT or ROLLBACK; what follows may leave the connection in a transaction.
    End {
        stays: bool,
    },
    Savepoint,
    /// Its first word.
    Write(String),
}

/// A place for a value in a statement that is prepared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::proxy) struct Place {
    pub(in crate::proxy) at: usize,
    /// After LIMIT, where only a number may be.
    pub(in crate::proxy) is_in_limit: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::proxy) struct Statement<'a> {
    /// Without its semicolon.
    pub(in crate::proxy) text: &'a str,
    pub(in crate::proxy) kind: Kind,
    pub(in crate::proxy) places: Vec<Place>,
    /// It leaves something in its session that no other session has: a variable, a lock, a temporary table.
    pub(in crate::proxy) is_private: bool,
    /// SET with a query in it, or before one.
    pub(in crate::proxy) is_set_by_query: bool,
}

/// Statements that change no row and no table.
const READS: [&str; 10] =
    ["SELECT", "WITH", "SHOW", "DESC", "DESCRIBE", "EXPLAIN", "TABLE", "VALUES", "HELP", "DO"];
/// Statements whose effects all sessions see.
const SEEN_BY_ALL: [&str; 13] = [
    "ALTER", "ANALYZE", "CHECK", "CREATE", "DELETE", "DROP", "FLUSH", "INSERT", "OPTIMIZE", "RENAME",
    "REPLACE", "TRUNCATE", "UPDATE",
];

/// What the words of a statement say, gathered in one pass.
#[derive(Debug, Default)]
struct Words {
    /// Each word that is the first one if a server leaves out the executable comments before it.
    heads: Vec<String>,
    /// The word after a first one.
    second: Option<String>,
    places: Vec<Place>,
    end: Option<usize>,
    has_comment: bool,
    has_query: bool,
    has_into: bool,
    writes_file: bool,
    /// DELETE or UPDATE, as they follow WITH or EXPLAIN ANALYZE.
    writes_rows: bool,
    sets_for_all: bool,
    has_variable: bool,
    assigns: bool,
    locks: bool,
    is_temporary: bool,
    /// CHAIN without NO, or TO.
    stays: bool,
}

impl<'a> Statement<'a> {
    /// # Errors
    /// The text is empty, is more than one statement, or means different statements to different servers.
    pub(in crate::proxy) fn read(text: &'a str, quoting: Quoting) -> Result<Statement<'a>, Fault> {
        let words = gather(text, quoting)?;
        let Some(first) = words.heads.first() else {
            return Err(Fault::new(1065, b"42000", "Query was empty"));
        };
        let kind = kind(text, first, &words, quoting)?;
        for other in &words.heads[1..] {
            let other = self::kind(text, other, &words, quoting)?;
            if std::mem::discriminant(&other) != std::mem::discriminant(&kind) {
                return Err(Fault::new(
                    1235,
                    b"42000",
                    "a statement whose first words are in executable comments is not understood here",
                ));
            }
        }
        let is_private = match &kind {
            Kind::Set => words.has_variable,
            Kind::Write(word) => !SEEN_BY_ALL.contains(&word.as_str()) || words.is_temporary,
            _ => words.locks || words.has_variable && (words.assigns || words.has_into),
        };
        let text = text[..words.end.unwrap_or(text.len())].trim();
        let is_set_by_query = words.heads[0] == "SET" && words.has_query;
        Ok(Statement { text, kind, places: words.places, is_private, is_set_by_query })
    }
}

fn gather(text: &str, quoting: Quoting) -> Result<Words, Fault> {
    let mut words = Words::default();
    let mut last: Option<Lexeme<'_>> = None;
    let (mut has_plain_head, mut has_head, mut is_in_limit) = (false, false, false);
    for lexeme in Lexemes::of(text, quoting) {
        if words.end.is_some() {
            return Err(Fault::new(
                1064,
                b"42000",
                "one statement at a time is answered; a second one begins after the semicolon",
            ));
        }
        let begins_part = last.as_ref().is_none_or(|last| last.comment != lexeme.comment) || !has_head;
        match lexeme.kind {
            lexemes::Kind::Semicolon => words.end = Some(lexeme.place.start),
            lexemes::Kind::Word if !has_plain_head && begins_part => {
                words.heads.push(lexeme.text.to_ascii_uppercase());
                has_head = true;
                has_plain_head = lexeme.comment.is_none();
            }
            lexemes::Kind::Word if words.second.is_none() => {
                words.second = Some(lexeme.text.to_ascii_uppercase());
            }
            lexemes::Kind::Parameter => {
                words.places.push(Place { at: lexeme.place.start, is_in_limit });
            }
            lexemes::Kind::Doubtful => {
                return Err(Fault::new(
                    1235,
                    b"42000",
                    "a comment within an executable comment is not understood here",
                ));
            }
            _ => {}
        }
        is_in_limit = lexeme.is_any(&["limit", "offset"])
            || is_in_limit && (lexeme.text == "," || is_number(lexeme.text) || lexeme.text == "?");
        words.note(&lexeme, last.as_ref());
        last = Some(lexeme);
    }
    Ok(words)
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Words {
    fn note(&mut self, lexeme: &Lexeme<'_>, last: Option<&Lexeme<'_>>) {
        let follows = |words: &[&str]| last.is_some_and(|last| last.is_any(words));
        self.has_comment |= lexeme.comment.is_some();
        self.has_query |= lexeme.is_any(&["select", "with", "table", "values"]);
        self.has_into |= lexeme.is_word("into");
        self.writes_file |= lexeme.is_word("outfile") || self.has_into && lexeme.is_word("dumpfile");
        self.writes_rows |= lexeme.is_word("delete") || lexeme.is_word("update") && !follows(&["for"]);
        self.sets_for_all |= lexeme.is_any(&["global", "persist", "persist_only", "password"]);
        let begins_assignment = follows(&["set"]) || last.is_some_and(|last| last.text == ",");
        if lexeme.kind == lexemes::Kind::SystemVariable && begins_assignment {
            let name = lexeme.text[2..].trim_start_matches('`').to_ascii_lowercase();
            self.sets_for_all |= name.starts_with("global") || name.starts_with("persist");
        }
        self.has_variable |= lexeme.kind == lexemes::Kind::UserVariable;
        self.assigns |= lexeme.text == "=" && last.is_some_and(|last| last.text == ":");
        self.locks |= lexeme.is_any(&["get_lock", "release_lock", "release_all_locks"]);
        self.is_temporary |= lexeme.is_word("temporary");
        self.stays |= lexeme.is_word("chain") && !follows(&["no"]) || lexeme.is_word("to");
    }
}

/// The kind of a statement with this first word.
fn kind(text: &str, head: &str, words: &Words, quoting: Quoting) -> Result<Kind, Fault> {
    let second = words.second.as_deref().unwrap_or_default();
    let write = || Kind::Write(head.to_owned());
    Ok(match head {
        "WITH" if words.writes_rows || words.has_comment => write(),
        "EXPLAIN" | "DESC" | "DESCRIBE" if second == "ANALYZE" && words.writes_rows => write(),
        _ if READS.contains(&head) => {
            if words.writes_file {
                write()
            } else {
                Kind::Read
            }
        }
        "SET" if words.sets_for_all || second == "DEFAULT" => write(),
        "SET" if second == "STATEMENT" => match after_for(text, quoting) {
            Some(rest) if Statement::read(rest, quoting)?.kind == Kind::Read => Kind::Read,
            _ => write(),
        },
        "SET" => Kind::Set,
        "USE" => Kind::Use(name_after_use(text, quoting)),
        "KILL" => kill(text, quoting)?,
        "BEGIN" if matches!(second, "" | "WORK") => Kind::Begin,
        "START" if second == "TRANSACTION" => Kind::Begin,
        "COMMIT" | "ROLLBACK" => Kind::End { stays: words.stays },
        "SAVEPOINT" | "RELEASE" => Kind::Savepoint,
        _ => write(),
    })
}

/// The statement after SET STATEMENT with its settings.
fn after_for(text: &str, quoting: Quoting) -> Option<&str> {
    let mut depth = 0;
    for lexeme in Lexemes::of(text, quoting) {
        match lexeme.text {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ if depth == 0 && lexeme.is_word("for") => return text.get(lexeme.place.end..),
            _ => {}
        }
    }
    None
}

fn name_after_use(text: &str, quoting: Quoting) -> String {
    let mut name = String::new();
    let mut end = None;
    // A doubled quotation mark within a name ends a lexeme.
    for lexeme in Lexemes::of(text, quoting).skip(1) {
        if end.is_some_and(|end| end != lexeme.place.start) || lexeme.kind == lexemes::Kind::Semicolon {
            break;
        }
        end = Some(lexeme.place.end);
        name.push_str(lexeme.text);
    }
    match name.strip_prefix('`').and_then(|name| name.strip_suffix('`')) {
        Some(inner) => inner.replace("``", "`"),
        None => name,
    }
}

fn kill(text: &str, quoting: Quoting) -> Result<Kind, Fault> {
    let mut is_query = false;
    for lexeme in Lexemes::of(text, quoting).skip(1) {
        match lexeme.text.to_ascii_uppercase().as_str() {
            "HARD" | "SOFT" | "CONNECTION" => {}
            "QUERY" => is_query = true,
            id => {
                let words = "KILL takes the number that the proxy gave a connection";
                let id = id.parse().map_err(|_| Fault::new(1064, b"42000", words))?;
                return Ok(Kind::Kill { id, is_query });
            }
        }
    }
    Err(Fault::new(1064, b"42000", "KILL takes a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Statement<'_>, Fault> {
        Statement::read(text, Quoting::USUAL)
    }

    #[track_caller]
    fn check(text: &str, expect: Kind) {
        assert_eq!(read(text).unwrap().kind, expect, "{text}");
    }

    #[track_caller]
    fn check_write(text: &str) {
        assert!(matches!(read(text).unwrap().kind, Kind::Write(_)), "{text}");
    }

    #[test]
    fn what_reads_is_told_from_what_writes() {
        check("(SELECT 1) UNION (SELECT 2);", Kind::Read);
        check("/* tool */ select * from t for update", Kind::Read);
        check("WITH a AS (SELECT 1) SELECT * FROM a FOR UPDATE", Kind::Read);
        check("SELECT REPLACE('a', 'b', 'c'), 'INTO OUTFILE'", Kind::Read);
        check("EXPLAIN UPDATE t SET a = 1", Kind::Read);
        check_write("insert into t values (1)");
        check_write("SELECT 1 INTO OUTFILE '/tmp/x'");
        check_write("SELECT 'a' INTO DUMPFILE '/tmp/x'");
        check_write("WITH a AS (SELECT 1) DELETE FROM t");
        check_write("EXPLAIN ANALYZE DELETE FROM t");
        check_write("CALL p()");
        check_write("BEGIN NOT ATOMIC x");
    }

    #[test]
    fn a_setting_of_the_whole_server_is_a_write() {
        check("SET NAMES utf8mb4", Kind::Set);
        check("SET sql_mode = @@GLOBAL.sql_mode, @a = 1", Kind::Set);
        check_write("SET GLOBAL x = 1");
        check_write("SET a = 1, @@global.x = 2");
        check_write("SET @@persist.x = 2");
        check_write("SET PASSWORD = 'x'");
        check_write("SET STATEMENT a = 1 FOR DELETE FROM t");
        check_write("SET STATEMENT a = (SELECT 1 FOR UPDATE) FOR DELETE FROM t");
        check("SET STATEMENT max_statement_time = 1 FOR SELECT 1", Kind::Read);
        let by_query = |text: &str| read(text).unwrap().is_set_by_query;
        assert!(by_query("SET @a = (SELECT 1)") && by_query("SET STATEMENT a = 1 FOR SELECT 1"));
        assert!(!by_query("SET @a = 1") && !by_query("SELECT 1"));
    }

    #[test]
    fn an_executable_comment_hides_no_statement() {
        check("/*!40101 SET NAMES utf8 */", Kind::Set);
        check("SELECT /*!40001 SQL_NO_CACHE */ * FROM t", Kind::Read);
        check_write("/*!50000 DROP TABLE t */");
        assert_eq!(read("/*!99999 SELECT */ DROP TABLE t").unwrap_err().code, 1235);
        assert_eq!(read("/*!99999 SELECT */ SET sql_mode = ''").unwrap_err().code, 1235);
        assert_eq!(read("/*!99999 SELECT*//*!50000 DROP */ TABLE t").unwrap_err().code, 1235);
        assert_eq!(read("/*!99999 /*!1 */ SELECT */ DROP TABLE t").unwrap_err().code, 1235);
        assert_eq!(read("/*!99999 SELECT '*/ DROP TABLE t -- '").unwrap_err().code, 1235);
        assert_eq!(read("/*!99999 SELECT -- */ DROP TABLE t").unwrap_err().code, 1235);
    }

    #[test]
    fn one_statement_at_a_time() {
        assert_eq!(read("SELECT 1; DROP TABLE t").unwrap_err().code, 1064);
        assert_eq!(read(" ; ").unwrap_err().code, 1065);
        assert_eq!(read("").unwrap_err().code, 1065);
        assert_eq!(read("SELECT ';' ; -- end").unwrap().text, "SELECT ';'");
    }

    #[test]
    fn transactions_names_and_numbers_are_read() {
        check("begin", Kind::Begin);
        check("START TRANSACTION READ ONLY", Kind::Begin);
        check("COMMIT AND NO CHAIN", Kind::End { stays: false });
        check("ROLLBACK TO SAVEPOINT a", Kind::End { stays: true });
        check("USE `a``b`", Kind::Use("a`b".to_owned()));
        check("KILL QUERY 12", Kind::Kill { id: 12, is_query: true });
        check("KILL HARD CONNECTION 3;", Kind::Kill { id: 3, is_query: false });
        assert_eq!(read("KILL CONNECTION_ID()").unwrap_err().code, 1064);
    }

    #[test]
    fn what_only_one_session_has_is_private() {
        let check = |text: &str, expect: bool| assert_eq!(read(text).unwrap().is_private, expect, "{text}");
        check("SET @a = 1", true);
        check("SET autocommit = 1", false);
        check("SELECT @a := 1", true);
        check("SELECT 1 INTO @a", true);
        check("SELECT @a", false);
        check("SELECT GET_LOCK('a', 1)", true);
        check("CREATE TEMPORARY TABLE a (b INT)", true);
        check("INSERT INTO t VALUES (1)", false);
        check("LOCK TABLES t READ", true);
    }

    #[test]
    fn parameters_are_found_outside_of_strings() {
        let statement = read("SELECT '?', ? FROM t WHERE a = ? -- ?\n LIMIT ?, 5 OFFSET ?").unwrap();
        let found: Vec<bool> = statement.places.iter().map(|place| place.is_in_limit).collect();
        assert_eq!(found, [false, false, true, true]);
    }
}
