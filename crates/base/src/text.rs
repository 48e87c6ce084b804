//! Sizes and durations for people, and safe output of foreign text. A title or a server's message could move
//! the cursor of a terminal, change its title, or reverse the reading direction of the text after it.

use std::time::Duration;

use serde::Serialize;

/// Foreign text for a place of one line. Characters that a terminal would act upon are written as escapes.
pub fn one_line(text: &str) -> String {
    escaped(
        text,
        |blank| if "\n\r\t".contains(blank) { " ".to_owned() } else { blank.escape_unicode().to_string() },
    )
}

/// The same for a place of several lines.
pub fn lines(text: &str) -> String {
    escaped(&text.replace("\r\n", "\n"), |kept| match kept {
        '\n' | '\t' => kept.to_string(),
        _ => kept.escape_unicode().to_string(),
    })
}

/// Rows as columns with two spaces between them. Their fields may be foreign text.
pub fn columns<const N: usize>(rows: impl IntoIterator<Item = [String; N]>) -> String {
    let rows: Vec<[String; N]> = rows.into_iter().map(|row| row.map(|field| one_line(&field))).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let padded = row.iter().zip(widths).map(|(field, width)| format!("{field:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// JSON for people and programs. Characters that a terminal would act upon become JSON escapes.
///
/// # Errors
/// The value cannot be JSON.
pub fn json(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(json_escaped(&serde_json::to_string_pretty(value)?))
}

/// The same for a JSON text. Such characters occur only in its strings.
pub fn json_escaped(json: &str) -> String {
    escaped(json, |acts| match acts {
        '\n' => acts.to_string(),
        _ => format!("\\u{:04x}", acts as u32),
    })
}

fn escaped(text: &str, escape: impl Fn(char) -> String) -> String {
    if !text.contains(acts) {
        return text.to_owned();
    }
    text.chars().map(|one| if acts(one) { escape(one) } else { one.to_string() }).collect()
}

/// Whether a terminal would act upon the character: control characters of both sets (C0, C1), line
/// separators, and the marks and overrides of bidirectional text.
pub fn acts(one: char) -> bool {
    one.is_control()
        || matches!(one, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// An error and its causes. A cause whose text is there already is left out: some libraries write it into
/// their own.
pub fn causes(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |told, cause| match told.contains(&cause) {
        _ if told.is_empty() => cause,
        true => told,
        false => format!("{told}: {cause}"),
    })
}

/// `350 ms`, `30 s`, `4 min 10 s`, `2 h 5 min`, `9 d 4 h`.
pub fn duration(duration: Duration) -> String {
    match (duration.as_secs(), duration.subsec_millis()) {
        (0, 1..) => return format!("{} ms", duration.as_millis()),
        (1..10, 1..) => return format!("{:.1} s", duration.as_secs_f64()),
        _ => {}
    }
    // Rounded, so that 59.7 s is "1 min" rather than "59 s".
    let seconds = duration.as_secs_f64().round() as u64;
    let with = |large: u64, large_unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => with(seconds / 60, "min", seconds % 60, "s"),
        3600..172_800 => with(seconds / 3600, "h", seconds % 3600 / 60, "min"),
        _ => with(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    }
}

/// Decimal, as disks are sold: `20 GB`, `1.5 GB`, `512 MB`.
pub fn size(bytes: u64) -> String {
    let (value, unit) = match bytes {
        // Rounding leads to the next unit.
        0..999_950 => (bytes as f64 / 1e3, "KB"),
        999_950..999_950_000 => (bytes as f64 / 1e6, "MB"),
        999_950_000..999_950_000_000 => (bytes as f64 / 1e9, "GB"),
        _ => (bytes as f64 / 1e12, "TB"),
    };
    let text = format!("{value:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// `1 trial`, `2 trials`, `1,156 trials`.
pub fn plural(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", thousands(&count.to_string()))
}

/// Groups the digits of the whole part of a decimal number: `-12,346.5`.
pub fn thousands(number: &str) -> String {
    let (sign, rest) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let groups: Vec<_> = whole.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    format!("{sign}{}{fraction}", groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let check = |text: &str, expect: &str| assert_eq!(one_line(text), expect);
        check("plain, née 中", "plain, née 中");
        check("a\u{1b}]0;title\u{7}b", "a\\u{1b}]0;title\\u{7}b");
        check("two\r\nlines\tand", "two  lines and");
        check("\u{9b}31m\u{7f}\0", "\\u{9b}31m\\u{7f}\\u{0}");
        check("user\u{202e}gnp.exe\u{2066}x\u{2069}", "user\\u{202e}gnp.exe\\u{2066}x\\u{2069}");
        assert_eq!(lines("a\r\nb\rc\td\u{1b}"), "a\nb\\u{d}c\td\\u{1b}");
    }

    #[test]
    fn digits_stand_in_groups_of_three() {
        let check = |number: &str, expect: &str| assert_eq!(thousands(number), expect);
        check("999", "999");
        check("-1234567.8901", "-1,234,567.8901");
        check("0.0123", "0.0123");
        assert_eq!([1, 2, 1156].map(|count| plural(count, "trial")), ["1 trial", "2 trials", "1,156 trials"]);
    }

    #[test]
    fn json_means_the_same_after_its_escapes() {
        let text = "a\u{1b}b\u{9b}c\u{202e}d\ne\u{7f}";
        let json = json(&[text]).unwrap();
        assert!(!json.replace('\n', "").contains(acts), "{json}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), [text]);
    }

    #[test]
    fn a_cause_is_said_once() {
        let cause = || std::io::Error::other("connection refused");
        let check = |error: anyhow::Error, expect: &str| assert_eq!(causes(&error), expect);
        check(anyhow::Error::new(cause()).context("opening a"), "opening a: connection refused");
        check(
            anyhow::Error::new(cause()).context(format!("IoError {{ {} }}", cause())),
            "IoError { connection refused }",
        );
        check(
            anyhow::Error::new(cause()).context("connection refused").context("a"),
            "a: connection refused",
        );
    }

    #[test]
    fn durations_read_as_people_say_them() {
        let check = |ms: u64, expect: &str| assert_eq!(duration(Duration::from_millis(ms)), expect);
        check(350, "350 ms");
        check(1500, "1.5 s");
        check(30_000, "30 s");
        check(59_700, "1 min");
        check(250_000, "4 min 10 s");
        check(3_600_000, "1 h");
        check(24 * 3_600_000, "24 h");
        check(220 * 3_600_000, "9 d 4 h");
    }

    #[test]
    fn sizes_are_decimal() {
        assert_eq!(size(20_000_000_000), "20 GB");
        assert_eq!(size(1_536_000_000), "1.5 GB");
        assert_eq!(size(100 << 20), "104.9 MB");
        assert_eq!(size(999_997_440), "1 GB");
    }
}
