//! Whether another run of the same studies, such as one with another seed, gives the claims the same verdicts.

use itertools::Itertools as _;
use spindle_base::text::plural;

use super::Answer;
use super::answer::verdict;
use crate::claims::{ClaimOutcome, Verdict};
use crate::report::escaped;

/// Two runs of the same studies, in the same order.
#[derive(Debug)]
pub struct Against<'a> {
    pub answers: &'a [Answer],
    pub others: &'a [Answer],
}

/// A claim in both runs.
#[derive(Debug)]
struct Pair<'a> {
    study: &'a str,
    one: &'a ClaimOutcome,
    other: &'a ClaimOutcome,
}

impl Pair<'_> {
    /// Both runs tested the same number of the claim's checks.
    fn is_comparable(&self) -> bool {
        self.one.tested > 0 && self.one.tested == self.other.tested
    }

    fn is_other(&self) -> bool {
        self.one.verdict != self.other.verdict
    }

    /// One run says of itself that it cannot tell.
    fn is_undecided(&self) -> bool {
        [self.one, self.other].iter().any(|claim| claim.verdict == Verdict::NotDecided)
    }

    fn row(&self) -> String {
        let fields = [
            escaped(self.study),
            self.one.id.clone(),
            verdict(self.one),
            verdict(self.other),
            escaped(&self.one.figures()),
            escaped(&self.other.figures()),
        ];
        format!("| {} |\n", fields.join(" | "))
    }
}

impl Against<'_> {
    fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        let studies = self.answers.iter().zip(self.others);
        let pairs = studies.flat_map(|(answer, other)| {
            let claims = answer.claims().iter().zip(other.claims());
            claims.map(|(one, other)| Pair { study: answer.folder.study, one, other })
        });
        pairs.filter(Pair::is_comparable)
    }

    /// Whether no claim is tested by both.
    pub fn is_empty(&self) -> bool {
        self.pairs().next().is_none()
    }

    /// For each study that ran on other processors, which those were.
    fn other_processors(&self) -> Vec<String> {
        let of_study = |(answer, other): (&Answer, &Answer)| {
            let in_both = answer
                .processors
                .iter()
                .filter_map(|(scenario, one)| Some((one, other.processors.get(scenario)?)));
            let differ = in_both.filter(|(one, other)| one != other).unique();
            let words = differ.map(|(one, other)| format!("{one} here, {other} in the other run")).join("; ");
            (!words.is_empty()).then(|| format!("{}: {words}", answer.folder.study))
        };
        self.answers.iter().zip(self.others).filter_map(of_study).collect()
    }

    /// A sentence, a table of the claims with another verdict, and the studies that ran on other processors, which may
    /// change a verdict too.
    pub fn markdown(&self) -> String {
        let others = self.pairs().filter(Pair::is_other).collect_vec();
        let undecided = others.iter().filter(|pair| pair.is_undecided()).count();
        let mut page = format!(
            "Of {} that both runs test, {} have another verdict in the other run; in {undecided} of these, one of the runs says \"not decided\".\n",
            plural(self.pairs().count(), "claim"),
            others.len(),
        );
        if !others.is_empty() {
            page += "\n| study | claim | verdict | the other run's | published and measured | the other run's |\n|---|---|---|---|---|---|\n";
            page.extend(others.iter().map(Pair::row));
        }
        let processors = self.other_processors();
        if !processors.is_empty() {
            page += "\nStudies that the two runs have on different processors, where this may have changed a verdict, and not the seed:\n\n";
            page.extend(processors.iter().map(|of_study| format!("* {}\n", escaped(of_study))));
        }
        page
    }
}
