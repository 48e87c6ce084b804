//! Hides the passwords of URLs. A scenario may contain one (`url = "mysql://user:password@host"`), and its
//! text goes into records, reports and error messages.
//!
//! Where the end of a password is uncertain, more is hidden rather than less.

const MASK: &str = "***";
/// The form of a URL in our own help.
const EXAMPLE: &str = "user:password@";
const PARAMETERS: [&str; 5] = ["password=", "passwd=", "pwd=", "sslpassword=", "passphrase="];

/// The text, with the passwords of its URLs hidden.
pub fn masked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("://").map(|at| at + 3) {
        let has_scheme = rest[..start - 3].ends_with(|last: char| last.is_ascii_alphanumeric());
        shown.push_str(&rest[..start]);
        rest = &rest[start..];
        if has_scheme {
            let end = rest.find(ends_url).unwrap_or(rest.len());
            rest = mask_url(rest, end, &mut shown);
        }
    }
    shown.push_str(rest);
    shown
}

/// Appends the URL at the start of `text` to `shown`, masked, and returns the rest of the text.
fn mask_url<'a>(text: &'a str, end: usize, shown: &mut String) -> &'a str {
    let mut from = 0;
    if let Some((start, stop)) = password(text, end) {
        shown.push_str(&text[..start]);
        shown.push_str(MASK);
        from = stop;
    }
    // The password may contain a blank.
    let end = end.max(from + text[from..].find(ends_url).unwrap_or(text.len() - from));
    shown.push_str(&mask_parameters(&text[from..end]));
    &text[end..]
}

/// Start and end of the password in `text`, which begins after `://`. `end` is the apparent end of the URL.
fn password(text: &str, end: usize) -> Option<(usize, usize)> {
    if text.starts_with(EXAMPLE) {
        return None;
    }
    let start = match text.find([':', '@', '/', '?', '#', '[', '\n']) {
        Some(at) if text[at..].starts_with(':') && at < end => at + 1,
        _ => return None,
    };
    // A password may contain `@`, so the last one ends it.
    if let Some(at) = text[start..end].rfind('@') {
        return Some((start, start + at));
    }
    let after_port = text[start..].trim_start_matches(|digit: char| digit.is_ascii_digit());
    if text.len() - after_port.len() > start
        && after_port.chars().next().is_none_or(|next| ends_url(next) || "/?#,".contains(next))
    {
        return None;
    }
    let line = text[start..].split('\n').next().unwrap_or_default();
    line.find('@').map(|at| (start, start + at))
}

fn mask_parameters(url: &str) -> String {
    let Some((before, parameters)) = url.split_once('?') else { return url.to_owned() };
    let masked = parameters.split('&').map(|parameter| {
        let lower = parameter.to_ascii_lowercase();
        match PARAMETERS.iter().find(|name| lower.starts_with(*name)) {
            Some(name) => format!("{}{MASK}", &parameter[..name.len()]),
            None => parameter.to_owned(),
        }
    });
    format!("{before}?{}", masked.collect::<Vec<_>>().join("&"))
}

fn ends_url(next: char) -> bool {
    next.is_whitespace() || next.is_control() || "\"'`<>".contains(next)
}

/// The text of a scenario, with the passwords of its URLs hidden. TOML delimits each URL exactly, whatever
/// the password contains.
pub fn masked_scenario(text: &str) -> String {
    let mut shown = text.to_owned();
    let mut urls = Vec::new();
    if let Ok(table) = text.parse::<toml::Table>() {
        collect_urls(&toml::Value::Table(table), &mut urls);
    }
    for url in urls {
        let masked = masked_url(&url);
        let escaped = toml::Value::String(url.clone()).to_string();
        if masked == url {
            continue;
        }
        if shown.contains(&url) {
            shown = shown.replace(&url, &masked);
        } else if shown.contains(&escaped) {
            shown = shown.replace(&escaped, &toml::Value::String(masked).to_string());
        } else {
            // The file spells it with other escapes.
            shown = without_lines_of_urls(&shown);
        }
    }
    self::masked(&shown)
}

/// The URL with its password hidden. The text must be one whole URL.
fn masked_url(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let mut shown = format!("{scheme}://");
            let rest = mask_url(rest, rest.len(), &mut shown);
            shown + rest
        }
        None => url.to_owned(),
    }
}

fn collect_urls(value: &toml::Value, urls: &mut Vec<String>) {
    match value {
        toml::Value::String(text) if is_url(text) => urls.push(text.clone()),
        toml::Value::Array(values) => values.iter().for_each(|value| collect_urls(value, urls)),
        toml::Value::Table(table) => table.values().for_each(|value| collect_urls(value, urls)),
        _ => {}
    }
}

/// Whether the whole text is a URL, rather than prose with a URL in it.
fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|part| part.is_ascii_alphanumeric() || "+.-".contains(part))
    })
}

fn without_lines_of_urls(text: &str) -> String {
    let line = |line: &str| match line.split_once('=') {
        Some((key, _)) if key.trim().trim_matches(['"', '\'']).ends_with("url") => {
            format!("{key}= \"{MASK}\"")
        }
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n") + "\n"
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
