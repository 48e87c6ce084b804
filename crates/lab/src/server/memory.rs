//! Sizes as servers spell them.

/// `134217728`, `128M`, `1g`: bytes, with binary suffixes. `None` when it is no size.
pub(crate) fn parse_size_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor: u64 = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_the_server_reads_them() {
        let check = |text: &str, expect: Option<u64>| assert_eq!(parse_size_bytes(text), expect, "{text}");
        check("134217728", Some(134_217_728));
        check("128M", Some(134_217_728));
        check("1g", Some(1 << 30));
        check("2T", Some(2 << 40));
        check("many", None);
        check("12MB", None);
        check("99999999999999999999", None);
    }
}
