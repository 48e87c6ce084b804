//! What makes a ratio a bound, or no answer at all. Each rule is one sentence with its evidence.
//!
//! A property that is the question is no obstacle: cells whose servers differ in settings alone ask for the
//! effect of these settings, so their durability and their use of memory may differ.

use itertools::Itertools as _;
use spindle_stats::{Answer, Interval, Known, answer};

use super::Limit;
use super::evidence::Evidence;
use crate::record::FileClass;
use crate::report::experiment::{Apart, ServersApart};
use crate::report::format::{self, number};

/// A cell that reads so many times less than the other has its working set in memory.
const READS_FACTOR: f64 = 20.0;
/// Reads per transaction from which a cell waits for its storage.
const READS_FEWEST: f64 = 0.2;
/// Lateness beyond this says nothing about the true figure.
const LATE_MOST: f64 = 0.9;

pub(super) struct Findings {
    /// Why there is no answer, as parts of a sentence.
    pub(super) obstacles: Vec<String>,
    /// Why the ratio is a bound of the true one, on the side of its answer.
    pub(super) bound: Option<(String, Limit)>,
    pub(super) limited_by: Option<Limit>,
}

impl Findings {
    /// Titles and evidence of the baseline and the candidate. `merit` is the interval of the ratio where the
    /// larger figure is the better one.
    pub(super) fn new(
        titles: &[String; 2],
        evidence: &[Evidence; 2],
        apart: Apart,
        answer: Answer,
        merit: Option<Known>,
        within: f64,
    ) -> Findings {
        let limits = [0, 1].map(|side| evidence[side].limit(&titles[side], apart.storage));
        let limited_by = limits.iter().flatten().map(|(limit, _)| *limit).next();
        let (limit, mut bound) = limited(titles, limits, answer);
        let mut obstacles: Vec<String> =
            [unequal_durability(titles, evidence, apart), one_side_in_memory(titles, evidence, apart), limit]
                .into_iter()
                .flatten()
                .collect();
        if obstacles.is_empty() && bound.is_none() {
            match lateness(titles, evidence, answer, merit, within) {
                Some(Late::Obstacle(reason)) => obstacles.push(reason),
                Some(Late::Bound(reason)) => bound = Some((reason, Limit::Lateness)),
                None => {}
            }
        }
        Findings { obstacles, bound, limited_by }
    }
}

/// Commits of one side wait for its redo log, those of the other do not.
fn unequal_durability(titles: &[String; 2], evidence: &[Evidence; 2], apart: Apart) -> Option<String> {
    let is_asked = apart.server == ServersApart::Settings && !apart.storage && !apart.workload;
    let [one, other] = [0, 1].map(|side| evidence[side].flushed_at_commit.as_deref());
    let (one, other) = (one?, other?);
    let is_durable = |logs: &[FileClass]| logs.contains(&FileClass::Redo);
    if is_asked || is_durable(one) == is_durable(other) {
        return None;
    }
    let words = |logs: &[FileClass]| match logs {
        [] => "no log".to_owned(),
        logs => format::list(logs.iter().map(|log| log.words())),
    };
    let [first, second] = titles;
    Some(format!(
        "durability is unequal: a commit of {first} waits for {}, one of {second} for {}",
        words(one),
        words(other)
    ))
}

/// One side reads its storage, the other has its working set in memory.
fn one_side_in_memory(titles: &[String; 2], evidence: &[Evidence; 2], apart: Apart) -> Option<String> {
    let memory = [0, 1].map(|side| evidence[side].storage_memory_bytes);
    let is_asked = apart.workload || apart.server == ServersApart::Settings || memory[0] != memory[1];
    let reads = [evidence[0].reads?, evidence[1].reads?];
    let (fewer, more) = if reads[0] <= reads[1] { (0, 1) } else { (1, 0) };
    if is_asked || reads[more] < READS_FEWEST || reads[fewer] * READS_FACTOR > reads[more] {
        return None;
    }
    Some(format!(
        "the working set is in memory on one side only: {} read {} times per transaction, {} {} times",
        titles[fewer],
        number(reads[fewer]),
        titles[more],
        number(reads[more])
    ))
}

/// The obstacle, or the bound. A limit of the better side alone leaves its figure a lower bound, and so the
/// answer stands. Any other limit hides the answer.
fn limited(
    titles: &[String; 2],
    limits: [Option<(Limit, String)>; 2],
    answer: Answer,
) -> (Option<String>, Option<(String, Limit)>) {
    match (limits, answer) {
        ([None, None], _) => (None, None),
        ([None, Some((limit, words))], Answer::Better) | ([Some((limit, words)), None], Answer::Worse) => {
            (None, Some((format!("{words}, so the true difference may be larger"), limit)))
        }
        ([Some((_, one)), Some((_, other))], _) => {
            (Some(format!("{one} and {}, so the ratio is not the storage's", other)), None)
        }
        ([one, other], _) => {
            let title = &titles[usize::from(one.is_none())];
            let words = one.into_iter().chain(other).map(|(_, words)| words).join(" and ");
            (Some(format!("{words}, so the true figure of {title} may be higher")), None)
        }
    }
}

enum Late {
    Obstacle(String),
    Bound(String),
}

/// Without its lateness, a cell is faster by the share of it at most. An answer that does not survive this is
/// none.
fn lateness(
    titles: &[String; 2],
    evidence: &[Evidence; 2],
    found: Answer,
    merit: Option<Known>,
    within: f64,
) -> Option<Late> {
    let [baseline, candidate] = [0, 1].map(|side| evidence[side].late_share.min(LATE_MOST));
    let merit = merit.filter(|_| found.is_known() && baseline + candidate > 0.0)?;
    let Interval { low, high } = merit.interval;
    let interval = Interval { low: low * (1.0 - baseline), high: high / (1.0 - candidate) };
    let freed = Known { interval, ..merit };
    let words = [0, 1].map(|side| evidence[side].lateness(&titles[side]));
    if std::mem::discriminant(&answer(Some(freed), Some(within), |_, _| None))
        != std::mem::discriminant(&found)
    {
        let words = match words.iter().flatten().join(" and ") {
            words if words.is_empty() => {
                let share = format::percent(baseline.max(candidate));
                format!("the emulator answered late ({share} of all request time)")
            }
            words => words,
        };
        return Some(Late::Obstacle(format!("{words}, and that can be the whole answer")));
    }
    let better_alone = match (words, found) {
        ([None, Some(words)], Answer::Better) | ([Some(words), None], Answer::Worse) => words,
        _ => return None,
    };
    Some(Late::Bound(format!("{better_alone}, so the true difference may be larger")))
}
