//! STAND-IN until the real module is merged.
use std::time::Duration;

fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim()))
}

pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("`{text}` is not a duration; write for example \"30 s\" (ns, us, ms, s, min or h)");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let factor = match unit {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(number * factor).map_err(|_| wrong())
}

pub fn parse_size_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size; write for example \"20 GB\" or \"16 KiB\"");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let factor = match unit {
        "B" => 1.0,
        "KB" | "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KiB" => 1024.0,
        "MiB" => 1048576.0,
        "GiB" => 1073741824.0,
        _ => return Err(wrong()),
    };
    Ok((number * factor) as u64)
}
