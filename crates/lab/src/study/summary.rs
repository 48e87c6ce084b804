//! All studies in one table: how many of their claims hold.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use itertools::Itertools as _;
use spindle_base::text::{self, plural};

use super::Answer;
use crate::claims::{Cause, FurtherTrials, Verdict};
use crate::record::spelling;
use crate::report::escaped;

/// How many claims of a study have which verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub confirmed: usize,
    pub direction_only: usize,
    pub contradicted: usize,
    pub not_decided: usize,
    pub not_testable: usize,
    pub not_run: usize,
}

impl Counts {
    pub fn of(answer: &Answer) -> Counts {
        let mut counts = Counts::default();
        for claim in answer.claims() {
            let count = match claim.verdict {
                _ if claim.is_not_run() => &mut counts.not_run,
                Verdict::Confirmed => &mut counts.confirmed,
                Verdict::DirectionOnly => &mut counts.direction_only,
                Verdict::Contradicted => &mut counts.contradicted,
                Verdict::NotDecided => &mut counts.not_decided,
                Verdict::NotTestable => &mut counts.not_testable,
            };
            *count += 1;
        }
        counts
    }

    fn add(&mut self, other: &Counts) {
        self.confirmed += other.confirmed;
        self.direction_only += other.direction_only;
        self.contradicted += other.contradicted;
        self.not_decided += other.not_decided;
        self.not_testable += other.not_testable;
        self.not_run += other.not_run;
    }

    pub fn all(&self) -> usize {
        self.tested() + self.not_testable + self.not_run
    }

    /// Claims that a run speaks about.
    pub fn tested(&self) -> usize {
        self.confirmed + self.direction_only + self.contradicted + self.not_decided
    }

    /// `16 claims: 10 confirmed, 3 contradicted, 3 not testable`.
    pub fn words(&self) -> String {
        let counts = self.named().map(|(words, count)| format!("{count} {words}")).join(", ");
        format!("{}: {counts}", plural(self.all(), "claim"))
    }

    /// The verdicts that claims have, each with their number.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let counts = [
            ("confirmed", self.confirmed),
            ("direction only", self.direction_only),
            ("contradicted", self.contradicted),
            ("not decided", self.not_decided),
            ("not testable", self.not_testable),
            ("not run", self.not_run),
        ];
        counts.into_iter().filter(|(_, count)| *count > 0)
    }

    fn row(&self, name: &str, took: Duration) -> String {
        let Counts { confirmed, direction_only, contradicted, not_decided, not_testable, not_run } = self;
        let (all, took) = (self.all(), text::duration(took));
        format!(
            "| {name} | {took} | {all} | {confirmed} | {direction_only} | {contradicted} | {not_decided} | {not_testable} | {not_run} |\n"
        )
    }
}

/// All studies.
#[derive(Debug)]
pub struct Summary<'a> {
    pub answers: &'a [Answer],
}

impl Summary<'_> {
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.answers.iter().for_each(|answer| total.add(&Counts::of(answer)));
        total
    }

    /// A table for a document, with a sentence about all of them.
    pub fn markdown(&self) -> String {
        let mut page = "| study | trials took | claims | confirmed | direction only | contradicted | not decided | not testable | not run |\n\
                        |---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
            .to_owned();
        for answer in self.answers {
            let name = format!(
                "[{}](studies/{}/claims.md)",
                escaped(&answer.comparison().title),
                answer.folder.study
            );
            page += &Counts::of(answer).row(&format!("{name}, {}", answer.study.source.year), answer.took);
        }
        let total = self.total();
        page += &total.row("all", self.answers.iter().map(|answer| answer.took).sum());
        let _ = writeln!(page, "\n{} {}", self.sentence(), self.reasons());
        page
    }

    /// `Of 120 claims that these runs test, 108 (90.0 %) are confirmed in direction, 80 (66.7 %) in size as well.`
    pub fn sentence(&self) -> String {
        let tested = self.total().tested();
        format!("Of {tested} claims that these runs test, {}", self.confirmed_of(tested))
    }

    /// What keeps the others from it.
    pub fn reasons(&self) -> String {
        let total = self.total();
        let not_built =
            self.answers.iter().flat_map(Answer::claims).filter(|claim| claim.is_not_built()).count();
        let others = total.all() - total.tested();
        let waiting =
            format!("Of the {others} others, {not_built} wait for something that Spindle does not have.");
        let causes = self.causes();
        let of_study = causes.get(&spelling(&Cause::Study)).copied().unwrap_or_default();
        let told = [
            Some(waiting),
            told_causes(causes, total.contradicted),
            self.without(of_study),
            self.to_decide(total.not_decided),
        ];
        told.into_iter().flatten().join(" ")
    }

    /// `108 (90.0 %) are confirmed in direction, 80 (66.7 %) in size as well.`
    fn confirmed_of(&self, count: usize) -> String {
        let total = self.total();
        let in_direction = total.confirmed + total.direction_only;
        let percent = |part: usize| 100.0 * part as f64 / count.max(1) as f64;
        format!(
            "{in_direction} ({:.1} %) are confirmed in direction, {} ({:.1} %) in size as well.",
            percent(in_direction),
            total.confirmed,
            percent(total.confirmed)
        )
    }

    /// `Without the 21 of the study, and those that are not decided, 87 are left: 78 (89.7 %) are confirmed in direction, …`
    fn without(&self, of_study: usize) -> Option<String> {
        let total = self.total();
        let count = (total.tested() - total.not_decided).saturating_sub(of_study);
        (of_study > 0 && count > 0).then(|| {
            format!(
                "Without the {of_study} of the study, and those that are not decided, {count} are left: {}",
                self.confirmed_of(count)
            )
        })
    }

    /// `Of the 17 that are not decided, 9 would be by 2 h of further trials, if figures and their spread stay.`
    fn to_decide(&self, not_decided: usize) -> Option<String> {
        let of_answer = |answer: &Answer| {
            let further = answer.claims().iter().map(|claim| &claim.further_trials);
            let further = further.filter(|further| !further.is_empty()).collect_vec();
            let all = FurtherTrials::joined(further.iter().copied().flatten().cloned());
            (further.len(), FurtherTrials::time(&all))
        };
        let (counts, times): (Vec<usize>, Vec<Duration>) = self.answers.iter().map(of_answer).unzip();
        let count: usize = counts.into_iter().sum();
        let time = text::duration(times.into_iter().sum());
        (count > 0).then(|| {
            format!(
                "Of the {not_decided} that are not decided, {count} would be by {time} of further trials, if figures and their spread stay."
            )
        })
    }

    /// What contradicted claims are put down to, with their number.
    fn causes(&self) -> HashMap<String, usize> {
        let claims = self.answers.iter().flat_map(Answer::claims);
        let claims = claims.filter(|claim| claim.verdict == Verdict::Contradicted && !claim.is_not_run());
        claims.filter_map(|claim| claim.finding.as_ref()).counts_by(|found| spelling(&found.cause))
    }
}

/// `What was found puts 27 of the 37 contradicted claims down to the study, 5 to the model.`
fn told_causes(causes: HashMap<String, usize>, contradicted: usize) -> Option<String> {
    let mut causes: Vec<(String, usize)> = causes.into_iter().collect();
    causes.sort_by_key(|(cause, count)| (Reverse(*count), cause.clone()));
    let ((cause, count), others) = causes.split_first()?;
    let others = others.iter().map(|(cause, count)| format!(", {count} to the {cause}")).join("");
    Some(format!(
        "What was found puts {count} of the {contradicted} contradicted claims down to the {cause}{others}."
    ))
}
