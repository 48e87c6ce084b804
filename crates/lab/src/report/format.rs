//! Numbers for readers: three significant digits, and separated thousands.

use std::fmt::Display;

use itertools::Itertools as _;
use spindle_base::text::thousands;
use spindle_base::units::format_size_bytes;

use crate::record::SeriesUnit;

/// A dash without a number.
pub fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

/// The marks of a figure, which footnotes explain.
pub fn mark(has_few_events: bool, is_not_steady: bool) -> &'static str {
    match (has_few_events, is_not_steady) {
        (false, false) => "",
        (true, false) => "†",
        (false, true) => "‡",
        (true, true) => "†‡",
    }
}

/// Three significant digits, all digits of the whole part: `12,346`, `988`, `9.88`, `0.0123`.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor();
    let decimals = (2.0 - magnitude).clamp(0.0, 6.0) as usize;
    let text = format!("{value:.decimals$}");
    // Rounding may carry into a new digit (9.999 -> 10.00).
    let text =
        if decimals > 0 && text.trim_start_matches('-').replace('.', "").trim_start_matches('0').len() > 3 {
            format!("{value:.*}", decimals - 1)
        } else {
            text
        };
    thousands(&text)
}

pub fn count(value: u64) -> String {
    thousands(&value.to_string())
}

/// `0.123` as `12 %`; small shares get one more digit.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "-".to_owned();
    }
    let percent = share * 100.0;
    if percent != 0.0 && percent.abs() < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// A share that a user wrote: `5 %`, `0.5 %`.
pub fn margin(share: f64) -> String {
    // Parts per million, as such a share is read.
    format!("{} %", (share * 1e6).round() / 1e4)
}

pub fn bytes(value: u64) -> String {
    let exponent = (value.max(1).ilog2() / 10).min(4);
    let unit = ["B", "KiB", "MiB", "GiB", "TiB"][exponent as usize];
    format!("{} {unit}", number(value as f64 / 1024_f64.powf(f64::from(exponent))))
}

/// A value of a series, with the unit that no title or heading says.
pub fn of_unit(value: f64, unit: SeriesUnit) -> String {
    match unit {
        SeriesUnit::Bytes => bytes(value.max(0.0) as u64),
        SeriesUnit::Share => percent(value),
        _ => number(value),
    }
}

/// A size with at most three digits, exact where that is as short: `64 MB`, `256 KiB`, `3.84 TB`.
pub fn size(bytes: u64) -> String {
    let exact = format_size_bytes(bytes);
    if exact.find(' ').is_some_and(|digits| digits <= 3) {
        return exact;
    }
    let exponent = (bytes.max(1).ilog10() / 3).min(4);
    let unit = ["B", "KB", "MB", "GB", "TB"][exponent as usize];
    format!("{} {unit}", number(bytes as f64 / 1000_f64.powi(exponent as i32)))
}

/// `a`, `a and b`, `a, b and c`.
pub fn list(items: impl IntoIterator<Item = impl Display>) -> String {
    let mut items = items.into_iter().collect_vec();
    let Some(last) = items.pop() else { return String::new() };
    if items.is_empty() { last.to_string() } else { format!("{} and {last}", items.iter().join(", ")) }
}

/// A label inside a sentence: `the Intel X25-M`. A label that is a phrase of its own stands in quotation
/// marks: `“data on the SSD, log on the disk”`.
pub fn the(label: &str) -> String {
    let is_phrase = label.contains(',')
        || label.contains(' ') && label.starts_with(char::is_lowercase)
        || ["the ", "a ", "an "].iter().any(|article| label.to_lowercase().starts_with(article));
    if is_phrase { format!("“{label}”") } else { format!("the {label}") }
}

/// The same at the start of a sentence.
pub fn the_first(label: &str) -> String {
    let words = the(label);
    words.strip_prefix("the ").map_or(words.clone(), |label| format!("The {label}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: f64, expect: &str) {
        assert_eq!(number(value), expect);
    }

    #[test]
    fn numbers_keep_three_digits_and_every_whole_one() {
        check(1_234_567.8, "1,234,568");
        check(987.6, "988");
        check(9.876, "9.88");
        check(0.012_34, "0.0123");
        check(-1234.0, "-1,234");
        check(0.0, "0");
    }

    #[test]
    fn sizes_have_at_most_three_digits() {
        assert_eq!([8 << 20, 64_000_000, 3_840_000_000_000].map(size), ["8 MiB", "64 MB", "3.84 TB"]);
    }

    #[test]
    fn rounding_that_carries_keeps_three_digits() {
        check(9.999, "10.0");
        check(99.96, "100");
        check(0.099_99, "0.100");
    }

    #[test]
    fn a_number_that_is_none_is_a_dash() {
        check(f64::NAN, "-");
        check(f64::INFINITY, "-");
    }

    #[test]
    fn a_label_is_a_noun_or_a_quotation() {
        let labels =
            ["Intel X25-M", "7200 rpm disk", "hdd", "data on the SSD, log on the disk", "log on a disk"];
        assert_eq!(
            labels.map(the),
            [
                "the Intel X25-M",
                "the 7200 rpm disk",
                "the hdd",
                "“data on the SSD, log on the disk”",
                "“log on a disk”"
            ]
        );
        assert_eq!([the_first("hdd"), the_first("SSD, new")], ["The hdd", "“SSD, new”"]);
    }

    #[test]
    fn shares_and_sizes_carry_their_unit() {
        assert_eq!(
            (percent(0.123), percent(0.0123), percent(0.0)),
            ("12 %".into(), "1.2 %".into(), "0 %".into())
        );
        assert_eq!(bytes(20 << 30), "20.0 GiB");
    }
}
