//! Hides the passwords of URLs. A scenario may contain one (`url = "mysql://user:password@host"`), and its
//! text goes into records, reports and error messages.
//!
//! Where the end of a password is uncertain, more is hidden rather than less. A parser of URLs is of no use
//! here: it ends the password at the first `/`, `?` or `#`.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

const MASK: &str = "***";
/// The form of a URL in our own help.
const EXAMPLE: &str = "://user:password@";

static IN_PROSE: LazyLock<Mask> = LazyLock::new(|| Mask::new(r#"\s\p{Cc}"'`<>"#));
/// For text that is one whole URL, in which anything may be part of the password.
static WHOLE: LazyLock<Mask> = LazyLock::new(|| Mask::new(r"\x00"));

struct Mask {
    password: Regex,
    parameter: Regex,
}

impl Mask {
    /// `ends` are the characters that end a URL, as a part of a character class.
    fn new(ends: &str) -> Mask {
        let user = format!(r"[[:alnum:]]://[^:@/?#\[\n{ends}]*:");
        // The last `@` ends a password. Without one in the URL, digits are a port, and anything else is a
        // password with a blank or a quotation mark.
        let rest = format!(r"[^{ends}]*@|[0-9]+(?:$|[/?#,{ends}])|[^\n]*?@");
        let parameter = format!("(?i)([?&](?:password|passwd|pwd|sslpassword|passphrase)=)[^&{ends}]*");
        let regex = |pattern: &str| Regex::new(pattern).expect("a test uses it");
        Mask { password: regex(&format!("({user})(?:{rest})")), parameter: regex(&parameter) }
    }

    fn apply(&self, text: &str) -> String {
        let masked = self.password.replace_all(text, |found: &Captures<'_>| match &found[0] {
            password if password.ends_with('@') && !password.ends_with(EXAMPLE) => {
                format!("{}{MASK}@", &found[1])
            }
            other => other.to_owned(),
        });
        self.parameter.replace_all(&masked, format!("${{1}}{MASK}")).into_owned()
    }
}

/// The text, with the passwords of its URLs hidden.
pub fn masked(text: &str) -> String {
    IN_PROSE.apply(text)
}

/// A single value, which may be a whole URL.
pub fn masked_value(text: &str) -> String {
    if is_url(text) { WHOLE.apply(text) } else { masked(text) }
}

/// The text of a scenario, with the passwords of its URLs hidden. TOML delimits each URL exactly, whatever
/// the password contains.
pub fn masked_scenario(text: &str) -> String {
    let mut shown = text.to_owned();
    if let Ok(table) = DeTable::parse(text) {
        let mut urls = Vec::new();
        table.get_ref().values().for_each(|value| collect_urls(value, &mut urls));
        urls.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
        for (place, url) in urls {
            let masked = WHOLE.apply(url);
            if masked != url {
                shown.replace_range(place, &toml::Value::String(masked).to_string());
            }
        }
    }
    masked(&shown)
}

/// Collects the strings that begin as URLs do, rather than prose with a URL in it.
fn collect_urls<'a>(value: &'a Spanned<DeValue<'_>>, urls: &mut Vec<(Range<usize>, &'a str)>) {
    match value.get_ref() {
        DeValue::String(text) if is_url(text) => urls.push((value.span(), text)),
        DeValue::Array(values) => values.iter().for_each(|value| collect_urls(value, urls)),
        DeValue::Table(table) => table.values().for_each(|value| collect_urls(value, urls)),
        _ => {}
    }
}

fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|part| part.is_ascii_alphanumeric() || "+.-".contains(part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_of_a_url_is_hidden_wherever_the_url_is() {
        let check = |text: &str, expect: &str| assert_eq!(masked(text), expect);
        check("mysql://root:pw@host:3306/db", "mysql://root:***@host:3306/db");
        check(
            "see postgresql://u:p%40%2Fw@h, and `mysql://a:b@c`.",
            "see postgresql://u:***@h, and `mysql://a:***@c`.",
        );
        check("mysql://u:p@ss:w/o?r#d@host/db", "mysql://u:***@host/db");
        check("mysql://u:12345@host", "mysql://u:***@host");
        check("mysql://u:@host", "mysql://u:***@host");
        check("mysql://u:se cret@host/db more", "mysql://u:***@host/db more");
        check("'mysql://u:quote'\"d@host/db'", "'mysql://u:***@host/db'");
        check("postgres://h/db?user=u&password=pw&x=y", "postgres://h/db?user=u&password=***&x=y");
        check("postgres://u:a@h/db?PASSWORD=b c", "postgres://u:***@h/db?PASSWORD=*** c");
    }

    #[test]
    fn a_url_without_a_password_stays_as_it_is() {
        for text in [
            "mysql://root@127.0.0.1:3306/db",
            "https://example.org:8080/a?b=c, or ask me@example.org",
            "https://example.org/a:b",
            "http://[::1]:80/ me@example.org",
            "`mysql://user:password@host:port/database` or `sqlite:/path`",
            "a :// b:c@d",
            "://u:p@h",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn a_scenario_has_its_own_way_to_say_where_a_url_ends() {
        let check = |text: &str, secret: &str| {
            let shown = masked_scenario(text);
            assert!(!shown.contains(secret) && shown.contains(MASK), "{shown}");
            assert!(
                shown.contains("kind = \"running\"") && shown.contains("[servers.mine] # ours"),
                "{shown}"
            );
        };
        let scenario = |url: &str| format!("[servers.mine] # ours\nkind = \"running\"\nurl = {url}\n");
        check(&scenario("\"mysql://u:secret@host/db\""), "secret");
        check(&scenario("'mysql://u:x y\"secret@host/db'"), "secret");
        check(&scenario("\"mysql://u:x\\\"y secret@host/db\""), "secret");
        check(&scenario("\"mysql://u:\\u0073ecret'x y@host/db\""), "ecret");
        check(&scenario("\"postgres://host/db?user=u&password=secret\""), "secret");
        check(&scenario("'postgres://host/db?password=x y\"secret'"), "secret");
    }
}
