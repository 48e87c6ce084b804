//! What has been mended in the method since records were made, from the entries of CHANGELOG.md that change
//! figures and say when: `**results 2026-11-22 05:51** ...`.

const CHANGELOG: &str = include_str!("../../../../../../CHANGELOG.md");
const MARK: &str = "**results ";

/// The entries that are later than `created_at` (RFC 3339, in UTC), the oldest first.
pub(in crate::report::view) fn errata(created_at: &str) -> Vec<String> {
    later_than(CHANGELOG, created_at)
}

fn later_than(changelog: &str, created_at: &str) -> Vec<String> {
    let entries = changelog.split(MARK).skip(1).filter_map(|text| {
        let (time, rest) = text.split_once("**")?;
        let end = ["\n* ", "\n#"].iter().filter_map(|next| rest.find(next)).min().unwrap_or(rest.len());
        Some((time.replacen(' ', "T", 1), one_line(&rest[..end])))
    });
    let mut later: Vec<(String, String)> = entries.filter(|(time, _)| time.as_str() > created_at).collect();
    later.sort_by(|(one, _), (other, _)| one.cmp(other));
    later.into_iter().map(|(_, sentence)| sentence).collect()
}

/// Without line breaks, and with the text of a link in its place.
fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut parts = words.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    let with_links =
        parts.fold(first, |line, part| line + part.split_once(')').map_or(part, |(_, rest)| rest));
    with_links.replace('[', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_later_than_a_record_are_listed_by_their_time() {
        let changelog = "# C\n\n* **results 2026-02-01 10:00** Later, as [the page](a.md#b) says.\n* Other.\n\
             * New key. **results 2026-01-01 09:30** Two\n  lines.\n* **results** Without a time.\n";
        let later = |at: &str| later_than(changelog, at);
        assert_eq!(later("2025-12-31T00:00:00Z"), ["Two lines.", "Later, as the page says."]);
        assert_eq!(later("2026-01-01T09:30:01Z"), ["Later, as the page says."]);
        assert!(later("2026-02-01T10:00:00Z").is_empty());
    }

    #[test]
    fn the_changelog_has_times_that_can_be_compared() {
        let all = errata("2000-01-01T00:00:00Z");
        assert!(
            all.len() > 20 && all.iter().all(|entry| !entry.is_empty() && !entry.contains('[')),
            "{all:?}"
        );
        for text in CHANGELOG.split(MARK).skip(1) {
            let (time, _) = text.split_once("**").unwrap();
            let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
            assert_eq!(shape, "0000-00-00 00:00");
        }
        assert!(errata("2100-01-01T00:00:00Z").is_empty());
    }
}
