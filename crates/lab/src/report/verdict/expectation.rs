//! What a user expects of a comparison, for a program that decides by the exit code.

use super::{Verdict, Word};

/// What the candidate is to be, compared with the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Expectation {
    /// Better by more than chance, and not the same within the margin.
    Better,
    /// Worse by more than chance, and not the same within the margin.
    Worse,
    /// The same within the margin.
    Same,
    /// At most the margin worse.
    NotWorse,
}

/// Whether an expectation is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Met {
    Yes,
    /// Not known yet, or not comparable.
    Open,
    No,
}

impl Expectation {
    pub fn of(self, verdict: &Verdict) -> Met {
        let is = |met: bool| if met { Met::Yes } else { Met::No };
        match (self, verdict.word, verdict.not_worse) {
            (_, Word::NotComparable, _) => Met::Open,
            (Expectation::NotWorse, _, Some(not_worse)) => is(not_worse),
            (Expectation::Worse, Word::NotKnown, Some(true)) => Met::No,
            (_, Word::NotKnown, _) | (Expectation::NotWorse, _, None) => Met::Open,
            (Expectation::Better, word, _) => is(word == Word::Better),
            (Expectation::Worse, word, _) => is(word == Word::Worse),
            (Expectation::Same, word, _) => is(word == Word::Same),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: Word, not_worse: Option<bool>, expect: [Met; 4]) {
        let verdict = Verdict { not_worse, ..Verdict::new(word, String::new(), 0.05) };
        let expectations =
            [Expectation::Better, Expectation::Worse, Expectation::Same, Expectation::NotWorse];
        assert_eq!(expectations.map(|expectation| expectation.of(&verdict)), expect);
    }

    #[test]
    fn a_known_answer_meets_or_fails_each_expectation() {
        check(Word::Better, Some(true), [Met::Yes, Met::No, Met::No, Met::Yes]);
        check(Word::Worse, Some(false), [Met::No, Met::Yes, Met::No, Met::No]);
        check(Word::Same, Some(true), [Met::No, Met::No, Met::Yes, Met::Yes]);
    }

    #[test]
    fn what_is_not_known_is_open_and_not_worse_can_be_known_first() {
        check(Word::NotKnown, None, [Met::Open; 4]);
        check(Word::NotKnown, Some(true), [Met::Open, Met::No, Met::Open, Met::Yes]);
        check(Word::NotComparable, None, [Met::Open; 4]);
    }
}
