//! "Did you mean": the known name nearest to a misspelt one. Distances are optimal string alignment, in which
//! a swap of neighbours is one edit.

use itertools::Itertools as _;
use strsim::osa_distance;

/// Most names in one suggestion.
const SUGGESTIONS_MOST: usize = 4;
/// A word that describes more than these, such as `SSD`, suggests none of them.
const DESCRIBED_MOST: usize = 8;

/// The nearest of `known`, if it is near enough.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let bound = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (osa_distance(word, name), name))
        .filter(|(edits, name)| *edits <= bound || (name.starts_with(word) && word.len() >= 3))
        .min()
        .map(|(_, name)| name)
}

/// `; did you mean `x`?`, or nothing.
pub fn did_you_mean(word: &str, known: &[&str]) -> String {
    nearest(word, known.iter().copied()).map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// `; did you mean `x`?` or `; known here: `x` and `y``.
pub fn hint(word: &str, known: &[&str]) -> String {
    match did_you_mean(word, known) {
        meant if !meant.is_empty() || known.is_empty() => meant,
        _ => format!("; known here: {}", list(known)),
    }
}

/// `; did you mean `x`, `y` or `z`?`, or nothing. `known` are names, each with words about it; the first ones
/// are preferred. A misspelt name comes before a part of a name, and that before a word of the description.
pub fn did_you_mean_one_of<'a>(word: &str, known: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let meant = candidates(word, known).into_iter().map(|name| format!("`{name}`")).collect_vec();
    match meant.split_last() {
        None => String::new(),
        Some((only, [])) => format!("; did you mean {only}?"),
        Some((last, others)) => format!("; did you mean {} or {last}?", others.join(", ")),
    }
}

/// The names of the nearest kind that has any.
fn candidates<'a>(word: &str, known: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<&'a str> {
    let (word, bare) = (word.to_lowercase(), plain(word));
    let bound = (word.chars().count() / 3).max(1);
    let rank = |(name, about): (&'a str, &str)| {
        let (edits, plain_name) = (osa_distance(&word, &name.to_lowercase()), plain(name));
        let rank = match plain_name.find(&bare) {
            _ if edits <= bound => (0, edits, 0),
            Some(at) if bare.len() >= 2 => (1, usize::from(at > 0), edits),
            _ if bare.len() >= 3 && about.split_whitespace().any(|one| plain(one) == bare) => (2, 0, 0),
            _ => return None,
        };
        Some((rank, name))
    };
    let ranked = known.into_iter().filter_map(rank).sorted_by_key(|(rank, _)| *rank).collect_vec();
    // A misspelt name is one name: those at a larger distance are others.
    let Some(((kind, edits, _), _)) = ranked.first().copied() else { return Vec::new() };
    let near = ranked.into_iter().filter(|(rank, _)| rank.0 == kind && (kind > 0 || rank.1 == edits));
    let near = near.map(|(_, name)| name).unique().collect_vec();
    let is_vague = kind == 2 && near.len() > DESCRIBED_MOST;
    near.into_iter().take(if is_vague { 0 } else { SUGGESTIONS_MOST }).collect()
}

/// Letters and digits in lower case.
fn plain(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// `a`, `b` and `c`.
pub fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => "nothing".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, expect: Option<&str>) {
        assert_eq!(nearest(word, ["measure", "trials", "warm_up", "iodrive", "hdd"]), expect);
    }

    #[test]
    fn one_missing_letter_is_found() {
        check("mesure", Some("measure"));
    }

    #[test]
    fn swapped_neighbours_are_one_mistake() {
        check("hdd", Some("hdd"));
        check("trails", Some("trials"));
    }

    #[test]
    fn the_beginning_of_a_name_is_enough() {
        check("iod", Some("iodrive"));
    }

    #[track_caller]
    fn check_candidates(word: &str, expect: &str) {
        let drives = [
            ("pm9a3", "A data-centre NVMe SSD (M.2, 3.84 TB)."),
            ("970pro", "An NVMe SSD with a volatile write buffer."),
            ("ebs-gp3", "A gp3 volume"),
            ("x25m-160", "A SATA SSD"),
            ("x25m-80", "A SATA SSD"),
            ("x25m-80-g1", "A SATA SSD"),
            ("x25m-80-used", "X25-M, used"),
            ("x25m-80-old", ""),
        ];
        assert_eq!(candidates(word, drives).join(" "), expect);
    }

    #[test]
    fn a_part_of_a_name_is_enough_and_shorter_names_come_first() {
        check_candidates("gp3", "ebs-gp3");
        check_candidates("X25-M", "x25m-80 x25m-160 x25m-80-g1 x25m-80-old");
        check_candidates("g1", "x25m-80-g1");
    }

    #[test]
    fn a_misspelt_name_hides_names_with_the_same_beginning() {
        check_candidates("x25m-8", "x25m-80");
        check_candidates("970por", "970pro");
    }

    #[test]
    fn a_word_of_the_description_is_found_in_the_given_order() {
        check_candidates("nvme", "pm9a3 970pro");
        check_candidates("tape", "");
        check_candidates("-", "");
    }

    #[test]
    fn a_word_that_describes_many_suggests_none() {
        let names: Vec<String> = (0..=DESCRIBED_MOST).map(|index| format!("drive-{index}")).collect();
        let drives = |count: usize| names.iter().take(count).map(|name| (name.as_str(), "An SSD"));
        assert_eq!(candidates("ssd", drives(DESCRIBED_MOST)).len(), SUGGESTIONS_MOST);
        assert!(candidates("ssd", drives(DESCRIBED_MOST + 1)).is_empty());
    }

    #[test]
    fn several_suggestions_are_one_question() {
        let known = [("a-disk", ""), ("b-disk", ""), ("c-disk", "")];
        assert_eq!(did_you_mean_one_of("disk", known), "; did you mean `a-disk`, `b-disk` or `c-disk`?");
        assert_eq!(did_you_mean_one_of("tape", known), "");
    }

    #[test]
    fn another_word_is_not_near() {
        check("throughput", None);
    }
}
