//! "Did you mean": the known name nearest to a misspelt one. Distances are optimal string alignment, in which
//! a swap of neighbours is one edit.

use strsim::osa_distance;

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

    #[test]
    fn another_word_is_not_near() {
        check("throughput", None);
    }
}
