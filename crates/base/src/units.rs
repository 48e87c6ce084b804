//! Parses sizes, durations and rates: `20 GiB`, `8.5 ms`, `250 MB/s`.
//!
//! `KB`, `MB`, ... are powers of ten, and `KiB`, `MiB`, ... powers of two. A bare letter is a power of two,
//! as in a database server's `96M`.

use std::time::Duration;

pub use spindle_model::{format_duration_ns, format_size_bytes};

use crate::text;

const SIZE_UNITS: [(&str, u64); 15] = [
    ("B", 1),
    ("KB", 1_000),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("K", 1 << 10),
    ("k", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
];

const DURATION_UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// A whole number of MiB in its largest unit, anything else rounded.
pub fn format_size_rounded(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) { format_size_bytes(bytes) } else { text::size(bytes) }
}

/// Bytes; the error is a sentence.
pub fn parse_size_bytes(text: &str) -> Result<u64, String> {
    let kind = "size in whole bytes; write for example \"20 GiB\", \"16 KiB\" or \"96M\" \
                (B, KB, MB, GB, TB, KiB, MiB, GiB, TiB)";
    parse_as(kind, text, &SIZE_UNITS)
}

/// Nanoseconds; the error is a sentence.
pub fn parse_duration_ns(text: &str) -> Result<u64, String> {
    let kind = "duration; write for example \"8.5 ms\" or \"30 s\" (ns, us, ms, s, min, h, d)";
    parse_as(kind, text, &DURATION_UNITS)
}

/// The error is a sentence.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    parse_duration_ns(text).map(Duration::from_nanos)
}

/// Bytes per second; the error is a sentence.
pub fn parse_rate_bytes_per_s(text: &str) -> Result<u64, String> {
    let units = SIZE_UNITS.map(|(unit, factor)| (format!("{unit}/s"), factor));
    parse_as("rate; write for example \"250 MB/s\" or \"1.5 GiB/s\"", text, &units)
}

/// Parts per million of a share in percent; the error is a sentence.
pub fn parse_share_per_million(text: &str) -> Result<u64, String> {
    let kind = "share in ten thousandths of a percent; write for example \"0.5 %\"";
    parse_as(kind, text, &[("%", 10_000)])
}

/// Whole percent; the error is a sentence.
pub fn parse_percent(text: &str) -> Result<u64, String> {
    parse_as("whole number of %; write for example \"50 %\"", text, &[("%", 1)])
}

/// Rotations per minute; the error is a sentence.
pub fn parse_rotations_per_minute(text: &str) -> Result<u64, String> {
    parse_as("whole number of rpm; write for example \"7200 rpm\"", text, &[("rpm", 1)])
}

fn parse_as(kind: &str, text: &str, units: &[(impl AsRef<str>, u64)]) -> Result<u64, String> {
    parse(text, units).ok_or_else(|| format!("`{text}` is not a {kind}"))
}

/// The value of a decimal number and a unit. `None` for any other text, or when the result is not whole or
/// too large.
fn parse(text: &str, units: &[(impl AsRef<str>, u64)]) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim_start());
    let (_, factor) = units.iter().find(|(name, _)| name.as_ref() == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_plain = !whole.is_empty() && (fraction.is_empty() != number.contains('.')) && fraction.len() <= 9;
    if !is_plain || fraction.contains('.') {
        return None;
    }
    // Integer arithmetic, so that 655.36 MB is exact.
    let scale = 10_u128.pow(fraction.len() as u32);
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let scaled = digits.checked_mul(u128::from(*factor))?;
    if !scaled.is_multiple_of(scale) {
        return None;
    }
    u64::try_from(scaled / scale).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_size(text: &str, expect: Option<u64>) {
        assert_eq!(parse_size_bytes(text).ok(), expect, "{text}");
    }

    #[test]
    fn a_size_in_no_whole_mib_is_rounded() {
        assert_eq!([3 << 29, 19_999_997_952].map(format_size_rounded), ["1536 MiB", "20 GB"]);
    }

    #[test]
    fn sizes_are_decimal_or_binary_as_written() {
        check_size("20 GiB", Some(20 << 30));
        check_size("80 GB", Some(80_000_000_000));
        check_size("512KiB", Some(512 << 10));
        check_size("1.5 MiB", Some(3 << 19));
        check_size("96M", Some(96 << 20));
    }

    #[test]
    fn invalid_sizes_are_refused() {
        for text in [
            "",
            "20",
            "GiB",
            "20 XB",
            "-1 GiB",
            "1.2.3 GiB",
            "1. GiB",
            ".5 GiB",
            "20 ms",
            "0.3 B",
            "99999999 TiB",
        ] {
            check_size(text, None);
        }
    }

    #[test]
    fn durations_keep_their_nanoseconds() {
        assert_eq!(parse_duration_ns("8.5 ms"), Ok(8_500_000));
        assert_eq!(parse_duration_ns("28.57 us"), Ok(28_570));
        assert_eq!(parse_duration("30 s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        for minutes in ["1.5m", "1.5 min", "1.5min"] {
            assert_eq!(parse_duration(minutes), Ok(Duration::from_secs(90)));
        }
        assert_eq!(parse_duration("7d"), Ok(Duration::from_secs(7 * 86_400)));
        for other in ["30", "s", "-1s", "2 w", "1 month"] {
            assert!(parse_duration(other).is_err(), "{other}");
        }
        assert_eq!(
            parse_duration_ns("8 parsecs"),
            Err("`8 parsecs` is not a duration; write for example \"8.5 ms\" or \"30 s\" (ns, us, ms, s, min, h, d)"
                .to_owned())
        );
    }

    #[test]
    fn rates_are_sizes_per_second() {
        assert_eq!(parse_rate_bytes_per_s("655.36 MB/s"), Ok(655_360_000));
        assert!(parse_rate_bytes_per_s("655 MB").is_err());
    }

    #[test]
    fn formatted_values_are_parsed_back() {
        for bytes in [0, 1, 512, 4_096, 20 << 30, 80_000_000_000, 64_000_000, 1_000_000_007] {
            assert_eq!(parse_size_bytes(&format_size_bytes(bytes)), Ok(bytes));
        }
        for nanoseconds in [0, 7, 28_570, 285_000, 8_500_000, 30_000_000_000, 1_234_567_891] {
            assert_eq!(parse_duration_ns(&format_duration_ns(nanoseconds)), Ok(nanoseconds));
        }
        assert_eq!(format_duration_ns(8_500_000), "8.5 ms");
    }
}
