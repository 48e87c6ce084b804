//! How sizes and durations are written for people.

use std::time::Duration;

/// `350 ms`, `30 s`, `4 min 10 s`, `2 h 5 min`.
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 10 && duration.subsec_millis() > 0 {
        return if seconds == 0 {
            format!("{} ms", duration.as_millis())
        } else {
            format!("{:.1} s", duration.as_secs_f64())
        };
    }
    // Rounded, so that 59.7 s is not "59 s".
    let seconds = duration.as_secs_f64().round() as u64;
    let with = |large: u64, large_unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => with(seconds / 60, "min", seconds % 60, "s"),
        _ => with(seconds / 3600, "h", seconds % 3600 / 60, "min"),
    }
}

/// Decimal, as disks are sold: `20 GB`, `1.5 GB`, `512 MB`.
pub fn size(bytes: u64) -> String {
    let (value, unit) = match bytes {
        0..1_000_000 => (bytes as f64 / 1e3, "KB"),
        1_000_000..1_000_000_000 => (bytes as f64 / 1e6, "MB"),
        1_000_000_000..1_000_000_000_000 => (bytes as f64 / 1e9, "GB"),
        _ => (bytes as f64 / 1e12, "TB"),
    };
    let text = format!("{value:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_say_them() {
        let check = |ms: u64, expect: &str| assert_eq!(duration(Duration::from_millis(ms)), expect);
        check(350, "350 ms");
        check(1500, "1.5 s");
        check(30_000, "30 s");
        check(59_700, "1 min");
        check(250_000, "4 min 10 s");
        check(3_600_000, "1 h");
    }

    #[test]
    fn sizes_are_decimal() {
        assert_eq!(size(20_000_000_000), "20 GB");
        assert_eq!(size(1_536_000_000), "1.5 GB");
        assert_eq!(size(100 << 20), "104.9 MB");
    }
}
